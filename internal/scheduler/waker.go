package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

const (
	// gather is how long news is gathered before those that wait are looked at: at the end of a
	// job many pods go at once.
	gather = 20 * time.Millisecond
	// tick is how often it is looked for gangs that wait for pods.
	tick = time.Second
)

// refused is somebody whom the engine refused, with what was asked.
type refused struct {
	pod   *corev1.Pod
	since time.Time
	ask   state.PodGang
	asked state.PodsAsked
	// send has it tried again.
	send func()
}

// wakeUntil wakes those who were refused when the engine has room for them, until ctx ends.
func (d *desk) wakeUntil(ctx context.Context) {
	cache := &placement.Cache{}
	ticker := d.clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			d.tend()
		case <-d.news:
			select {
			case <-ctx.Done():
				return
			case <-d.clock.After(gather):
			}
			d.wake(cache)
		}
	}
}

// wake asks the engine about everybody who was refused, in the order of the queue, and has those
// tried again that would get a place beside the ones woken before them.
func (d *desk) wake(cache *placement.Cache) {
	waiting := d.refused()
	if len(waiting) == 0 {
		return
	}
	trial := d.state.Snapshot().Begin()
	hopeless := map[string]bool{}
	for _, w := range waiting {
		r, err := d.state.PodsQuestion(&w.ask, w.asked)
		if err != nil {
			continue
		}
		// The trial only gets fuller: what had no room in it has none later.
		key := questionKey(&r)
		if hopeless[key] {
			continue
		}
		decision, err := placement.Plan(trial.Snapshot(), &r, placement.Options{Strategies: d.state.Strategies(), Cache: cache, Brief: true})
		if err != nil || !decision.Feasible {
			hopeless[key] = true
			continue
		}
		if err := trial.Place(decision.Placements(&r, &cluster.Workload{Name: r.Name})...); err != nil {
			continue
		}
		w.send()
	}
}

// questionKey is equal for questions that have the same answer: where one has no room, neither has
// the other. Rules are left out: no pod by itself has any, and they would be told by their address.
func questionKey(r *placement.Request) string {
	groups := slices.Clone(r.Groups)
	for i := range groups {
		groups[i].Pod.Rules = nil
	}
	return fmt.Sprintf("%#v %#v %#v", groups, r.Sets, r.Avoid)
}

// refused lists whom the engine refused, in the order of the queue.
func (d *desk) refused() []refused {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []refused
	for _, a := range d.alone {
		if a.refused {
			list = append(list, refused{
				pod: a.pod, since: a.pod.CreationTimestamp.Time, ask: a.ask, asked: askedAlone(a.pod),
				send: func() { d.activate(0, a.pod) },
			})
		}
	}
	for _, g := range d.roster.gangs {
		leader := g.leader()
		ask, err := g.ask()
		if g.refusal == "" || leader == nil || err != nil {
			continue
		}
		list = append(list, refused{
			pod: leader.pod, since: g.since, ask: ask, asked: d.asked(g, &ask),
			send: func() { d.recall(g.name, leader.pod) },
		})
	}
	for _, g := range d.groups {
		if g.refusal != "" && len(g.asked.Parts) > 0 {
			list = append(list, g.waiting(d))
		}
	}
	slices.SortFunc(list, func(a, b refused) int {
		return cmp.Or(
			cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)),
			a.since.Compare(b.since),
			cmp.Compare(a.pod.Namespace+"/"+a.pod.Name, b.pod.Namespace+"/"+b.pod.Name),
		)
	})
	return list
}

// recall has the leader of a gang that was refused tried again.
func (d *desk) recall(name types.NamespacedName, leader *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.roster.gangs[name]; g != nil {
		g.refusal, g.called = "", leader.UID
		d.activate(0, leader)
	}
}

// tend looks after gangs for which no news will come: pods that are missing, nodes that have been
// avoided for long enough, members that wait for a plan that was given up.
func (d *desk) tend() {
	for _, w := range d.stale() {
		w.Reject(Name, "the plan of the gang was given up")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	d.sweep()
	d.tendVictims(now)
	for _, g := range d.roster.gangs {
		if g.expire(now, d.args.AvoidNodeFor.Duration) {
			d.tidings()
		}
		d.gathered(g)
		d.tell(g, now)
	}
	d.tendGroups(now)
}

// tell has members that wait for others, or contradict them, go through the queue once, so that
// their conditions and events say why they wait.
func (d *desk) tell(g *gang, now time.Time) {
	patience := d.args.TellAfter.Duration
	_, problem := g.ask()
	if g.tell || now.Sub(g.changed) < patience || problem == nil && g.complete(now, patience) {
		return
	}
	g.tell = true
	why := g.missing()
	if problem != nil {
		why = problem.Error()
	}
	for _, m := range g.in(idle) {
		if m.told != why {
			d.activate(0, m.pod)
		}
	}
}

// stale returns the members that wait in Permit although their plan was given up: that can happen
// between the moment that Permit told them to wait and the moment that they do.
func (d *desk) stale() []fwk.WaitingPod {
	var waiting, stale []fwk.WaitingPod
	d.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if slices.Contains(w.GetPendingPlugins(), Name) {
			waiting = append(waiting, w)
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range waiting {
		if g := d.roster.of[w.GetPod().UID]; g == nil || g.members[w.GetPod().UID].phase != reserved {
			stale = append(stale, w)
		}
	}
	return stale
}

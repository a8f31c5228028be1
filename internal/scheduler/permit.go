package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Reserve counts the pod as held by the node at once.
func (p *Plugin) Reserve(_ context.Context, s fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if _, isGang := gangKey(pod); isGang {
		p.mu.Lock()
		defer p.mu.Unlock()
		g := p.roster.of[pod.UID]
		c := courseOf(s)
		if g == nil || c == nil {
			return fwk.NewStatus(fwk.Unschedulable, "the pod left its gang")
		}
		m := g.members[pod.UID]
		if m.phase != planned || m.round != c.round || m.node != node {
			return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the plan of gang %s was given up meanwhile", g.name.Name))
		}
		g.to(m, reserved)
	}
	p.state.Assume(unbound(pod), node)
	return nil
}

// unbound is the pod as the API server has it: the scheduler writes the node into its copy before
// anybody knows that it will be bound.
func unbound(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName == "" {
		return pod
	}
	own := *pod
	own.Spec.NodeName = ""
	return &own
}

// Unreserve gives back what Reserve took. A gang of which one member cannot be bound, and none has
// been, gives back all of it.
func (p *Plugin) Unreserve(_ context.Context, s fwk.CycleState, pod *corev1.Pod, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.roster.of[pod.UID]
	if g == nil {
		if a := p.alone[pod.UID]; a != nil {
			a.node = ""
		}
		if p.state.Forget(pod.UID) {
			p.tidings()
		}
		return
	}
	m, c := g.members[pod.UID], courseOf(s)
	if c == nil || m.round != c.round || m.phase != planned && m.phase != reserved && m.phase != released {
		return // What it held was given back before.
	}
	if m.phase == released {
		g.to(m, idle)
		m.node, g.called = "", ""
		if p.state.Forget(pod.UID) {
			p.tidings()
		}
	} else {
		p.giveBack(g, fmt.Sprintf("pod %s of the gang could not be bound to node %s", pod.Name, node))
	}
	p.gathered(g)
}

// Permit has the members of a gang wait until the last of them has its node.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if _, isGang := gangKey(pod); !isGang {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.roster.of[pod.UID]
	if g == nil || g.members[pod.UID].phase != reserved {
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang was given up meanwhile"), 0
	}
	if n := g.count(planned); n > 0 {
		return fwk.NewStatus(fwk.Wait, fmt.Sprintf("waiting for %d more pods of gang %s to have their node", n, g.name.Name)), p.args.PermitTimeout.Duration
	}
	// A gang that has been placed may have lost members since; what comes joins those that are left.
	if ask, _ := g.ask(); !g.started() && g.count(reserved) < ask.Min {
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the plan of gang %s is for fewer pods than it needs", g.name.Name)), 0
	}
	g.misses = 0
	g.forgive()
	for _, m := range g.in(reserved) {
		g.to(m, released)
		if waiting := p.handle.GetWaitingPod(m.pod.UID); waiting != nil {
			waiting.Allow(Name)
		}
	}
	return nil, 0
}

// PostBind notes that the pod is on its node before the API server tells.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) {
	if _, isGang := gangKey(pod); !isGang {
		p.boundAlone(pod)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.roster.of[pod.UID]; g != nil {
		m := g.members[pod.UID]
		g.to(m, bound)
		m.node = node
		p.boundWhole(g)
	}
}

// giveBack ends the plan of a gang: what it holds for members that are not being bound goes back,
// and those that wait for the others are rejected. The caller holds the lock.
func (d *desk) giveBack(g *gang, why string) {
	freed := false
	for _, m := range g.in(planned, reserved) {
		was := m.phase
		g.to(m, idle)
		m.node = ""
		freed = d.state.Forget(m.pod.UID) || freed
		if was == reserved {
			if waiting := d.handle.GetWaitingPod(m.pod.UID); waiting != nil {
				waiting.Reject(Name, fmt.Sprintf("gang %s: %s", g.name.Name, why))
			}
		}
	}
	g.called, g.victims = "", victims{}
	if freed {
		d.tidings()
	}
}

// PostFilter is told that a pod was refused: by the engine, or on the node that the engine chose
// by another plugin, for something that plans do not see.
func (p *Plugin) PostFilter(_ context.Context, s fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := courseOf(s)
	if c == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable) // It is none of the engine's: others may go on.
	}
	if c.node == "" {
		return p.preempt(pod)
	}
	// The scheduler's own count may lag behind State's: a pod that is gone is gone there in a moment.
	lag := false
	if status := statuses.Get(c.node); status != nil {
		lag = status.Plugin() == names.NodeResourcesFit
	}
	if pod.Spec.SchedulingGroup != nil {
		p.refusedGroup(pod, c.node, lag)
		return nil, refuse("")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.roster.of[pod.UID]
	if g == nil {
		p.refusedAlone(pod, lag)
		return nil, refuse("")
	}
	// What was refused before any node was looked at is refused anywhere. Its plugin wakes it.
	if anywhere := statuses.Get(""); anywhere != nil && anywhere.Plugin() != "" {
		p.giveBack(g, fmt.Sprintf("pod %s cannot go anywhere: %s", pod.Name, anywhere.Message()))
		g.first, g.called = pod.UID, pod.UID
		return nil, refuse("")
	}
	g.misses++
	if !lag || g.misses > mostMisses {
		g.refusedBy(c.node, g.members[pod.UID], p.clock.Now())
	}
	p.giveBack(g, fmt.Sprintf("node %s refused pod %s", c.node, pod.Name))
	if leader := g.leader(); leader != nil {
		g.called = leader.pod.UID
		p.activate(pause(g.misses), leader.pod)
	}
	return nil, refuse("")
}

// mostMisses is how often a refusal for lack of room is put down to the scheduler's count being
// behind.
const mostMisses = 10

// pause grows with each miss, to 5 s.
func pause(misses int) time.Duration {
	return min(50*time.Millisecond<<min(misses, 8), 5*time.Second)
}

// refusedAlone has a pod without a gang tried again, by the stock plugins alone if another plugin
// refused the engine's choice for something that it does not see.
func (p *Plugin) refusedAlone(pod *corev1.Pod, lag bool) {
	if p.gone(pod) {
		return
	}
	a := p.alone[pod.UID]
	if a == nil {
		a = &alone{}
		p.alone[pod.UID] = a
	}
	a.pod, a.node = pod, ""
	if p.state.Forget(pod.UID) {
		p.tidings()
	}
	a.misses++
	a.yielded = !lag || a.misses > mostMisses
	p.activate(pause(a.misses), pod)
}

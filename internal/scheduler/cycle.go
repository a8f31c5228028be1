package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// courseKey is where a scheduling cycle keeps what the engine said of its pod.
const courseKey = Name

// course is what the engine said in a pod's scheduling cycle.
type course struct {
	// node is where the pod is to go, "" if the engine refused it; round is its gang's plan.
	node  string
	round int
}

// Clone implements fwk.StateData.
func (c *course) Clone() fwk.StateData { return c }

func courseOf(s fwk.CycleState) *course {
	if data, err := s.Read(courseKey); err == nil {
		if c, ok := data.(*course); ok {
			return c
		}
	}
	return nil
}

// PreEnqueue keeps the members of a gang out of the queue until the gang is complete and planned:
// until then only its leader passes. Pods that have something to be told pass, too.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if key, ok := groupKey(pod); ok {
		return p.preEnqueueGroup(key)
	}
	if _, ok := gangKey(pod); !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone(pod) {
		return nil // Its cycle says so.
	}
	now := p.clock.Now()
	g := p.enter(pod)
	if g == nil || g.tell {
		return nil
	}
	if _, err := g.ask(); err != nil {
		return nil
	}
	if !g.complete(now, p.args.TellAfter.Duration) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, g.missing())
	}
	if g.members[pod.UID].phase != idle {
		return nil
	}
	leader := g.leader()
	if leader.pod.UID == pod.UID {
		g.called = pod.UID
		return nil
	}
	p.gathered(g)
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("waiting for the plan of gang %s, for which pod %s asks", g.name.Name, leader.pod.Name))
}

// PreFilter plans the pod, or its gang if that has no plan yet, and leaves it the one node of the
// plan.
func (p *Plugin) PreFilter(ctx context.Context, s fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pod.Spec.SchedulingGroup != nil {
		return p.preFilterGroup(s, pod)
	}
	_, isGang := gangKey(pod)
	if !isGang && (!concerns(pod) || state.PlannedNode(pod) != "") {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if !p.fed() && !toolscache.WaitForCacheSync(ctx.Done(), p.fed) {
		return nil, fwk.AsStatus(fmt.Errorf("reading the cluster: %w", context.Cause(ctx)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone(pod) {
		s.Write(courseKey, &course{})
		return nil, refuse("the pod is about to end")
	}
	var c *course
	var refused *fwk.Status
	if isGang {
		c, refused = p.planMember(pod)
	} else {
		c, refused = p.planAlone(pod)
	}
	switch {
	case refused != nil:
		s.Write(courseKey, &course{})
		return nil, refused
	case c == nil:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	s.Write(courseKey, c)
	return &fwk.PreFilterResult{NodeNames: sets.New(c.node)}, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin: what others would gain by an eviction is no
// question about this pod's plan.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// planAlone plans a pod without a gang. It returns nothing for a pod that is left to the stock
// plugins.
func (p *Plugin) planAlone(pod *corev1.Pod) (*course, *fwk.Status) {
	a := p.alone[pod.UID]
	if a != nil && a.yielded {
		return nil, nil
	}
	if a != nil && len(a.victims.pods) > 0 {
		return nil, refuse(fmt.Sprintf("waiting for %d pods of lower priority to end", len(a.victims.pods)))
	}
	if a != nil && a.node != "" && p.serves(a.node) {
		return &course{node: a.node}, nil
	}
	ask, err := state.GangOf(pod)
	if err != nil {
		return nil, refuse(err.Error())
	}
	d, err := p.decide(&ask, askedAlone(pod))
	switch {
	case err != nil:
		return nil, refuse(err.Error())
	case !d.Feasible:
		if a == nil {
			a = &alone{}
			p.alone[pod.UID] = a
		}
		a.pod, a.ask, a.refused = pod, ask, true
		return nil, refuse(d.Why.Sentence)
	}
	if a != nil {
		a.refused = false
	}
	return &course{node: d.Nodes()[0]}, nil
}

// planMember returns where a member of a gang goes, and plans the gang first if that has not been
// done. Those that get a node with it are sent for.
func (p *Plugin) planMember(pod *corev1.Pod) (*course, *fwk.Status) {
	now := p.clock.Now()
	g := p.enter(pod)
	if g == nil {
		return nil, refuse("the pod is about to end")
	}
	m := g.members[pod.UID]
	if m.phase == planned && !p.serves(m.node) {
		p.giveBack(g, fmt.Sprintf("node %s, which the plan of the gang counts on, is out of service", m.node))
	}
	if n := len(g.victims.pods); n > 0 {
		return nil, refuse(fmt.Sprintf("gang %s waits for %d pods of lower priority to end", g.name.Name, n))
	}
	if m.phase == planned {
		return &course{node: m.node, round: m.round}, nil
	}
	ask, err := g.ask()
	if err == nil && !g.complete(now, p.args.TellAfter.Duration) {
		err = errors.New(g.missing())
	}
	if err != nil {
		m.told = err.Error()
		return nil, refuse(m.told)
	}
	if leader := g.leader(); g.refusal != "" && leader.pod.UID != pod.UID {
		return nil, refuse(fmt.Sprintf("gang %s waits for room; pod %s tells for what", g.name.Name, leader.pod.Name))
	}
	d, err := p.decide(&ask, p.asked(g, &ask))
	if err == nil && !d.Feasible && g.exhausted(&ask, now) {
		d, err = p.decide(&ask, p.asked(g, &ask))
	}
	if err != nil {
		return nil, refuse(err.Error())
	}
	if !d.Feasible {
		g.refusal = d.Why.Sentence
		return nil, refuse(fmt.Sprintf("gang %s: %s", g.name.Name, d.Why.Sentence))
	}
	p.assign(g, &d)
	p.sendFor(g, pod)
	if m.phase != planned {
		return nil, refuse(fmt.Sprintf("gang %s goes on with %d pods; there is no room for more", g.name.Name, d.Size()))
	}
	return &course{node: m.node, round: m.round}, nil
}

// asked is the question about the members of the gang that have no node.
func (d *desk) asked(g *gang, ask *state.PodGang) state.PodsAsked {
	q := state.PodsAsked{Parts: parts(g.in(idle), g.seeks), Kept: g.kept(), Avoid: g.avoided()}
	if ask.Min < ask.Size {
		q.Least = max(1, ask.Min-len(q.Kept))
	}
	return q
}

// askedAlone is the question about a pod without a gang.
func askedAlone(pod *corev1.Pod) state.PodsAsked {
	return state.PodsAsked{Parts: []state.PodPart{{Pod: pod, Count: 1}}}
}

// parts groups members that are alike, by the rank of the first of each; seeks says as what pod
// each is to be taken.
func parts(members []*member, seeks func(*member) *corev1.Pod) []state.PodPart {
	var list []state.PodPart
	for _, m := range members {
		pod := seeks(m)
		i := partOf(list, pod)
		if i < 0 {
			i, list = len(list), append(list, state.PodPart{Pod: pod})
		}
		list[i].Count++
	}
	return list
}

// partOf returns the index of the part that the pod is like, -1 if there is none.
func partOf(list []state.PodPart, pod *corev1.Pod) int {
	return slices.IndexFunc(list, func(p state.PodPart) bool { return alike(p.Pod, pod) })
}

// itself is the pod of a member.
func itself(m *member) *corev1.Pod { return m.pod }

// alike tells whether two pods ask the same of their nodes.
func alike(a, b *corev1.Pod) bool { return state.Alike(a, b) }

// assign gives nodes to the members without one, those that are alike in the order of their
// ranks, and holds the room.
func (p *Plugin) assign(g *gang, d *placement.Decision) {
	g.round++
	g.refusal, g.tell = "", false
	next := make([]int, len(d.Groups))
	kinds := parts(g.in(idle), g.seeks)
	for _, m := range g.in(idle) {
		i := partOf(kinds, g.seeks(m))
		if next[i] == len(d.Groups[i].Nodes) {
			continue
		}
		g.to(m, planned)
		m.node, m.round = d.Groups[i].Nodes[next[i]], g.round
		next[i]++
		p.state.Assume(m.pod, m.node)
	}
}

// sendFor has all planned members but the given one tried. The scheduler's own list of pods to
// activate would not do: it counts only where the cycle succeeds, and the given member may get
// nothing, or another plugin fail.
func (p *Plugin) sendFor(g *gang, but *corev1.Pod) {
	var others []*corev1.Pod
	for _, m := range g.in(planned) {
		if m.pod.UID != but.UID {
			others = append(others, m.pod)
		}
	}
	p.activate(0, others...)
}

// serves tells whether a node can take pods.
func (p *Plugin) serves(node string) bool {
	n := p.state.Node(node)
	return n != nil && n.Ready && !n.Cordoned
}

// Filter keeps the pod to the node of its plan, also where the scheduler tries a nominated node
// first.
func (p *Plugin) Filter(_ context.Context, s fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if c := courseOf(s); c != nil && c.node != "" && c.node != node.Node().Name {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the plan gives the pod another node")
	}
	return nil
}

// refuse is the answer where the engine says no: no stock plugin is to go on and evict somebody
// for a single pod.
func refuse(why string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
}

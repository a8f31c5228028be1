package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	toolscache "k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// group is a PodGroup with what the engine said of it.
type group struct {
	name types.NamespacedName
	// pods are its members without a node, since is when the first was seen.
	pods  map[types.UID]*corev1.Pod
	since time.Time
	// plan gives each pod its node, in the cycle that it was made in.
	plan map[types.UID]string
	// avoid are nodes that refused a member, with the time of it.
	avoid map[string]time.Time
	// refusal is why there was no room, "" if there was; ask and asked are the question.
	refusal string
	ask     state.PodGang
	asked   state.PodsAsked
	// holdUntil is when its pods may be tried again after a node of its plan refused one.
	holdUntil time.Time
	// told is the last thing that its pods were told of why they wait.
	told string
}

// newStockGenerator returns the stock plugin that places PodGroups, for those without GPUs. It is nil
// where the cluster serves none: a scheduler waits at its start for all informers that were asked
// for.
func newStockGenerator(ctx context.Context, handle fwk.Handle) (fwk.PlacementGeneratePlugin, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		return nil, nil
	}
	stock, err := topologyaware.New(ctx, nil, handle, feature.Features{})
	if err != nil {
		return nil, fmt.Errorf("making the stock plugin for PodGroups: %w", err)
	}
	return stock, nil
}

// groupKey returns the name of the PodGroup that the pod belongs to.
func groupKey(pod *corev1.Pod) (types.NamespacedName, bool) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: *pod.Spec.SchedulingGroup.PodGroupName}, true
}

// noteGroup takes in a pod of a PodGroup, or that it waits no more. The caller holds the lock.
func (d *desk) noteGroup(pod *corev1.Pod, gone bool) {
	key, ok := groupKey(pod)
	if !ok {
		return
	}
	g := d.groups[key]
	if gone || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		if g == nil || g.pods[pod.UID] == nil {
			return
		}
		delete(g.pods, pod.UID)
		if len(g.pods) == 0 {
			delete(d.groups, key)
			return
		}
		d.release(g)
		return
	}
	if g == nil {
		g = &group{name: key, pods: map[types.UID]*corev1.Pod{}, since: d.clock.Now(), avoid: map[string]time.Time{}}
		d.groups[key] = g
	}
	if _, known := g.pods[pod.UID]; !known {
		// What was found about the others is not what there is now.
		d.release(g)
	}
	g.pods[pod.UID] = pod
}

// release has the pods of a PodGroup that was refused tried again. The caller holds the lock.
func (d *desk) release(g *group) {
	if g.refusal != "" {
		g.refusal = ""
		d.activate(0, slices.Collect(maps.Values(g.pods))...)
	}
}

// releaseNamed releases the PodGroup of the name, if its pods wait.
func (d *desk) releaseNamed(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.groups[key]; g != nil {
		d.release(g)
	}
}

// feedGroups has PodGroups that were refused tried again when they ask for something else, or are
// no more: who waits for room is woken by room, but who was refused for what it says is not.
func (d *desk) feedGroups(informer toolscache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { d.onGroup(nil, obj) },
		UpdateFunc: d.onGroup,
		DeleteFunc: func(obj any) { d.onGroup(nil, last(obj)) },
	})
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	return nil
}

// onGroup releases a PodGroup that changed. What is written into its status is no change: the
// refusal is.
func (d *desk) onGroup(old, obj any) {
	now, ok := obj.(*schedulingv1alpha2.PodGroup)
	if !ok {
		return
	}
	if was, ok := old.(*schedulingv1alpha2.PodGroup); ok && was.UID == now.UID && equality.Semantic.DeepEqual(was.Spec, now.Spec) {
		return
	}
	d.releaseNamed(types.NamespacedName{Namespace: now.Namespace, Name: now.Name})
}

// preEnqueueGroup keeps the pods of a PodGroup that was refused out of the queue: left to itself, the
// scheduler tries them again and again.
func (p *Plugin) preEnqueueGroup(key types.NamespacedName) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.groups[key]; g != nil && (g.refusal != "" || p.clock.Now().Before(g.holdUntil)) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for room for PodGroup "+key.Name)
	}
	return nil
}

// GeneratePlacements has the engine plan a PodGroup whose pods ask for GPUs: the one placement that
// it returns is the nodes of the plan.
func (p *Plugin) GeneratePlacements(ctx context.Context, s fwk.PodGroupCycleState, info fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	pods := info.GetUnscheduledPods()
	key := types.NamespacedName{Namespace: info.GetNamespace(), Name: info.GetName()}
	if !slices.ContainsFunc(pods, concerns) {
		p.mu.Lock()
		if g := p.groups[key]; g != nil {
			g.plan = nil
		}
		p.mu.Unlock()
		return p.stock.GeneratePlacements(ctx, s, info, parent)
	}
	object, err := p.podGroups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading PodGroup %s: %w", key, err))
	}
	kept, err := p.scheduledNodes(key)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading what PodGroup %s has on nodes: %w", key, err))
	}
	nodes, level, refusal := p.planGroup(object, pods, kept)
	if refusal != "" {
		return nil, p.refuseGroup(pods[0], len(parent.Nodes), refusal)
	}
	placement := &fwk.Placement{Name: level}
	for _, n := range parent.Nodes {
		if nodes.Has(n.Node().Name) {
			placement.Nodes = append(placement.Nodes, n)
		}
	}
	return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{placement}}, nil
}

// refuseGroup is the answer where the engine has no room for a PodGroup. Without a FitError the
// scheduler would take it for a failure of its own, and try again every few seconds.
func (p *Plugin) refuseGroup(pod *corev1.Pod, nodes int, why string) *fwk.Status {
	return fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{
		Pod:         pod,
		NumAllNodes: nodes,
		Diagnosis: framework.Diagnosis{
			NodeToStatus:         framework.NewDefaultNodeToStatus(),
			UnschedulablePlugins: sets.New(Name),
			PreFilterMsg:         why,
		},
	})
}

// scheduledNodes returns the nodes of the PodGroup's pods that have one.
func (p *Plugin) scheduledNodes(key types.NamespacedName) ([]string, error) {
	states, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, pod := range states.ScheduledPods() {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	return nodes, nil
}

// planGroup plans a PodGroup's pods beside those that have a node. It returns the nodes and what
// they are called together, or why there are none.
func (p *Plugin) planGroup(object *schedulingv1alpha2.PodGroup, pods []*corev1.Pod, kept []string) (nodes sets.Set[string], name, refusal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range pods {
		if !p.gone(pod) {
			p.noteGroup(pod, false)
		}
	}
	g := p.groups[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]
	if g == nil {
		return nil, "", "its pods are about to end"
	}
	g.plan, g.refusal = nil, ""
	members := ranked(pods)
	ask, err := groupAsk(object, members, len(kept))
	if err != nil {
		g.refusal, g.asked.Parts = err.Error(), nil
		return nil, "", g.refusal
	}
	g.ask = ask
	g.asked = state.PodsAsked{Parts: parts(members, itself), Kept: kept, Avoid: p.avoidedBy(g)}
	if ask.Min < ask.Size {
		g.asked.Least = max(1, ask.Min-len(kept))
	}
	d, err := p.decide(&g.ask, g.asked)
	if err != nil {
		g.refusal, g.asked.Parts = err.Error(), nil
		return nil, "", g.refusal
	}
	if !d.Feasible {
		g.refusal = fmt.Sprintf("PodGroup %s: %s", g.name.Name, d.Why.Sentence)
		return nil, "", g.refusal
	}
	g.plan = map[types.UID]string{}
	next := make([]int, len(d.Groups))
	for _, m := range members {
		i := partOf(g.asked.Parts, m.pod)
		if next[i] < len(d.Groups[i].Nodes) {
			g.plan[m.pod.UID] = d.Groups[i].Nodes[next[i]]
			next[i]++
		}
	}
	return sets.New(d.Nodes()...), d.Domain, ""
}

// ranked returns the pods as members, by rank.
func ranked(pods []*corev1.Pod) []*member {
	list := make([]*member, len(pods))
	for i, pod := range pods {
		list[i] = &member{pod: pod, rank: rank(pod)}
	}
	slices.SortFunc(list, byRank)
	return list
}

// groupAsk says what a PodGroup asks for: size and level by its spec, the rest by annotations of
// its first pod.
func groupAsk(object *schedulingv1alpha2.PodGroup, members []*member, kept int) (state.PodGang, error) {
	ask, err := state.GangOf(members[0].pod)
	if err != nil {
		return ask, fmt.Errorf("pod %s: %w", members[0].pod.Name, err)
	}
	ask.Name = types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	ask.Size = len(members) + kept
	ask.Min = 1
	if gang := object.Spec.SchedulingPolicy.Gang; gang != nil {
		ask.Min = min(int(gang.MinCount), ask.Size)
	}
	if c := object.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		ask.Required = c.Topology[0].Key
	}
	return ask, nil
}

// avoidedBy returns the nodes that refused a pod of the group a short while ago.
func (d *desk) avoidedBy(g *group) []string {
	maps.DeleteFunc(g.avoid, func(_ string, at time.Time) bool { return d.clock.Now().Sub(at) > d.args.AvoidNodeFor.Duration })
	return slices.Sorted(maps.Keys(g.avoid))
}

// preFilterGroup leaves a pod of a PodGroup the node of the group's plan.
func (p *Plugin) preFilterGroup(s fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, _ := groupKey(pod)
	g := p.groups[key]
	if g == nil || g.plan == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	node, ok := g.plan[pod.UID]
	if !ok {
		s.Write(courseKey, &course{})
		return nil, refuse(fmt.Sprintf("PodGroup %s goes on with %d pods; there is no room for more", key.Name, len(g.plan)))
	}
	s.Write(courseKey, &course{node: node})
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// refusedGroup notes that the node of a plan refused a pod of a PodGroup, and has the group tried
// again.
func (p *Plugin) refusedGroup(pod *corev1.Pod, node string, lag bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, _ := groupKey(pod)
	g := p.groups[key]
	if g == nil {
		return
	}
	if !lag {
		g.avoid[node] = p.clock.Now()
	}
	g.holdUntil = p.clock.Now().Add(groupPause)
	p.activate(groupPause, slices.Collect(maps.Values(g.pods))...)
}

// groupPause is how long a PodGroup waits after a node of its plan refused one of its pods.
const groupPause = time.Second

// waiting returns the group as somebody whom the engine refused.
func (g *group) waiting(d *desk) refused {
	return refused{
		pod: g.asked.Parts[0].Pod, since: g.since, ask: g.ask, asked: g.asked,
		send: func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.release(g)
		},
	}
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// gatesAtOnce bounds how many pods of one gang are patched at the same time.
const gatesAtOnce = 16

// openGates sends planned pods to their nodes, plans members anew that were lost, and takes
// back pods whose plan was overtaken.
func (r *Reconciler) openGates(ctx context.Context, p *pass) (bool, error) {
	g := r.look(p)
	if g.ranks < int(p.status().Pods.Desired) {
		// A gang that its Job has not made whole (yet, or for a quota) must not start in part.
		return false, nil
	}
	if len(g.overtaken) > 0 {
		if g.bound == 0 {
			return true, r.restart(ctx, p, g.overtaken)
		}
		if err := r.withdraw(ctx, p, g.overtaken); err != nil {
			return true, err
		}
	}
	if len(g.lost) > 0 {
		if err := r.replan(ctx, p, &g); err != nil {
			return true, err
		}
	}
	return false, r.open(ctx, p, g.ready)
}

// gates sorts the pods of the current attempt by what is to be done with them.
type gates struct {
	// ready are gated pods whose node is known.
	ready map[*corev1.Pod]string
	// lost are gated pods that replace members whose plan is used up.
	lost []*corev1.Pod
	// overtaken are pods that their scheduler did not bind where the plan wants them.
	overtaken []*corev1.Pod
	// bound is the number of pods that have a node; kept are the nodes of members that stay.
	bound int
	kept  map[int32]string
	// ranks is the number of ranks that have a pod, in whatever state.
	ranks int
}

func (r *Reconciler) look(p *pass) gates {
	g := gates{ready: make(map[*corev1.Pod]string), kept: make(map[int32]string)}
	ranks := completed(p.job)
	for _, pod := range p.current() {
		rank, ok := state.Rank(pod)
		ranks[rank] = struct{}{}
		if pod.Spec.NodeName != "" {
			g.bound++
		}
		switch {
		case !ok || state.Finished(pod) || pod.DeletionTimestamp != nil:
			continue
		case !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer):
			// A withdrawal that stopped halfway. The Job does not count this pod, whatever
			// becomes of it, and makes another of its rank.
			g.overtaken = append(g.overtaken, pod)
		case pod.Spec.NodeName != "":
			g.kept[rank] = pod.Spec.NodeName
		case slices.ContainsFunc(pod.Spec.SchedulingGates, isOurGate):
			if node, promised := r.state.Promised(p.workload.UID, p.status().Attempt, rank); promised {
				g.ready[pod] = node
				g.kept[rank] = node
			} else {
				g.lost = append(g.lost, pod)
			}
		case r.isOvertaken(p, pod):
			g.overtaken = append(g.overtaken, pod)
		default:
			g.kept[rank] = state.PlannedNode(pod)
		}
	}
	g.ranks = len(ranks)
	return g
}

// isOvertaken tells whether a planned pod has to be taken back: its node is out of service,
// or its scheduler keeps refusing it.
func (r *Reconciler) isOvertaken(p *pass, pod *corev1.Pod) bool {
	node := r.state.Snapshot().Node(state.PlannedNode(pod))
	if node == nil || !node.Ready || node.Cordoned {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		left := c.LastTransitionTime.Add(r.config.BindTimeout).Sub(p.now)
		if left <= 0 {
			return true
		}
		p.lookAgain(left)
	}
	return false
}

// restart gives a gang of which no pod is bound yet a new Job on a new plan.
func (r *Reconciler) restart(ctx context.Context, p *pass, overtaken []*corev1.Pod) error {
	if bound, err := r.liveBound(ctx, p); err != nil || bound {
		return errors.Join(err, errStale)
	}
	pod := overtaken[0]
	message := fmt.Sprintf("%s planned but not bound (%s on %s: %s); planning the gang anew",
		pods(len(overtaken)), pod.Name, state.PlannedNode(pod), refusal(pod))
	for _, pod := range overtaken {
		r.avoid.add(p.workload.UID, state.PlannedNode(pod), p.now.Add(r.config.AvoidFor))
		r.metrics.Withdrawn()
	}
	if err := r.deleteJobs(ctx, p, ""); err != nil {
		return err
	}
	r.release(p)
	p.nextAttempt("PlanOvertaken", message)
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning("PlanOvertaken", "Withdraw", "%s", message)
	return nil
}

// withdraw takes single pods back so that the Job makes new, gated ones. Without its tracking
// finalizer a deleted pod does not count as failed. A withdrawal that stops between the two
// writes is finished by the next pass.
func (r *Reconciler) withdraw(ctx context.Context, p *pass, overtaken []*corev1.Pod) error {
	for _, pod := range overtaken {
		node := state.PlannedNode(pod)
		before := pod.DeepCopy()
		pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
		if len(before.Finalizers) != len(pod.Finalizers) {
			// The resourceVersion refuses it if the pod was bound in the meantime.
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := r.client.Patch(ctx, pod, patch); err != nil {
				return fmt.Errorf("withdrawing pod %s: %w", pod.Name, err)
			}
			r.wrote(p, podResource(), pod.ResourceVersion)
		}
		if err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting withdrawn pod %s: %w", pod.Name, err)
		}
		if rank, ok := state.Rank(pod); ok {
			r.state.ReleaseRanks(p.workload.UID, []int32{rank})
		}
		r.avoid.add(p.workload.UID, node, p.now.Add(r.config.AvoidFor))
		r.metrics.Withdrawn()
		p.warning("PlanOvertaken", "Withdraw", "pod %s was not bound on %s (%s); planning it anew", pod.Name, node, refusal(before))
	}
	return nil
}

// replan finds new nodes for members that were lost, near those that stay.
func (r *Reconciler) replan(ctx context.Context, p *pass, g *gates) error {
	due := g.lost[:0:0]
	for _, pod := range g.lost {
		if wait := r.memberDelay(p, pod); wait > 0 {
			p.lookAgain(wait)
			continue
		}
		due = append(due, pod)
	}
	if len(due) == 0 {
		return nil
	}
	all, err := state.ParsePlacement(p.status().Placement)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var found []int32
	for _, part := range p.bySlice(due, g.kept) {
		d, nodeOf, err := r.ask(p, part)
		switch {
		case err != nil:
			return fmt.Errorf("planning lost members: %w", err)
		case !d.Feasible:
			p.status().Message = fmt.Sprintf("%d of %s to be replaced: %s", len(due), pods(p.status().Pods.Desired), d.Why.Sentence)
			p.waits = true
			continue
		}
		for rank, node := range nodeOf {
			all[rank] = node
			found = append(found, rank)
		}
		p.normal("Replanned", "Plan", "%s lost: %s", pods(len(part.Ranks)), d.Why.Sentence)
	}
	if len(found) == 0 {
		return nil
	}
	p.place(all)
	now := metav1.NewTime(p.now)
	p.status().LastScheduleTime = &now
	if err := r.writeStatus(ctx, p); err != nil {
		r.state.ReleaseRanks(p.workload.UID, found)
		return err
	}
	for _, pod := range due {
		if rank, _ := state.Rank(pod); slices.Contains(found, rank) {
			g.ready[pod] = all[rank]
		}
	}
	return nil
}

// bySlice divides lost members into questions to the engine: one for each slice, so that every
// slice stays in one domain.
func (p *pass) bySlice(due []*corev1.Pod, kept map[int32]string) []state.Ask {
	size := int32(math.MaxInt32)
	if t := p.workload.Spec.Topology; t != nil && t.Slice != nil {
		size = t.Slice.Size
	}
	bySlice := make(map[int32]*state.Ask)
	for _, pod := range due {
		rank, _ := state.Rank(pod)
		ask, ok := bySlice[rank/size]
		if !ok {
			ask = &state.Ask{Attempt: p.status().Attempt}
			for other, node := range kept {
				if other/size == rank/size {
					ask.Kept = append(ask.Kept, node)
				}
			}
			if ask.InSlice = len(ask.Kept) > 0 && size < math.MaxInt32; !ask.InSlice {
				ask.Kept = slices.Collect(maps.Values(kept))
			}
			bySlice[rank/size] = ask
		}
		ask.Ranks = append(ask.Ranks, rank)
	}
	asks := make([]state.Ask, 0, len(bySlice))
	for _, slice := range slices.Sorted(maps.Keys(bySlice)) {
		slices.Sort(bySlice[slice].Ranks)
		asks = append(asks, *bySlice[slice])
	}
	return asks
}

// memberDelay returns how long the replacement of a failed member has yet to wait.
func (r *Reconciler) memberDelay(p *pass, pod *corev1.Pod) time.Duration {
	rank, _ := state.Rank(pod)
	var last time.Time
	failures := int32(0)
	for _, other := range p.current() {
		if other.Status.Phase == corev1.PodFailed && !disrupted(other) {
			failures++
			if of, ok := state.Rank(other); ok && of == rank && endOf(other).After(last) {
				last = endOf(other)
			}
		}
	}
	if last.IsZero() {
		return 0
	}
	next := last.Add(r.delay(p.workload, max(failures-1, 0)))
	if wait := next.Sub(p.now); wait > 0 {
		at := metav1.NewTime(next)
		p.status().NextRetryTime = &at
		return wait
	}
	p.status().NextRetryTime = nil
	return 0
}

// open sends each pod to its node: one patch pins it and takes the gate away. The patch
// carries the resourceVersion, so that it applies to the pod that was looked at or not at all.
func (r *Reconciler) open(ctx context.Context, p *pass, ready map[*corev1.Pod]string) error {
	var group errgroup.Group
	group.SetLimit(gatesAtOnce)
	for pod, node := range ready {
		group.Go(func() error {
			before := pod.DeepCopy()
			pin(pod, node)
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := r.client.Patch(ctx, pod, patch); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("sending pod %s to %s: %w", pod.Name, node, err)
			}
			r.wrote(p, podResource(), pod.ResourceVersion)
			return nil
		})
	}
	return group.Wait()
}

// pin leaves the pod one node and takes our gate away. A gated pod's affinity may only be
// narrowed, so the node is added to every term there is.
func pin(pod *corev1.Pod, node string) {
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	for i := range required.NodeSelectorTerms {
		t := &required.NodeSelectorTerms[i]
		t.MatchFields = append(t.MatchFields, field)
	}
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Annotations[gpuv1alpha1.PlannedNodeAnnotation] = node
	pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, isOurGate)
}

func isOurGate(g corev1.PodSchedulingGate) bool { return g.Name == gpuv1alpha1.SchedulingGate }

// refusal is what the scheduler says of a pod it does not bind.
func refusal(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			return c.Message
		}
	}
	return "the node is out of service"
}

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// victimIndex finds workloads by the UIDs of those that have to make way for them.
const victimIndex = "victim-uid"

func addVictimIndex(ctx context.Context, c cache.Cache) error {
	err := c.IndexField(ctx, &gpuv1alpha1.GPUWorkload{}, victimIndex, victimUIDs)
	if err != nil {
		return fmt.Errorf("indexing workloads by their victims: %w", err)
	}
	return nil
}

func victimUIDs(o client.Object) []string {
	w, ok := o.(*gpuv1alpha1.GPUWorkload)
	if !ok {
		return nil
	}
	uids := make([]string, len(w.Status.Preempting))
	for i := range w.Status.Preempting {
		uids[i] = string(w.Status.Preempting[i].UID)
	}
	return uids
}

// preemptors returns those whose plan wants the room of the given workload, as the cache knows.
func (r *Reconciler) preemptors(ctx context.Context, uid types.UID) ([]gpuv1alpha1.GPUWorkload, error) {
	var list gpuv1alpha1.GPUWorkloadList
	if err := r.client.List(ctx, &list, client.MatchingFields{victimIndex: string(uid)}); err != nil {
		return nil, fmt.Errorf("looking for plans that evict this workload: %w", err)
	}
	return list.Items, nil
}

// yield has the workload make way for one of higher priority whose plan names it. Evicting is
// final, so the API server itself is asked whether that plan stands still: its owner may have
// been deleted or suspended, or have found room elsewhere.
func (r *Reconciler) yield(ctx context.Context, p *pass) (bool, error) {
	if !p.planned() {
		return false, nil
	}
	named, err := r.preemptors(ctx, p.workload.UID)
	if err != nil {
		return true, err
	}
	var mover *gpuv1alpha1.GPUWorkload
	for i := range named {
		var live gpuv1alpha1.GPUWorkload
		key := client.ObjectKeyFromObject(&named[i])
		if err := r.live.Get(ctx, key, &live); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return true, fmt.Errorf("reading %s, which evicts this workload: %w", key, err)
		}
		switch v := wants(&live, p.workload); {
		case v == nil:
		case !v.Move:
			return r.evict(ctx, p, &live)
		case mover == nil:
			mover = &live
		}
	}
	// Moving can wait for another place without end, so that who evicts comes first.
	if mover != nil {
		return r.move(ctx, p, mover)
	}
	return false, nil
}

// mayLeave asks the API server itself whether the Job of a workload that has to make way runs: one
// that has just done its work would do all of it again.
func (r *Reconciler) mayLeave(ctx context.Context, p *pass) (bool, error) {
	var live batchv1.Job
	key := client.ObjectKey{Namespace: p.workload.Namespace, Name: p.status().JobName}
	err := r.live.Get(ctx, key, &live)
	switch {
	case apierrors.IsNotFound(err) && p.status().JobUID == "":
		return true, nil // It was not made yet.
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("reading Job %s, which has to make way: %w", key, err)
	case err != nil || p.status().JobUID != "" && live.UID != p.status().JobUID:
		return false, fmt.Errorf("making way: %w", errStale)
	}
	if kind, _ := jobEnd(&live); kind != "" {
		return false, fmt.Errorf("making way: %w", errStale)
	}
	if succeeding(&live) {
		p.lookAgain(moveAgain) // Its end is only a matter of the last pods.
		return false, nil
	}
	return true, nil
}

// wants returns how a standing plan of the first workload wants the room of the second, nil if it
// does not. Its Job must have been let in: what a quota keeps from running evicts nobody.
func wants(by, victim *gpuv1alpha1.GPUWorkload) *gpuv1alpha1.Victim {
	if by.DeletionTimestamp != nil || by.Spec.Suspend || by.Status.Phase.Finished() ||
		len(by.Status.Placement) == 0 || by.Status.JobUID == "" {
		return nil
	}
	for i := range by.Status.Preempting {
		v := &by.Status.Preempting[i]
		if v.UID == victim.UID && v.Attempt == victim.Status.Attempt && mayTake(by, victim, v.Move) {
			return v
		}
	}
	return nil
}

// mayTake tells whether the first workload may have the second one move, or evict it.
func mayTake(by, victim *gpuv1alpha1.GPUWorkload, move bool) bool {
	if move {
		return victim.Spec.Movable && by.Spec.ClassName == victim.Spec.ClassName
	}
	return mayEvict(by, victim)
}

// mayEvict tells whether the first workload may take the place of the second. Because the
// priority falls with every eviction, an evicted workload that evicts others comes to an end.
func mayEvict(by, victim *gpuv1alpha1.GPUWorkload) bool {
	return by.Evicts() && victim.Evictable() && state.Priority(by) > state.Priority(victim) &&
		by.Spec.ClassName == victim.Spec.ClassName
}

// evict puts the workload back among those that wait. It is no failure and uses up no retry. The
// status comes first: a process that finds the Job gone and no reason would report it as deleted
// by somebody.
func (r *Reconciler) evict(ctx context.Context, p *pass, by *gpuv1alpha1.GPUWorkload) (bool, error) {
	if may, err := r.mayLeave(ctx, p); !may {
		return err != nil, err
	}
	message := fmt.Sprintf("made way for %s/%s, which has priority %s; waiting to start anew",
		by.Namespace, by.Name, priorityName(by))
	pods := int(p.status().Pods.Desired)
	p.nextAttempt("Preempted", message)
	p.condition(gpuv1alpha1.ConditionPreempted, metav1.ConditionTrue, "PreemptedByHigherPriority", message)
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning("Preempted", "Preempt", "%s", message)
	if err := r.writeStatus(ctx, p); err != nil {
		return true, err
	}
	p.tell = true
	r.metrics.MadeWay(pods)
	r.release(p)
	return true, r.deleteJobs(ctx, p, "")
}

func priorityName(w *gpuv1alpha1.GPUWorkload) gpuv1alpha1.WorkloadPriority {
	if w.Spec.Priority == "" {
		return gpuv1alpha1.PriorityMedium
	}
	return w.Spec.Priority
}

// makeWay holds a plan's pods back until those that it evicts have made way.
func (r *Reconciler) makeWay(ctx context.Context, p *pass) (bool, error) {
	s := p.status()
	if len(s.Preempting) == 0 {
		return false, nil
	}
	// Victims look for the Job's UID before they go.
	if p.before.JobUID == "" {
		if err := r.writeStatus(ctx, p); err != nil {
			return true, err
		}
	}
	// It waits from before it looks: a pod that ends meanwhile must wake it.
	r.waker.wait(client.ObjectKeyFromObject(p.workload), priorityOf(p.workload), false)
	left, err := r.remaining(ctx, p)
	if err != nil {
		return true, err
	}
	crowded, out := r.state.Crowded(p.workload.UID)
	switch {
	case len(out) > 0:
		return true, r.abandon(ctx, p, out, fmt.Sprintf("node %s went out of service before it was free", out[0]))
	case left.stays != "":
		return true, r.abandon(ctx, p, nil, left.stays+" may not be evicted or moved any more")
	case left.pods > 0 || left.workloads > 0 && len(crowded) > 0:
		return true, r.waitForWay(ctx, p, &left)
	}
	// Whoever has not gone by now need not go any more: the room is there.
	s.Preempting = nil
	s.LastScheduleTime = new(metav1.NewTime(p.now))
	p.enter(gpuv1alpha1.PhaseScheduling, "those that were evicted have made way")
	return false, r.writeStatus(ctx, p)
}

// remainder is what is left of the victims of a plan.
type remainder struct {
	// workloads is how many have not made way, stays one that cannot be made to.
	workloads int
	stays     string
	// pods is how many of their pods are on the plan's nodes still, nodes where, and names whose
	// they are; until is when the last of them should have ended.
	pods  int
	nodes []string
	names []string
	until time.Time
}

func (r *Reconciler) remaining(ctx context.Context, p *pass) (remainder, error) {
	var left remainder
	for _, v := range p.status().Preempting {
		name := v.Namespace + "/" + v.Name
		var w gpuv1alpha1.GPUWorkload
		err := r.client.Get(ctx, types.NamespacedName{Namespace: v.Namespace, Name: v.Name}, &w)
		if client.IgnoreNotFound(err) != nil {
			return left, fmt.Errorf("reading victim %s: %w", name, err)
		}
		if err == nil && w.UID == v.UID && w.DeletionTimestamp == nil && !w.Status.Phase.Finished() && w.Status.Attempt <= v.Attempt {
			left.workloads++
			if !mayTake(p.workload, &w, v.Move) {
				left.stays = name
			}
		}
		if err := r.remainingPods(ctx, p, &v, &left); err != nil {
			return left, err
		}
	}
	return left, nil
}

// remainingPods counts the pods of a victim on the plan's nodes, bound or on their way there.
func (r *Reconciler) remainingPods(ctx context.Context, p *pass, v *gpuv1alpha1.Victim, left *remainder) error {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(v.Namespace), client.MatchingFields{uidIndex: string(v.UID)}); err != nil {
		return fmt.Errorf("listing the pods of victim %s/%s: %w", v.Namespace, v.Name, err)
	}
	before := left.pods
	for i := range list.Items {
		pod := &list.Items[i]
		node := pod.Spec.NodeName
		if node == "" {
			node = state.PlannedNode(pod)
		}
		if !ofJob(pod) || state.Finished(pod) || attemptOf(pod) > v.Attempt || !slices.Contains(p.status().AssignedNodes, node) {
			continue
		}
		left.pods++
		left.nodes = append(left.nodes, node)
		if pod.DeletionTimestamp != nil && pod.DeletionTimestamp.After(left.until) {
			left.until = pod.DeletionTimestamp.Time
		}
	}
	if left.pods > before {
		left.names = append(left.names, v.Namespace+"/"+v.Name)
	}
	return nil
}

// waitForWay says what is waited for, and gives the plan up where that takes longer than it may.
func (r *Reconciler) waitForWay(ctx context.Context, p *pass, left *remainder) error {
	s := p.status()
	since := p.now
	if s.LastScheduleTime != nil {
		since = s.LastScheduleTime.Time
	}
	// The deletion timestamp of a pod is the end of its grace period.
	if left.until.After(since) {
		since = left.until
	}
	timeout := giveUpAfter * r.config.BindTimeout
	wait := since.Add(timeout).Sub(p.now)
	if wait <= 0 {
		return r.abandon(ctx, p, left.nodes, fmt.Sprintf("%s did not make way within %s", someOf(left.names), timeout))
	}
	p.lookAgain(wait)
	p.waits = true
	p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionFalse, "MakingWay", "others are making way")
	message := fmt.Sprintf("waiting for %d workloads to make way", left.workloads)
	if left.workloads == 1 {
		message = "waiting for 1 workload to make way"
	}
	if left.pods > 0 {
		message = fmt.Sprintf("waiting for %s of %s to end", pods(left.pods), someOf(left.names))
	}
	p.enter(gpuv1alpha1.PhaseScheduling, "%s", message)
	return nil
}

// abandon gives up a plan that cannot be carried out, before any pod was sent anywhere, and has
// the workload planned anew. The nodes are left out of its plans for a while.
func (r *Reconciler) abandon(ctx context.Context, p *pass, nodes []string, why string) error {
	for _, node := range nodes {
		r.avoid.add(p.workload.UID, node, p.now.Add(r.config.AvoidFor))
	}
	message := why + "; planning anew"
	p.nextAttempt("PlanOvertaken", message)
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning("PlanOvertaken", "Withdraw", "%s", message)
	if err := r.writeStatus(ctx, p); err != nil {
		return err
	}
	p.tell = true
	r.release(p)
	return r.deleteJobs(ctx, p, "")
}

// victimNames lists whom a plan evicts, for a message.
func victimNames(victims []gpuv1alpha1.Victim) string {
	names := make([]string, len(victims))
	for i := range victims {
		names[i] = victims[i].Namespace + "/" + victims[i].Name
	}
	return someOf(names)
}

// someOf lists up to three names and says how many more there are.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// reasonJobRefused says that the API server refused the Job for what is in the template: it
// would refuse it again until the spec changes.
const reasonJobRefused = "JobRefused"

// errGone says that the workload is no more, so that there is no status to write.
var errGone = errors.New("the workload is gone")

// remove, for a workload that is being deleted, deletes its Jobs and, once no pod is left, the
// finalizer.
func (r *Reconciler) remove(ctx context.Context, p *pass) (bool, error) {
	w := p.workload
	if w.DeletionTimestamp == nil {
		return false, nil
	}
	r.release(p)
	if !controllerutil.ContainsFinalizer(w, gpuv1alpha1.Finalizer) {
		return true, errGone
	}
	if err := r.deleteJobs(ctx, p, ""); err != nil {
		return true, err
	}
	if len(p.jobs) > 0 || len(p.pods) > 0 {
		if p.status().Phase != "" {
			p.status().Message = fmt.Sprintf("being deleted; waiting for %s to end", pods(len(p.pods)))
		}
		return true, nil
	}
	// The cache may be behind, and it shows only Jobs that carry our labels; letting go is
	// final, so ask the API server itself.
	if gone, err := r.liveJobsGone(ctx, w); err != nil || !gone {
		p.lookAgain(500 * time.Millisecond)
		return true, err
	}
	var left corev1.PodList
	err := r.live.List(ctx, &left, client.InNamespace(w.Namespace),
		client.MatchingLabels{gpuv1alpha1.WorkloadUIDLabel: string(w.UID)})
	if err != nil {
		return true, fmt.Errorf("looking for pods that are left: %w", err)
	}
	if slices.ContainsFunc(left.Items, func(pod corev1.Pod) bool { return ofJob(&pod) }) {
		p.lookAgain(500 * time.Millisecond)
		return true, nil
	}
	before := w.DeepCopy()
	controllerutil.RemoveFinalizer(w, gpuv1alpha1.Finalizer)
	err = r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("removing the finalizer: %w", err)
	}
	return true, errGone
}

// liveJobsGone deletes what Jobs of the workload the API server still has, and tells whether
// there were none.
func (r *Reconciler) liveJobsGone(ctx context.Context, w *gpuv1alpha1.GPUWorkload) (bool, error) {
	var jobs batchv1.JobList
	if err := r.live.List(ctx, &jobs, client.InNamespace(w.Namespace)); err != nil {
		return false, fmt.Errorf("looking for Jobs that are left: %w", err)
	}
	gone := true
	for i := range jobs.Items {
		if j := &jobs.Items[i]; metav1.IsControlledBy(j, w) {
			gone = false
			if err := r.deleteJob(ctx, j); err != nil {
				return false, err
			}
		}
	}
	return gone, nil
}

// protect adds the finalizer.
func (r *Reconciler) protect(ctx context.Context, p *pass) (bool, error) {
	w := p.workload
	if controllerutil.ContainsFinalizer(w, gpuv1alpha1.Finalizer) {
		return false, nil
	}
	status := w.Status.DeepCopy()
	before := w.DeepCopy()
	controllerutil.AddFinalizer(w, gpuv1alpha1.Finalizer)
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, fmt.Errorf("adding the finalizer: %w", err)
	}
	w.Status = *status
	r.wrote(p, workloadResource(), w.ResourceVersion)
	return false, nil
}

// expire deletes a finished workload when its time to live is over, and ends the pass for any
// finished workload.
func (r *Reconciler) expire(ctx context.Context, p *pass) (bool, error) {
	w := p.workload
	if !p.status().Phase.Finished() {
		return false, nil
	}
	r.release(p)
	r.avoid.forget(w.UID)
	r.pacer.forget(w.UID)
	// A leader that was paused can make a Job of an attempt that is over by now.
	for i := range p.jobs {
		if kind, _ := jobEnd(&p.jobs[i]); kind == "" {
			if err := r.deleteJob(ctx, &p.jobs[i]); err != nil {
				return true, err
			}
		}
	}
	if w.Spec.TTLSecondsAfterFinished == nil || p.status().CompletionTime == nil {
		return true, nil
	}
	end := p.status().CompletionTime.Add(time.Duration(*w.Spec.TTLSecondsAfterFinished) * time.Second)
	if wait := end.Sub(p.now); wait > 0 {
		p.lookAgain(wait)
		return true, nil
	}
	err := r.client.Delete(ctx, w,
		client.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("deleting the workload after its time to live: %w", err)
	}
	return true, nil
}

// suspend stops a workload that is to be suspended, and notes when it is resumed.
func (r *Reconciler) suspend(ctx context.Context, p *pass) (bool, error) {
	s := p.status()
	if !p.workload.Spec.Suspend {
		if p.is(gpuv1alpha1.ConditionSuspended) {
			p.condition(gpuv1alpha1.ConditionSuspended, metav1.ConditionFalse, "Resumed", "spec.suspend is false")
			p.normal("Resumed", "Resume", "resumed; it will be planned anew")
		}
		return false, nil
	}
	r.release(p)
	if !p.is(gpuv1alpha1.ConditionSuspended) {
		p.condition(gpuv1alpha1.ConditionSuspended, metav1.ConditionTrue, "Suspended", "spec.suspend is true")
		p.normal("Suspended", "Suspend", "suspended; its pods end and its GPUs are free for others")
		if p.planned() || p.job != nil {
			p.nextAttempt("Suspended", "spec.suspend is true")
		}
	}
	if err := r.deleteJobs(ctx, p, ""); err != nil {
		return true, err
	}
	s.JobName, s.NextRetryTime = "", nil
	if n := unfinished(p.pods); n > 0 {
		p.enter(gpuv1alpha1.PhasePending, "suspended; waiting for %s to end", pods(n))
	} else {
		p.enter(gpuv1alpha1.PhasePending, "suspended; set spec.suspend to false to run it")
	}
	return true, nil
}

// accept refuses a spec that cannot be carried out, with a sentence that says what to change.
func (r *Reconciler) accept(_ context.Context, p *pass) (bool, error) {
	c := meta.FindStatusCondition(p.status().Conditions, gpuv1alpha1.ConditionAccepted)
	if c != nil && c.Reason == reasonJobRefused && c.ObservedGeneration == p.workload.Generation {
		return true, nil
	}
	template, err := podTemplate(p.workload, r.config.DefaultImage)
	switch {
	case p.planned() && p.job != nil:
		// What stands was made from the template as it was. A change is for the next attempt,
		// and whether it can be carried out is said, but stops nothing.
		p.template = &p.job.Spec.Template
		r.judgeSpec(p, err)
	case err != nil:
		if p.planned() {
			p.nextAttempt("InvalidSpec", err.Error())
		}
		return r.refuse(p, err)
	default:
		p.template = template
	}
	if p.planned() {
		nodeOf, err := state.ParsePlacement(p.status().Placement)
		if err != nil {
			return true, fmt.Errorf("reading the plan: %w", err)
		}
		r.state.Confirm(p.workload, podOf(p.workload, p.template), nodeOf)
	}
	return false, nil
}

// judgeSpec says whether the spec can be carried out, without consequences.
func (r *Reconciler) judgeSpec(p *pass, err error) {
	if err == nil {
		p.condition(gpuv1alpha1.ConditionAccepted, metav1.ConditionTrue, "Accepted", "the spec can be carried out")
		return
	}
	if p.is(gpuv1alpha1.ConditionAccepted) {
		p.warning("InvalidSpec", "Accept", "the next attempt could not start: %s", err.Error())
	}
	p.condition(gpuv1alpha1.ConditionAccepted, metav1.ConditionFalse, "InvalidSpec", "the next attempt could not start: "+err.Error())
}

// refuse reports an *state.InvalidError; other errors it passes on. No plan may stand.
func (r *Reconciler) refuse(p *pass, err error) (bool, error) {
	var invalid *state.InvalidError
	if !errors.As(err, &invalid) {
		return true, err
	}
	// A plan whose write was refused, by the edit that is refused now, is held still.
	r.release(p)
	if c := meta.FindStatusCondition(p.status().Conditions, gpuv1alpha1.ConditionAccepted); c == nil || c.Message != invalid.Error() {
		p.warning("InvalidSpec", "Accept", "%s", invalid.Error())
		r.metrics.Failed("InvalidSpec")
	}
	p.condition(gpuv1alpha1.ConditionAccepted, metav1.ConditionFalse, "InvalidSpec", invalid.Error())
	p.enter(gpuv1alpha1.PhasePending, "%s", invalid.Error())
	p.status().JobName, p.status().NextRetryTime = "", nil
	return true, nil
}

// deadline fails a workload that has been active for longer than it may.
func (r *Reconciler) deadline(ctx context.Context, p *pass) (bool, error) {
	limit, start := p.workload.Spec.ActiveDeadlineSeconds, p.status().StartTime
	if limit == nil || start == nil {
		return false, nil
	}
	if wait := start.Add(time.Duration(*limit) * time.Second).Sub(p.now); wait > 0 {
		p.lookAgain(wait)
		return false, nil
	}
	if err := r.deleteJobs(ctx, p, ""); err != nil {
		return true, err
	}
	p.fail("DeadlineExceeded", fmt.Sprintf("stopped: it was active for longer than activeDeadlineSeconds (%d s)", *limit))
	r.release(p)
	return true, nil
}

// deleteJobs deletes the workload's Jobs except the one named keep.
func (r *Reconciler) deleteJobs(ctx context.Context, p *pass, keep string) error {
	checked := false
	for i := range p.jobs {
		j := &p.jobs[i]
		if j.Name == keep || j.DeletionTimestamp != nil {
			continue
		}
		if !checked {
			if err := r.upToDate(ctx, p); err != nil {
				return err
			}
			checked = true
		}
		if err := r.deleteJob(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// upToDate asks the API server itself whether the workload is as this pass sees it. A leader that
// was paused and replaced goes on for seconds before it knows; its cache can then show a new Job
// beside the old status, in which that Job belongs to no plan.
func (r *Reconciler) upToDate(ctx context.Context, p *pass) error {
	var live gpuv1alpha1.GPUWorkload
	err := r.live.Get(ctx, client.ObjectKeyFromObject(p.workload), &live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading the workload before its Jobs are deleted: %w", err)
	case err != nil || live.UID != p.workload.UID || live.ResourceVersion != p.workload.ResourceVersion:
		return fmt.Errorf("deleting Jobs: %w", errStale)
	}
	return nil
}

func (r *Reconciler) deleteJob(ctx context.Context, j *batchv1.Job) error {
	if j.DeletionTimestamp != nil {
		return nil
	}
	// The resourceVersion refuses the delete if the Job has gone on since it was looked at: its
	// pods may run by now, and whoever decided this may have been paused for a while.
	err := r.client.Delete(ctx, j,
		client.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	// A conflict may mean that another Job has the name by now, or nothing but bad luck. The next
	// pass sees which; going on as if the Job were gone can leave it running for good.
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", j.Name, err)
	}
	return nil
}

// fail ends the workload for good.
func (p *pass) fail(reason, message string) {
	p.finish(gpuv1alpha1.PhaseFailed, reason, message)
	p.warning(reason, "Fail", "%s", message)
}

// finish sets everything that says that the workload has ended.
func (p *pass) finish(phase gpuv1alpha1.WorkloadPhase, reason, message string) {
	p.enter(phase, "%s", message)
	p.status().NextRetryTime, p.status().Preempting = nil, nil
	p.status().CompletionTime = ptr.To(metav1.NewTime(p.now))
	p.condition(gpuv1alpha1.ConditionFinished, metav1.ConditionTrue, reason, message)
}

func finishReason(s *gpuv1alpha1.GPUWorkloadStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, gpuv1alpha1.ConditionFinished); c != nil {
		return c.Reason
	}
	return "Unknown"
}

func scheduled(s *gpuv1alpha1.GPUWorkloadStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, gpuv1alpha1.ConditionScheduled)
}

func unfinished(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if !state.Finished(&pods[i]) {
			n++
		}
	}
	return n
}

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// reservations is the request that has it decided for whom room is held.
func reservations() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: "\x00reservations"}}
}

// The reasons of a workload that waits for room.
const (
	reasonNoRoom   = "NoRoom"
	reasonReserved = "Reserved"
)

const (
	// reserveAfter gathers the news of one moment, and lets those that find room at once do so.
	reserveAfter = 500 * time.Millisecond
	// reserveEvery is how often it is decided anew without any news: what was expected to end
	// may not have, and patience comes to an end.
	reserveEvery = 15 * time.Second
)

// reserve decides for whom room is held, once for all that wait. Those whose reservation changed
// are looked at so that they say so, and all of them if there is room for others now.
func (r *Reconciler) reserve(now time.Time) ctrl.Result {
	every := reserveEvery
	if p := r.config.Reservations.Patience; p > 0 {
		every = min(every, max(p, time.Second))
	}
	if !r.isRestored() {
		return ctrl.Result{RequeueAfter: every}
	}
	changed, loosened := r.state.Reserve(now)
	for _, key := range changed {
		r.waker.again(key)
	}
	if loosened {
		r.waker.freed()
	}
	if key, found := r.state.Propose(now); found {
		r.waker.again(key)
	}
	return ctrl.Result{RequeueAfter: every}
}

// waitsSince is from when on the workload waits for room without a break: neither the time during
// which it was suspended counts, nor that between two tries.
func waitsSince(w *gpuv1alpha1.GPUWorkload) time.Time {
	since := w.CreationTimestamp.Time
	for _, kind := range []string{gpuv1alpha1.ConditionPlanned, gpuv1alpha1.ConditionSuspended} {
		c := meta.FindStatusCondition(w.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	if next := w.Status.NextRetryTime; next != nil && next.After(since) {
		since = next.Time
	}
	return since
}

// restoreWaiting remembers a workload that waits for room, so that what it could hold is not given
// away before its turn comes.
func (r *Reconciler) restoreWaiting(w *gpuv1alpha1.GPUWorkload) {
	c := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionPlanned)
	if w.Spec.Suspend || meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionSuspended) || w.DeletionTimestamp != nil || c == nil || c.Reason != reasonNoRoom && c.Reason != reasonReserved {
		return
	}
	// What cannot be planned as written says so when its turn comes.
	if pod, err := PodOf(w, r.config.DefaultImage); err == nil {
		r.state.Await(w, pod, waitsSince(w))
	}
}

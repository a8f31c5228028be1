package state

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// The reasons for which a GPUWorkload waits, as metrics count them. Conditions may give others,
// which count as PendingOther.
const (
	// PendingNew has not been looked at yet.
	PendingNew = "New"
	// PendingInvalid has a spec that cannot be carried out.
	PendingInvalid = "Invalid"
	// PendingSuspended is suspended by its owner.
	PendingSuspended = "Suspended"
	// PendingRetry has failed and pauses before its next attempt.
	PendingRetry = "Retry"
	// PendingNoRoom waits for others to end.
	PendingNoRoom = "NoRoom"
	// PendingReserved waits for others to end, and room is held for it.
	PendingReserved = "Reserved"
	// PendingPreempted made way for another and has not been looked at again.
	PendingPreempted = "Preempted"
	// PendingNeverFits would not fit if nothing ran.
	PendingNeverFits = "NeverFits"
	// PendingOther waits for something else, which its message names.
	PendingOther = "Other"
)

func pendingReasons() []string {
	return []string{
		PendingNew, PendingInvalid, PendingSuspended, PendingRetry, PendingNoRoom, PendingReserved,
		PendingPreempted, PendingNeverFits, PendingOther,
	}
}

// news is what metrics want to know of what the API server tells, and placement does not. It has
// a lock of its own: a scrape is no reason to hold up a plan.
type news struct {
	last atomic.Int64

	mu      sync.Mutex
	waiting map[types.UID]string
	count   map[string]int
}

// Heard returns when the API server last told anything of a node, a pod or a workload; zero if
// it never did.
func (s *State) Heard() time.Time {
	at := s.news.last.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// Pending counts the GPUWorkloads that wait, by reason; a reason that nobody waits for is 0.
func (s *State) Pending() map[string]int {
	s.news.mu.Lock()
	defer s.news.mu.Unlock()
	all := make(map[string]int, len(s.news.count))
	for _, reason := range pendingReasons() {
		all[reason] = s.news.count[reason]
	}
	return all
}

func (n *news) heard() { n.last.Store(time.Now().UnixNano()) }

// waits notes whether, and why, the workload waits.
func (n *news) waits(w *gpuv1alpha1.GPUWorkload) {
	reason := pendingReason(w)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(w.UID)
	if reason == "" {
		return
	}
	if n.waiting == nil {
		n.waiting, n.count = map[types.UID]string{}, map[string]int{}
	}
	n.waiting[w.UID] = reason
	n.count[reason]++
}

// gone forgets a workload that was deleted.
func (n *news) gone(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(uid)
}

// forget takes a workload off those that wait. The caller holds the lock.
func (n *news) forget(uid types.UID) {
	if was, ok := n.waiting[uid]; ok {
		n.count[was]--
		delete(n.waiting, uid)
	}
}

// pendingReason says why a workload waits, "" if it does not.
func pendingReason(w *gpuv1alpha1.GPUWorkload) string {
	s := &w.Status
	if w.DeletionTimestamp != nil || s.Phase != "" && s.Phase != gpuv1alpha1.PhasePending {
		return ""
	}
	planned := meta.FindStatusCondition(s.Conditions, gpuv1alpha1.ConditionPlanned)
	switch {
	case w.Spec.Suspend:
		return PendingSuspended
	case meta.IsStatusConditionFalse(s.Conditions, gpuv1alpha1.ConditionAccepted):
		return PendingInvalid
	case s.NextRetryTime != nil:
		return PendingRetry
	case planned == nil:
		return PendingNew
	}
	for _, reason := range []string{PendingNoRoom, PendingReserved, PendingPreempted, PendingNeverFits} {
		if planned.Reason == reason {
			return reason
		}
	}
	return PendingOther
}

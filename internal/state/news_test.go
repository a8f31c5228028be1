package state

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func TestPendingWorkloadsAreCountedByReason(t *testing.T) {
	condition := func(kind, reason string) func(*gpuv1alpha1.GPUWorkload) {
		return func(w *gpuv1alpha1.GPUWorkload) {
			w.Status.Phase = gpuv1alpha1.PhasePending
			w.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	phase := func(phase gpuv1alpha1.WorkloadPhase) func(*gpuv1alpha1.GPUWorkload) {
		return func(w *gpuv1alpha1.GPUWorkload) { w.Status.Phase = phase }
	}
	for want, edits := range map[string][]func(*gpuv1alpha1.GPUWorkload){
		PendingNew:       {func(*gpuv1alpha1.GPUWorkload) {}, phase(gpuv1alpha1.PhasePending)},
		PendingInvalid:   {condition(gpuv1alpha1.ConditionAccepted, "InvalidSpec"), condition(gpuv1alpha1.ConditionAccepted, "JobRefused")},
		PendingSuspended: {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true }},
		PendingRetry:     {func(w *gpuv1alpha1.GPUWorkload) { w.Status.NextRetryTime = &metav1.Time{Time: time.Unix(1, 0)} }},
		PendingNoRoom:    {condition(gpuv1alpha1.ConditionPlanned, "NoRoom")},
		PendingReserved:  {condition(gpuv1alpha1.ConditionPlanned, "Reserved")},
		PendingPreempted: {condition(gpuv1alpha1.ConditionPlanned, "Preempted")},
		PendingNeverFits: {condition(gpuv1alpha1.ConditionPlanned, "NeverFits")},
		PendingOther:     {condition(gpuv1alpha1.ConditionPlanned, "a reason of a later version")},
		"": {
			phase(gpuv1alpha1.PhaseScheduling), phase(gpuv1alpha1.PhaseScheduled), phase(gpuv1alpha1.PhaseRunning),
			phase(gpuv1alpha1.PhaseSucceeded), phase(gpuv1alpha1.PhaseFailed),
			func(w *gpuv1alpha1.GPUWorkload) { w.DeletionTimestamp = &metav1.Time{} },
		},
	} {
		for i, edit := range edits {
			s := newState(t)
			w := workload("w", 1, 1)
			edit(w)
			s.onWorkload(w)
			expect := map[string]int{}
			for _, reason := range pendingReasons() {
				expect[reason] = 0
			}
			if want != "" {
				expect[want] = 1
			}
			if got := s.Pending(); !maps.Equal(got, expect) {
				t.Errorf("%q, case %d: %v", want, i, got)
			}
		}
	}
}

func TestAWorkloadCountsForWhatItWaitsForNow(t *testing.T) {
	s := newState(t)
	w := workload("w", 1, 1)
	s.onWorkload(w)
	s.onWorkload(w)
	if n := s.Pending()[PendingNew]; n != 1 {
		t.Errorf("told of twice, it counts %d times", n)
	}
	w = w.DeepCopy()
	w.Status.Phase = gpuv1alpha1.PhaseRunning
	s.onWorkload(w)
	if n := s.Pending()[PendingNew]; n != 0 {
		t.Errorf("it runs and counts %d times", n)
	}
	w = w.DeepCopy()
	w.Status.Phase = ""
	s.onWorkload(w)
	s.news.gone(w.UID)
	s.news.gone(w.UID)
	if n := s.Pending()[PendingNew]; n != 0 {
		t.Errorf("it is gone and counts %d times", n)
	}
}

func TestHeardIsWhenTheLastNewsCame(t *testing.T) {
	s := newState(t)
	if at := s.Heard(); !at.IsZero() {
		t.Errorf("nothing was told yet, and heard at %s", at)
	}
	nothing := func() {}
	for what, tell := range map[string]func(){
		"node":     func() { s.onNode(gpuNode("n", 8), nothing) },
		"pod":      func() { s.onPod(gpuPod("p", 1), nothing) },
		"workload": func() { s.onWorkload(workload("w", 1, 1)) },
	} {
		before := time.Now()
		tell()
		if at := s.Heard(); at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s: heard at %s", what, at)
		}
	}
}

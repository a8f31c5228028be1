package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// patience is how long a Job may take to make its pods before the message points at the Job.
const patience = 15 * time.Second

// observe brings phase and counts in line with the pods.
func (r *Reconciler) observe(_ context.Context, p *pass) (bool, error) {
	r.countPods(p)
	s := p.status()
	if p.workload.Spec.RestartPolicy == gpuv1alpha1.RestartMember {
		// The Job's own limit is what was left when it was made.
		before := maxRetries(p.workload) - ptr.Deref(p.job.Spec.BackoffLimit, 0)
		s.RetryCount = max(s.RetryCount, min(before+p.job.Status.Failed, maxRetries(p.workload)))
	}
	switch {
	case ending(p.job) || s.Pods.Failed > 0 && p.workload.Spec.RestartPolicy == gpuv1alpha1.RestartGang:
		// The Job takes the whole gang down; the phase changes when that is done.
		s.Message = failure(p.current(), "the Job failed") + stopping
	case s.Pods.Bound < s.Pods.Desired:
		r.observeBinding(p)
	case s.Pods.Running+s.Pods.Succeeded < s.Pods.Desired:
		p.boundWhole()
		p.enter(gpuv1alpha1.PhaseScheduled, "bound to %s; %d of %s run", on(s), s.Pods.Running+s.Pods.Succeeded, pods(s.Pods.Desired))
		if problem := stuck(p.current()); problem != "" {
			s.Message += "; " + problem
		}
	default:
		p.boundWhole()
		p.enter(gpuv1alpha1.PhaseRunning, "running on %s", on(s))
		if s.Pods.Desired < p.workload.Spec.Parallelism {
			s.Message += fmt.Sprintf("; %d of the %d pods wanted", s.Pods.Desired, p.workload.Spec.Parallelism)
		}
		if s.Pods.Succeeded > 0 {
			p.enter(gpuv1alpha1.PhaseRunning, "running on %s; %d of %s succeeded", on(s), s.Pods.Succeeded, pods(s.Pods.Desired))
		}
		if p.before.Phase != gpuv1alpha1.PhaseRunning {
			p.normal("Running", "Run", "%s running on %s", pods(s.Pods.Desired), on(s))
		}
	}
	return true, nil
}

// observeBinding reports a gang that is not bound whole.
func (r *Reconciler) observeBinding(p *pass) {
	s := p.status()
	wasBound := p.is(gpuv1alpha1.ConditionScheduled)
	reason, message := "Binding", "the pods are on their way to their nodes"
	if wasBound {
		reason, message = "MemberLost", "a member of the gang is being replaced"
	}
	p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, message)
	s.Phase = gpuv1alpha1.PhaseScheduling
	switch made := int32(len(p.current())); {
	case p.waits:
		// The message says already what is missing.
	case made < s.Pods.Desired && p.now.Sub(s.LastScheduleTime.Time) > patience:
		s.Message = fmt.Sprintf("Job %s has made %d of %s; `kubectl describe job %s` tells what holds it up", s.JobName, made, pods(s.Pods.Desired), s.JobName)
	case s.Pods.Failed > 0:
		s.Message = fmt.Sprintf("%s; the Job replaces it (%d of %d retries used)", failure(p.current(), "a pod failed"), s.RetryCount, maxRetries(p.workload))
	case p.now.Sub(s.LastScheduleTime.Time) > r.config.BindTimeout && unanswered(p.current()) != "":
		s.Message = fmt.Sprintf("%d of %s bound; scheduler %q has not looked at the rest for %s: does it run?",
			s.Pods.Bound, pods(s.Pods.Desired), unanswered(p.current()), r.config.BindTimeout)
	case s.Pods.Bound > 0:
		s.Message = fmt.Sprintf("%d of %s bound", s.Pods.Bound, pods(s.Pods.Desired))
	}
	if s.LastScheduleTime != nil {
		for _, at := range []time.Duration{patience, r.config.BindTimeout} {
			if left := s.LastScheduleTime.Add(at + time.Second).Sub(p.now); left > 0 {
				p.lookAgain(left)
			}
		}
	}
}

// boundWhole notes that every pod of the gang is bound.
func (p *pass) boundWhole() {
	s := p.status()
	if !p.is(gpuv1alpha1.ConditionScheduled) {
		p.normal("Scheduled", "Bind", "%s bound to %s", pods(s.Pods.Desired), on(s))
	}
	p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionTrue, "AllBound", "every pod of the gang is bound")
	if p.is(gpuv1alpha1.ConditionPreempted) {
		p.condition(gpuv1alpha1.ConditionPreempted, metav1.ConditionFalse, "BoundAnew", "it has another place")
	}
	if s.StartTime == nil {
		now := metav1.NewTime(p.now)
		s.StartTime = &now
	}
}

// countPods counts the ranks of the current attempt by how far they are. A rank whose pod was
// replaced counts once, as far as its best pod is.
func (r *Reconciler) countPods(p *pass) {
	type progress struct{ bound, running, succeeded bool }
	ranks := make(map[int32]progress)
	failed := int32(0)
	for _, pod := range p.current() {
		rank, ok := state.Rank(pod)
		if !ok {
			continue
		}
		if pod.Status.Phase == corev1.PodFailed {
			failed++
			continue
		}
		at := ranks[rank]
		at.bound = at.bound || pod.Spec.NodeName != ""
		at.running = at.running || pod.Status.Phase == corev1.PodRunning
		at.succeeded = at.succeeded || pod.Status.Phase == corev1.PodSucceeded
		ranks[rank] = at
	}
	// The pod of a rank that succeeded may be gone; the Job remembers.
	for rank := range completed(p.job) {
		at := ranks[rank]
		at.succeeded = true
		ranks[rank] = at
	}
	counts := gpuv1alpha1.PodCounts{Desired: p.status().Pods.Desired, Failed: failed}
	for _, at := range ranks {
		switch {
		case at.succeeded:
			counts.Succeeded++
		case at.running:
			counts.Running++
		}
		if at.bound || at.succeeded {
			counts.Bound++
		}
	}
	p.status().Pods = counts
}

// pods counts pods in words.
func pods[N int | int32](n N) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// stuck says why the first pod that does not start does not: an image that cannot be pulled, a
// volume that is missing.
func stuck(current []*corev1.Pod) string {
	for _, pod := range current {
		if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
			continue
		}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, c := range list {
				w := c.State.Waiting
				if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
					continue
				}
				text := fmt.Sprintf("container %s of pod %s waits: %s", c.Name, pod.Name, w.Reason)
				if w.Message != "" {
					text += ": " + w.Message
				}
				return text
			}
		}
	}
	return ""
}

// unanswered returns the scheduler of the first planned pod that no scheduler has said a word
// about, "" if there is none.
func unanswered(current []*corev1.Pod) string {
	for _, pod := range current {
		if pod.Spec.NodeName != "" || state.Finished(pod) || len(pod.Spec.SchedulingGates) > 0 || pod.DeletionTimestamp != nil {
			continue
		}
		heard := false
		for _, c := range pod.Status.Conditions {
			heard = heard || c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		}
		if !heard {
			return pod.Spec.SchedulerName
		}
	}
	return ""
}

// on names the nodes for a message: the one, or how many.
func on(s *gpuv1alpha1.GPUWorkloadStatus) string {
	if len(s.AssignedNodes) == 1 {
		return s.AssignedNode
	}
	return fmt.Sprintf("%d nodes", len(s.AssignedNodes))
}

func succeeded(p *pass) string {
	s := p.status()
	text := "succeeded on " + on(s)
	if s.StartTime != nil {
		text += fmt.Sprintf(" after %s", p.now.Truncate(time.Second).Sub(s.StartTime.Time))
	}
	return text
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/backoff"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// judge looks at how the Job of the current attempt fares: it ends the workload, counts a
// retry, or finds that somebody took the Job away.
func (r *Reconciler) judge(ctx context.Context, p *pass) (bool, error) {
	s := p.status()
	if s.JobUID != "" && (p.job == nil || p.job.UID != s.JobUID || p.job.DeletionTimestamp != nil) {
		return r.jobLost(ctx, p)
	}
	if p.job == nil {
		return false, nil
	}
	switch kind, message := jobEnd(p.job); kind {
	case batchv1.JobComplete:
		r.countPods(p)
		p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionTrue, "AllBound", "every pod of the gang was bound")
		p.finish(gpuv1alpha1.PhaseSucceeded, "Succeeded", succeeded(p))
		p.normal("Succeeded", "Run", "%s", p.status().Message)
		r.release(p)
		return true, nil
	case batchv1.JobFailed:
		r.failed(p, message)
		r.release(p)
		return true, nil
	default:
		return false, nil
	}
}

// jobLost starts a new attempt after somebody else deleted the Job. It is no failure of the
// workload and uses up no retry.
func (r *Reconciler) jobLost(ctx context.Context, p *pass) (bool, error) {
	name := client.ObjectKey{Namespace: p.workload.Namespace, Name: p.status().JobName}
	// Ask the API server itself: on a stale view this would stop a running gang.
	var live batchv1.Job
	err := r.live.Get(ctx, name, &live)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("looking for Job %s: %w", name, err)
	}
	if err == nil && live.UID == p.status().JobUID && live.DeletionTimestamp == nil {
		if live.Labels[gpuv1alpha1.WorkloadUIDLabel] == string(p.workload.UID) && attemptOf(&live) == p.status().Attempt {
			return true, errStale
		}
		// Without its labels the Job is out of our sight, and its pods with it.
		message := fmt.Sprintf("the labels of Job %s were changed: give it %s=%s and %s=%d back, or delete the Job", name.Name,
			gpuv1alpha1.WorkloadUIDLabel, p.workload.UID, gpuv1alpha1.AttemptLabel, p.status().Attempt)
		if p.status().Message != message {
			p.warning("JobLabelsChanged", "Read", "%s", message)
		}
		p.status().Message = message
		p.lookAgain(30 * time.Second)
		return true, nil
	}
	const message = "its Job was deleted by somebody else; planning it anew"
	p.warning("JobDeleted", "Plan", "Job %s was deleted by somebody else; planning anew", name.Name)
	r.release(p)
	p.nextAttempt("JobDeleted", message)
	p.enter(gpuv1alpha1.PhasePending, message)
	return false, nil
}

// failed counts a failure of the Job: the next retry with its back-off, or the end.
func (r *Reconciler) failed(p *pass, jobMessage string) {
	s, limit := p.status(), maxRetries(p.workload)
	why := failure(p.current(), jobMessage)
	if said, ok := strings.CutSuffix(p.before.Message, stopping); ok && why == jobMessage {
		// The pod that failed is gone already; what was said of it while it was there is not.
		why = said
	}
	r.countPods(p)
	if p.workload.Spec.RestartPolicy == gpuv1alpha1.RestartMember {
		s.RetryCount = limit
	}
	if s.RetryCount >= limit {
		p.fail("RetriesExhausted", fmt.Sprintf("failed after %s: %s", retries(s.RetryCount), why))
		return
	}
	delay := r.delay(p.workload, s.RetryCount)
	next := metav1.NewTime(p.now.Add(delay))
	s.RetryCount++
	message := fmt.Sprintf("%s; retry %d of %d at %s", why, s.RetryCount, limit, next.UTC().Format(time.RFC3339))
	p.nextAttempt("Retrying", message)
	s.NextRetryTime = &next
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning("Retrying", "Retry", "%s", message)
	p.lookAgain(delay)
}

// delay returns the pause before the given retry, from 0. Its jitter is a function of the
// workload and the retry, so that whoever computes it comes to the same time.
func (r *Reconciler) delay(w *gpuv1alpha1.GPUWorkload, retry int32) time.Duration {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", w.UID, retry)
	base := time.Duration(ptr.Deref(w.Spec.RetryPolicy.BackoffSeconds, 30)) * time.Second
	return backoff.Delay(base, int(retry), float64(h.Sum32())/(math.MaxUint32+1))
}

// failure says what went wrong first, in a person's words.
func failure(pods []*corev1.Pod, otherwise string) string {
	var first *corev1.Pod
	var when time.Time
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodFailed {
			continue
		}
		// Pods that are being deleted were taken down with the first one, most likely.
		at, later := endOf(pod), first != nil && pod.DeletionTimestamp != nil && first.DeletionTimestamp == nil
		if first == nil || !later && (at.Before(when) || first.DeletionTimestamp != nil && pod.DeletionTimestamp == nil) {
			first, when = pod, at
		}
	}
	if first == nil {
		return otherwise
	}
	text := "pod " + first.Name
	if rank, ok := state.Rank(first); ok && len(pods) > 1 {
		text += fmt.Sprintf(" (rank %d)", rank)
	}
	if first.Spec.NodeName != "" {
		text += " on " + first.Spec.NodeName
	}
	return text + " failed: " + exitOf(first)
}

// stopping ends the message of a gang that its Job takes down.
const stopping = "; stopping the rest of the gang"

func retries(n int32) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// exitOf says how the pod's first failed container ended, or what the pod says of itself.
func exitOf(pod *corev1.Pod) string {
	if c := disruption(pod); c != nil {
		return fmt.Sprintf("taken off its node (%s: %s)", c.Reason, c.Message)
	}
	if pod.DeletionTimestamp != nil {
		return "deleted by somebody"
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
				text := fmt.Sprintf("container %s exited with code %d", c.Name, t.ExitCode)
				if t.Reason != "" && t.Reason != "Error" {
					text += " (" + t.Reason + ")"
				}
				return text
			}
		}
	}
	switch {
	case pod.Status.Message != "":
		return pod.Status.Message
	case pod.Status.Reason != "":
		return pod.Status.Reason
	}
	return "no reason given"
}

// disruption says by whom the pod was taken off its node, nil if it was not.
func disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func disrupted(pod *corev1.Pod) bool { return disruption(pod) != nil }

func endOf(pod *corev1.Pod) time.Time {
	end := pod.CreationTimestamp.Time
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end
}

// refuseJob reports a Job that the API server will not have as it is written.
func (r *Reconciler) refuseJob(p *pass, err error) {
	message := "the API server refuses the Job of this workload: " + err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			message = fmt.Sprintf("spec.template: the API server refuses %s: %s", c.Field, c.Message)
			break
		}
	}
	r.release(p)
	p.nextAttempt(reasonJobRefused, message)
	p.status().JobName = ""
	p.condition(gpuv1alpha1.ConditionAccepted, metav1.ConditionFalse, reasonJobRefused, message)
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning(reasonJobRefused, "Create", "%s", message)
	r.metrics.Failed(reasonJobRefused)
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// giveUpAfter is how many times as long as a pod may wait for its scheduler a plan may stand
// without any progress. Stock controllers make 20 pods a second for all Jobs together, so that
// many large gangs at once take minutes.
const giveUpAfter = 10

// giveUp gives the room of a plan back that leads to nothing, whatever the cause: a quota that
// keeps the Job or its pods from being made, a scheduler that does not run, somebody else's
// gate. The workload tries again later.
func (r *Reconciler) giveUp(ctx context.Context, p *pass) (bool, error) {
	s := p.status()
	if s.LastScheduleTime == nil || p.is(gpuv1alpha1.ConditionScheduled) {
		return false, nil
	}
	if len(s.Preempting) > 0 && s.JobUID != "" {
		return false, nil // makeWay says how long that may take.
	}
	since := s.LastScheduleTime.Time
	for _, pod := range p.current() {
		if pod.Spec.NodeName != "" {
			return false, nil
		}
		if pod.CreationTimestamp.After(since) {
			since = pod.CreationTimestamp.Time
		}
	}
	// The Job of a workload that moves is made when the pods of its last attempt have ended, and they
	// have all of their grace period for that.
	for i := range p.pods {
		pod := &p.pods[i]
		if attemptOf(pod) < s.Attempt && !state.Finished(pod) && pod.DeletionTimestamp != nil && pod.DeletionTimestamp.After(since) {
			since = pod.DeletionTimestamp.Time
		}
	}
	timeout := giveUpAfter * r.config.BindTimeout
	if left := since.Add(timeout).Sub(p.now); left > 0 {
		p.lookAgain(left)
		return false, nil
	}
	if bound, err := r.liveBound(ctx, p); err != nil || bound {
		return true, errors.Join(err, errStale)
	}
	next := metav1.NewTime(p.now.Add(r.config.AvoidFor))
	message := fmt.Sprintf("gave its GPUs back after %s without progress (%s); trying again at %s", timeout, s.Message, next.UTC().Format(time.RFC3339))
	if made := len(p.current()); made < int(s.Pods.Desired) && p.job != nil {
		message = fmt.Sprintf("Job %s made only %d of %s within %s: look for a quota or an admission webhook (`kubectl get events` tells); trying again at %s",
			s.JobName, made, pods(s.Pods.Desired), timeout, next.UTC().Format(time.RFC3339))
	}
	r.release(p)
	p.nextAttempt("NoProgress", message)
	s.NextRetryTime = &next
	p.enter(gpuv1alpha1.PhasePending, "%s", message)
	p.warning("NoProgress", "Withdraw", "%s", message)
	p.lookAgain(r.config.AvoidFor)
	return true, r.deleteJobs(ctx, p, "")
}

// liveBound asks the API server itself whether a pod of the current Job has a node. What this
// process remembers may be old, if it was stopped for a while.
func (r *Reconciler) liveBound(ctx context.Context, p *pass) (bool, error) {
	var list corev1.PodList
	err := r.live.List(ctx, &list, client.InNamespace(p.workload.Namespace), client.MatchingLabels{
		gpuv1alpha1.WorkloadUIDLabel: string(p.workload.UID),
		gpuv1alpha1.AttemptLabel:     strconv.Itoa(int(p.status().Attempt)),
	})
	if err != nil {
		return false, fmt.Errorf("looking for pods that are bound: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return ofJob(&pod) && pod.Spec.NodeName != "" }), nil
}

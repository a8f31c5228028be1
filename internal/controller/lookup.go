package controller

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/cpuset"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// uidIndex finds Jobs and pods by the UID of their workload.
const uidIndex = "workload-uid"

func addIndexes(ctx context.Context, c cache.Cache) error {
	for _, obj := range []client.Object{&batchv1.Job{}, &corev1.Pod{}} {
		err := c.IndexField(ctx, obj, uidIndex, func(o client.Object) []string {
			if uid := o.GetLabels()[gpuv1alpha1.WorkloadUIDLabel]; uid != "" {
				return []string{uid}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing %T by workload: %w", obj, err)
		}
	}
	return nil
}

// read fills in the Jobs and pods of the workload. Labels find them, controller references
// say whose they are: a Job that somebody else labelled is not ours.
func (r *Reconciler) read(ctx context.Context, p *pass) error {
	w := p.workload
	var jobs batchv1.JobList
	if err := r.client.List(ctx, &jobs, client.InNamespace(w.Namespace), client.MatchingFields{uidIndex: string(w.UID)}); err != nil {
		return fmt.Errorf("listing the Jobs of %s: %w", client.ObjectKeyFromObject(w), err)
	}
	for _, j := range jobs.Items {
		if metav1.IsControlledBy(&j, w) {
			p.jobs = append(p.jobs, j)
		}
	}
	for i := range p.jobs {
		if attemptOf(&p.jobs[i]) == p.status().Attempt {
			p.job = &p.jobs[i]
		}
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(w.Namespace), client.MatchingFields{uidIndex: string(w.UID)}); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", client.ObjectKeyFromObject(w), err)
	}
	for _, pod := range pods.Items {
		if ofJob(&pod) {
			p.pods = append(p.pods, pod)
		}
	}
	return nil
}

// ofJob tells whether a Job made the pod; the Job may be gone already while its pods still end.
func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// attemptOf returns the attempt that a Job or pod of ours belongs to, -1 if it does not say.
func attemptOf(o client.Object) int32 {
	n, err := strconv.ParseInt(o.GetLabels()[gpuv1alpha1.AttemptLabel], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// ending tells whether the Job has failed and is still stopping its pods.
func ending(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailureTarget && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// succeeding tells whether the Job has done its work and is still stopping its pods.
func succeeding(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobSuccessCriteriaMet && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// completed returns the ranks that have succeeded.
func completed(j *batchv1.Job) map[int32]struct{} {
	ranks := make(map[int32]struct{})
	if j == nil {
		return ranks
	}
	// What cannot be read, the Job controller did not write; the pods then tell.
	set, err := cpuset.Parse(j.Status.CompletedIndexes)
	if err != nil {
		return ranks
	}
	for _, rank := range set.UnsortedList() {
		ranks[int32(rank)] = struct{}{}
	}
	return ranks
}

// jobEnd tells how a Job ended: "" while it has not.
func jobEnd(j *batchv1.Job) (kind batchv1.JobConditionType, message string) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type, c.Message
		}
	}
	return "", ""
}

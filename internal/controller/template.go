package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// modelEnv is how a container learns spec.modelName.
const modelEnv = "MODEL_NAME"

// podTemplate returns the pod that the workload's Job runs: the user's template or the
// default image, with the GPUs, the model's name, our labels and the scheduling gate.
// Errors are *state.InvalidError.
func podTemplate(w *gpuv1alpha1.GPUWorkload, defaultImage string) (*corev1.PodTemplateSpec, error) {
	t := w.Spec.Template.DeepCopy()
	if t == nil {
		t = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "model", Image: defaultImage}},
		}}
	}
	if problem := t.Annotations[gpuv1alpha1.UnreadableAnnotation]; problem != "" {
		return nil, &state.InvalidError{Field: "spec.template", Problem: "it cannot be read as a pod template: " + problem}
	}
	spec := &t.Spec
	if err := state.CheckAmounts(spec); err != nil {
		return nil, &state.InvalidError{Field: "spec.template.spec", Problem: err.Error()}
	}
	if len(spec.Containers) == 0 {
		return nil, &state.InvalidError{Field: "spec.template.spec.containers", Problem: "the template has no container: add one, or leave the template out to run the default image"}
	}
	c, err := gpuContainer(spec, state.ResourceName(w), int64(w.Spec.GPUCount))
	if err != nil {
		return nil, err
	}
	setGPUs(c, corev1.ResourceName(state.ResourceName(w)), int64(w.Spec.GPUCount))
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == modelEnv }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: modelEnv, Value: w.Spec.ModelName})
	}
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if w.Spec.SchedulerName != "" {
		spec.SchedulerName = w.Spec.SchedulerName
	}
	if w.Spec.PriorityClassName != "" {
		spec.PriorityClassName = w.Spec.PriorityClassName
	}
	spec.SchedulingGates = append(spec.SchedulingGates, corev1.PodSchedulingGate{Name: gpuv1alpha1.SchedulingGate})
	// What is ours to write says what we know, never what a user put there.
	for _, keys := range []map[string]string{t.Labels, t.Annotations} {
		maps.DeleteFunc(keys, func(key, _ string) bool { return gpuv1alpha1.Reserved(key) })
	}
	t.Labels = withLabels(t.Labels, w)
	if t.Annotations == nil {
		t.Annotations = make(map[string]string)
	}
	t.Annotations[gpuv1alpha1.ModelAnnotation] = w.Spec.ModelName
	return t, nil
}

// gpuContainer returns the one container that the GPUs go to: the one that asks for GPUs, or
// the first.
func gpuContainer(spec *corev1.PodSpec, resourceName string, count int64) (*corev1.Container, error) {
	const field = "spec.template.spec.containers"
	var found *corev1.Container
	for i := range spec.Containers {
		c := &spec.Containers[i]
		name, asked, ok := asksForGPU(c, resourceName)
		switch {
		case !ok:
			continue
		case found != nil:
			return nil, &state.InvalidError{Field: field, Problem: fmt.Sprintf(
				"containers %q and %q both ask for GPUs: gpuCount is for one container; take the request out of the other", found.Name, c.Name)}
		case name != resourceName:
			return nil, &state.InvalidError{Field: field, Problem: fmt.Sprintf(
				"container %q asks for %s, spec.gpu.resourceName says %s: make them the same, or take the request out of the container", c.Name, name, resourceName)}
		case asked != count:
			return nil, &state.InvalidError{Field: field, Problem: fmt.Sprintf(
				"container %q asks for %d %s, gpuCount says %d: make them the same, or take the request out of the container", c.Name, asked, name, count)}
		}
		found = c
	}
	if found == nil {
		found = &spec.Containers[0]
	}
	return found, nil
}

// asksForGPU returns the GPU resource that a container asks for, and how many.
func asksForGPU(c *corev1.Container, resourceName string) (name string, count int64, ok bool) {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for n, q := range list {
			if string(n) == resourceName || state.IsGPU(string(n)) {
				return string(n), q.Value(), true
			}
		}
	}
	return "", 0, false
}

func setGPUs(c *corev1.Container, name corev1.ResourceName, count int64) {
	q := *resource.NewQuantity(count, resource.DecimalSI)
	if c.Resources.Limits == nil {
		c.Resources.Limits = make(corev1.ResourceList)
	}
	c.Resources.Limits[name] = q
	// Extended resources must have request and limit equal; where requests are written at
	// all, the API server does not fill this one in from the limit of a template.
	if c.Resources.Requests == nil {
		c.Resources.Requests = make(corev1.ResourceList)
	}
	c.Resources.Requests[name] = q
}

// buildJob returns the Job of the current attempt. Its name is a function of the workload's
// UID and the attempt, so that making it twice makes it once.
func buildJob(w *gpuv1alpha1.GPUWorkload, template *corev1.PodTemplateSpec, size int32) *batchv1.Job {
	// A gang fails as a whole with its first failed pod. Members are replaced by the Job.
	limit := int32(0)
	if w.Spec.RestartPolicy == gpuv1alpha1.RestartMember {
		limit = max(0, maxRetries(w)-w.Status.RetryCount)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   w.Namespace,
			Name:        jobName(w),
			Labels:      withLabels(nil, w),
			Annotations: map[string]string{gpuv1alpha1.ModelAnnotation: w.Spec.ModelName},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(w, gpuv1alpha1.GroupVersion.WithKind("GPUWorkload")),
			},
		},
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Parallelism:    ptr.To(size),
			Completions:    ptr.To(size),
			BackoffLimit:   ptr.To(limit),
			// A pod that is still ending still holds its GPUs and its rank.
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template:             *template,
		},
	}
	// The API server takes a failure policy only where the kubelet does not start containers
	// again itself.
	if w.Spec.RestartPolicy == gpuv1alpha1.RestartMember && template.Spec.RestartPolicy == corev1.RestartPolicyNever {
		job.Spec.PodFailurePolicy = ignoreDisruptions()
	}
	return job
}

// ignoreDisruptions has a member replaced without a retry if it was taken off its node: evicted,
// drained, or its node is gone. That is no failure of what it runs.
func ignoreDisruptions() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		},
	}}}
}

func jobName(w *gpuv1alpha1.GPUWorkload) string { return state.JobName(w, w.Status.Attempt) }

func withLabels(labels map[string]string, w *gpuv1alpha1.GPUWorkload) map[string]string {
	if labels == nil {
		labels = make(map[string]string)
	}
	labels[gpuv1alpha1.WorkloadLabel] = w.Name
	labels[gpuv1alpha1.WorkloadUIDLabel] = string(w.UID)
	labels[gpuv1alpha1.AttemptLabel] = strconv.Itoa(int(w.Status.Attempt))
	return labels
}

func maxRetries(w *gpuv1alpha1.GPUWorkload) int32 {
	return ptr.Deref(w.Spec.RetryPolicy.MaxRetries, 3)
}

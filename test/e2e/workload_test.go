package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// gpuWorkload is a gang of pods with gpus GPUs each. Its pods run for as long as runFor says.
func gpuWorkload(namespace, name string, pods, gpus int32, edits ...func(*gpuv1alpha1.GPUWorkload)) *gpuv1alpha1.GPUWorkload {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gpuv1alpha1.GPUWorkloadSpec{
			ModelName:   "llama2",
			GPUCount:    gpus,
			Parallelism: pods,
			RetryPolicy: gpuv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](2), BackoffSeconds: ptr.To[int32](1)},
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "train", Image: "example.com/train"}},
				},
			},
		},
	}
	runFor("2s")(w)
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func simulate(key, value string) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.Template.Annotations["sandbox.gpu.warp.dev/"+key] = value
	}
}

func runFor(d string) func(*gpuv1alpha1.GPUWorkload) { return simulate("run-for", d) }

// forever is longer than any test.
func forever(w *gpuv1alpha1.GPUWorkload) { runFor("24h")(w) }

func onNodes(selector map[string]string) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Template.Spec.NodeSelector = selector }
}

func inOne(level string) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) {
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: level}
	}
}

func (c *cluster) submit(t *testing.T, w *gpuv1alpha1.GPUWorkload) *gpuv1alpha1.GPUWorkload {
	t.Helper()
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// until follows the workload, change by change, until it is as wanted, and returns the phases
// it went through.
func (c *cluster) until(t *testing.T, w *gpuv1alpha1.GPUWorkload, what string, wanted func(*gpuv1alpha1.GPUWorkload) bool) (phases []gpuv1alpha1.WorkloadPhase) {
	t.Helper()
	return c.untilWithin(t, w, settleWithin, what, wanted)
}

// untilWithin is until for what takes longer than others.
func (c *cluster) untilWithin(t *testing.T, w *gpuv1alpha1.GPUWorkload, limit time.Duration, what string, wanted func(*gpuv1alpha1.GPUWorkload) bool) (phases []gpuv1alpha1.WorkloadPhase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	changes, err := c.follow(ctx, &gpuv1alpha1.GPUWorkloadList{}, w.ResourceVersion, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": w.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for !wanted(w) {
		e, ok := <-changes.ResultChan()
		if !ok {
			t.Fatalf("%s was not %s within %s; phases %v, status %+v", w.Name, what, limit, phases, w.Status)
		}
		next, ok := e.Object.(*gpuv1alpha1.GPUWorkload)
		if !ok || e.Type == watch.Deleted {
			t.Fatalf("%s was not %s when the watch said %s: %v", w.Name, what, e.Type, e.Object)
		}
		next.DeepCopyInto(w)
		if p := w.Status.Phase; p != "" && (len(phases) == 0 || phases[len(phases)-1] != p) {
			phases = append(phases, p)
		}
	}
	return phases
}

func (c *cluster) untilPhase(t *testing.T, w *gpuv1alpha1.GPUWorkload, phase gpuv1alpha1.WorkloadPhase) []gpuv1alpha1.WorkloadPhase {
	t.Helper()
	return c.until(t, w, string(phase), func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == phase })
}

// untilReason waits until the condition has the reason.
func (c *cluster) untilReason(t *testing.T, w *gpuv1alpha1.GPUWorkload, condition, reason string) {
	t.Helper()
	c.until(t, w, condition+" with reason "+reason, func(w *gpuv1alpha1.GPUWorkload) bool {
		found := meta.FindStatusCondition(w.Status.Conditions, condition)
		return found != nil && found.Reason == reason
	})
}

// edit changes the spec of a workload.
func (c *cluster) edit(t *testing.T, w *gpuv1alpha1.GPUWorkload, edit func(*gpuv1alpha1.GPUWorkload)) {
	t.Helper()
	before := w.DeepCopy()
	edit(w)
	if err := c.Patch(t.Context(), w, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// events returns the reasons of the events about the workload.
func (c *cluster) events(t *testing.T, w *gpuv1alpha1.GPUWorkload) []string {
	t.Helper()
	var list corev1.EventList
	if err := c.List(t.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == w.UID {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func (c *cluster) untilEvent(t *testing.T, w *gpuv1alpha1.GPUWorkload, reason string) {
	t.Helper()
	eventually(t, func() error {
		if seen := c.events(t, w); !slices.Contains(seen, reason) {
			return fmt.Errorf("no event %s, only %v", reason, seen)
		}
		return nil
	})
}

// follow watches from a resource version on, and goes on where it was when the API server ends
// the watch, as it does with watchers that are slow.
func (c *cluster) follow(ctx context.Context, list client.ObjectList, resourceVersion string, opts ...client.ListOption) (watch.Interface, error) {
	return watchtools.NewRetryWatcherWithContext(ctx, resourceVersion, watchFunc(func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, list, append(opts, &client.ListOptions{Raw: &raw})...)
	}))
}

type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

func (f watchFunc) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, options)
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

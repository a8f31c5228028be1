package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// occupy puts a foreign pod on each node that takes all its GPUs, whatever is planned there.
func (c *cluster) occupy(t *testing.T, ns string, nodes []string) {
	t.Helper()
	for _, node := range nodes {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "occupies-" + node, Labels: map[string]string{"e2e": "occupies"}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "x",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": quantity("8")}}}}},
		}
		if err := c.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// planned waits until the gang is planned and returns its nodes.
func (c *cluster) planned(t *testing.T, w *gpuv1alpha1.GPUWorkload) []string {
	t.Helper()
	c.until(t, w, "planned", func(w *gpuv1alpha1.GPUWorkload) bool { return len(w.Status.AssignedNodes) > 0 })
	return slices.Clone(w.Status.AssignedNodes)
}

// unharmed checks that nothing counted as a failure: not for the workload, not for its Job.
func (c *cluster) unharmed(t *testing.T, w *gpuv1alpha1.GPUWorkload, jobs int) {
	t.Helper()
	if w.Status.RetryCount != 0 || w.Status.Pods.Failed != 0 {
		t.Errorf("%d retries and %d failed pods: nothing had failed", w.Status.RetryCount, w.Status.Pods.Failed)
	}
	if int(w.Status.Attempt)+1 != jobs {
		t.Errorf("attempt %d, want %d Jobs in all", w.Status.Attempt, jobs)
	}
	for _, job := range c.jobs(t, w) {
		if job.Status.Failed != 0 {
			t.Errorf("Job %s counts %d failed pods", job.Name, job.Status.Failed)
		}
	}
}

// Plans of gangs of 64 pods and more are overtaken by pods that somebody else puts on their
// nodes. What is not bound is taken back and planned elsewhere, and no Job counts a failure or
// waits for a back-off, which would be 10 s after the first failure.
func TestPlansOf64PodsAreWithdrawn(t *testing.T) {
	c := ownCluster(t, "--nodes=20", "--manager-arg=--bind-timeout=2s")
	for _, v := range []struct {
		name       string
		pods, jobs int
		spared     int
	}{
		{"none bound", 64, 2, 0},
		{"some bound", 72, 1, 1},
	} {
		t.Run(v.name, func(t *testing.T) {
			ns := c.namespace(t)
			w := c.submit(t, gpuWorkload(ns, "overtaken", int32(v.pods), 1, forever, func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.SchedulingStrategy = "binPack"
			}))
			taken := c.planned(t, w)[v.spared:]
			c.occupy(t, ns, taken)
			start := time.Now()
			c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
			t.Logf("%d pods run %s after their nodes were taken", v.pods, time.Since(start).Round(100*time.Millisecond))
			c.unharmed(t, w, v.jobs)
			for _, pod := range c.pods(t, w) {
				if slices.Contains(taken, pod.Spec.NodeName) {
					t.Errorf("%s runs on %s, which was taken", pod.Name, pod.Spec.NodeName)
				}
			}
			c.untilEvent(t, w, "PlanOvertaken")
			c.empty(t, ns, w)
		})
	}
	t.Run("suspended and resumed while it is bound", func(t *testing.T) {
		ns := c.namespace(t)
		w := c.submit(t, gpuWorkload(ns, "paused", 64, 1, forever, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "binPack" }))
		taken := c.planned(t, w)[4:]
		c.occupy(t, ns, taken)
		c.until(t, w, "bound in part", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Pods.Bound >= 32 })
		c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true })
		c.untilReason(t, w, gpuv1alpha1.ConditionSuspended, "Suspended")
		eventually(t, func() error {
			if left := c.pods(t, w); len(left) > 0 {
				return fmt.Errorf("%d pods of a suspended workload", len(left))
			}
			return nil
		})
		attempt := w.Status.Attempt
		c.edit(t, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = false })
		c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
		c.unharmed(t, w, int(attempt)+1)
		if meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionSuspended) {
			t.Error("it runs and is told to be suspended")
		}
		c.empty(t, ns, w)
	})
}

// empty takes away what a part of a test has made, so that the next finds all nodes free.
func (c *cluster) empty(t *testing.T, ns string, w *gpuv1alpha1.GPUWorkload) {
	t.Helper()
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(ns), client.MatchingLabels{"e2e": "occupies"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		var list corev1.PodList
		if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil || len(list.Items) > 0 {
			return fmt.Errorf("%d pods are left: %w", len(list.Items), err)
		}
		return nil
	})
}

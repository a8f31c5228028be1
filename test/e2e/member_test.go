package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// A member that is lost is replaced alone, in the leaf where its siblings are, although another
// leaf would be as good for it alone. What takes a pod off its node uses up no retry.
func TestLostMemberIsReplacedNearItsSiblings(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	for _, v := range []struct {
		name    string
		retries int32
		lose    func(t *testing.T, pod *corev1.Pod)
	}{
		{"evicted", 0, func(t *testing.T, pod *corev1.Pod) {
			if err := c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"taint", 0, func(t *testing.T, pod *corev1.Pod) {
			c.patchNode(t, pod.Spec.NodeName, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "e2e/broken", Effect: corev1.TaintEffectNoExecute})
			})
		}},
		{"node-gone", 0, func(t *testing.T, pod *corev1.Pod) {
			if err := c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}); err != nil {
				t.Fatal(err)
			}
		}},
		// Nobody says why a pod is deleted by hand: it counts as failed.
		{"deleted", 1, func(t *testing.T, pod *corev1.Pod) {
			if err := c.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			ns := c.namespace(t)
			selector, names := c.nodes(t, 4)
			for i, name := range names {
				// The far leaf is first in order, and too small for the gang.
				leaf := ns + "-near"
				if i == 0 {
					leaf = ns + "-far"
				}
				c.patchNode(t, name, func(n *corev1.Node) { n.Labels[gpuv1alpha1.LeafLabel] = leaf })
			}
			w := c.submit(t, gpuWorkload(ns, v.name, 2, 8, forever, onNodes(selector), func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.RestartPolicy = gpuv1alpha1.RestartMember
				w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Preferred: "leaf"}
			}))
			c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
			first, job := c.pods(t, w), w.Status.JobUID
			leaf := c.leafOf(t, first[0].Spec.NodeName)
			start := time.Now()
			v.lose(t, &first[1])
			// The stock garbage collector looks for pods without a node every 20 s, and gives it 40 s to come back.
			c.untilWithin(t, w, 2*time.Minute, "without a member", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseScheduling })
			c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)
			t.Logf("whole again %s after a member was lost", time.Since(start).Round(100*time.Millisecond))
			if w.Status.JobUID != job || w.Status.RetryCount != v.retries {
				t.Errorf("Job %s, was %s; %d retries, want %d", w.Status.JobUID, job, w.Status.RetryCount, v.retries)
			}
			running := 0
			for _, pod := range c.pods(t, w) {
				if pod.Status.Phase != corev1.PodRunning {
					continue
				}
				running++
				if got := c.leafOf(t, pod.Spec.NodeName); got != leaf {
					t.Errorf("%s runs in %s, its sibling in %s", pod.Name, got, leaf)
				}
			}
			sibling := &corev1.Pod{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(&first[0]), sibling); err != nil || sibling.UID != first[0].UID || running != 2 {
				t.Errorf("%d pods run, the sibling: %v", running, err)
			}
		})
	}
}

func (c *cluster) leafOf(t *testing.T, node string) string {
	t.Helper()
	n := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
		t.Fatal(err)
	}
	return n.Labels[gpuv1alpha1.LeafLabel]
}

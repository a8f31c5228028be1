package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// The stock kube-scheduler with the extender runs the examples: packed pods share a node, the gang
// of plain pods is in one leaf, and so is the workload in planned mode beside it.
func TestStockSchedulerWithTheExtender(t *testing.T) {
	c := ownCluster(t, "--nodes=48", "--extender")
	ns := c.namespace(t)
	out := c.kubectl(nil, "-n", ns, "apply", "-f", filepath.Join(harness.Root(t), "examples", "extender"))
	if strings.Count(out, " created") != 5 {
		t.Fatal(out)
	}
	// What the sandbox leaves out, the Deployment, is as the API server wants it, too.
	if out := c.kubectl(nil, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", filepath.Join(harness.Root(t), "config", "extender")); !strings.Contains(out, "deployment.apps/gpu-orchestrator-extender serverside-applied") || strings.Contains(out, "Warning") {
		t.Error(out)
	}
	eventually(t, func() error { return c.podsBound(t, ns, 11) })
	nodes := c.boundNodes(t, ns)
	if nodes["packed-1"] != nodes["packed-2"] {
		t.Errorf("packed-1 is on %s, packed-2 on %s", nodes["packed-1"], nodes["packed-2"])
	}
	for _, prefix := range []string{"steered-", "planned-"} {
		if leaves, pods := c.leavesOf(t, nodes, prefix); pods != 4 || len(leaves) != 1 {
			t.Errorf("%d pods %s* are in %v", pods, prefix, leaves)
		}
	}
	// Whole leaves: two gangs of 16 nodes find the two leaves that nothing else is in, and only
	// those; a third one waits, whole.
	for i := range 3 {
		if err := c.Create(t.Context(), gangJob(ns, fmt.Sprintf("whole%d", i), 16)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { return c.podsBound(t, ns, 11+32) })
	nodes = c.boundNodes(t, ns)
	for i := range 3 {
		if leaves, pods := c.leavesOf(t, nodes, fmt.Sprintf("whole%d-", i)); pods != 0 && (pods != 16 || len(leaves) != 1) {
			t.Errorf("gang whole%d: %d pods are in %v", i, pods, leaves)
		}
	}
	c.eventuallySays(t, ns, "whole", "have to wait with the rest of gang")
	if err := withoutRefusals(c.dir, "extender"); err != nil {
		t.Error(err)
	}
}

// What docs/extender.md says of a kube-scheduler whose extender does not answer: pods wait and are
// placed once it does, or, if it may be ignored, are placed without it.
func TestExtenderThatDoesNotAnswer(t *testing.T) {
	for _, ignorable := range []bool{false, true} {
		t.Run("ignorable "+strconv.FormatBool(ignorable), func(t *testing.T) {
			c := ownCluster(t, "--nodes=4", "--extender", "--extender-ignorable="+strconv.FormatBool(ignorable))
			ns := c.namespace(t)
			proceed := c.freeze(t, "extender")
			for _, pod := range []*corev1.Pod{plainPod(ns, "gpu", 8), plainPod(ns, "cpu", 0)} {
				if err := c.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			// Whoever asks for no GPU does not notice.
			eventually(t, func() error { return c.bound(t, ns, "cpu") })
			if ignorable {
				eventually(t, func() error { return c.bound(t, ns, "gpu") })
				proceed()
				return
			}
			c.eventuallySays(t, ns, "gpu", "/filter")
			if err := c.bound(t, ns, "gpu"); err == nil {
				t.Error("the pod is bound without an answer")
			}
			proceed()
			eventually(t, func() error { return c.bound(t, ns, "gpu") })
		})
	}
}

// A pod whose labels contradict themselves is told so where its owner looks, and waits alone.
func TestContradictingGangIsToldSo(t *testing.T) {
	c := ownCluster(t, "--nodes=4", "--extender")
	ns := c.namespace(t)
	wrong := plainPod(ns, "wrong", 1)
	wrong.Labels = map[string]string{gpuv1alpha1.GangSizeLabel: "4"}
	for _, pod := range []*corev1.Pod{wrong, plainPod(ns, "right", 1)} {
		if err := c.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { return c.bound(t, ns, "right") })
	eventually(t, func() error {
		var pod corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "wrong"}, &pod); err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, "name the gang whose size the pod tells") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", pod.Status.Conditions)
	})
}

func plainPod(ns, name string, gpus int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
	}
	if gpus > 0 {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	return p
}

// gangJob is a gang of plain pods, a whole node each, in one leaf.
func gangJob(ns, name string, size int32) *batchv1.Job {
	pod := plainPod(ns, "", 8)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion), Completions: &size, Parallelism: &size,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{gpuv1alpha1.GangLabel: name, gpuv1alpha1.GangSizeLabel: strconv.Itoa(int(size))},
					Annotations: map[string]string{
						gpuv1alpha1.RequiredLevelAnnotation: "leaf", "sandbox.gpu.warp.dev/run-for": "24h",
					},
				},
				Spec: pod.Spec,
			},
		},
	}
}

func (c *cluster) podsIn(t *testing.T, ns string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// boundNodes returns the node of each pod of the namespace that has one.
func (c *cluster) boundNodes(t *testing.T, ns string) map[string]string {
	t.Helper()
	nodes := map[string]string{}
	for _, p := range c.podsIn(t, ns) {
		if p.Spec.NodeName != "" {
			nodes[p.Name] = p.Spec.NodeName
		}
	}
	return nodes
}

func (c *cluster) podsBound(t *testing.T, ns string, want int) error {
	t.Helper()
	if n := len(c.boundNodes(t, ns)); n < want {
		return fmt.Errorf("%d of %d pods are bound", n, want)
	}
	return nil
}

func (c *cluster) bound(t *testing.T, ns, name string) error {
	t.Helper()
	if c.boundNodes(t, ns)[name] == "" {
		return fmt.Errorf("pod %s is not bound", name)
	}
	return nil
}

// leavesOf returns the leaves that the pods with the prefix are in, and how many pods there are.
func (c *cluster) leavesOf(t *testing.T, nodes map[string]string, prefix string) (leaves []string, pods int) {
	t.Helper()
	for name, node := range nodes {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		pods++
		var n corev1.Node
		if err := c.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, n.Labels[gpuv1alpha1.LeafLabel])
	}
	slices.Sort(leaves)
	return slices.Compact(leaves), pods
}

// eventuallySays waits for an event of a pod with the prefix that says so.
func (c *cluster) eventuallySays(t *testing.T, ns, prefix, want string) {
	t.Helper()
	eventually(t, func() error {
		var list corev1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if strings.HasPrefix(e.InvolvedObject.Name, prefix) && strings.Contains(e.Message, want) {
				return nil
			}
		}
		return fmt.Errorf("no event of %s* says %q", prefix, want)
	})
}

// freeze stops a process of the sandbox, which then answers nobody, and returns what has it go on.
func (c *cluster) freeze(t *testing.T, program string) (proceed func()) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		args := strings.Split(string(line), "\x00")
		if err != nil || !strings.Contains(string(line), c.dir) || filepath.Base(args[0]) != program && (len(args) < 2 || args[1] != program) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		proceed = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
		t.Cleanup(proceed)
		return proceed
	}
	t.Fatalf("no process %s of %s is there", program, c.dir)
	return nil
}

// withoutRefusals returns what a process of the sandbox was refused by the API server.
func withoutRefusals(dir, program string) error {
	data, err := os.ReadFile(filepath.Join(dir, "logs", program+".log"))
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "forbidden") {
			errs = append(errs, errors.New(line))
		}
	}
	return errors.Join(errs...)
}

// Without the extender kube-scheduler would evict the workload's pod: its priority is the lowest.
// Its owner did not agree to that, so that the plain pod makes way.
func TestPreemptionIsTrimmed(t *testing.T) {
	c := ownCluster(t, "--nodes=2", "--extender")
	ns := c.namespace(t)
	for name, value := range map[string]int32{"low": 10, "high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if err := c.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	w := gpuWorkload(ns, "trained", 1, 8, forever)
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return c.podsBound(t, ns, 1) })
	low, high := plainPod(ns, "low", 8), plainPod(ns, "high", 8)
	low.Spec.PriorityClassName, high.Spec.PriorityClassName = "low", "high"
	if err := c.Create(t.Context(), low); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return c.bound(t, ns, "low") })
	if err := c.Create(t.Context(), high); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return c.bound(t, ns, "high") })
	if err := c.bound(t, ns, "low"); err == nil {
		t.Error("the plain pod is still there")
	}
	if pods := c.pods(t, w); len(pods) != 1 || pods[0].DeletionTimestamp != nil {
		t.Errorf("the workload has %d pods", len(pods))
	}
}

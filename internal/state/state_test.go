package state

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func testLevels() []cluster.Level {
	return []cluster.Level{
		{Name: "leaf", Labels: []string{"gpu.warp.dev/leaf"}},
		{Name: "host", Labels: []string{"kubernetes.io/hostname"}},
	}
}

func newState(t testing.TB) *State {
	t.Helper()
	r, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	return New(testLevels(), r)
}

func gpuNode(name string, gpus int64) *corev1.Node {
	list := corev1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("512Gi"), "pods": resource.MustParse("110"),
		"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "gpu.warp.dev/leaf": "leaf-1"}},
		Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func gpuPod(uid string, gpus int64, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func bound(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func pinned(nodes ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		selector := &corev1.NodeSelector{}
		for _, n := range nodes {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{n}}},
			})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
}

func absurd(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	}
}

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gpuv1alpha1.SchedulingGate}}
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = ph }
}

func memberPod(w *gpuv1alpha1.GPUWorkload, attempt, rank int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{
			gpuv1alpha1.WorkloadLabel: w.Name, gpuv1alpha1.WorkloadUIDLabel: string(w.UID), gpuv1alpha1.AttemptLabel: strconv.Itoa(int(attempt)),
		}
		p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(int(rank))}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: JobName(w, attempt), Controller: ptr.To(true)}}
	}
}

func workload(uid string, pods int32, gpus int32) *gpuv1alpha1.GPUWorkload {
	return &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: gpus, Parallelism: pods},
	}
}

func free(s *State, node string) int64 {
	snapshot := s.Snapshot()
	return snapshot.Node(node).Free(snapshot.Resources.Index("nvidia.com/gpu"))
}

func TestPodsHoldTheirNode(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want int64
	}{
		{"bound", gpuPod("p", 3, bound("a")), 5},
		{"bound and running", gpuPod("p", 3, bound("a"), phase(corev1.PodRunning)), 5},
		{"succeeded", gpuPod("p", 3, bound("a"), phase(corev1.PodSucceeded)), 8},
		{"failed", gpuPod("p", 3, bound("a"), phase(corev1.PodFailed)), 8},
		{"says that it is planned here; anybody can", gpuPod("p", 3, pinned("a")), 8},
		{"asks for more than any machine has", gpuPod("p", 3, bound("a"), absurd("5e1410065407")), 8},
		{"asks for less than nothing", gpuPod("p", 3, bound("a"), absurd("-4")), 8},
		{"still gated", gpuPod("p", 3, pinned("a"), gated), 8},
		{"neither planned nor bound", gpuPod("p", 3), 8},
		{"on another node", gpuPod("p", 3, bound("b")), 8},
		{"ending holds until it has ended", gpuPod("p", 3, bound("a"), func(p *corev1.Pod) {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}), 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState(t)
			s.SetNode(gpuNode("a", 8))
			s.SetPod(c.pod)
			if got := free(s, "a"); got != c.want {
				t.Errorf("%d GPUs free, want %d", got, c.want)
			}
			s.SetPod(c.pod) // told twice
			if got := free(s, "a"); got != c.want {
				t.Errorf("told twice: %d GPUs free, want %d", got, c.want)
			}
			s.DropPod(c.pod.UID)
			s.DropPod(c.pod.UID)
			if got := free(s, "a"); got != 8 {
				t.Errorf("gone: %d GPUs free", got)
			}
		})
	}
}

func TestPodsAreSeenBeforeTheirNode(t *testing.T) {
	s := newState(t)
	s.SetPod(gpuPod("p", 3, bound("a")))
	if s.Snapshot().Node("a") != nil {
		t.Error("there is a node that nobody told of")
	}
	s.SetNode(gpuNode("a", 8))
	if got := free(s, "a"); got != 5 {
		t.Errorf("%d GPUs free", got)
	}
	s.DropNode("a")
	s.SetNode(gpuNode("a", 8))
	if got := free(s, "a"); got != 5 {
		t.Errorf("after the node came back: %d GPUs free", got)
	}
}

func TestGPUsOfANode(t *testing.T) {
	quantity := func(v int64) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(v, resource.DecimalSI)}
	}
	for _, c := range []struct {
		name                  string
		allocatable, capacity corev1.ResourceList
		label                 string
		want                  int64
	}{
		{"allocatable", quantity(7), quantity(8), "6", 7},
		{"allocatable says none", quantity(0), quantity(8), "8", 0},
		{"capacity", nil, quantity(8), "6", 8},
		{"label", nil, nil, "6", 6},
		{"label that is no number", nil, nil, "many", 0},
		{"negative label", nil, nil, "-3", 0},
		{"nothing", nil, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := gpuNode("a", 0)
			n.Status.Allocatable, n.Status.Capacity = c.allocatable, c.capacity
			n.Labels["nvidia.com/gpu.count"] = c.label
			s := newState(t)
			s.SetNode(n)
			s.SetNode(gpuNode("other", 1)) // so that the resource is known in every case
			if got := free(s, "a"); got != c.want {
				t.Errorf("%d GPUs, want %d", got, c.want)
			}
		})
	}
}

func TestSharedAndPartitionedNodesOfferNoWholeGPUs(t *testing.T) {
	for _, name := range []corev1.ResourceName{"nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"} {
		n := gpuNode("a", 0)
		delete(n.Status.Allocatable, "nvidia.com/gpu")
		n.Status.Capacity = nil
		n.Status.Allocatable[name] = resource.MustParse("28")
		n.Labels["nvidia.com/gpu.count"] = "4"
		s := newState(t)
		s.SetNode(n)
		s.SetNode(gpuNode("other", 1))
		if got := free(s, "a"); got != 0 {
			t.Errorf("a node that offers %s: %d whole GPUs", name, got)
		}
	}
}

func TestHeartbeatsChangeNothing(t *testing.T) {
	s := newState(t)
	n := gpuNode("a", 8)
	s.SetNode(n)
	before := s.Snapshot()
	beat := n.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	if s.SetNode(beat) || s.Snapshot() != before {
		t.Error("a heartbeat made a new snapshot")
	}
	beat.Spec.Unschedulable = true
	if !s.SetNode(beat) || s.Snapshot() == before || !s.Snapshot().Node("a").Cordoned {
		t.Error("a cordon went unnoticed")
	}
}

func TestPlansHoldRoomUntilPodsDo(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	w, other := workload("w", 2, 3), workload("other", 1, 3)
	pod := gpuPod("", 3)
	d, nodeOf, err := s.Plan(w, pod, Ask{Attempt: 4})
	if err != nil || !d.Feasible || len(nodeOf) != 2 {
		t.Fatal(d.Why.Sentence, err)
	}
	if d, _, _ := s.Plan(other, pod, Ask{}); d.Feasible {
		t.Fatal("the room of one plan was given to another")
	}
	// A pod of another attempt, or one that is still gated, takes nothing over.
	s.SetPod(gpuPod("old", 3, memberPod(w, 3, 0), phase(corev1.PodFailed)))
	s.SetPod(gpuPod("p0", 3, memberPod(w, 4, 0), gated))
	if node, ok := s.Promised("w", 4, 0); !ok || node != "a" || free(s, "a") != 2 {
		t.Errorf("promised %q %v, %d free", node, ok, free(s, "a"))
	}
	s.SetPod(gpuPod("p0", 3, memberPod(w, 4, 0), pinned("a")))
	if _, ok := s.Promised("w", 4, 0); !ok || free(s, "a") != 2 {
		t.Errorf("the promise ended before the pod was bound: %d free", free(s, "a"))
	}
	// Labels alone can be anybody's.
	s.SetPod(gpuPod("thief", 1, memberPod(w, 4, 0), bound("b"), func(p *corev1.Pod) { p.Namespace = "elsewhere" }))
	if _, ok := s.Promised("w", 4, 0); !ok {
		t.Error("a pod of another namespace used up the promise")
	}
	s.SetPod(gpuPod("p0", 3, memberPod(w, 4, 0), pinned("a"), bound("a")))
	if _, ok := s.Promised("w", 4, 0); ok || free(s, "a") != 2 {
		t.Errorf("the promise stands beside the bound pod: %d free", free(s, "a"))
	}
	s.SetPod(gpuPod("p1", 3, memberPod(w, 4, 1), bound("a"), phase(corev1.PodSucceeded)))
	if free(s, "a") != 5 {
		t.Errorf("a member that has ended needs no room: %d free", free(s, "a"))
	}
	if s.Release("w") {
		t.Error("something was held still")
	}
}

func TestPlanningAgainReplacesTheOldPlan(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	w := workload("w", 1, 8)
	for range 3 {
		if d, _, err := s.Plan(w, gpuPod("", 8), Ask{}); err != nil || !d.Feasible {
			t.Fatal("a workload is in its own way:", d.Why.Sentence, err)
		}
	}
	if !s.Release("w") || free(s, "a") != 8 {
		t.Errorf("%d free after the release", free(s, "a"))
	}
}

func TestReplacingOneMemberKeepsTheOthersPromise(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	w := workload("w", 2, 3)
	if d, _, err := s.Plan(w, gpuPod("", 3), Ask{}); err != nil || !d.Feasible {
		t.Fatal(d.Why.Sentence, err)
	}
	failed := gpuPod("p0", 3, memberPod(w, 0, 0), bound("a"), phase(corev1.PodFailed))
	s.SetPod(failed)
	d, nodeOf, err := s.Plan(w, gpuPod("", 3), Ask{Ranks: []int32{0}, Kept: []string{"a"}})
	if err != nil || !d.Feasible || nodeOf[0] != "a" || len(nodeOf) != 1 {
		t.Fatal(nodeOf, d.Why.Sentence, err)
	}
	if free(s, "a") != 2 {
		t.Errorf("%d free, two members are promised 3 each", free(s, "a"))
	}
	// More news of the pod that failed must not use up the promise to its successor.
	failed = failed.DeepCopy()
	failed.Finalizers = nil
	s.SetPod(failed)
	if _, ok := s.Promised("w", 0, 0); !ok {
		t.Error("old news took the new promise away")
	}
}

func TestRestoredPlansHoldOnlyWhatPodsDoNot(t *testing.T) {
	w := workload("w", 3, 2)
	w.Status.Attempt = 1
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	s.SetPod(gpuPod("p0", 2, memberPod(w, 1, 0), bound("a")))
	s.SetPod(gpuPod("p1", 2, memberPod(w, 1, 1), bound("a"), phase(corev1.PodSucceeded)))
	s.Confirm(w, gpuPod("", 2), map[int32]string{0: "a", 1: "a", 2: "a"})
	if got := free(s, "a"); got != 4 {
		t.Errorf("%d free: one pod holds 2, one promise 2", got)
	}
	s.Confirm(w, gpuPod("", 2), map[int32]string{0: "a", 1: "a", 2: "a"})
	if got := free(s, "a"); got != 4 {
		t.Errorf("restored twice: %d free", got)
	}
}

func TestWorkloadsThatCannotBePlannedAsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*gpuv1alpha1.GPUWorkload)
		field string
		says  string
	}{
		"strategy": {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "best" }, "spec.schedulingStrategy", "registered are "},
		"required": {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: "rak"} }, "spec.topology.required", "knows leaf, host"},
		"preferred": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Preferred: "rak"}
		}, "spec.topology.preferred", "rak"},
		"slice": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Slice: &gpuv1alpha1.TopologySlice{Size: 1, Level: "rak"}}
		}, "spec.topology.slice.level", "rak"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(t)
			s.SetNode(gpuNode("a", 8))
			w := workload("w", 1, 1)
			c.edit(w)
			_, _, err := s.Plan(w, gpuPod("", 1), Ask{})
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Field != c.field || !strings.Contains(invalid.Problem, c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestGPURequirementsReachTheEngine(t *testing.T) {
	h100, shared := gpuNode("h100", 8), gpuNode("shared", 0)
	h100.Labels["nvidia.com/gpu.product"], h100.Labels["nvidia.com/gpu.family"], h100.Labels["nvidia.com/gpu.memory"] = "NVIDIA-H100", "hopper", "81559"
	delete(shared.Status.Allocatable, "nvidia.com/gpu")
	shared.Status.Allocatable["nvidia.com/gpu.shared"] = resource.MustParse("32")
	shared.Labels["nvidia.com/gpu.replicas"] = "4"
	memory, tooMuch, milli, large := resource.MustParse("79Gi"), resource.MustParse("80Gi"), int32(250), int32(300)
	for name, c := range map[string]struct {
		gpu  gpuv1alpha1.GPURequirements
		want string
	}{
		"product":            {gpuv1alpha1.GPURequirements{Product: "NVIDIA-H100"}, "h100"},
		"other product":      {gpuv1alpha1.GPURequirements{Product: "NVIDIA-A100"}, ""},
		"architecture":       {gpuv1alpha1.GPURequirements{Architecture: "Hopper"}, "h100"},
		"other architecture": {gpuv1alpha1.GPURequirements{Architecture: "ampere"}, ""},
		"memory":             {gpuv1alpha1.GPURequirements{MinMemory: &memory}, "h100"},
		"more memory":        {gpuv1alpha1.GPURequirements{MinMemory: &tooMuch}, ""},
		"a share":            {gpuv1alpha1.GPURequirements{Milli: &milli}, "shared"},
		"too large a share":  {gpuv1alpha1.GPURequirements{Milli: &large}, ""},
		"a MIG instance":     {gpuv1alpha1.GPURequirements{ResourceName: "nvidia.com/mig-1g.10gb"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(t)
			s.SetNode(h100)
			s.SetNode(shared)
			w := workload("w", 1, 1)
			w.Spec.GPU = &c.gpu
			pod := gpuPod("", 0)
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(ResourceName(w)): resource.MustParse("1")}
			_, nodeOf, err := s.Plan(w, pod, Ask{})
			if err != nil || nodeOf[0] != c.want {
				t.Errorf("planned on %q (%v), want %q", nodeOf[0], err, c.want)
			}
		})
	}
}

func TestPlacementReadsWhatItWrites(t *testing.T) {
	nodeOf := map[int32]string{}
	for rank := range int32(200) {
		nodeOf[rank] = fmt.Sprintf("n%d", rank/7%9)
	}
	text := FormatPlacement(nodeOf)
	if text[0].Node != "n0" || text[0].Indexes != "0-6,63-69,126-132,189-195" {
		t.Errorf("first entry %v", text[0])
	}
	back, err := ParsePlacement(text)
	if err != nil || len(back) != len(nodeOf) {
		t.Fatal(err, len(back))
	}
	for rank, node := range nodeOf {
		if back[rank] != node {
			t.Errorf("rank %d: %s became %s", rank, node, back[rank])
		}
	}
	if _, err := ParsePlacement([]gpuv1alpha1.NodePlacement{{Node: "n", Indexes: "1-x"}}); err == nil {
		t.Error("read ranks out of nonsense")
	}
}

func TestStatusIsTheTruthAboutAPlan(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	s.SetNode(gpuNode("b", 8))
	w := workload("w", 1, 8)
	if _, nodeOf, err := s.Plan(w, gpuPod("", 8), Ask{}); err != nil || nodeOf[0] != "a" {
		t.Fatal(nodeOf, err)
	}
	// What was written down says b: an earlier write went through although its answer was lost.
	s.Confirm(w, gpuPod("", 8), map[int32]string{0: "b"})
	if node, _ := s.Promised("w", 0, 0); node != "b" || free(s, "a") != 8 || free(s, "b") != 0 {
		t.Errorf("promised %s, %d and %d free", node, free(s, "a"), free(s, "b"))
	}
}

func TestOnlyNodesBringInResources(t *testing.T) {
	s := newState(t)
	// Pods may be seen before the first node tells of GPUs.
	s.SetPod(gpuPod("p", 3, bound("a")))
	for i := range 100 {
		s.SetPod(gpuPod(fmt.Sprint(i), 1, bound("a"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(fmt.Sprintf("example.com/r%d", i)): resource.MustParse("1")}
		}))
	}
	s.SetNode(gpuNode("a", 8))
	if got := free(s, "a"); got != 5 {
		t.Errorf("%d GPUs free", got)
	}
	if n := s.Snapshot().Resources.Len(); n != 4 {
		t.Errorf("%d resources are known, nodes have 4", n)
	}
	w := workload("w", 1, 1)
	pod := gpuPod("", 1)
	pod.Spec.Containers[0].Resources.Requests["example.com/hca"] = resource.MustParse("1")
	if d, _, err := s.Plan(w, pod, Ask{}); err != nil || d.Feasible || !strings.Contains(d.Why.Sentence, "no node has example.com/hca") {
		t.Error(d.Why.Sentence, err)
	}
}

func TestAbsurdAmountsAreRefusedAtOnce(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	for _, cpu := range []string{"5e1410065407", "-1", "9e18"} {
		_, _, err := s.Plan(workload("w", 1, 1), gpuPod("", 1, absurd(cpu)), Ask{})
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Problem, "containers[c].resources asks for an amount of cpu that no machine has") {
			t.Errorf("cpu %s: %v", cpu, err)
		}
	}
}

func TestReplacedMemberStaysInItsSlice(t *testing.T) {
	s := newState(t)
	for _, n := range []string{"a1", "a2", "b1", "b2"} {
		node := gpuNode(n, 8)
		node.Labels["gpu.warp.dev/leaf"] = n[:1]
		s.SetNode(node)
	}
	w := workload("w", 4, 4)
	w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Slice: &gpuv1alpha1.TopologySlice{Size: 2, Level: "leaf"}}
	_, nodeOf, err := s.Plan(w, gpuPod("", 4), Ask{Ranks: []int32{1}, Kept: []string{"b2"}, InSlice: true})
	if err != nil || nodeOf[1] == "" || nodeOf[1][:1] != "b" {
		t.Errorf("%v %v: rank 0 of the slice is in leaf b", nodeOf, err)
	}
}

// core may not import the API, so the label's name stands in both.
func TestCheapNodeLabelIsOne(t *testing.T) {
	if placement.CheapNodeLabel != gpuv1alpha1.CheapNodeLabel {
		t.Errorf("core says %s, the API %s", placement.CheapNodeLabel, gpuv1alpha1.CheapNodeLabel)
	}
}

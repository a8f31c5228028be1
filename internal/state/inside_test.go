package state

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// inventory is of a node of count GPUs, each two of them bridged: 0-1, 2-3 and so on.
func inventory(name string, count int) *gpuv1alpha1.GPUNode {
	n := &gpuv1alpha1.GPUNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range count {
		links := make([]int32, count)
		if pair := i ^ 1; pair < count {
			links[pair] = 12
		}
		n.Status.GPUs = append(n.Status.GPUs, gpuv1alpha1.GPUDevice{
			Index: int32(i), Product: "NVIDIA-A100-SXM4-80GB", Architecture: "Ampere", MemoryMiB: 81920, NVLinks: links, NUMANode: ptr.To(int32(i / 2)),
		})
	}
	trust(n, metav1.ConditionTrue)
	return n
}

func trust(n *gpuv1alpha1.GPUNode, status metav1.ConditionStatus) {
	meta.SetStatusCondition(&n.Status.Conditions, metav1.Condition{Type: gpuv1alpha1.ConditionReady, Status: status, Reason: "Told"})
}

func drawnInventory(t *rapid.T, name string) *gpuv1alpha1.GPUNode {
	n := inventory(name, rapid.IntRange(0, 4).Draw(t, "inside"))
	for i := range n.Status.GPUs {
		if rapid.IntRange(0, 3).Draw(t, "problem") == 0 {
			n.Status.GPUs[i].Problem = "XID 79"
		}
		n.Status.GPUs[i].MIG = rapid.IntRange(0, 3).Draw(t, "mig") == 0
	}
	for _, uid := range []string{"p", "q"} {
		if rapid.Bool().Draw(t, "holds") {
			// Sometimes of GPUs that the node does not have.
			held := []int32{rapid.Int32Range(0, 3).Draw(t, "held")}
			n.Status.Holders = append(n.Status.Holders, gpuv1alpha1.GPUHolder{PodUID: uid, GPUs: held})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
		trust(n, metav1.ConditionFalse)
	}
	return n
}

func holds(n *gpuv1alpha1.GPUNode, uid string, gpus ...int32) *gpuv1alpha1.GPUNode {
	n.Status.Holders = append(n.Status.Holders, gpuv1alpha1.GPUHolder{PodUID: uid, GPUs: gpus})
	return n
}

// A pair of GPUs that nobody holds is found where the agents tell who holds which, and not where
// they tell nothing.
func TestInventoriesLeadToTheBestGPUs(t *testing.T) {
	s := newState(t)
	for _, name := range []string{"a", "b"} {
		s.SetNode(gpuNode(name, 4))
	}
	for uid, node := range map[string]string{"p": "a", "q": "a", "r": "b", "s": "b"} {
		s.SetPod(gpuPod(uid, 1, bound(node)))
	}
	tell := func(n *gpuv1alpha1.GPUNode) {
		t.Helper()
		if _, err := s.SetInventory(n); err != nil {
			t.Fatal(err)
		}
	}
	tell(holds(holds(inventory("a", 4), "p", 0), "q", 2)) // Every pair is broken up.
	tell(holds(holds(inventory("b", 4), "r", 0), "s", 1)) // 2 and 3 are free.
	w := workload("w", 1, 2)
	w.Spec.SchedulingStrategy = "topologyAware"
	w.Spec.GPU = &gpuv1alpha1.GPURequirements{Product: "NVIDIA-A100-SXM4-80GB", TopologyPreference: gpuv1alpha1.TopologyNVLink}
	d, nodeOf, err := s.Plan(w, gpuPod("", 2), Ask{})
	if err != nil || nodeOf[0] != "b" || d.Groups[0].GPUs[0] != gpu.MaskOf(2, 3) {
		t.Fatalf("%v %v %v: %s", nodeOf, d.Groups, err, d.Why.Sentence)
	}
}

func TestInventoryOfTheSnapshot(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 4))
	s.SetNode(gpuNode("b", 4))
	s.SetPod(gpuPod("p", 1, bound("a")))
	first := holds(inventory("a", 4), "p", 3)
	first.Status.GPUs[1].Problem = "XID 79: fallen off the bus"
	first.Status.GPUs[2].MIG = true
	for _, n := range []*gpuv1alpha1.GPUNode{first, inventory("b", 4)} {
		if better, err := s.SetInventory(n); !better || err != nil {
			t.Fatal(better, err)
		}
	}
	a, b := s.Snapshot().Node("a"), s.Snapshot().Node("b")
	if a.Board == nil || a.Board != b.Board {
		t.Error("nodes that are wired alike have two boards")
	}
	if a.WholeGPUs() != gpu.MaskOf(0) || a.Pods[0].GPUs != gpu.MaskOf(3) {
		t.Errorf("free are %v, the pod has %v", a.WholeGPUs(), a.Pods[0].GPUs)
	}
	if without := a.Without(a.Pods[0]); without.WholeGPUs() != gpu.MaskOf(0, 3) {
		t.Errorf("without the pod, free are %v", without.WholeGPUs())
	}
	if a.GPU.Architecture != "ampere" || a.GPU.MemoryMiB != 81920 || a.Geometry == nil {
		t.Errorf("%+v", a.GPU)
	}
	if better, _ := s.SetInventory(first.DeepCopy()); better || s.Snapshot().Node("a") != a {
		t.Error("the same told again made another node")
	}
	more := holds(first.DeepCopy(), "q", 0)
	if better, _ := s.SetInventory(more); better || s.Snapshot().Node("a").Machine != a.Machine || s.Snapshot().Node("a").WholeGPUs() != 0 {
		t.Error("a pod that comes makes another machine of the node")
	}
	trust(more, metav1.ConditionFalse)
	_, _ = s.SetInventory(more)
	if now := s.Snapshot().Node("a"); now.Board != nil || now.Taken != 0 || now.Broken != 0 || now.GPU.Product != "" || now.Free(s.resources.Index("nvidia.com/gpu")) != 3 {
		t.Errorf("what is not to be relied on still counts: %+v", now)
	}
	if !s.DropInventory("b") || s.Snapshot().Node("b").Board != nil || s.DropInventory("b") {
		t.Error("an inventory that is gone still counts")
	}
}

// Only what somebody who waits might use is told as better.
func TestWhichInventoriesAreBetter(t *testing.T) {
	first := func() *gpuv1alpha1.GPUNode {
		n := holds(inventory("a", 4), "p", 3)
		n.Status.GPUs[1].Problem = "XID 79"
		n.Status.GPUs[2].MIG = true
		return n
	}
	for name, test := range map[string]struct {
		edit   func(*gpuv1alpha1.GPUNodeStatus)
		better bool
	}{
		"the same": {func(*gpuv1alpha1.GPUNodeStatus) {}, false},
		"one more pod": {func(s *gpuv1alpha1.GPUNodeStatus) {
			s.Holders = append(s.Holders, gpuv1alpha1.GPUHolder{PodUID: "q", GPUs: []int32{0}})
		}, false},
		"one more fault": {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].Problem = "XID 79" }, false},
		"MIG":            {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].MIG = true }, false},
		"a pod went":     {func(s *gpuv1alpha1.GPUNodeStatus) { s.Holders = nil }, true},
		"a pod moved":    {func(s *gpuv1alpha1.GPUNodeStatus) { s.Holders[0].GPUs = []int32{0} }, true},
		"mended":         {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[1].Problem = "" }, true},
		"no MIG":         {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[2].MIG = false }, true},
		"other memory":   {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].MemoryMiB++ }, true},
		"another link":   {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].NVLinks[1], s.GPUs[1].NVLinks[0] = 4, 4 }, true},
		"fallen silent":  {func(s *gpuv1alpha1.GPUNodeStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, true},
	} {
		s := newState(t)
		s.SetNode(gpuNode("a", 4))
		if better, err := s.SetInventory(first()); !better || err != nil {
			t.Fatal(better, err)
		}
		next := first()
		test.edit(&next.Status)
		if better, err := s.SetInventory(next); better != test.better || err != nil {
			t.Errorf("%s: better is %t, %v", name, better, err)
		}
	}
}

// Links that flap wire a node in ever new ways: those of before are forgotten.
func TestBoardsOfLinksThatFlapAreForgotten(t *testing.T) {
	s := newState(t)
	for _, name := range []string{"a", "b"} {
		s.SetNode(gpuNode(name, 4))
	}
	if _, err := s.SetInventory(inventory("b", 4)); err != nil {
		t.Fatal(err)
	}
	for i := range int32(500) {
		n := inventory("a", 4)
		n.Status.GPUs[0].NVLinks[1], n.Status.GPUs[1].NVLinks[0] = i%25, i%25
		n.Status.GPUs[2].NVLinks[3], n.Status.GPUs[3].NVLinks[2] = i/25, i/25
		if _, err := s.SetInventory(n); err != nil {
			t.Fatal(err)
		}
	}
	if most := len(s.nodes) + spareBoards; len(s.boards) > most {
		t.Errorf("%d boards are remembered, want %d at most", len(s.boards), most)
	}
	if _, err := s.SetInventory(inventory("a", 4)); err != nil {
		t.Fatal(err)
	}
	if a, b := s.Snapshot().Node("a"), s.Snapshot().Node("b"); a.Board != b.Board {
		t.Error("the board of a node was forgotten")
	}
}

// A label is the administrator's word.
func TestLabelsComeBeforeInventories(t *testing.T) {
	s := newState(t)
	n := gpuNode("a", 4)
	n.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3"
	s.SetNode(n)
	if _, err := s.SetInventory(inventory("a", 4)); err != nil {
		t.Fatal(err)
	}
	if got := s.Snapshot().Node("a").GPU; got.Product != "NVIDIA-H100-80GB-HBM3" || got.Architecture != "ampere" {
		t.Errorf("%+v", got)
	}
}

// An inventory may come before its node and go after it.
func TestInventoryBeforeAndAfterItsNode(t *testing.T) {
	s := newState(t)
	if _, err := s.SetInventory(inventory("a", 4)); err != nil {
		t.Fatal(err)
	}
	if s.Snapshot().Len() != 0 {
		t.Error("an inventory alone is a node")
	}
	s.SetNode(gpuNode("a", 4))
	if s.Snapshot().Node("a").Board == nil {
		t.Error("what was told before the node came is lost")
	}
	s.DropNode("a")
	s.SetNode(gpuNode("a", 4))
	if s.Snapshot().Node("a").Board == nil {
		t.Error("what was told is lost with the node")
	}
	s.DropNode("a")
	s.DropInventory("a")
	if len(s.nodes) != 0 {
		t.Error("a node of which nothing is left is remembered")
	}
}

func TestContradictoryInventoriesCountAsNone(t *testing.T) {
	for title, c := range map[string]struct {
		spoil func(*gpuv1alpha1.GPUNodeStatus)
		says  string
	}{
		"a gap": {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[1].Index = 7 }, "there is no GPU with index 1"},
		"a holder of what is not": {func(s *gpuv1alpha1.GPUNodeStatus) {
			s.Holders = []gpuv1alpha1.GPUHolder{{PodUID: "p", GPUs: []int32{4}}}
		}, "no GPU with index 4"},
		"links of one side only":    {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].NVLinks[1] = 3 }, "symmetric"},
		"links to too few":          {func(s *gpuv1alpha1.GPUNodeStatus) { s.GPUs[0].NVLinks = []int32{0} }, "entries"},
		"a class that there is not": {func(s *gpuv1alpha1.GPUNodeStatus) { allPCIe(s, "near") }, "status.gpus[0].pcie[0]"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newState(t)
			s.SetNode(gpuNode("a", 4))
			n := inventory("a", 4)
			c.spoil(&n.Status)
			if _, err := s.SetInventory(n); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if s.Snapshot().Node("a").Board != nil {
				t.Error("it counts")
			}
		})
	}
}

func allPCIe(s *gpuv1alpha1.GPUNodeStatus, class gpuv1alpha1.PCIePath) {
	for i := range s.GPUs {
		for range s.GPUs {
			s.GPUs[i].PCIe = append(s.GPUs[i].PCIe, class)
		}
	}
}

// What a node that nobody looked into offers is not narrowed by those that were.
func TestNodesWithAndWithoutInventory(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 4))
	s.SetNode(gpuNode("b", 4))
	n := inventory("a", 4)
	n.Status.GPUs[0].Problem = "XID 79"
	if _, err := s.SetInventory(n); err != nil {
		t.Fatal(err)
	}
	d, nodeOf, err := s.Plan(workload("w", 1, 4), gpuPod("", 4), Ask{})
	if err != nil || nodeOf[0] != "b" {
		t.Fatalf("%v %v: %s", nodeOf, err, d.Why.Sentence)
	}
	d, _, err = s.Plan(workload("v", 1, 4), gpuPod("", 4), Ask{})
	if err != nil || d.Feasible || d.Why.Removed[placement.GPUsBroken] != 1 {
		t.Errorf("%+v %v", d.Why, err)
	}
}

// An agent that has fallen silent does not hold GPUs for pods that were seen to go. Pods of which
// it was told first count.
func TestPodsThatAreGoneHoldNothing(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 4))
	for _, uid := range []string{"deleted", "ended"} {
		s.SetPod(gpuPod(uid, 1, bound("a")))
	}
	told := holds(holds(holds(inventory("a", 4), "deleted", 0), "ended", 1), "new", 2)
	if _, err := s.SetInventory(told); err != nil {
		t.Fatal(err)
	}
	free := func(want ...int) {
		t.Helper()
		a := s.Snapshot().Node("a")
		if got := a.WholeGPUs(); got != gpu.MaskOf(want...) || a.Free(s.resources.Index(resourceGPU)) != int64(len(want)) {
			t.Errorf("free are %v and %d, want %v", got, a.Free(s.resources.Index(resourceGPU)), want)
		}
	}
	free(3)
	s.DropPod("deleted")
	free(0, 3)
	s.SetPod(gpuPod("ended", 1, bound("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	free(0, 1, 3)
	// The agent's last words were late.
	if _, err := s.SetInventory(told.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	free(0, 1, 3)
	s.SetPod(gpuPod("new", 1, bound("a")))
	free(0, 1, 3)
	s.DropPod("new")
	free(0, 1, 2, 3)
	// What is remembered of pods that are gone is bounded, and those that the agent names stay.
	for i := range 10 * mostGone {
		s.SetPod(gpuPod(fmt.Sprint("p", i), 1, bound("a")))
		s.DropPod(types.UID(fmt.Sprint("p", i)))
	}
	free(0, 1, 2, 3)
	if n := len(s.nodes["a"].gone); n > mostGone {
		t.Errorf("%d pods are remembered", n)
	}
}

// A pod that was on its way to a node and did not come is not one that left it.
func TestPodsThatNeverCameAreNotGone(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 4))
	if _, err := s.SetInventory(inventory("a", 4)); err != nil {
		t.Fatal(err)
	}
	s.Assume(gpuPod("p", 1), "a")
	s.Forget("p")
	if _, err := s.SetInventory(holds(inventory("a", 4), "p", 2)); err != nil {
		t.Fatal(err)
	}
	if got := s.Snapshot().Node("a").WholeGPUs(); got != gpu.MaskOf(0, 1, 3) {
		t.Errorf("free are %v", got)
	}
}

// Where a node counts something else than GPUs under their name, its inside says nothing about it.
func TestNodesThatCountPartsAreNotLookedInto(t *testing.T) {
	for title, labels := range map[string]map[string]string{
		"shared":        {"nvidia.com/gpu.replicas": "2"},
		"MIG instances": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newState(t)
			n := gpuNode("a", 4)
			for key, value := range labels {
				n.Labels[key] = value
			}
			s.SetNode(n)
			if _, err := s.SetInventory(inventory("a", 4)); err != nil {
				t.Fatal(err)
			}
			if s.Snapshot().Node("a").Board != nil {
				t.Error("it is looked into")
			}
		})
	}
}

package placement

import (
	"math"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Of a node that lends each of its 2 GPUs to four pods, 3 of 8 units are in use.
func TestFragmentationOfLentGPUs(t *testing.T) {
	n := nodeSpec{name: "n", gpus: 8, used: 3}.node()
	n.GPU.Replicas = 4
	for _, c := range []struct {
		milli    int
		unusable float64
	}{
		{100, 1.25 - 0.5}, // each unit is used by one pod only
		{250, 0},
		{251, 1.25},
	} {
		idle, unusable := Fragmentation(n, gpuResource, &Scoring{Mix: []Expected{{Milli: c.milli, Weight: 1}}})
		if idle != 1.25 || math.Abs(unusable-c.unusable) > 1e-9 {
			t.Errorf("pods with %d/1000: %v of %v GPUs unusable, want %v of 1.25", c.milli, unusable, idle, c.unusable)
		}
	}
}

// What just suffices is enough: of a shared GPU, and of any resource.
func TestWhatJustSufficesIsUsable(t *testing.T) {
	n := nodeSpec{name: "n", gpus: 2}.node()
	n.Board, n.Taken, n.Shares = board(t, gpu.Wiring{Count: 2}), gpu.MaskOf(0), []int16{0, 600}
	n.Used = cluster.Vector{n.Allocatable[cluster.CPU] - 1, n.Allocatable[cluster.Memory] - 1, n.Allocatable[cluster.Pods] - 1, 1}
	for _, c := range []struct {
		wants  cluster.Vector
		usable bool
	}{
		{cluster.Vector{1, 1, 1}, true}, {cluster.Vector{2, 0, 0}, false}, {cluster.Vector{0, 2, 0}, false}, {cluster.Vector{0, 0, 2}, false},
	} {
		e := Expected{Milli: 400, Weight: 1, Resources: c.wants}
		idle, unusable := Fragmentation(n, gpuResource, &Scoring{Mix: []Expected{e}})
		if idle != 0.4 || (unusable < 1e-9) != c.usable {
			t.Errorf("pods with %v: %v of %v GPUs unusable", c.wants, unusable, idle)
		}
	}
}

// Pods of the plan take what they are given, whatever the node's report says by then.
func TestStockKnowsOfThePlansPods(t *testing.T) {
	plain := nodeSpec{name: "n", gpus: 4}.node()
	known := nodeSpec{name: "n", gpus: 4}.node()
	known.Board = board(t, gpu.Wiring{Count: 4})
	cut := *known
	cut.Instances = []gpu.Instance{{GPU: 0, Profile: "1g.10gb", Start: 0, Size: 1}}
	share := Shape{GPUResource: gpuResource, GPUResourceName: "nvidia.com/gpu", Milli: 500}
	mig := Shape{GPUResource: gpuResource, GPUResourceName: "nvidia.com/gpu", MIG: []string{"1g.10gb"}}
	for _, c := range []struct {
		name   string
		node   *cluster.Node
		pod    Shape
		placed int
		whole  float64 // before and after one more
		after  float64
	}{
		{"shares of units", plain, share, 2, 2, 1},
		{"shares of GPUs", known, share, 1, 3, 3},
		{"shares of GPUs, of which one is full", known, share, 2, 3, 2},
		{"instances on a GPU of their own", known, mig, 0, 4, 3},
		{"instances beside others", &cut, mig, 0, 4, 4},
	} {
		var s stock
		s.read(&Candidate{Node: c.node, Pod: &c.pod, Placed: c.placed, FreeGPUs: 4, Whole: c.node.WholeGPUs(), Scoring: DefaultScoring()})
		before := s.whole
		if s.take(); before != c.whole || s.whole != c.after {
			t.Errorf("%s: %v whole GPUs, then %v, want %v and %v", c.name, before, s.whole, c.whole, c.after)
		}
	}
}

// One odd node does not outweigh all others: below a thousandth, scarcer is not dearer.
func TestSupplyIsBounded(t *testing.T) {
	weight := func(supply float64) float64 {
		return newDemand([]Expected{{GPUs: 1, Weight: 1, Supply: supply}}).weight
	}
	if weight(1e-6) != weight(minSupply) || weight(minSupply) <= weight(0.01) || weight(0) != 1 || weight(2) != 1 {
		t.Errorf("a kind weighs %v, %v, %v, %v", weight(1e-6), weight(minSupply), weight(0.01), weight(0))
	}
}

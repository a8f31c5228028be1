package packing

import (
	"math"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// fgd takes the node on which fragmentation grows least, and for a share the GPU (Weng et al.,
// USENIX ATC'23).
type fgd struct {
	typical typical
	// trial is a node to try a pod on, with room for as many GPUs as any has.
	trial node
	left  [gpu.MaxGPUs]int
}

func (f *fgd) score(n *node, k *kind) (score, share int) {
	before := f.typical.fragmentation(n)
	if !k.shares() {
		return f.after(n, k, n.firstWhole(k.gpus), before), 0
	}
	share = -1
	for g, left := range n.left {
		if left < k.milli || twin(n.left, g) {
			continue
		}
		if s := f.after(n, k, gpu.MaskOf(g), before); share < 0 || s > score {
			score, share = s, g
		}
	}
	return score, share
}

// twin tells whether a GPU before this one has as much left: it comes to the same.
func twin(left []int, g int) bool {
	for _, other := range left[:g] {
		if other == left[g] {
			return true
		}
	}
	return false
}

// after is the score of a node with the pod on these GPUs: 50 where fragmentation stays as it
// is, more where it falls.
func (f *fgd) after(n *node, k *kind, gpus gpu.Mask, before float64) int {
	f.trial = *n
	f.trial.left = f.left[:copy(f.left[:], n.left)]
	f.trial.classes = nil
	f.trial.take(k, gpus)
	fall := (before - f.typical.fragmentation(&f.trial)) / cluster.Full
	return int(100 / (1 + math.Exp(-fall)))
}

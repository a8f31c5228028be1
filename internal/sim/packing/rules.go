package packing

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// The published policies measure in parts of the largest node of their cluster.
const (
	largestCPU  = 128_000
	largestGPUs = 8 * cluster.Full
)

// bestFit takes the node that keeps the least CPU and GPU.
type bestFit struct{}

func (bestFit) score(n *node, k *kind) (score, share int) {
	kept := float64(n.cpu-k.cpu)/largestCPU*0.5 + float64(int64(n.idle)-k.demand())/largestGPUs*0.5
	return int((1 - kept) * 100), n.tightest(k.milli)
}

// dotProd takes the node whose free CPU and GPU point least in the direction of what the pod
// asks for (after Tetris, Grandl et al., SIGCOMM'14, upside down).
type dotProd struct{}

func (dotProd) score(n *node, k *kind) (score, share int) {
	product := float64(n.cpu)/largestCPU*(float64(k.cpu)/largestCPU) + float64(n.idle)/largestGPUs*(float64(k.demand())/largestGPUs)
	return int(100 * (1 - product/2)), n.tightest(k.milli)
}

// gpuClustering keeps pods with the same number of GPUs together (Gandiva, Xiao et al., OSDI'18).
type gpuClustering struct{}

func (gpuClustering) score(n *node, k *kind) (score, share int) {
	if k.gpus == 0 {
		return 0, 0
	}
	base := 0
	switch same := n.classes[k.class()] > 0; {
	case same && len(n.classes) == 1:
		base = 75
	case same:
		base = 50
	case len(n.classes) == 0:
		base = 25
	}
	return base + 25*(largestGPUs-n.idle)/largestGPUs, n.tightest(k.milli)
}

// gpuPacking takes GPUs that are shared already before idle ones, and nodes in use before empty
// ones (Antman, Xiao et al., OSDI'20, as FGD's authors read it).
type gpuPacking struct{}

func (gpuPacking) score(n *node, k *kind) (score, share int) {
	share = n.tightest(k.milli)
	switch {
	case k.gpus == 0:
		return 0, 0
	case n.whole == len(n.left):
		return max(33-n.whole, n.whole), share
	case !k.shares():
		return max(50-k.gpus, 33), share
	case n.left[share] == cluster.Full:
		return 50 - 1, share
	}
	return max(100-n.left[share]*100/cluster.Full/10, 50), share
}

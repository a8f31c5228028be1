package placement

import (
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// filter tells why the node cannot take one pod of the shape, Fits if it can.
func filter(n *cluster.Node, shape *Shape) Reason {
	switch {
	case !n.Ready:
		return NotReady
	case n.Cordoned:
		return IsCordoned
	}
	if reason := filterKind(n, shape); reason != Fits {
		return reason
	}
	switch {
	case n.FitsEmpty(shape.Resources, 1) < 1:
		return NodeTooSmall
	case shape.GPUs > 0 && n.Free(shape.GPUResource) < shape.GPUs:
		return GPUsTaken
	case n.Fits(shape.Resources, 1) < 1:
		return OthersTaken
	}
	return Fits
}

// filterKind tests what does not change as work comes and goes: the kind of node.
func filterKind(n *cluster.Node, shape *Shape) Reason {
	switch {
	case shape.GPUs > 0 && n.Allocatable.At(shape.GPUResource) == 0:
		return NoSuchGPU
	case shape.Missing != "":
		return NoSuchResource
	}
	if !shape.Selector.Matches(n) {
		return NotSelected
	}
	if _, tainted := n.Untolerated(shape.Tolerations); tainted {
		return Tainted
	}
	switch {
	case shape.GPU.Product != "" && shape.GPU.Product != n.GPU.Product:
		return WrongProduct
	case shape.GPU.Architecture != "" && !strings.EqualFold(shape.GPU.Architecture, n.GPU.Architecture):
		return WrongArchitecture
	case shape.GPU.MemoryMiB > n.GPU.MemoryMiB:
		return MemoryTooSmall
	case shape.Milli > 0 && (n.GPU.Replicas < 1 || 1000/n.GPU.Replicas < shape.Milli):
		return ShareTooSmall
	}
	return Fits
}

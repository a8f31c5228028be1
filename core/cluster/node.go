package cluster

import (
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Machine is what stays of a node as work comes and goes.
type Machine struct {
	// Name is unique in the cluster.
	Name string
	// Ready and Cordoned are what the cluster says of the node's health and of its operator's will.
	Ready, Cordoned bool
	// Labels are the node's labels; Taints keep away pods that do not tolerate them.
	Labels map[string]string
	Taints []Taint
	// GPU describes the node's GPUs; all GPUs of a node are of one kind here.
	GPU GPUFacts
	// Board says how the GPUs are wired; nil where nobody looked inside the node. Then only
	// their number is known, and no decision names single GPUs of it.
	Board *gpu.Board
	// Geometry holds the MIG profiles of the model; nil where it has none that are known.
	Geometry *gpu.Geometry
	// Broken are GPUs that must not be used, whatever they still offer.
	Broken gpu.Mask
	// Allocatable is what pods may take in all.
	Allocatable Vector
	// Path is the node's value at each topology level, outermost first; "" where it has none.
	Path []string
}

// Node is a machine with its work. Like the Snapshot it is in, it never changes: With and
// Without return the node as it would be.
type Node struct {
	*Machine
	// Used is what bound and planned pods hold.
	Used Vector
	// Taken are the GPUs of the Board that are given away whole.
	Taken gpu.Mask
	// Shares is how many thousandths of each GPU are given away in parts; nil if none are.
	Shares []int16
	// Instances are the MIG instances that exist on the node, in use or not.
	Instances []gpu.Instance
	// Pods is the work itself, as far as it is known pod by pod.
	Pods []*Pod
}

// GPUFacts is what a node tells about its GPUs. Zero values mean that it does not tell.
type GPUFacts struct {
	// Product is the product name, for example NVIDIA-H100-80GB-HBM3.
	Product string
	// Architecture is the family in lower case, for example hopper.
	Architecture string
	// MemoryMiB is the memory of one GPU.
	MemoryMiB int64
	// Replicas is how many pods share one GPU where the node shares them; 0 or 1 if it does not.
	Replicas int
	// Sharing says how: "mps", "time-slicing", or "" where the node does not tell.
	Sharing string
}

// Full is a whole GPU in thousandths.
const Full = 1000

// Free returns how much of resource i is neither held nor promised; never below zero.
func (n *Node) Free(i int) int64 {
	return max(0, n.Allocatable.At(i)-n.Used.At(i))
}

// Fits returns how many pods of the given size fit on what is free, up to limit. A size of
// all zeros fits limit times. It looks at amounts only, not at single GPUs.
func (n *Node) Fits(pod Vector, limit int64) int64 {
	for i, want := range pod {
		if want > 0 {
			limit = min(limit, n.Free(i)/want)
		}
	}
	return limit
}

// FitsEmpty is Fits as if nothing ran on the machine.
func (n *Machine) FitsEmpty(pod Vector, limit int64) int64 {
	for i, want := range pod {
		if want > 0 {
			limit = min(limit, n.Allocatable.At(i)/want)
		}
	}
	return limit
}

// WholeGPUs returns the GPUs of the Board that nobody uses any part of.
func (n *Node) WholeGPUs() gpu.Mask {
	free := n.EmptyGPUs() &^ n.Taken
	for i, share := range n.Shares {
		if share > 0 {
			free = free.Without(i)
		}
	}
	for i := range n.Instances {
		if n.Instances[i].Used {
			free = free.Without(n.Instances[i].GPU)
		}
	}
	return free
}

// PartitionGPUs returns the GPUs on which MIG instances may be made: healthy, and not in use
// as a whole or in shares.
func (n *Node) PartitionGPUs() gpu.Mask {
	free := n.EmptyGPUs() &^ n.Taken
	for i, share := range n.Shares {
		if share > 0 {
			free = free.Without(i)
		}
	}
	return free
}

// FreeShare returns how many thousandths of GPU i of the Board are free.
func (n *Node) FreeShare(i int) int {
	if !n.EmptyGPUs().Has(i) || n.Taken.Has(i) || n.partitioned(i) {
		return 0
	}
	if i < len(n.Shares) {
		return max(0, Full-int(n.Shares[i]))
	}
	return Full
}

func (n *Node) partitioned(i int) bool {
	for k := range n.Instances {
		if n.Instances[k].Used && n.Instances[k].GPU == i {
			return true
		}
	}
	return false
}

// EmptyGPUs returns the GPUs of the Board that would be free if nothing ran: those that are not
// broken.
func (n *Machine) EmptyGPUs() gpu.Mask {
	if n.Board == nil {
		return 0
	}
	return gpu.All(n.Board.Count()) &^ n.Broken
}

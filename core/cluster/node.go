package cluster

// Node is one machine.
type Node struct {
	// Name is unique in the cluster.
	Name string
	// Ready and Cordoned are what the cluster says of the node's health and of its operator's will.
	Ready, Cordoned bool
	// Labels are the node's labels; Taints keep away pods that do not tolerate them.
	Labels map[string]string
	Taints []Taint
	// GPU describes the node's GPUs; all GPUs of a node are of one kind here.
	GPU GPUFacts
	// Allocatable is what pods may take in all; Used is what bound and planned pods hold.
	Allocatable, Used Vector
	// Path is the node's value at each topology level, outermost first; "" where it has none.
	Path []string
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
}

// Free returns how much of resource i is neither held nor promised; never below zero.
func (n *Node) Free(i int) int64 {
	return max(0, n.Allocatable.At(i)-n.Used.At(i))
}

// Fits returns how many pods of the given size fit on what is free, up to limit. A size of
// all zeros fits limit times.
func (n *Node) Fits(pod Vector, limit int64) int64 {
	for i, want := range pod {
		if want > 0 {
			limit = min(limit, n.Free(i)/want)
		}
	}
	return limit
}

// FitsEmpty is Fits as if nothing ran on the node.
func (n *Node) FitsEmpty(pod Vector, limit int64) int64 {
	for i, want := range pod {
		if want > 0 {
			limit = min(limit, n.Allocatable.At(i)/want)
		}
	}
	return limit
}

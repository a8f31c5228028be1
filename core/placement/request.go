package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// AnyLevel says that a topology requirement is not made.
const AnyLevel = -1

// Request asks for room for one gang of equal pods.
type Request struct {
	// Name says whose request it is, in messages: "team-a/llama2".
	Name string
	// Count is the number of pods wanted; MinCount the least that will do (0: all of them).
	Count, MinCount int
	// Pod is what each pod needs.
	Pod Shape
	// Strategy names the rule that picks among nodes that fit.
	Strategy string
	// Topology says how close together the pods must be.
	Topology Topology
	// Kept are members of the gang that stay where they are; the pods asked for join them.
	Kept []string
	// Avoid are nodes not to be used, because they refused this workload a short while ago.
	Avoid []string
	// Seed makes strategy random repeatable: the same seed gives the same choice.
	Seed uint64
}

// Shape is what one pod needs of its node.
type Shape struct {
	// Resources is what the pod takes.
	Resources cluster.Vector
	// GPUResource is the index, in the snapshot's Resources, of what counts as a GPU here; -1
	// if no node of the cluster has it. GPUResourceName is its name, GPUs the number wanted.
	GPUResource     int
	GPUResourceName string
	GPUs            int64
	// Missing is a resource that the pod asks for and no node has; "" if there is none.
	Missing string
	// GPU narrows the kind of GPU; zero values do not. MemoryMiB is a minimum.
	GPU cluster.GPUFacts
	// Milli is the least share of a GPU, in thousandths, that one replica must be; 0 for none.
	Milli int
	// Selector, Tolerations narrow the nodes as Kubernetes does.
	Selector    cluster.Selector
	Tolerations []cluster.Toleration
}

// Topology says how close together the pods of a gang must be. Levels are indexes into the
// snapshot's Levels; AnyLevel asks for nothing.
type Topology struct {
	// Required: one domain of this level holds the gang, or there is no plan.
	Required int
	// Preferred: one domain of this level should hold the gang; wider ones are tried next.
	Preferred int
	// SliceLevel: every SliceSize consecutive ranks are in one domain of this level.
	SliceLevel, SliceSize int
}

// NoTopology asks for nothing.
func NoTopology() Topology {
	return Topology{Required: AnyLevel, Preferred: AnyLevel, SliceLevel: AnyLevel}
}

// least returns the smallest size of the gang that is worth a plan.
func (r *Request) least() int {
	if r.MinCount > 0 {
		return min(r.MinCount, r.Count)
	}
	return r.Count
}

// step returns the granularity of the gang's size: whole slices, or single pods.
func (r *Request) step() int {
	if r.Topology.SliceLevel >= 0 && r.Topology.SliceSize > 1 {
		return r.Topology.SliceSize
	}
	return 1
}

package placement

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// AnyLevel says that a topology requirement is not made.
const AnyLevel = -1

// Request asks for room for one gang: groups of equal pods that are placed all together or not
// at all.
type Request struct {
	// Name says whose request it is, in messages: "team-a/llama2".
	Name string
	// Groups are the parts of the gang. Most have one; a leader with its workers has two.
	Groups []Group
	// Sets are groups that keep together, beside what each group asks for itself. Of two sets
	// one holds the other, or they have no group in common.
	Sets []Set
	// Strategy names the rule that picks among nodes that fit.
	Strategy string
	// Priority is the gang's own; with Preempts it may take the place of preemptible workloads
	// of lower priority where there is no room otherwise.
	Priority int32
	Preempts bool
	// Avoid are nodes not to be used, because they refused this workload a short while ago.
	Avoid []string
	// Seed makes strategy random repeatable: the same seed gives the same choice.
	Seed uint64
}

// Group is a number of equal pods.
type Group struct {
	// Name is unique in the request; it may be "" if there is one group only.
	Name string
	// Count is the number of pods wanted; MinCount the least that will do (0: all of them). A
	// group with slices that is given less than Count is given whole outermost slices.
	Count, MinCount int
	// Pod is what each pod needs.
	Pod Shape
	// Topology says how close together the pods of the group must be.
	Topology Topology
	// Slices divide the ranks, outermost first: every Size consecutive ranks are in one domain
	// of Level. Each Size divides the one before, and each Level is inside the one before.
	Slices []Slice
	// Mbps is the network bandwidth each pod needs, in megabits a second, through every uplink
	// that the group's own traffic has to cross; 0 for none.
	Mbps int64
	// Kept are the nodes of members that stay where they are, one entry a member. Count pods
	// are placed beside them, and the required level holds for all of them together. Slices
	// hold for all of them together if KeptInSlices, else for the new pods alone.
	Kept         []string
	KeptInSlices bool
	// Limits caps the pods by node; nodes it does not name take none. Nil caps nothing.
	Limits map[string]int
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
	// Milli is the share of one GPU wanted, in thousandths; 0 for none. With GPUs > 0 the
	// resource is given, and one unit of it must be at least that much. With GPUs == 0 the
	// plan finds out how each node offers shares, and says so in the decision.
	Milli int
	// MIG are the profiles of the MIG instances that the pod wants, made where there are none.
	MIG []string
	// Include are GPUs, by index, that must be among the chosen.
	Include gpu.Mask
	// Prefer says what the pod's GPUs should have in common.
	Prefer Preference
	// Selector, Tolerations narrow the nodes as Kubernetes does.
	Selector    cluster.Selector
	Tolerations []cluster.Toleration
	// Likes are preferred terms of node affinity with their weights.
	Likes []Like
	// Rules are those of the cluster's operator for the pod; nil for none.
	Rules cluster.Rules
}

// Like is a preferred term of node affinity: nodes that match it are better by Weight (1-100).
type Like struct {
	Term   cluster.Term
	Weight int
}

// Preference is what the GPUs of one pod should have in common.
type Preference string

// The preferences of requirement and API. AnyGPUs is the zero value.
const (
	AnyGPUs      Preference = ""
	PreferNVLink Preference = "nvlink"
	PreferNUMA   Preference = "numa"
	PreferPCIe   Preference = "pcie"
)

// Topology says how close together pods must be. Levels are indexes into the snapshot's
// Levels; AnyLevel asks for nothing.
type Topology struct {
	// Required: one domain of this level holds them all, or there is no plan.
	Required int
	// Preferred: one domain of this level should hold them all; wider ones are tried next.
	Preferred int
}

// Slice is Size consecutive ranks in one domain of Level.
type Slice struct{ Level, Size int }

// Set is several groups that keep together.
type Set struct {
	// Groups are indexes into Request.Groups.
	Groups   []int
	Topology Topology
}

// NoTopology asks for nothing.
func NoTopology() Topology {
	return Topology{Required: AnyLevel, Preferred: AnyLevel}
}

// least returns the smallest size of the group that is worth a plan.
func (g *Group) least() int {
	if g.MinCount > 0 {
		return min(g.MinCount, g.Count)
	}
	return g.Count
}

// leastWhole is least in whole slices: a group shrinks by those only.
func (g *Group) leastWhole() int {
	least, step := g.least(), g.step()
	return min(g.Count, (least+step-1)/step*step)
}

// step returns the unit in which an elastic group shrinks: its outermost slices.
func (g *Group) step() int {
	if len(g.Slices) > 0 {
		return g.Slices[0].Size
	}
	return 1
}

// size returns the number of pods wanted in all, and the least that will do.
func (r *Request) size() (count, least int) {
	for i := range r.Groups {
		count += r.Groups[i].Count
		least += r.Groups[i].least()
	}
	return count, least
}

package cluster

import (
	"reflect"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Workload is what pods that stand or fall together have in common. Pods of one workload point
// to one Workload.
type Workload struct {
	// Name is unique in the cluster: "team-a/llama2".
	Name string
	// Priority decides who may take whose place: higher ones may, where Preemptible allows.
	Priority    int32
	Preemptible bool
	// MinMembers is the smallest number of pods with which the workload can go on; 0 means all.
	MinMembers int
	// Protected says that it must not be evicted yet: it has not run for its minimum time.
	Protected bool
	// Cost is what would be lost if it were evicted now, in GPU-hours since its start or its
	// last checkpoint.
	Cost float64
	// Budget names a limit on evictions that it shares with others, "" if it has none.
	Budget string
	// Mbps is the network bandwidth that each pod was promised, in megabits a second.
	Mbps int64
	// Movable says that its pods may be stopped and started elsewhere, at the price of Cost, to
	// make room. Level is the topology level of which one domain has to hold all of them then,
	// an index into Snapshot.Levels; -1 asks for nothing.
	Movable bool
	Level   int
}

// Needs is what a pod asks of a node beside amounts. Equal pods share one.
type Needs struct {
	Selector    Selector
	Tolerations []Toleration
	// GPU narrows the kind of GPU; zero values do not. MemoryMiB is a minimum.
	GPU GPUFacts
	// Rules are those of the cluster's operator for the pod; nil for none.
	Rules Rules
}

// Equal tells whether both ask the same. Rules are the same only if they are one value: what
// they remember is nobody else's to look at.
func (n *Needs) Equal(other *Needs) bool {
	if n == nil || other == nil {
		return n == other
	}
	if n.Rules != other.Rules {
		return false
	}
	a, b := *n, *other
	a.Rules, b.Rules = nil, nil
	return reflect.DeepEqual(a, b)
}

// Pod is one piece of work on a node.
type Pod struct {
	Name     string
	Workload *Workload
	// Group is the part of the workload that the pod belongs to, "" if it has one only.
	Group string
	// Use is what the pod holds. Equal pods share one Vector.
	Use Vector
	// GPUs are the GPUs of the node's Board that it holds: whole, or Milli thousandths of each.
	GPUs  gpu.Mask
	Milli int
	// Instances are the MIG instances it holds.
	Instances []gpu.Instance
	// Needs is what has to be kept to when the pod is placed again; nil asks for nothing.
	Needs *Needs
}

// With returns the node with the pods on it. It does not ask whether they fit: who decides
// asked before, and who reports what is there has no choice.
func (n *Node) With(pods ...*Pod) *Node {
	next := *n
	next.Used = next.Used.Clone()
	next.Pods = make([]*Pod, len(n.Pods), len(n.Pods)+len(pods))
	copy(next.Pods, n.Pods)
	for _, p := range pods {
		next.Used = next.Used.Add(p.Use)
		next.Pods = append(next.Pods, p)
		next.hold(p, 1)
	}
	return &next
}

// Without returns the node without the pods. A pod that is not there is ignored.
func (n *Node) Without(pods ...*Pod) *Node {
	next := *n
	next.Used = next.Used.Clone()
	next.Pods = slices.Clone(n.Pods)
	for _, p := range pods {
		i := slices.Index(next.Pods, p)
		if i < 0 {
			continue
		}
		next.Pods = slices.Delete(next.Pods, i, i+1)
		next.Used = next.Used.Sub(p.Use)
		next.hold(p, -1)
	}
	return &next
}

// hold takes (sign 1) or gives back (-1) the single GPUs of a pod. What it writes to is the
// node's own: slices are copied first.
func (n *Node) hold(p *Pod, sign int) {
	switch {
	case p.Milli > 0 && p.Milli < Full:
		n.share(p, sign)
	case sign > 0:
		n.Taken |= p.GPUs
	default:
		n.Taken &^= p.GPUs
	}
	if len(p.Instances) > 0 {
		n.partition(p.Instances, sign > 0)
	}
}

func (n *Node) share(p *Pod, sign int) {
	if n.Board == nil || p.GPUs == 0 {
		return
	}
	shares := make([]int16, n.Board.Count())
	copy(shares, n.Shares)
	for _, i := range p.GPUs.Indexes() {
		if i < len(shares) {
			shares[i] = int16(max(0, int(shares[i])+sign*p.Milli))
		}
	}
	n.Shares = shares
}

// partition marks instances as used, making those that do not exist, or as free. An instance
// outlives its user: taking it apart is the partitioner's decision.
func (n *Node) partition(instances []gpu.Instance, used bool) {
	have := slices.Clone(n.Instances)
	for _, want := range instances {
		// What a new instance overlaps was free: it is taken apart for it.
		have = slices.DeleteFunc(have, func(h gpu.Instance) bool {
			return used && !h.Used && h.GPU == want.GPU && h.Start < want.Start+want.Size && want.Start < h.Start+h.Size
		})
		i := slices.IndexFunc(have, func(h gpu.Instance) bool {
			return h.Used && !used && h.GPU == want.GPU && h.Start == want.Start && h.Profile == want.Profile
		})
		switch {
		case used:
			want.Used = true
			have = append(have, want)
		case i >= 0:
			have[i].Used = false
		}
	}
	n.Instances = have
}

package placement

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// migTable is how an A100 with 80 GB can be cut, from NVIDIA's MIG user guide: an account of
// its own, beside that of package gpu.
func migTable() map[string]struct {
	compute, size int
	starts        []int
} {
	return map[string]struct {
		compute, size int
		starts        []int
	}{
		"1g.10gb": {1, 1, []int{0, 1, 2, 3, 4, 5, 6}},
		"1g.20gb": {1, 2, []int{0, 2, 4, 6}},
		"2g.20gb": {2, 2, []int{0, 2, 4}},
		"3g.40gb": {3, 4, []int{0, 4}},
		"4g.40gb": {4, 4, []int{0}},
		"7g.80gb": {7, 8, []int{0}},
	}
}

// ledger is what a node has given away, GPU by GPU: an account kept apart from the engine's.
type ledger struct {
	node *cluster.Node
	used cluster.Vector
	// dead, whole, milli and slices are by GPU: not to be used, given away whole, thousandths
	// given away, memory slices given away; compute is slices of that.
	dead, whole []bool
	milli       []int
	slices      [][8]bool
	compute     []int
	// tries counts what packs tried.
	tries int
}

func newLedger(n *cluster.Node) *ledger {
	l := &ledger{node: n, used: slices.Clone(n.Used)}
	if n.Board == nil {
		return l
	}
	count := n.Board.Count()
	l.dead, l.whole, l.milli = make([]bool, count), make([]bool, count), make([]int, count)
	l.slices, l.compute = make([][8]bool, count), make([]int, count)
	for i := range count {
		l.dead[i] = n.Broken>>i&1 == 1
		l.whole[i] = n.Taken>>i&1 == 1
		if i < len(n.Shares) {
			l.milli[i] = int(n.Shares[i])
		}
	}
	for _, in := range n.Instances {
		if in.Used {
			l.mark(in)
		}
	}
	return l
}

func (l *ledger) mark(in gpu.Instance) {
	for k := in.Start; k < in.Start+in.Size; k++ {
		l.slices[in.GPU][k] = true
	}
	l.compute[in.GPU] += migTable()[in.Profile].compute
}

// untouched tells whether nobody has any part of the GPU.
func (l *ledger) untouched(i int) bool {
	return i < len(l.dead) && !l.dead[i] && !l.whole[i] && l.milli[i] == 0 && l.compute[i] == 0
}

// take books one pod and returns what is wrong with it.
func (l *ledger) take(q *Shape, a *Assignment, rank int) string {
	use := slices.Clone(q.Resources)
	shares := q.Milli > 0 && q.GPUs == 0
	if shares && a.Offers[rank].Resource != "" {
		if problem := l.offer(q, a.Offers[rank], &use); problem != "" {
			return problem
		}
	}
	for i, want := range use {
		l.used = l.used.Add(make(cluster.Vector, i+1))
		l.used[i] += want
		if want > 0 && l.used[i] > l.node.Allocatable.At(i) {
			return fmt.Sprintf("%d of resource %d used on %s, it has %d", l.used[i], i, l.node.Name, l.node.Allocatable.At(i))
		}
	}
	set := gpu.Mask(0)
	if a.GPUs != nil {
		set = a.GPUs[rank]
	}
	switch {
	case len(q.MIG) > 0:
		return l.instances(q, a.Instances[rank])
	case shares && a.Offers[rank].Resource == "":
		return l.share(q, set)
	case q.GPUResourceName == "nvidia.com/gpu" && q.GPUs > 0 && l.node.Board != nil:
		return l.wholeGPUs(q, set)
	case set != 0:
		return fmt.Sprintf("GPUs %v named on %s for a pod that has none of its Board", set, l.node.Name)
	}
	return ""
}

func (l *ledger) wholeGPUs(q *Shape, set gpu.Mask) string {
	if set.Count() != int(q.GPUs) || set&q.Include != q.Include {
		return fmt.Sprintf("GPUs %v given on %s, %d with %v asked for", set, l.node.Name, q.GPUs, q.Include)
	}
	for _, i := range set.Indexes() {
		if !l.untouched(i) {
			return fmt.Sprintf("GPU %d of %s given away, it is not free", i, l.node.Name)
		}
		l.whole[i] = true
	}
	return ""
}

func (l *ledger) share(q *Shape, set gpu.Mask) string {
	i := set.Lowest()
	if set.Count() != 1 || i >= len(l.dead) || l.dead[i] || l.whole[i] || l.compute[i] > 0 || l.milli[i]+q.Milli > 1000 {
		return fmt.Sprintf("%d/1000 of GPUs %v given on %s, they are not free", q.Milli, set, l.node.Name)
	}
	l.milli[i] += q.Milli
	return ""
}

func (l *ledger) offer(q *Shape, o Offer, use *cluster.Vector) string {
	index, unit := unitOf(l.node.Machine, o.Resource)
	if index < 0 || unit < q.Milli || o.Amount != 1 {
		return fmt.Sprintf("%d of %s offered on %s for %d/1000, a unit is %d", o.Amount, o.Resource, l.node.Name, q.Milli, unit)
	}
	*use = use.Add(make(cluster.Vector, index+1))
	(*use)[index]++
	return ""
}

// unitOf returns the index of a resource that gives shares, and the size of a unit on the
// machine in thousandths; -1 if it gives none.
func unitOf(m *cluster.Machine, name string) (index, unit int) {
	switch {
	case name == "nvidia.com/gpu.shared" && m.Allocatable.At(sharedIndex) > 0:
		return sharedIndex, 1000 / max(1, m.GPU.Replicas)
	case name == "nvidia.com/mig-1g.10gb" && m.Allocatable.At(migIndex) > 0 && m.Geometry != nil:
		return migIndex, 1000 / 7
	}
	return -1, 0
}

func (l *ledger) instances(q *Shape, got []Instance) string {
	if len(got) != len(q.MIG) {
		return fmt.Sprintf("%d MIG instances given on %s, %d asked for", len(got), l.node.Name, len(q.MIG))
	}
	for k, in := range got {
		p, ok := migTable()[in.Profile]
		if !ok || in.Profile != q.MIG[k] || in.Size != p.size || !slices.Contains(p.starts, in.Start) {
			return fmt.Sprintf("an instance that cannot be, for %s: %+v", q.MIG[k], in)
		}
		if in.GPU >= len(l.dead) || l.dead[in.GPU] || l.whole[in.GPU] || l.milli[in.GPU] > 0 || l.compute[in.GPU]+p.compute > 7 {
			return fmt.Sprintf("an instance on GPU %d of %s, which has no room: %+v", in.GPU, l.node.Name, in)
		}
		for s := in.Start; s < in.Start+in.Size; s++ {
			if l.slices[in.GPU][s] {
				return fmt.Sprintf("two instances on slice %d of GPU %d of %s", s, in.GPU, l.node.Name)
			}
		}
		idle := slices.ContainsFunc(l.node.Instances, func(x gpu.Instance) bool {
			return !x.Used && x.GPU == in.GPU && x.Profile == in.Profile && x.Start == in.Start
		})
		if idle == in.New {
			return fmt.Sprintf("an instance that exists (%v) is said to be new (%v): %+v", idle, in.New, in)
		}
		l.mark(in.Instance)
	}
	return ""
}

// wrong judges a plan by the world alone and returns what is wrong with it, "" if nothing.
func wrong(s *cluster.Snapshot, r *Request, d *Decision) string {
	if len(d.Groups) != len(r.Groups) {
		return fmt.Sprintf("%d groups placed of %d", len(d.Groups), len(r.Groups))
	}
	ledgers := map[string]*ledger{}
	for i := range r.Groups {
		g, a := &r.Groups[i], &d.Groups[i]
		if len(a.Nodes) < minimum(g) || len(a.Nodes) > g.Count || len(a.At) != len(a.Nodes) {
			return fmt.Sprintf("%d pods of group %d placed, between %d and %d asked for", len(a.Nodes), i, minimum(g), g.Count)
		}
		for rank, name := range a.Nodes {
			n := s.Node(name)
			if n == nil || s.At(int(a.At[rank])) != n {
				return fmt.Sprintf("no node %s at %d", name, a.At[rank])
			}
			if ledgers[name] == nil {
				ledgers[name] = newLedger(n)
			}
			if !suitable(n, r, g) {
				return fmt.Sprintf("group %d placed on %s, which does not suit it", i, name)
			}
			if problem := ledgers[name].take(&g.Pod, a, rank); problem != "" {
				return problem
			}
		}
		if problem := wrongPlaces(s, g, a.Nodes); problem != "" {
			return fmt.Sprintf("group %d: %s", i, problem)
		}
	}
	for i, set := range r.Sets {
		var nodes []string
		for _, g := range set.Groups {
			nodes = append(append(nodes, d.Groups[g].Nodes...), r.Groups[g].Kept...)
		}
		if !together(s, nodes, set.Topology.Required) {
			return fmt.Sprintf("set %d is not in one domain", i)
		}
	}
	return overloaded(s, r, d)
}

func minimum(g *Group) int {
	if g.MinCount > 0 {
		return g.MinCount
	}
	return g.Count
}

package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// bound returns a number of workloads that have to move at least, and the domain for which that
// few may do.
//
// In a domain every pod of the gang needs a node on which enough leaves. How many workloads
// that is can be told of each node by itself, where what they hold is looked at one resource at
// a time; a workload on n nodes of the domain counts 1/n on each. The cheapest nodes are taken.
func (m *mover) bound() (int, cluster.Domain) {
	whole := m.p.s.Whole()
	if m.e.group == nil {
		return 1, whole
	}
	own := *m.p
	own.cache = m.p.trialCache()
	g := own.gang(m.without, m.e.group)
	if g.vague() {
		return 1, whole
	}
	g.restrict(m.p.request.Avoid)
	best, where := math.Inf(1), whole
	for _, d := range g.candidates(whole, m.e.group.Topology.Required) {
		if !g.holdsKept(d) || !g.holds(d, g.layer(d), int64(m.e.group.Count)) {
			continue
		}
		if b := m.boundIn(g, d); b < best {
			best, where = b, d
		}
	}
	if math.IsInf(best, 1) {
		return 1, whole
	}
	return max(1, int(math.Ceil(best-1e-6))), where
}

// step is a gain of room on one node: pods that fit more, and what each of them costs.
type step struct {
	pods int64
	each float64
}

func (m *mover) boundIn(g *gang, d cluster.Domain) float64 {
	nodes := map[*prey]int{}
	for i := d.First; i < d.End; i++ {
		for _, v := range m.e.at[i] {
			nodes[v]++
		}
	}
	var steps []step
	for i := d.First; i < d.End; i++ {
		if room := int64(g.room.fits[i]); room > 0 {
			steps = append(steps, m.stepsOn(i, min(room, int64(g.group.Count)), nodes)...)
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.each, b.each) })
	left, sum := int64(g.group.Count), 0.0
	for _, s := range steps {
		if left <= 0 {
			break
		}
		sum += float64(min(left, s.pods)) * s.each
		left -= s.pods
	}
	return sum
}

// stepsOn returns what room for up to so many pods costs on the node at position i, made convex,
// so that the cheapest steps of all nodes may be taken in any order.
func (m *mover) stepsOn(i int, room int64, nodes map[*prey]int) []step {
	cost := make([]float64, room+1)
	items := m.itemsOn(i, nodes)
	for r, want := range m.e.group.Pod.Resources {
		if want <= 0 {
			continue
		}
		free := m.p.s.At(i).Free(r)
		for k := free/want + 1; k <= room; k++ {
			cost[k] = max(cost[k], least(items, r, k*want-free))
		}
	}
	var steps []step
	for at := int64(0); at < room; {
		next, slope := at+1, math.Inf(1)
		for k := at + 1; k <= room; k++ {
			if s := (cost[k] - cost[at]) / float64(k-at); s <= slope {
				next, slope = k, s
			}
		}
		steps = append(steps, step{pods: next - at, each: slope})
		at = next
	}
	return steps
}

// item is what one workload holds on a node, and what its leaving counts there.
type item struct {
	use    cluster.Vector
	weight float64
}

func (m *mover) itemsOn(i int, nodes map[*prey]int) []item {
	var items []item
	for _, v := range m.e.at[i] {
		one := item{weight: 1 / float64(nodes[v])}
		for _, at := range v.pods {
			if at.Node == i {
				one.use = one.use.Add(at.Pod.Use)
			}
		}
		items = append(items, one)
	}
	return items
}

// least returns a weight that no items have less than that hold the amount of a resource
// together. Where all weigh the same it is exact; else an item may be taken in part.
func least(items []item, resource int, amount int64) float64 {
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Compare(float64(b.use.At(resource))/b.weight, float64(a.use.At(resource))/a.weight)
	})
	same := !slices.ContainsFunc(items, func(x item) bool { return x.weight != items[0].weight })
	sum := 0.0
	for _, x := range items {
		have := x.use.At(resource)
		if amount <= 0 || have <= 0 {
			break
		}
		if amount < have && !same {
			return sum + x.weight*float64(amount)/float64(have)
		}
		sum += x.weight
		amount -= have
	}
	return sum
}

// tooMuch returns a proof that the cluster has too few free GPUs, wherever work moves: moves keep
// their number. It is nil where they are enough.
func (m *mover) tooMuch() *Certificate {
	if m.e.group == nil || m.e.group.Pod.GPUs <= 0 || m.e.group.Pod.GPUResource < 0 {
		return nil
	}
	free := int64(0)
	for _, n := range m.p.s.Nodes() {
		if n.Ready {
			free += n.Free(m.e.group.Pod.GPUResource)
		}
	}
	need := int64(m.e.group.Count) * m.e.group.Pod.GPUs
	if free >= need {
		return nil
	}
	return &Certificate{Kind: TooMuchInAll, Groups: []string{m.e.group.Name}, Room: int(free), Need: int(need)}
}

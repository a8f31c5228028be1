package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// brute tries everything: how many pods of each group go on each node, and for each node every
// way in which they share its GPUs. It has no code in common with the engine.
type brute struct {
	s *cluster.Snapshot
	r *Request
	// on is how many pods of each group are on each node.
	on [][]int
	// known is what was found out about nodes, by node and pods on it.
	known map[bruteKey]bool
	steps int
	// visit is called with every complete placement; it returns true to stop.
	visit func() bool
}

type bruteKey struct {
	node int
	on   [4]int
}

// bruteSteps bounds a search: a case that takes more is left out, and counted.
const bruteSteps = 200000 / slowdown

func newBrute(s *cluster.Snapshot, r *Request) *brute {
	b := &brute{s: s, r: r, known: map[bruteKey]bool{}, visit: func() bool { return true }}
	for range s.Len() {
		b.on = append(b.on, make([]int, len(r.Groups)))
	}
	return b
}

// fits tells whether the groups fit at these sizes; known is false if the search was too long.
func (b *brute) fits(sizes []int) (found, known bool) {
	b.steps = 0
	found = b.place(sizes, 0, 0, sizes[0])
	for i := range b.on {
		clear(b.on[i])
	}
	return found, found || b.steps < bruteSteps
}

// smallest is the least size that a group may have: the whole, or whole outermost slices.
func smallest(g *Group) int {
	for size := minimum(g); size < g.Count; size++ {
		if len(g.Slices) == 0 || size%g.Slices[0].Size == 0 {
			return size
		}
	}
	return g.Count
}

// largest returns the largest size at which a request of one group fits, of those that it may
// have: all, or at least the minimum in whole slices.
func (b *brute) largest() (size int, known bool) {
	g := &b.r.Groups[0]
	for size := g.Count; size >= minimum(g); size-- {
		total := size
		if g.KeptInSlices {
			total += len(g.Kept)
		}
		if size < g.Count && len(g.Slices) > 0 && total%g.Slices[0].Size > 0 {
			continue
		}
		if found, known := b.fits([]int{size}); found || !known {
			return size, known
		}
	}
	return 0, true
}

// place puts the left pods of group i on the nodes from the given one on.
func (b *brute) place(sizes []int, i, node, left int) bool {
	if b.steps++; b.steps > bruteSteps {
		return false
	}
	if left == 0 {
		if !b.allowed(i) {
			return false
		}
		if i+1 == len(sizes) {
			return b.visit()
		}
		return b.place(sizes, i+1, 0, sizes[i+1])
	}
	if node == b.s.Len() {
		return false
	}
	for b.on[node][i] = 0; b.on[node][i] <= left; b.on[node][i]++ {
		if !b.holds(node) {
			break
		}
		if b.place(sizes, i, node+1, left-b.on[node][i]) {
			return true
		}
	}
	b.on[node][i] = 0
	return false
}

// nodesOf names the nodes of a group's pods, one entry a pod.
func (b *brute) nodesOf(i int) []string {
	var names []string
	for node := range b.on {
		for range b.on[node][i] {
			names = append(names, b.s.At(node).Name)
		}
	}
	return names
}

// allowed tells whether group i, which is placed now, is where it and its sets may be.
func (b *brute) allowed(i int) bool {
	g := &b.r.Groups[i]
	nodes := b.nodesOf(i)
	if !together(b.s, append(slices.Clone(g.Kept), nodes...), g.Topology.Required) {
		return false
	}
	sliced := nodes
	if g.KeptInSlices {
		sliced = append(slices.Clone(g.Kept), nodes...)
	}
	if !sliceable(b.s, g.Slices, sliced) {
		return false
	}
	for _, set := range b.r.Sets {
		if !slices.Contains(set.Groups, i) {
			continue
		}
		var all []string
		for _, k := range set.Groups {
			all = append(all, b.r.Groups[k].Kept...)
			if k <= i {
				all = append(all, b.nodesOf(k)...)
			}
		}
		if !together(b.s, all, set.Topology.Required) {
			return false
		}
	}
	d := Decision{Groups: make([]Assignment, len(b.r.Groups))}
	for k := range i + 1 {
		for node := range b.on {
			for range b.on[node][k] {
				d.Groups[k].At = append(d.Groups[k].At, int32(node))
			}
		}
	}
	return overloaded(b.s, b.r, &d) == ""
}

// holds tells whether the node holds what is on it.
func (b *brute) holds(node int) bool {
	k := bruteKey{node: node}
	copy(k.on[:], b.on[node])
	if holds, ok := b.known[k]; ok {
		return holds
	}
	holds := b.holdsPods(b.s.At(node), b.on[node])
	b.known[k] = holds
	return holds
}

func (b *brute) holdsPods(n *cluster.Node, on []int) bool {
	l := newLedger(n)
	var pods []*Shape
	for i, count := range on {
		g := &b.r.Groups[i]
		if count > 0 && (!suitable(n, b.r, g) || g.Limits != nil && count > g.Limits[n.Name]) {
			return false
		}
		for range count {
			for r, want := range g.Pod.Resources {
				l.used = l.used.Add(make(cluster.Vector, r+1))
				if l.used[r] += want; want > 0 && l.used[r] > n.Allocatable.At(r) {
					return false
				}
			}
			if g.Pod.GPUs > 0 && n.Allocatable.At(g.Pod.GPUResource) == 0 {
				return false
			}
			pods = append(pods, &g.Pod)
		}
	}
	holds := l.packs(pods)
	if l.tries > packTries {
		b.steps = bruteSteps // Not known, so that nothing is.
	}
	return holds
}

// packTries bounds what is tried for one node.
const packTries = 50000

// packs tries every way to give the pods their GPUs.
func (l *ledger) packs(pods []*Shape) bool {
	if len(pods) == 0 {
		return true
	}
	if l.tries++; l.tries > packTries {
		return false
	}
	q, rest := pods[0], pods[1:]
	switch {
	case len(q.MIG) > 0:
		return l.packsInstances(q.MIG, rest)
	case q.Milli > 0 && q.GPUs == 0:
		return l.packsShare(q, rest)
	case q.Include != 0 && l.node.Board == nil:
		return false // Nobody knows whether the node has them.
	case q.GPUResourceName == "nvidia.com/gpu" && q.GPUs > 0 && l.node.Board != nil:
		return l.packsWhole(q, int(q.GPUs), 0, rest)
	}
	return l.packs(rest)
}

func (l *ledger) packsWhole(q *Shape, left, from int, rest []*Shape) bool {
	if left == 0 {
		if q.Include>>from != 0 {
			return false // One that must be among them was not reached.
		}
		return l.packs(rest)
	}
	for i := from; i < len(l.dead); i++ {
		if l.untouched(i) {
			l.whole[i] = true
			found := l.packsWhole(q, left-1, i+1, rest)
			l.whole[i] = false
			if found {
				return true
			}
		}
		if q.Include.Has(i) {
			return false
		}
	}
	return false
}

func (l *ledger) packsShare(q *Shape, rest []*Shape) bool {
	offers := false
	for _, name := range []string{"nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"} {
		index, unit := unitOf(l.node.Machine, name)
		if index < 0 {
			continue
		}
		offers = true
		l.used = l.used.Add(make(cluster.Vector, index+1))
		if unit >= q.Milli && l.used[index] < l.node.Allocatable[index] {
			l.used[index]++
			found := l.packs(rest)
			l.used[index]--
			if found {
				return true
			}
		}
	}
	for i := 0; !offers && i < len(l.dead); i++ {
		if l.dead[i] || l.whole[i] || l.compute[i] > 0 || l.milli[i]+q.Milli > 1000 {
			continue
		}
		l.milli[i] += q.Milli
		found := l.packs(rest)
		l.milli[i] -= q.Milli
		if found {
			return true
		}
	}
	return false
}

func (l *ledger) packsInstances(want []string, rest []*Shape) bool {
	if len(want) == 0 {
		return l.packs(rest)
	}
	if l.tries++; l.tries > packTries {
		return false
	}
	p := migTable()[want[0]]
	for i := range l.dead {
		if l.dead[i] || l.whole[i] || l.milli[i] > 0 || l.compute[i]+p.compute > 7 {
			continue
		}
		for _, start := range p.starts {
			before := l.slices[i]
			if slices.Contains(before[start:start+p.size], true) {
				continue
			}
			for s := start; s < start+p.size; s++ {
				l.slices[i][s] = true
			}
			l.compute[i] += p.compute
			found := l.packsInstances(want[1:], rest)
			l.slices[i], l.compute[i] = before, l.compute[i]-p.compute
			if found {
				return true
			}
		}
	}
	return false
}

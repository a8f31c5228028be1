package collective

import "slices"

// NIC stands in Crossing.Level for the NIC of a node; Domain is the node then.
const NIC = -1

// Crossing is how many flows of a gang go out of a domain over its uplink. As many come in, in the
// other direction of the same link.
type Crossing struct {
	// Level and Domain are those of the Snapshot, or NIC and a node.
	Level, Domain int
	// Flows counts NICs that send at once, 8 for the ring of a gang that has 8 rails, each weighted
	// with what it sends: a flow of a tree is a quarter of one of a ring.
	Flows float64
}

// Crossings returns where the gang leaves domains by the given algorithm, the innermost level
// first and each level in the order of its domains. It is not to be written to.
func (g *Gang) Crossings(a Algorithm) []Crossing {
	if a == Tree {
		return g.tree
	}
	return g.ring
}

// ringCrossings counts the edges of the ring that leave each domain. crossed counts for each
// edge the levels that it crosses, this one added.
func (l *level) ringCrossings(seats []Seat, rails float64, crossed []int) []Crossing {
	var leaving []int32
	for i, s := range seats {
		from, to := l.group[s.Node], l.group[seats[(i+1)%len(seats)].Node]
		if from == to {
			continue
		}
		if leaving == nil {
			leaving = make([]int32, len(l.uplinks))
		}
		crossed[i]++
		if int(from) < len(leaving) {
			leaving[from]++
		}
	}
	return l.crossings(leaving, rails)
}

// treeCrossings counts the edges of both trees that have one end in a domain. Each brings half of
// the data up, to be reduced, and the same down, where an edge of the ring brings nearly twice the
// data one way; so it counts a quarter.
func (l *level) treeCrossings(seats []Seat, rails float64) []Crossing {
	first := l.group[seats[0].Node]
	if !slices.ContainsFunc(seats, func(s Seat) bool { return l.group[s.Node] != first }) {
		return nil
	}
	ends := make([]int32, len(l.uplinks))
	edge := func(a, b int) {
		from, to := l.group[seats[a].Node], l.group[seats[b].Node]
		if from == to {
			return
		}
		for _, end := range []int32{from, to} {
			if int(end) < len(ends) {
				ends[end]++
			}
		}
	}
	k := len(seats)
	for i := 1; i < k; i++ {
		up := parent(i, k)
		edge(i, up)
		if k%2 == 0 {
			edge(k-1-i, k-1-up) // the second tree is the mirror of the first
		} else {
			edge((i+1)%k, (up+1)%k) // or the first, shifted by one
		}
	}
	return l.crossings(ends, rails/4)
}

// parent returns the parent of node i, not the root 0, in the first of the two trees over k nodes:
// the lowest bit of i that is set moves up by one, or is dropped where that is out of bounds
// (ncclGetBtree in NCCL's src/graph/trees.cc).
func parent(i, k int) int {
	bit := i & -i
	if up := i&^bit | bit<<1; up < k {
		return up
	}
	return i &^ bit
}

// crossings lists the domains that are left at all, each edge weighted with its flows.
func (l *level) crossings(counts []int32, weight float64) []Crossing {
	found := 0
	for _, n := range counts {
		if n > 0 {
			found++
		}
	}
	if found == 0 {
		return nil
	}
	list := make([]Crossing, 0, found)
	for d, n := range counts {
		if n > 0 {
			list = append(list, Crossing{Level: l.index, Domain: d, Flows: float64(n) * weight})
		}
	}
	return list
}

package collective

import "sort"

// Ideal returns the time of a gang of so many ranks at its ideal place: on the fewest nodes, evenly
// filled, in as few domains of each level as hold them, with nobody else on the network and the
// fastest uplinks of their level. No placement is faster.
//
// There is such a place where a leaf has enough free nodes, and, in rank order leaf by leaf, on any
// network without oversubscription. With it, and over several leaves, it is a bound that may be out
// of reach: the trees are given the two edges that a domain has at least, and in rank order have up to
// 4*log2(nodes) of them (6, of 64 nodes in leaves of 16).
func (m *Model) Ideal(ranks int, bytes float64) Cost {
	return m.ideal(ranks, m.fabric.GPUs, bytes)
}

// ideal is Ideal with so many GPUs a node.
func (m *Model) ideal(ranks, gpus int, bytes float64) Cost {
	s := shape{ranks: ranks, nodes: (ranks + gpus - 1) / gpus}
	if ranks < 2 {
		return Cost{}
	}
	s.rails = m.rails(ranks / s.nodes)
	slowest := 0.0
	var crossed []int
	if s.nodes > 1 {
		crossed = make([]int, s.nodes)
		for i := range m.levels {
			slowest = max(slowest, m.levels[i].spread(s.nodes, crossed))
		}
	}
	s.steps(m, crossed)
	return s.cost(&m.fabric, bytes, slowest, slowest/2)
}

// spread puts nodes into as few groups as hold them, marks as many edges of the ring as crossing,
// and returns the seconds a byte of the uplinks for the ring, which leaves each group once. The trees
// do so by two edges of a quarter each.
func (l *level) spread(nodes int, crossed []int) float64 {
	n := min(1+sort.SearchInts(l.holds, nodes), len(l.holds), nodes)
	if n < 2 {
		return 0
	}
	for i := range n {
		crossed[i]++
	}
	return 1 / l.fastest[n-1]
}

package collective

import "sort"

// Ideal returns the time of a gang of so many ranks at its ideal place: on the fewest nodes, evenly
// filled, in as few domains of each level as hold them, with nobody else on the network and the
// fastest uplinks of their level. No placement is faster.
//
// There is such a place where a leaf has enough free nodes, and, in rank order leaf by leaf, on any
// network without oversubscription. With it, and over several leaves, it is a bound that may be out
// of reach: the trees are given the two edges that a domain has at least, and in rank order have up to
// 4*log2(nodes) of them (6, of 64 nodes in leaves of 16). With hashed routing over several leaves it
// is so where trees are faster: in rank order, 1 GiB of 1,024 ranks on DGX H100 takes 1.18 times as
// long. The ring's time is that in rank order.
func (m *Model) Ideal(ranks int, bytes float64) Cost {
	return m.ideal(ranks, m.fabric.GPUs, bytes)
}

// ideal is Ideal with so many GPUs a node.
func (m *Model) ideal(ranks, gpus int, bytes float64) Cost {
	p := m.idealPlace(ranks, gpus)
	return p.cost(&m.fabric, bytes)
}

// idealPlace returns that place. The ring leaves each group once, the trees do so by two edges of a
// quarter each at least.
func (m *Model) idealPlace(ranks, gpus int) layout {
	p := layout{shape: shape{ranks: ranks, nodes: (ranks + gpus - 1) / gpus}}
	if ranks < 2 {
		return p
	}
	p.rails = m.rails(ranks / p.nodes)
	var crossed []int
	if p.nodes > 1 {
		crossed = make([]int, p.nodes)
		for i := range m.levels {
			for edge := range m.levels[i].fewest(p.nodes) {
				crossed[edge]++
			}
		}
		p.ringLoad, p.treeLoad = m.leastLoad(&p.shape, Ring), m.leastLoad(&p.shape, Tree)
	}
	p.steps(m, crossed)
	return p
}

// leastLoad returns the least that the fullest uplink takes, in seconds a byte, if nodes are in as few
// groups of each level as hold them.
func (m *Model) leastLoad(s *shape, a Algorithm) float64 {
	if m.fabric.Routing == Hashed {
		return m.leastFullest(s, a) / s.rails / m.fabric.NIC
	}
	flows, most := s.rails, 0.0
	if a == Tree {
		flows /= 2
	}
	for i := range m.levels {
		l := &m.levels[i]
		if n := l.fewest(s.nodes); n > 0 {
			most = max(most, flows/s.rails/l.fastest[n-1])
		}
	}
	return most
}

// fewest returns how few groups hold so many nodes, 0 if one does: it is not left then.
func (l *level) fewest(nodes int) int {
	n := min(1+sort.SearchInts(l.holds, nodes), len(l.holds), nodes)
	if n < 2 {
		return 0
	}
	return n
}

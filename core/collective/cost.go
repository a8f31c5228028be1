package collective

// Algorithm is how an all-reduce goes about it.
type Algorithm int

// The algorithms.
const (
	Ring Algorithm = iota
	Tree
)

// String names the algorithm.
func (a Algorithm) String() string {
	if a == Tree {
		return "tree"
	}
	return "ring"
}

// treeEfficiency is what trees make of the bandwidth there is, by NCCL's tuning model.
const treeEfficiency = 0.92

// Cost is the modelled time of one all-reduce by each algorithm, in seconds.
type Cost struct{ Ring, Tree float64 }

// Best returns the time by the better algorithm.
func (c Cost) Best() float64 { return min(c.Ring, c.Tree) }

// Algorithm returns the better one; the ring where they are equal.
func (c Cost) Algorithm() Algorithm {
	if c.Tree < c.Ring {
		return Tree
	}
	return Ring
}

// AllReduce returns how long the gang takes to reduce so many bytes, given what others have on the
// network; nil is an empty one. The gang's own flows must not be among those: take them away
// before, and add them again after. No bytes, or fewer, cost the latency; one rank costs nothing.
//
// NCCL chooses the algorithm once and knows nothing of others. This model chooses again under
// load, which is never slower and keeps more bandwidth from ever making it slower.
func (g *Gang) AllReduce(bytes float64, others *Load) Cost {
	if others == nil {
		return g.cost(&g.model.fabric, bytes)
	}
	ring, tree := g.load(g.ring, g.ringTrunks, others), g.load(g.tree, g.treeTrunks, others)
	return g.shape.cost(&g.model.fabric, bytes, ring, tree)
}

// load returns what the fullest uplink of an algorithm takes, in seconds a byte.
func (g *Gang) load(crossings []Crossing, trunks []trunk, others *Load) float64 {
	if g.model.fabric.Routing == Hashed {
		return fullestLink(crossings, trunks, others) / g.rails / g.model.fabric.NIC
	}
	most := 0.0
	for i := range crossings {
		c := &crossings[i]
		most = max(most, (c.Flows+others.others(c))/g.rails/g.model.capacity(c))
	}
	return most
}

// capacity returns what a crossed link carries, in bytes a second.
func (m *Model) capacity(c *Crossing) float64 {
	if c.Level == NIC {
		return m.fabric.NIC
	}
	for i := range m.levels {
		if m.levels[i].index == c.Level {
			return m.levels[i].uplinks[c.Domain]
		}
	}
	return 0
}

// cost puts together what the nodes allow and what the uplinks allow, in seconds a byte.
func (s *shape) cost(f *Fabric, bytes, ring, tree float64) Cost {
	if s.ranks < 2 {
		return Cost{}
	}
	bytes = max(0, bytes)
	n := float64(s.ranks)
	node := 0.0
	if s.ranks > s.nodes {
		node = 1 / f.NVLink
	}
	if s.nodes > 1 {
		// What leaves by a NIC came out of a GPU, no faster than that sends.
		node = max(node, 1/(s.rails*min(f.NIC, f.NVLink)))
	}
	return Cost{
		Ring: 2*(n-1)/n*bytes*max(node, ring) + s.ringSteps,
		Tree: 2*bytes*max(node, tree)/treeEfficiency + s.treeSteps,
	}
}

package collective

import "math"

// Seat is a node on which ranks of a gang sit.
type Seat struct {
	// Node is its position in the snapshot.
	Node int
	// GPUs is how many ranks sit there, a GPU each.
	GPUs int
}

// Seats takes the ranks of a gang together by node: from the node of each rank, in rank order, to
// the nodes in the order of their first ranks. NCCL numbers nodes like that, so that ranks that come
// back to a node cost nothing.
func Seats(ranks []int) []Seat {
	var seats []Seat
	at := map[int]int{} // by node, its seat
	k := -1             // the seat of the rank before
	for _, node := range ranks {
		if k < 0 || seats[k].Node != node {
			var known bool
			if k, known = at[node]; !known {
				k = len(seats)
				at[node] = k
				seats = append(seats, Seat{Node: node})
			}
		}
		seats[k].GPUs++
	}
	return seats
}

// Gang is a gang at its place: what of the cost does not depend on others. It never changes.
type Gang struct {
	model *Model
	layout
	ideal layout
	// ring and tree are where it leaves domains, and the trunks those uplinks as trunks, by the same
	// index, where they are hashed over.
	ring, tree             []Crossing
	ringTrunks, treeTrunks []trunk
}

// layout is what decides what a gang costs that is alone on the network.
type layout struct {
	shape
	// ringLoad and treeLoad are what the fullest uplink takes, in seconds a byte that crosses it with
	// all rails.
	ringLoad, treeLoad float64
}

// cost returns the cost of so many bytes.
func (l *layout) cost(f *Fabric, bytes float64) Cost {
	return l.shape.cost(f, bytes, l.ringLoad, l.treeLoad)
}

// shape is what the time depends on beside crossings.
type shape struct {
	ranks, nodes int
	// rails is how many flows there are between two nodes of the ring.
	rails float64
	// ringSteps and treeSteps are the latencies in seconds.
	ringSteps, treeSteps float64
}

// Gang works out what a gang costs at its place. The seats are in rank order, each of another node
// of the snapshot and with one GPU at least; they are not kept.
func (m *Model) Gang(seats []Seat) *Gang {
	g := &Gang{model: m, layout: layout{shape: shape{nodes: len(seats)}}}
	fewest, most := math.MaxInt, 0 // ranks on a node
	for _, s := range seats {
		g.ranks += s.GPUs
		fewest, most = min(fewest, s.GPUs), max(most, s.GPUs)
	}
	g.rails = m.rails(fewest)
	// Where more ranks sit on a node than nodes have GPUs, that is what nodes have.
	g.ideal = m.idealPlace(g.ranks, max(m.fabric.GPUs, most))
	if g.nodes < 2 {
		g.steps(m, nil)
		return g
	}
	crossed := make([]int, g.nodes) // by edge of the ring, from seat i to i+1: how many levels
	for i := range m.levels {
		l := &m.levels[i]
		g.ring = append(g.ring, l.ringCrossings(seats, g.rails, crossed)...)
		g.tree = append(g.tree, l.treeCrossings(seats, g.rails)...)
	}
	if m.fabric.Shared {
		for _, s := range seats {
			// Two trees, in which a node has four edges in all.
			g.ring = append(g.ring, Crossing{Level: NIC, Domain: s.Node, Flows: g.rails})
			g.tree = append(g.tree, Crossing{Level: NIC, Domain: s.Node, Flows: 4 * g.rails / 4})
		}
	}
	g.steps(m, crossed)
	if m.fabric.Routing == Hashed {
		g.ringTrunks, g.treeTrunks = m.trunks(g.ring), m.trunks(g.tree)
	}
	g.ringLoad, g.treeLoad = g.load(g.ring, g.ringTrunks, nil), g.load(g.tree, g.treeTrunks, nil)
	return g
}

// rails returns how many flows there are between nodes with so many ranks on the fewest.
func (m *Model) rails(fewest int) float64 {
	if m.fabric.Shared {
		return 1
	}
	return float64(fewest)
}

// steps works out the latencies from how many levels each edge of the ring crosses.
func (s *shape) steps(m *Model, crossed []int) {
	if s.ranks < 2 {
		return
	}
	f := &m.fabric
	inside := float64(s.ranks - s.nodes)
	if s.nodes < 2 {
		s.ringSteps = 2 * inside * f.NVLinkLatency
		s.treeSteps = 2 * math.Log2(float64(s.ranks)) * f.NVLinkLatency
		return
	}
	sum, least, most := 0, math.MaxInt, 0
	for _, levels := range crossed {
		sum += levels
		least, most = min(least, levels), max(most, levels)
	}
	edge := func(levels int) float64 { return f.NICLatency + 2*f.HopLatency*float64(levels) }
	// What a rank starts with goes all the way round to the rank before it: the slowest such way
	// leaves out the shortest edge.
	shortest := edge(least)
	if inside > 0 {
		shortest = f.NVLinkLatency
	}
	s.ringSteps = 2 * (inside*f.NVLinkLatency + float64(s.nodes)*f.NICLatency + 2*f.HopLatency*float64(sum) - shortest)
	nodes := float64(s.nodes)
	s.treeSteps = 2 * (math.Log2(float64(s.ranks)/nodes)*f.NVLinkLatency + math.Log2(nodes)*edge(most))
}

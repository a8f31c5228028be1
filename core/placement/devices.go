package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// ShareChooser is a Strategy that says which of a node's GPUs a pod with a share of one takes.
// Without it that is the fullest that has room, so that whole GPUs stay whole.
type ShareChooser interface {
	Strategy
	// SpreadsShares tells whether shares go to the emptiest GPU instead.
	SpreadsShares() bool
}

// assign turns takes, in the order of ranks, into an Assignment: which node for each rank, and
// which of its GPUs.
func (g *gang) assign(takes []take) Assignment {
	size := 0
	for _, t := range takes {
		size += t.count
	}
	a := Assignment{Name: g.group.Name, Nodes: make([]string, 0, size), At: make([]int32, 0, size)}
	q := &g.view.need
	shared := q.Milli > 0 && q.GPUs == 0
	for _, t := range takes {
		n := g.s.At(t.node)
		for range t.count {
			a.Nodes = append(a.Nodes, n.Name)
			a.At = append(a.At, int32(t.node))
		}
		switch {
		case len(q.MIG) > 0:
			a.Instances = append(a.Instances, q.instances(n, t.count)...)
		case shared:
			g.assignShares(&a, n, t.count)
		case q.whole && n.Board != nil:
			a.GPUs = slices.Grow(a.GPUs, size)[:len(a.At)-t.count]
			free := n.WholeGPUs()
			for range t.count {
				set, _ := n.Board.Best(free, int(q.GPUs), q.Include)
				free &^= set
				a.GPUs = append(a.GPUs, set)
			}
		}
	}
	if a.GPUs != nil {
		a.GPUs = slices.Grow(a.GPUs, size)[:size]
	}
	return a
}

// instances places the MIG instances of count pods on the node, together.
func (q *need) instances(n *cluster.Node, count int) [][]Instance {
	want := slices.Repeat(q.MIG, count)
	got, reused, _ := n.Geometry.Place(n.Instances, n.PartitionGPUs(), want)
	pods := make([][]Instance, count)
	for i := range got {
		k := i / len(q.MIG)
		pods[k] = append(pods[k], Instance{Instance: got[i], New: !reused[i]})
	}
	return pods
}

// assignShares gives each of count pods on the node its share: from the resources the node
// offers shares by, as long as there are any, or from single GPUs.
func (g *gang) assignShares(a *Assignment, n *cluster.Node, count int) {
	q := &g.view.need
	a.GPUs = append(a.GPUs, make([]gpu.Mask, len(a.At)-count-len(a.GPUs))...)
	for i := range q.offers {
		o := &q.offers[i]
		if ok, _ := q.offered(n.Machine, o); !ok {
			continue
		}
		room := n.Free(o.index) / o.units
		if o.slots >= 0 {
			room = min(room, n.Free(o.slots))
		}
		for ; room > 0 && count > 0; count, room = count-1, room-1 {
			a.Offers = append(a.Offers, Offer{Resource: o.name, Amount: o.units, use: o.use()})
			a.GPUs = append(a.GPUs, 0)
		}
	}
	if count == 0 {
		return
	}
	chooser, ok := g.strategy.(ShareChooser)
	spreads := ok && chooser.SpreadsShares()
	shares := make([]int, n.Board.Count())
	for i := range shares {
		shares[i] = n.FreeShare(i)
	}
	for range count {
		i := chooseShare(shares, q.Milli, spreads)
		shares[i] -= q.Milli
		a.Offers = append(a.Offers, Offer{Amount: int64(q.Milli)})
		a.GPUs = append(a.GPUs, gpu.MaskOf(i))
	}
}

// chooseShare returns the GPU with the least free share that is enough, or with the largest;
// among equals the first. One is known to be enough.
func chooseShare(shares []int, milli int, spread bool) int {
	best := -1
	for i, free := range shares {
		if free >= milli && (best < 0 || spread && free > shares[best] || !spread && free < shares[best]) {
			best = i
		}
	}
	return best
}

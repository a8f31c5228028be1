package placement

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// assign names the node of each rank. Ranks follow topology order, so that neighbours in a
// ring of ranks are neighbours in the network.
func (p *planner) assign(d domainView) []string {
	t := p.request.Topology
	if t.SliceLevel < 0 || t.SliceLevel <= d.Level {
		return p.fill(nil, d.Domain, d.size)
	}
	names := make([]string, 0, d.size)
	for _, part := range p.divide(d) {
		names = p.fill(names, part.Domain, part.size)
	}
	return names
}

// divide spreads the gang over the parts of its domain in whole slices: always the part with
// the least room that takes all that is left, else the one with the most room, so that the
// gang is in as few parts as possible and breaks up as few large ones as possible.
func (p *planner) divide(d domainView) []domainView {
	var parts, chosen []domainView
	for _, part := range p.parts(d.Domain) {
		if room := p.room(part); room > 0 {
			parts = append(parts, domainView{Domain: part, room: room})
		}
	}
	slices.SortStableFunc(parts, func(a, b domainView) int { return cmp.Compare(a.room, b.room) })
	for left := d.size; left > 0; {
		i := slices.IndexFunc(parts, func(v domainView) bool { return v.room >= left })
		if i < 0 {
			i = len(parts) - 1
		}
		part := parts[i]
		part.size = min(part.room, left)
		left -= part.size
		chosen = append(chosen, part)
		parts = slices.Delete(parts, i, i+1)
	}
	slices.SortFunc(chosen, func(a, b domainView) int { return cmp.Compare(a.First, b.First) })
	return chosen
}

// fill picks the strategy's best nodes of the domain for count pods, one pod at a time, and
// appends their names in topology order.
func (p *planner) fill(names []string, d cluster.Domain, count int) []string {
	q := p.queue(d)
	placed := make(map[int]int, min(count, len(q.items)))
	for range count {
		best := &q.items[0]
		best.placed++
		placed[best.node] = best.placed
		if best.placed == int(p.fits[best.node]) {
			heap.Pop(q)
			continue
		}
		best.score = p.score(best.node, best.placed)
		heap.Fix(q, 0)
	}
	order := make([]int, 0, len(placed))
	for node := range placed {
		order = append(order, node)
	}
	slices.Sort(order)
	for _, node := range order {
		for range placed[node] {
			names = append(names, p.snapshot.Nodes[node].Name)
		}
	}
	return names
}

func (p *planner) score(node, placed int) float64 {
	n := p.snapshot.Nodes[node]
	gpus := p.request.Pod.GPUs
	return p.strategy.Score(Candidate{
		Node:     n,
		FreeGPUs: n.Free(p.request.Pod.GPUResource) - int64(placed)*gpus,
		GPUs:     gpus,
		Placed:   placed,
		Seed:     p.request.Seed,
	})
}

func (p *planner) queue(d cluster.Domain) *nodeQueue {
	q := &nodeQueue{items: make([]queued, 0, d.End-d.First)}
	for i := d.First; i < d.End; i++ {
		if p.fits[i] > 0 {
			q.items = append(q.items, queued{node: i, score: p.score(i, 0)})
		}
	}
	heap.Init(q)
	return q
}

// nodeQueue is a heap of nodes that still fit, the best on top.
type nodeQueue struct{ items []queued }

type queued struct {
	node, placed int
	score        float64
}

func (q *nodeQueue) Len() int { return len(q.items) }
func (q *nodeQueue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	return a.score > b.score || a.score == b.score && a.node < b.node
}
func (q *nodeQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *nodeQueue) Push(x any)    { q.items = append(q.items, x.(queued)) }
func (q *nodeQueue) Pop() any {
	last := len(q.items) - 1
	x := q.items[last]
	q.items = q.items[:last]
	return x
}

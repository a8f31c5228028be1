package placement

import (
	"container/heap"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// fillByScore puts x pods, one at a time, each on the node of d that the strategy scores
// highest for it.
func (g *gang) fillByScore(takes []take, d cluster.Domain, x int64) []take {
	q := &g.work.queue
	q.items = q.items[:0]
	for i := d.First; i < d.End; i++ {
		if g.room.fits[i] > 0 {
			q.items = append(q.items, queued{node: i, score: g.score(i, 0)})
		}
	}
	heap.Init(q)
	first := len(takes)
	for ; x > 0 && len(q.items) > 0; x-- {
		best := &q.items[0]
		best.placed++
		if best.placed == int(g.room.fits[best.node]) {
			takes = append(takes, take{node: best.node, count: best.placed})
			heap.Pop(q)
			continue
		}
		best.score = g.score(best.node, best.placed)
		heap.Fix(q, 0)
	}
	for i := range q.items {
		if q.items[i].placed > 0 {
			takes = append(takes, take{node: q.items[i].node, count: q.items[i].placed})
		}
	}
	sortTakes(takes[first:])
	return takes
}

// nodeQueue is a heap of nodes that still fit, the best on top.
type nodeQueue struct {
	items []queued
	// c is what the strategy is asked about, kept here so that asking allocates nothing.
	c Candidate
}

type queued struct {
	node, placed int
	score        float64
}

func (q *nodeQueue) Len() int { return len(q.items) }
func (q *nodeQueue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.score > b.score || a.score == b.score && a.node < b.node
}
func (q *nodeQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *nodeQueue) Push(x any)    { q.items = append(q.items, x.(queued)) }
func (q *nodeQueue) Pop() any {
	last := len(q.items) - 1
	q.items = q.items[:last]
	return nil
}

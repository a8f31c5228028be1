package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// fragmented is the large profile, as many of its GPUs in use as asked for, by movable workloads
// of one pod with 1 to 4 GPUs, or of several pods that keep to a leaf, on random nodes.
func fragmented(tb testing.TB, nodes int, percent, pods int) *cluster.Snapshot {
	tb.Helper()
	txn := world(fatTree(nodes)...).Begin()
	r := rand.New(rand.NewPCG(1, 2))
	for used, k := int64(0), 0; used < int64(nodes)*8*int64(percent)/100; k++ {
		w := &cluster.Workload{Name: fmt.Sprintf("work/%05d", k), Movable: true, Level: -1, Cost: float64(r.IntN(100))}
		gpus, first, width := 1+r.Int64N(4), 0, nodes
		if pods > 1 {
			w.Level = leaf
			first = r.IntN(nodes/16) * 16
			width = min(16, nodes-first)
		}
		for i := range pods {
			pod := &cluster.Pod{Name: fmt.Sprintf("%s-%d", w.Name, i), Workload: w, Use: cluster.Vector{1000, 1 << 30, 1, gpus}}
			for tries := 0; tries < 64; tries++ {
				if txn.Place(cluster.Placement{Node: first + r.IntN(width), Pod: pod}) == nil {
					used += gpus
					break
				}
			}
		}
	}
	return txn.Snapshot()
}

func benchDefragment(b *testing.B, s *cluster.Snapshot, r *Request, feasible bool) {
	b.Helper()
	o := MoveOptions{Options: Options{Strategies: registry(b), Cache: &Cache{}}}
	b.ReportAllocs()
	var m Moves
	for b.Loop() {
		var err error
		if m, err = Defragment(s, r, o); err != nil || m.Feasible != feasible {
			b.Fatal(err, m.Sentence)
		}
	}
	if problem := wrongMoves(s, r, &m, o); problem != "" {
		b.Fatal(problem)
	}
	b.ReportMetric(float64(len(m.Moves)), "moves")
	if m.LowerBound > 0 {
		b.ReportMetric(float64(len(m.Moves))/float64(m.LowerBound), "moves/bound")
	}
}

// BenchmarkDefragment makes room in clusters that are 85 % full at random of movable work.
func BenchmarkDefragment(b *testing.B) {
	inLeaf := group(func(g *Group) { g.Topology.Required = leaf })
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("leaf/nodes=%d", n), func(b *testing.B) {
			benchDefragment(b, fragmented(b, n, 85, 1), ask(min(16, n/16), 8, inLeaf), true)
		})
		b.Run(fmt.Sprintf("gangs/nodes=%d", n), func(b *testing.B) {
			benchDefragment(b, fragmented(b, n, 85, 4), ask(min(16, n/16), 8, inLeaf), true)
		})
		b.Run(fmt.Sprintf("anywhere/nodes=%d", n), func(b *testing.B) {
			benchDefragment(b, fragmented(b, n, 85, 1), ask(min(16, n/16), 8), true)
		})
	}
	b.Run("tight/nodes=1000", func(b *testing.B) {
		benchDefragment(b, fragmented(b, 1000, 93, 1), ask(16, 8, inLeaf), true)
	})
	b.Run("impossible/nodes=1000", func(b *testing.B) {
		benchDefragment(b, fragmented(b, 1000, 85, 1), ask(151, 8), false)
	})
}

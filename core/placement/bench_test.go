package placement

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// The large profile, half full at random but repeatably: each node has 0-8 GPUs in use.
func benchWorld(nodes int) *cluster.Snapshot {
	specs := fatTree(nodes)
	for i := range specs {
		specs[i].used = int64(mix(uint64(i)) % 9)
	}
	return world(specs...)
}

// BenchmarkPlanPod places one pod with 2 GPUs. allocs/op must not grow with the nodes.
func BenchmarkPlanPod(b *testing.B) {
	for _, strategy := range []string{"leastLoaded", "random", "costOptimized"} {
		for _, nodes := range []int{1024, 10240} {
			b.Run(fmt.Sprintf("strategy=%s/nodes=%d", strategy, nodes), func(b *testing.B) {
				s, reg := benchWorld(nodes), registry(b)
				r := ask(1, 2, func(r *Request) { r.Strategy = strategy })
				b.ReportAllocs()
				for b.Loop() {
					if d, err := Plan(s, r, Options{Strategies: reg}); err != nil || !d.Feasible {
						b.Fatal(err, d.Why.Sentence)
					}
				}
			})
		}
	}
}

// BenchmarkPlanGang places 512 pods with 8 GPUs in one spine, in slices of 16 a leaf.
func BenchmarkPlanGang(b *testing.B) {
	s, reg := world(fatTree(1024)...), registry(b)
	r := ask(512, 8, func(r *Request) {
		r.Groups[0].Topology.Required, r.Groups[0].Slices = spine, []Slice{{leaf, 16}}
	})
	b.ReportAllocs()
	for b.Loop() {
		if d, err := Plan(s, r, Options{Strategies: reg}); err != nil || !d.Feasible {
			b.Fatal(err, d.Why.Sentence)
		}
	}
}

// BenchmarkRefuse finds that no leaf holds 16 whole nodes although the cluster has far more.
func BenchmarkRefuse(b *testing.B) {
	s, reg := benchWorld(1024), registry(b)
	r := ask(16, 8, func(r *Request) { r.Groups[0].Topology.Required = leaf })
	b.ReportAllocs()
	for b.Loop() {
		if d, err := Plan(s, r, Options{Strategies: reg}); err != nil || d.Feasible {
			b.Fatal(err, d.Nodes())
		}
	}
}

// BenchmarkNextSnapshot takes in a change of one node of 1,024.
func BenchmarkNextSnapshot(b *testing.B) {
	s := world(fatTree(1024)...)
	n := *s.At(500)
	b.ReportAllocs()
	for b.Loop() {
		s = s.Next(s.Generation+1, s.Resources, []*cluster.Node{&n})
	}
}

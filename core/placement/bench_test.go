package placement

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// dgx is the board of a machine in which each of 8 GPUs reaches each other by 18 NVLinks, four
// a NUMA node.
func dgx(t testing.TB) *gpu.Board {
	t.Helper()
	w := gpu.Wiring{Links: make([][]int, 8), NUMA: []int{0, 0, 0, 0, 1, 1, 1, 1}}
	for i := range w.Links {
		w.Links[i] = []int{18, 18, 18, 18, 18, 18, 18, 18}
		w.Links[i][i] = 0
	}
	b, err := gpu.NewBoard(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// benchWorld is the large profile, of nodes whose inside is known, with taken GPUs of each
// node in use.
func benchWorld(t testing.TB, nodes int, taken func(i int) int64) *cluster.Snapshot {
	board := dgx(t)
	specs := fatTree(nodes)
	for i := range specs {
		used := taken(i)
		specs[i].used = used
		specs[i].edit = func(n *cluster.Node) {
			n.Board = board
			n.Taken = gpu.All(int(used))
		}
	}
	return world(specs...)
}

func none(int) int64 { return 0 }

// scattered takes 0 to 8 GPUs of each node, at random but repeatably.
func scattered(i int) int64 { return int64(mix(uint64(i)) % 9) }

// BenchmarkPlanSingle places pods with one GPU, one after the other, each on what the ones
// before left, until the cluster is full; then it starts again with an empty one. One
// operation is a plan and its commit. allocs/op must not grow with the nodes.
func BenchmarkPlanSingle(b *testing.B) {
	for _, s := range Builtin() {
		for _, nodes := range []int{1024, 10240} {
			b.Run(fmt.Sprintf("strategy=%s/nodes=%d", s.Name(), nodes), func(b *testing.B) {
				empty := benchWorld(b, nodes, none)
				o := Options{Strategies: registry(b), Cache: &Cache{}}
				r := ask(1, 1, func(r *Request) { r.Strategy = s.Name() })
				work := &cluster.Workload{Name: "w"}
				txn, room := empty.Begin(), 8*nodes
				b.ReportAllocs()
				for b.Loop() {
					if room == 0 {
						b.StopTimer()
						txn, room = empty.Begin(), 8*nodes
						b.StartTimer()
					}
					d, err := Plan(txn.Snapshot(), r, o)
					if err != nil || !d.Feasible {
						b.Fatal(err, d.Why.Sentence)
					}
					if err := txn.Place(d.Placements(r, work)...); err != nil {
						b.Fatal(err)
					}
					room--
				}
			})
		}
	}
}

// BenchmarkPlanGang places 512 pods with 8 GPUs in one spine, in slices of 16 that share a
// leaf. 40 % of the cluster is taken, in fragments on every node of the first spine: the plan
// is in the second.
func BenchmarkPlanGang(b *testing.B) {
	for _, strategy := range []string{"leastLoaded", "topologyAware"} {
		b.Run("strategy="+strategy, func(b *testing.B) {
			s := benchWorld(b, 1024, func(i int) int64 {
				if i < 512 {
					return 5 + int64(mix(uint64(i))%4)
				}
				return 0
			})
			o := Options{Strategies: registry(b), Cache: &Cache{}}
			r := ask(512, 8, func(r *Request) {
				r.Strategy = strategy
				r.Groups[0].Topology.Required, r.Groups[0].Slices = spine, []Slice{{leaf, 16}}
			})
			b.ReportAllocs()
			for b.Loop() {
				if d, err := Plan(s, r, o); err != nil || !d.Feasible {
					b.Fatal(err, d.Why.Sentence)
				}
			}
		})
	}
}

// BenchmarkRefuseGang finds that no leaf holds 16 whole nodes although the cluster has room
// for ten times as many pods, and proves it.
func BenchmarkRefuseGang(b *testing.B) {
	s := benchWorld(b, 1024, func(i int) int64 {
		if i%16 == 7 || mix(uint64(i))%10 < 4 {
			return 1
		}
		return 0
	})
	o := Options{Strategies: registry(b), Cache: &Cache{}}
	r := ask(16, 8, group(func(g *Group) { g.Topology.Required = leaf }))
	b.ReportAllocs()
	for b.Loop() {
		if d, err := Plan(s, r, o); err != nil || d.Feasible || d.Why.Certificate == nil {
			b.Fatal(err, d.Nodes())
		}
	}
}

// BenchmarkPlanCold is a plan without memory of any other: what a shape costs that nobody
// asked for before.
func BenchmarkPlanCold(b *testing.B) {
	for _, nodes := range []int{1024, 10240} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := benchWorld(b, nodes, scattered)
			o, r := Options{Strategies: registry(b)}, ask(1, 2)
			b.ReportAllocs()
			for b.Loop() {
				if d, err := Plan(s, r, o); err != nil || !d.Feasible {
					b.Fatal(err, d.Why.Sentence)
				}
			}
		})
	}
}

// BenchmarkSnapshotNext takes in a pod that was bound to one node.
func BenchmarkSnapshotNext(b *testing.B) {
	for _, nodes := range []int{1024, 10240} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := benchWorld(b, nodes, none)
			pod := &cluster.Pod{Use: cluster.Vector{1000, 1 << 30, 1, 1}, GPUs: gpu.MaskOf(3)}
			n := s.At(nodes / 2)
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Next(s.Generation+1, s.Resources, []*cluster.Node{n.With(pod)})
			}
		})
	}
}

// BenchmarkSnapshotHeap reports the memory of 10,240 nodes with 81,920 GPUs and 80,000 pods, with
// what a Cache remembers of one shape.
func BenchmarkSnapshotHeap(b *testing.B) {
	for b.Loop() {
		before := heapInUse()
		s := benchWorld(b, 10240, none)
		txn := s.Begin()
		use := cluster.Vector{1000, 1 << 30, 1, 1}
		placements := make([]cluster.Placement, 80000)
		for i := range placements {
			w := &cluster.Workload{Name: fmt.Sprintf("team/work-%d", i), Preemptible: true}
			placements[i] = cluster.Placement{Node: i % 10240, Pod: &cluster.Pod{
				Name: fmt.Sprintf("team/work-%d-0", i), Workload: w, Use: use, GPUs: gpu.MaskOf(i / 10240),
			}}
		}
		if err := txn.Place(placements...); err != nil {
			b.Fatal(err)
		}
		s, placements = txn.Snapshot(), nil
		o := Options{Strategies: registry(b), Cache: &Cache{}}
		if _, err := Plan(s, ask(1, 1), o); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heapInUse()-before)/(1<<20), "MiB")
		runtime.KeepAlive(s)
		runtime.KeepAlive(o.Cache)
		_ = placements
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

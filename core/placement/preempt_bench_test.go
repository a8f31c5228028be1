package placement

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// fullOf is the large profile with every GPU taken by workloads of the given shape: gangs of
// pods with gpus GPUs each. Every preemptible-th workload only is preemptible (1: all).
func fullOf(b *testing.B, nodes, pods int, gpus int64, preemptible int) *cluster.Snapshot {
	b.Helper()
	txn := world(fatTree(nodes)...).Begin()
	use := cluster.Vector{1000, 1 << 30, 1, gpus}
	var placements []cluster.Placement
	perNode := 8 / int(gpus)
	for k := range nodes * perNode {
		gang := k / pods
		if k%pods == 0 {
			placements = append(placements, cluster.Placement{Pod: &cluster.Pod{Workload: &cluster.Workload{
				Name: fmt.Sprintf("low/%05d", gang), Preemptible: gang%preemptible == 0, Cost: float64(mix(uint64(gang)) % 100),
			}}})
		}
		w := placements[len(placements)-1].Pod.Workload
		p := cluster.Placement{Node: k / perNode, Pod: &cluster.Pod{Name: fmt.Sprintf("%s-%d", w.Name, k%pods), Workload: w, Use: use}}
		if k%pods == 0 {
			placements[len(placements)-1] = p
		} else {
			placements = append(placements, p)
		}
	}
	if err := txn.Place(placements...); err != nil {
		b.Fatal(err)
	}
	return txn.Snapshot()
}

func large(count int, edits ...func(*Request)) *Request {
	return ask(count, 8, append(edits, func(r *Request) { r.Priority, r.Preempts = 100, true })...)
}

func benchPreempt(b *testing.B, s *cluster.Snapshot, r *Request, feasible bool) {
	b.Helper()
	o := Options{Strategies: registry(b), Cache: &Cache{}}
	b.ReportAllocs()
	victims := 0
	for b.Loop() {
		d, err := Plan(s, r, o)
		if err != nil || d.Feasible != feasible || !feasible && d.Why.Certificate == nil {
			b.Fatal(err, d.Feasible, d.Why.Sentence)
		}
		victims = len(d.Victims)
	}
	b.ReportMetric(float64(victims), "victims")
}

// BenchmarkReclaimLargeJob makes room for a gang of half the nodes in a cluster that is full of
// jobs with one GPU.
func BenchmarkReclaimLargeJob(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			benchPreempt(b, fullOf(b, n, 1, 1, 1), large(n/2), true)
		})
	}
}

// BenchmarkReclaimImpossible proves that evicting whatever may be evicted is not enough: too
// few may be; no leaf is large enough; pods must be apart and there are too few nodes.
func BenchmarkReclaimImpossible(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		s := fullOf(b, n, 1, 1, 9)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) { benchPreempt(b, s, large(n/2), false) })
		b.Run(fmt.Sprintf("leaf/nodes=%d", n), func(b *testing.B) {
			benchPreempt(b, fullOf(b, n, 1, 1, 1), large(17, group(func(g *Group) { g.Topology.Required = leaf })), false)
		})
		b.Run(fmt.Sprintf("apart/nodes=%d", n), func(b *testing.B) {
			// Each pod on a node of its own: room for many, nodes for too few.
			full := fullOf(b, n, 1, 1, 1)
			apart := map[string]int{}
			for _, node := range full.Nodes() {
				apart[node.Name] = 1
			}
			r := large(n+1, group(func(g *Group) {
				g.Limits, g.Pod.GPUs = apart, 1
				g.Pod.Resources = cluster.Vector{1000, 1 << 30, 1, 1}
			}))
			benchPreempt(b, full, r, false)
		})
	}
}

// BenchmarkReclaimGangs makes room in a cluster that is full of gangs of 10 pods with 5 GPUs.
func BenchmarkReclaimGangs(b *testing.B) {
	benchPreempt(b, fullOf(b, 1000, 10, 5, 1), large(250), true)
}

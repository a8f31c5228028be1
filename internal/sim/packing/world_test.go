package packing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// newTestCluster returns a cluster, or fails.
func newTestCluster(t testing.TB, nodes ...trace.Node) *Cluster {
	t.Helper()
	c, err := NewCluster("nodes.csv", nodes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newTestWorkload(t testing.TB, c *Cluster, pods ...trace.Pod) *Workload {
	t.Helper()
	w, err := NewWorkload("test", "pods.csv", pods, c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// drawn is a cluster of nodes of several sizes, and pods that want all there is to want.
func drawn(t testing.TB, seed uint64, nodes, pods int) (*Cluster, *Workload) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	models := []string{"A", "B", "C"}
	var ns []trace.Node
	for i := range nodes {
		gpus := []int{0, 1, 2, 4, 8, 8, 8}[r.IntN(7)]
		n := trace.Node{Name: fmt.Sprintf("n%d", i), CPUMilli: int64(8+r.IntN(13)*8) * 1000, MemoryMiB: int64(32+r.IntN(16)*32) << 10, GPUs: gpus}
		if gpus > 0 {
			n.Model = models[r.IntN(3)]
		}
		ns = append(ns, n)
	}
	ns = append(ns, trace.Node{Name: "sure", CPUMilli: 96000, MemoryMiB: 1 << 19, GPUs: 8, Model: "A"})
	var ps []trace.Pod
	for i := range pods {
		p := trace.Pod{Name: fmt.Sprintf("p%d", i), CPUMilli: int64(r.IntN(12)) * 1000, MemoryMiB: int64(r.IntN(40)) << 10}
		switch r.IntN(8) {
		case 0:
		case 1, 2, 3:
			p.GPUs, p.Milli = 1, 10*(1+r.IntN(99))
		case 4, 5:
			p.GPUs, p.Milli = 1, 1000
		default:
			p.GPUs, p.Milli = []int{2, 4, 8}[r.IntN(3)], 1000
		}
		if p.GPUs > 0 && r.IntN(4) == 0 {
			p.Spec, p.Models = "C|A", []string{"A", "C"}
		}
		ps = append(ps, p)
	}
	ps = append(ps, trace.Pod{Name: "sure", CPUMilli: 1000, MemoryMiB: 1 << 10, GPUs: 1, Milli: 1000})
	c := newTestCluster(t, ns...)
	return c, newTestWorkload(t, c, ps...)
}

// judge keeps books of its own, from the rows of the files, and says what is wrong with a run.
type judge struct {
	nodes []trace.Node
	used  []trace.Node
	gpus  [][]int
	pods  []int
}

func newJudge(c *Cluster, o *order) *judge {
	j := &judge{}
	for _, i := range o.nodes {
		j.nodes = append(j.nodes, c.nodes[i])
		j.used = append(j.used, trace.Node{})
		j.gpus = append(j.gpus, make([]int, c.nodes[i].GPUs))
		j.pods = append(j.pods, 0)
	}
	return j
}

// room tells whether the pod fits on the node at a position.
func (j *judge) room(i int, k *kind) bool {
	n, u := j.nodes[i], j.used[i]
	if u.CPUMilli+k.cpu > n.CPUMilli || u.MemoryMiB+k.memory > n.MemoryMiB || j.pods[i] >= 1001 {
		return false
	}
	if k.gpus == 0 {
		return true
	}
	if len(k.models) > 0 && !slices.Contains(k.models, n.Model) {
		return false
	}
	able := 0
	for _, used := range j.gpus[i] {
		if used+k.milli <= 1000 {
			able++
		}
	}
	return able >= k.gpus
}

// placed takes down where a pod went.
func (j *judge) placed(k *kind, s spot) string {
	if !j.room(s.node, k) {
		return fmt.Sprintf("%+v has no room on node %d", *k, s.node)
	}
	if s.gpus.Count() != k.gpus {
		return fmt.Sprintf("%+v got %d GPUs", *k, s.gpus.Count())
	}
	for _, g := range s.gpus.Indexes() {
		if g >= len(j.gpus[s.node]) || j.gpus[s.node][g]+k.milli > 1000 {
			return fmt.Sprintf("%+v has no room on GPU %d of node %d", *k, g, s.node)
		}
		j.gpus[s.node][g] += k.milli
	}
	j.used[s.node].CPUMilli += k.cpu
	j.used[s.node].MemoryMiB += k.memory
	j.pods[s.node]++
	return ""
}

// TestNobodyOversells has every policy judged on clusters and pods of all kinds: nothing is given
// twice, and nobody is turned away for whom there is room.
func TestNobodyOversells(t *testing.T) {
	for seed := range uint64(6) {
		c, w := drawn(t, seed, 24, 90)
		typical := newTypical(w)
		for _, p := range policies() {
			o, err := newOrder(w, c, int64(seed), 1.5)
			if err != nil {
				t.Fatal(err)
			}
			j := newJudge(c, o)
			next := 0
			turnedAway := func(until int) {
				for ; next < until; next++ {
					for i := range j.nodes {
						if k := &w.kinds[o.pods[next]]; j.room(i, k) {
							t.Fatalf("%s, seed %d: %+v was turned away, and there is room on %s", p.name, seed, *k, j.nodes[i].Name)
						}
					}
				}
			}
			m := &match{cluster: c, workload: w, typical: typical, policy: p, seed: int64(seed), tune: 1.5}
			m.placed = func(at int, k *kind, s spot) {
				turnedAway(at)
				next = at + 1
				if wrong := j.placed(k, s); wrong != "" {
					t.Fatalf("%s, seed %d: %s", p.name, seed, wrong)
				}
			}
			run, err := m.play()
			if err != nil {
				t.Fatal(err)
			}
			turnedAway(len(o.pods))
			if run.Refused == 0 || run.Refused == run.Pods {
				t.Errorf("%s, seed %d: %d of %d pods refused says nothing", p.name, seed, run.Refused, run.Pods)
			}
		}
	}
}

// TestTheLedgerRefuses what is not there, so that a policy that oversells is found out in a run.
func TestTheLedgerRefuses(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", CPUMilli: 1000, MemoryMiB: 10, GPUs: 2, Model: "A"})
	for name, k := range map[string]kind{
		"CPU":    {cpu: 1001, gpus: 1, milli: 1000},
		"memory": {memory: 11, gpus: 1, milli: 1000},
		"model":  {gpus: 1, milli: 1000, accepts: []bool{false}},
		"count":  {gpus: 2, milli: 1000},
		"GPU":    {gpus: 1, milli: 1001},
	} {
		w := newWorld(c, &order{nodes: []int{0}})
		if w.take(&k, spot{gpus: gpu.MaskOf(0)}) == nil {
			t.Errorf("%s: it was given", name)
		}
	}
	w := newWorld(c, &order{nodes: []int{0}})
	if w.take(&kind{gpus: 1, milli: 1000}, spot{gpus: gpu.MaskOf(2)}) == nil {
		t.Error("a GPU that is not there was given")
	}
	for i := range maxPods + 1 {
		if err := w.take(&kind{}, spot{}); (err != nil) != (i == maxPods) {
			t.Fatalf("pod %d: %v", i, err)
		}
	}
}

// TestTheJudgeFindsWhatIsOversold, as one that finds nothing proves nothing.
func TestTheJudgeFindsWhatIsOversold(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", CPUMilli: 4000, MemoryMiB: 10, GPUs: 2, Model: "A"})
	for name, pods := range map[string][]kind{
		"CPU":             {{cpu: 3000}, {cpu: 3000}},
		"memory":          {{memory: 11}},
		"model":           {{gpus: 1, milli: 1000, models: []string{"B"}}},
		"number of GPUs":  {{gpus: 2, milli: 1000}},
		"share of a GPU":  {{gpus: 1, milli: 600}, {gpus: 1, milli: 600}},
		"whole of shared": {{gpus: 1, milli: 1}, {gpus: 1, milli: 1000}},
	} {
		j, wrong := newJudge(c, &order{nodes: []int{0}}), ""
		for _, k := range pods {
			s := spot{}
			if k.gpus > 0 {
				s.gpus = gpu.MaskOf(0)
			}
			wrong = j.placed(&k, s)
		}
		if wrong == "" {
			t.Errorf("%s: nothing is found wrong", name)
		}
	}
}

// TestHopeless counts the pods that no empty node takes.
func TestHopeless(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", CPUMilli: 8000, MemoryMiB: 100, GPUs: 2, Model: "A"}, trace.Node{Name: "b", CPUMilli: 4000, MemoryMiB: 100, GPUs: 4, Model: "B"})
	w := newTestWorkload(t, c,
		trace.Pod{Name: "fits", CPUMilli: 8000, GPUs: 2, Milli: 1000},
		trace.Pod{Name: "too many GPUs", GPUs: 5, Milli: 1000},
		trace.Pod{Name: "too many GPUs, too", GPUs: 5, Milli: 1000},
		trace.Pod{Name: "too much CPU beside them", CPUMilli: 8000, GPUs: 4, Milli: 1000},
		trace.Pod{Name: "too much memory", MemoryMiB: 101},
	)
	if got := hopeless(w, c); got != 4 {
		t.Errorf("%d pods; want 4", got)
	}
}

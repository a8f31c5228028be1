package packing

import (
	"fmt"
	"math"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// TestTypicalPods takes the commonest 95 %, the larger first among equals, whatever memory they
// want.
func TestTypicalPods(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", GPUs: 8})
	var pods []trace.Pod
	add := func(count int, p trace.Pod) {
		for range count {
			p.Name = fmt.Sprint(len(pods))
			pods = append(pods, p)
		}
	}
	add(50, trace.Pod{GPUs: 1, Milli: 1000})
	add(30, trace.Pod{CPUMilli: 4000})
	add(8, trace.Pod{GPUs: 1, Milli: 500, MemoryMiB: 1})
	add(2, trace.Pod{GPUs: 1, Milli: 500, MemoryMiB: 2})
	add(3, trace.Pod{GPUs: 2, Milli: 1000})
	add(3, trace.Pod{GPUs: 4, Milli: 1000})
	add(2, trace.Pod{GPUs: 1, Milli: 10})
	add(2, trace.Pod{GPUs: 1, Milli: 20})
	found := newTypical(newTestWorkload(t, c, pods...))
	want := []struct {
		gpus, milli, count int
	}{{1, 1000, 50}, {0, 0, 30}, {1, 500, 10}, {4, 1000, 3}, {2, 1000, 3}}
	if len(found) != len(want) {
		t.Fatalf("%d are typical, want %d", len(found), len(want))
	}
	for i, w := range want {
		p := found[i]
		if p.gpus != w.gpus || p.milli != w.milli || p.count != w.count || math.Abs(p.share-float64(w.count)/96) > 1e-12 {
			t.Errorf("%d: %d × %d, %d of them, share %v; want %+v", i, p.gpus, p.milli, p.count, p.share, w)
		}
	}
}

// TestPodsAreToldApartByTheirWords: the published typical pods are, where a model is named twice.
func TestPodsAreToldApartByTheirWords(t *testing.T) {
	c := newTestCluster(t, trace.Node{Name: "a", GPUs: 8, Model: "A"}, trace.Node{Name: "b", GPUs: 8, Model: "B"})
	w := newTestWorkload(t, c, trace.Pod{Name: "p", GPUs: 1, Milli: 1000, Models: []string{"B"}, Spec: "B"}, trace.Pod{Name: "q", GPUs: 1, Milli: 1000, Models: []string{"B"}, Spec: "B|B"})
	found := newTypical(w)
	if len(found) != 2 || found[0].spec != "B|B" || found[0].runsOn(0) || !found[0].runsOn(1) || !found[1].runsOn(1) {
		t.Errorf("got %+v", found)
	}
	if mix := w.expected(); len(mix) != 2 || mix[0].Product != "B" || mix[1].Product != "B" {
		t.Errorf("the engine is told %+v", mix)
	}
}

// TestFragmentation adds up by hand.
func TestFragmentation(t *testing.T) {
	n := &node{cpu: 4000, left: []int{400, 1000, 0}, idle: 1400, whole: 1}
	for name, tc := range map[string]struct {
		pods typical
		want float64
	}{
		"without GPUs, it uses none":           {typical{{share: 1}}, 1400},
		"a share uses all of the GPUs it fits": {typical{{share: 1, kind: kind{gpus: 1, milli: 500}}}, 400},
		"a smaller share fits both":            {typical{{share: 1, kind: kind{gpus: 1, milli: 400}}}, 0},
		"a whole GPU":                          {typical{{share: 1, kind: kind{gpus: 1, milli: 1000}}}, 400},
		"two are not there":                    {typical{{share: 1, kind: kind{gpus: 2, milli: 1000}}}, 1400},
		"no CPU":                               {typical{{share: 1, kind: kind{gpus: 1, milli: 400, cpu: 4001}}}, 1400},
		"all CPU":                              {typical{{share: 1, kind: kind{gpus: 1, milli: 400, cpu: 4000}}}, 0},
		"neither":                              {typical{{share: 1, kind: kind{gpus: 2, milli: 1000, cpu: 4001}}}, 1400},
		"another model":                        {typical{{share: 1, kind: kind{gpus: 1, milli: 400, accepts: []bool{false, true}}}}, 1400},
		"this model":                           {typical{{share: 1, kind: kind{gpus: 1, milli: 400, accepts: []bool{true, false}}}}, 0},
		"in the mean": {typical{
			{share: 0.25}, {share: 0.5, kind: kind{gpus: 1, milli: 500}}, {share: 0.25, kind: kind{gpus: 1, milli: 1}},
		}, 0.25*1400 + 0.5*400},
	} {
		if got := tc.pods.fragmentation(n); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := (typical{{share: 1}}).fragmentation(&node{left: []int{0}}); got != 0 {
		t.Errorf("nothing is idle, and %v of it cannot be used", got)
	}
}

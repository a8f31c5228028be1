package packing

import (
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// nodeWith returns a node with 64 cores and what is left of its GPUs.
func nodeWith(left ...int) *node {
	n := &node{cpu: 64000, left: left, classes: map[int]int{}}
	for _, l := range left {
		n.idle += l
		if l == cluster.Full {
			n.whole++
		}
	}
	return n
}

// TestScores are worked out by hand from the formulas of the published policies.
func TestScores(t *testing.T) {
	share := func(milli int) *kind { return &kind{cpu: 8000, gpus: 1, milli: milli} }
	one, two, none := share(1000), &kind{cpu: 8000, gpus: 2, milli: 1000}, &kind{cpu: 8000}
	with := func(n *node, classes ...int) *node {
		for _, c := range classes {
			n.classes[c]++
		}
		return n
	}
	half := &fgd{typical: typical{{share: 1, kind: kind{gpus: 1, milli: 500}}}}
	for name, tc := range map[string]struct {
		rule  rule
		node  *node
		kind  *kind
		score int
		share int
	}{
		// 1 - (56/128)/2 - (1/8)/2 = 0.71875
		"bestFit": {bestFit{}, nodeWith(1000, 1000), one, 71, -1},
		// 1 - (0.5·0.0625 + 0.25·0.125)/2 = 0.96875
		"dotProd": {dotProd{}, nodeWith(1000, 1000), one, 96, -1},
		// 1 - (0.5·0.0625 + 0.25·0.0375)/2 = 0.97969
		"dotProd takes the tightest":      {dotProd{}, nodeWith(1000, 400, 300, 300), share(300), 97, 2},
		"clustering: alone with its like": {gpuClustering{}, with(nodeWith(500, 1000), -1, -1), share(400), 75 + 20, 0},
		"clustering: beside others":       {gpuClustering{}, with(nodeWith(500, 1000), -1, 1), share(400), 50 + 20, 0},
		"clustering: empty":               {gpuClustering{}, nodeWith(1000, 1000), two, 25 + 18, -1},
		"clustering: only others":         {gpuClustering{}, with(nodeWith(500, 1000), -1), one, 20, -1},
		"clustering: no GPUs":             {gpuClustering{}, with(nodeWith(500, 1000), -1), none, 0, -1},
		"packing: empty node":             {gpuPacking{}, nodeWith(1000, 1000), share(400), 31, 0},
		"packing: empty node, whole GPUs": {gpuPacking{}, nodeWith(1000, 1000), two, 31, -1},
		"packing: shared GPU":             {gpuPacking{}, nodeWith(500, 1000), share(400), 95, 0},
		"packing: another share":          {gpuPacking{}, nodeWith(500, 1000), share(600), 49, 1},
		"packing: whole on a used node":   {gpuPacking{}, nodeWith(500, 1000, 1000), two, 48, -1},
		"packing: no GPUs":                {gpuPacking{}, nodeWith(500, 1000), none, 0, -1},
		// 700 are left, which half a GPU can use.
		"fgd: nothing is lost": {half, nodeWith(1000), share(300), 50, 0},
		// 400 are left and lost: 100/(1+e^0.4) = 40.1.
		"fgd: a fragment":            {half, nodeWith(1000), share(600), 40, 0},
		"fgd: whole where that does": {half, nodeWith(600, 1000), share(300), 50, 1},
		// 300 that were lost are in use: 100/(1+e^-0.3) = 57.4.
		"fgd: a fragment used up": {half, nodeWith(1000, 300, 300), share(300), 57, 1},
		"fgd: whole GPUs":         {half, nodeWith(1000, 1000, 300), two, 50, 0},
	} {
		score, gpu := tc.rule.score(tc.node, tc.kind)
		if score != tc.score || tc.share >= 0 && gpu != tc.share {
			t.Errorf("%s: score %d on GPU %d, want %d on %d", name, score, gpu, tc.score, tc.share)
		}
	}
}

// TestTiesGoToTheFirst node of the order, and whole GPUs are taken from the lowest on.
func TestTiesGoToTheFirst(t *testing.T) {
	w := &world{nodes: []node{*nodeWith(100), *nodeWith(1000, 200, 1000), *nodeWith(1000, 200, 1000)}}
	for i := range w.nodes {
		w.nodes[i].version, w.nodes[i].pods = 1, 1
	}
	k := &kind{gpus: 2, milli: 1000}
	s, ok, err := (&scan{rule: gpuPacking{}, world: w, known: make([][]opinion, 1)}).place(k)
	if err != nil || !ok || s.node != 1 || !s.gpus.Has(0) || !s.gpus.Has(2) || s.gpus.Count() != 2 {
		t.Errorf("got %+v, %v, %v", s, ok, err)
	}
}

// TestScoresAreKeptWhileTheyHold: a node that changed is scored again.
func TestScoresAreKeptWhileTheyHold(t *testing.T) {
	c, w := drawn(t, 3, 20, 60)
	typical := newTypical(w)
	for _, p := range policies() {
		if p.strategy != "" || p.name == "randomFit" {
			continue
		}
		o, err := newOrder(w, c, 5, 1.3)
		if err != nil {
			t.Fatal(err)
		}
		now := newWorld(c, o)
		kept, err := p.placer(c, w, o, now, typical)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range o.pods {
			fresh, err := p.placer(c, w, o, now, typical)
			if err != nil {
				t.Fatal(err)
			}
			k := &w.kinds[id]
			s, ok, _ := kept.place(k)
			want, is, _ := fresh.place(k)
			if s != want || ok != is {
				t.Fatalf("%s: %+v with what was kept, %+v without", p.name, s, want)
			}
			if ok {
				if err := now.take(k, s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

package placement

import (
	"math"
	"slices"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

func TestDefaultMixBringsEachSizeEqually(t *testing.T) {
	sizes := map[int]bool{}
	for _, e := range DefaultMix() {
		size := e.GPUs*cluster.Full + e.Milli
		sizes[size] = true
		if got := e.Weight * float64(size); got != 8*cluster.Full {
			t.Errorf("kind of %d thousandths: brings %v", size, got)
		}
	}
	for _, size := range []int{500, 1000, 2000, 4000, 8000} {
		if !sizes[size] {
			t.Errorf("no kind of %d thousandths", size)
		}
	}
}

func TestDemandMergesAndDrops(t *testing.T) {
	e := Expected{GPUs: 2, Resources: cluster.Vector{1000, 1 << 30, 1}, Weight: 1}
	same, cpuOnly, unweighted, product, whole := e, e, e, e, e
	cpuOnly.GPUs = 0
	unweighted.Weight = math.NaN()
	product.Product, whole.Product = "B|A", "A|B"
	whole.GPUs, whole.Milli = 0, 1000
	d := newDemand([]Expected{e, same, cpuOnly, unweighted, product, whole})
	if len(d.groups) != 2 || len(d.groups[0].kinds) != 1 || len(d.groups[1].kinds) != 2 {
		t.Fatalf("groups %+v", d.groups)
	}
	if got := d.groups[0].kinds[0].weight; got != 0.5 || d.weight != 1 {
		t.Errorf("the merged kind weighs %v of %v, want 0.5 of 1", got, d.weight)
	}
	if got := d.groups[1].kinds[1]; got.gpus != 1 || got.milli != 0 {
		t.Errorf("1000 thousandths are %+v, want one GPU", got)
	}
}

func TestMixIsReadOnceAndEmptyMeansDefault(t *testing.T) {
	s := DefaultScoring()
	if first := s.ready(); first != s.ready() {
		t.Error("made ready twice")
	}
	if kinds := s.ready().groups[0].kinds; len(kinds) != len(DefaultMix()) {
		t.Errorf("%d kinds, want those of the default", len(kinds))
	}
	for name, mix := range map[string][]Expected{
		"no weight": {{GPUs: 1}},
		"no GPU":    {{Resources: cluster.Vector{1000}, Weight: 1}},
	} {
		c := candidate(8, 0, 1, func(c *Candidate) { c.Scoring.Mix = mix })
		if got := (FragmentationAware{}).Score(c); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWithSupply(t *testing.T) {
	product := func(p string) func(*cluster.Node) { return func(n *cluster.Node) { n.GPU.Product = p } }
	s := world(
		nodeSpec{name: "a", gpus: 8, used: 8, edit: product("A")},
		nodeSpec{name: "b", gpus: 4, edit: product("B")},
		nodeSpec{name: "c", gpus: 4, edit: product("C")},
		nodeSpec{name: "gone", gpus: 8, edit: func(n *cluster.Node) { n.Ready = false }},
		nodeSpec{name: "cpu"},
	)
	for _, c := range []struct {
		kind Expected
		want float64
	}{
		{Expected{GPUs: 1}, 1},
		{Expected{GPUs: 8}, 0.5},
		{Expected{GPUs: 16}, 0},
		{Expected{Milli: 500, Product: "B"}, 0.25},
		{Expected{GPUs: 4, Product: "B|C"}, 0.5},
		{Expected{GPUs: 1, Product: "D"}, 0},
		{Expected{GPUs: 1, Resources: cluster.Vector{65000}}, 0},
		{Expected{GPUs: 1, Resources: cluster.Vector{0, 0, 0, 99}}, 1}, // the GPU's own entry is ignored
	} {
		if got := WithSupply([]Expected{c.kind}, s, gpuResource); got[0].Supply != c.want {
			t.Errorf("%+v: supply %v, want %v", c.kind, got[0].Supply, c.want)
		}
	}
	if got := WithSupply(DefaultMix(), world(), gpuResource); slices.ContainsFunc(got, func(e Expected) bool { return e.Supply != 0 }) {
		t.Errorf("a cluster without nodes: %+v, want no supply known", got)
	}
}

// What the trace of FGD taught, one case each.
func TestFragmentationAwareKeepsWhatOthersNeed(t *testing.T) {
	shared := func(shares ...int16) func(*cluster.Node) {
		return func(n *cluster.Node) { n.Board, n.Shares = board(t, gpu.Wiring{Count: 2}), shares }
	}
	busy := func(cores int64) func(*cluster.Node) {
		return func(n *cluster.Node) { n.Used[cluster.CPU] = cores * 1000 }
	}
	product := func(p string) func(*cluster.Node) { return func(n *cluster.Node) { n.GPU.Product = p } }
	share := func(milli int) func(*Shape) {
		return func(p *Shape) { p.GPUs, p.Milli, p.Resources[gpuResource] = 0, milli, 0 }
	}
	one := func(e Expected) []Expected { e.Weight = 1; return []Expected{e} }
	for _, c := range []struct {
		name  string
		mix   []Expected
		nodes []nodeSpec
		pod   func(*Shape)
		want  string
	}{
		{
			"a pod without GPUs keeps away from them", nil,
			[]nodeSpec{{name: "gpu", gpus: 8}, {name: "none"}}, func(p *Shape) { p.GPUs = 0 }, "none",
		},
		{
			"a small share fills a small gap", one(Expected{Milli: 810}),
			[]nodeSpec{{name: "half", gpus: 2, edit: shared(500, 0)}, {name: "gap", gpus: 2, edit: shared(810, 0)}}, share(160), "gap",
		},
		{
			"a hungry pod goes where CPUs are left over", one(Expected{GPUs: 1, Resources: cluster.Vector{8000}}),
			[]nodeSpec{{name: "tight", gpus: 8}, {name: "ample", gpus: 8, used: 6, edit: busy(16)}},
			func(p *Shape) { p.Resources[cluster.CPU] = 16000 }, "ample",
		},
		{
			"anybody's pod leaves rare GPUs to those who need them",
			[]Expected{{GPUs: 1, Weight: 9}, {GPUs: 1, Product: "rare", Weight: 1}},
			[]nodeSpec{{name: "rare", gpus: 2, edit: product("rare")}, {name: "usual", gpus: 8, edit: product("usual")}}, nil, "usual",
		},
		{
			"a pod goes where nobody else could", one(Expected{GPUs: 4}),
			[]nodeSpec{{name: "whole", gpus: 4}, {name: "rest", gpus: 8, used: 5}}, nil, "rest",
		},
	} {
		s := world(c.nodes...)
		scoring := DefaultScoring()
		scoring.Mix = WithSupply(c.mix, s, gpuResource)
		r := ask(1, 1, func(r *Request) { r.Strategy = "fragmentationAware" })
		if pod := &r.Groups[0].Pod; c.pod != nil {
			c.pod(pod)
			pod.Resources[gpuResource] = pod.GPUs
		}
		d, err := Plan(s, r, Options{Scoring: scoring})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Nodes(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
	}
}

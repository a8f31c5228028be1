package placement

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// tb is what testing and rapid have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
}

func board(t tb, w gpu.Wiring) *gpu.Board {
	t.Helper()
	b, err := gpu.NewBoard(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mixedBoard has a pair of GPUs of every kind: 0 and 1 share a switch and 18 links, 0 and 2 two
// switches and 9 links, 0 and 3 a host bridge, 1 and 2 a NUMA node; 1 and 3 are on two
// sockets. Nothing is known of the path between 2 and 3.
func mixedBoard(t tb, numa []int) *gpu.Board {
	const self, none = gpu.SELF, gpu.UnknownPCIe
	return board(t, gpu.Wiring{
		Links: [][]int{{0, 18, 9, 0}, {18, 0, 0, 0}, {9, 0, 0, 0}, {0, 0, 0, 0}},
		PCIe: [][]gpu.PCIe{
			{self, gpu.PIX, gpu.PXB, gpu.PHB},
			{gpu.PIX, self, gpu.NODE, gpu.SYS},
			{gpu.PXB, gpu.NODE, self, none},
			{gpu.PHB, gpu.SYS, none, self},
		},
		NUMA: numa,
	})
}

// candidate is a node with so many GPUs, some in use, for a pod of ask's size.
func candidate(gpus, used, wanted int64, edits ...func(*Candidate)) *Candidate {
	n := nodeSpec{name: "n", gpus: gpus, used: used}.node()
	c := &Candidate{
		Node:     n,
		Pod:      &ask(1, wanted).Groups[0].Pod,
		FreeGPUs: gpus - used,
		Scoring:  DefaultScoring(),
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func TestTopologyTermOfAPair(t *testing.T) {
	numa := []int{0, 0, 0, 1}
	for _, c := range []struct {
		set                gpu.Mask
		numa               []int
		nvlink, same, pcie float64
	}{
		{gpu.MaskOf(0, 1), numa, 100, 90, 80}, // one switch
		{gpu.MaskOf(0, 2), numa, 75, 85, 80},  // PXB
		{gpu.MaskOf(1, 2), numa, 50, 75, 60},  // NODE
		{gpu.MaskOf(0, 3), numa, 50, 60, 55},  // PHB, told to be on two NUMA nodes
		{gpu.MaskOf(1, 3), numa, 50, 50, 55},  // SYS
		{gpu.MaskOf(2, 3), numa, 50, 50, 55},  // path unknown
		{gpu.MaskOf(0, 1), nil, 100, 90, 80},  // a switch is in one NUMA node
		{gpu.MaskOf(1, 2), nil, 50, 75, 60},   // NODE says so itself
		{gpu.MaskOf(1, 3), nil, 50, 50, 50},   // SYS: how many is not known
		{gpu.MaskOf(2, 3), nil, 50, 50, 50},   // nothing is known
	} {
		got := map[Preference]float64{}
		for _, prefer := range []Preference{AnyGPUs, PreferNVLink, PreferNUMA, PreferPCIe} {
			got[prefer] = topologyTerm(candidate(4, 0, 2, func(k *Candidate) {
				k.Node.Board, k.Whole = mixedBoard(t, c.numa), c.set
				k.Pod.Prefer = prefer
			}))
		}
		want := map[Preference]float64{AnyGPUs: 50, PreferNVLink: c.nvlink, PreferNUMA: c.same, PreferPCIe: c.pcie}
		for prefer, value := range want {
			if got[prefer] != value {
				t.Errorf("%v, NUMA %v, prefer %q: %v, want %v", c.set, c.numa, prefer, got[prefer], value)
			}
		}
	}
}

func TestTopologyTermIsNeutralWhereNothingCanBeCompared(t *testing.T) {
	for name, edit := range map[string]func(*Candidate){
		"one GPU":        func(c *Candidate) { c.Pod.GPUs = 1 },
		"a share":        func(c *Candidate) { c.Pod.GPUs, c.Pod.Milli = 0, 500 },
		"MIG":            func(c *Candidate) { c.Pod.MIG = []string{"1g.10gb"} },
		"no GPU":         func(c *Candidate) { c.Pod.GPUs = 0 },
		"unknown inside": func(c *Candidate) { c.Node.Board = nil },
		"set taken":      func(c *Candidate) { c.Whole = gpu.MaskOf(0) },
		"not GPUs":       func(c *Candidate) { c.Pod.GPUResourceName = "nvidia.com/mig-1g.10gb" },
		"absurd":         func(c *Candidate) { c.Pod.GPUs = math.MaxInt64 },
		"no links known": func(c *Candidate) { c.Node.Board = board(t, gpu.Wiring{Count: 4}) },
	} {
		c := candidate(4, 0, 2, func(c *Candidate) {
			c.Node.Board, c.Whole, c.Pod.Prefer = mixedBoard(t, nil), gpu.All(4), PreferNVLink
		})
		if got := topologyTerm(c); got != 100 {
			t.Fatalf("without the edit: %v, want 100", got)
		}
		edit(c)
		if got := topologyTerm(c); got != neutral {
			t.Errorf("%s: %v, want 50", name, got)
		}
	}
}

// The node has 64 cores, 1 TiB and 8 GPUs; the pod takes a core, 1 GiB and so many GPUs.
func TestResourcesAndBalance(t *testing.T) {
	const tib = 1 << 40
	for _, c := range []struct {
		name               string
		used, wanted       int64
		edit               func(*Candidate)
		resources, balance float64
	}{
		{"empties the node", 0, 8, nil, 50 + 25*(1./64+1./1024), 100 - 100*deviation(1./64, 1./1024, 1)},
		{"fills it", 4, 4, func(c *Candidate) { c.Node.Used = cluster.Vector{63000, tib - 1<<30, 0, 4} }, 100, 100},
		{"half of all", 0, 4, func(c *Candidate) { c.Pod.Resources = cluster.Vector{32000, tib / 2, 1, 4} }, 50, 100},
		{"GPUs only", 2, 2, func(c *Candidate) { c.Pod.Resources = cluster.Vector{0, 0, 0, 2} }, 50, 100 - 100*deviation(0, 0, 0.5)},
		{"CPU only", 8, 0, func(c *Candidate) { c.Pod.Resources = cluster.Vector{16000, 0, 1} }, 25, 100 - 100*deviation(0.25, 0, 1)},
		{"nothing", 0, 0, func(c *Candidate) { c.Pod.Resources = nil }, 50, 100},
		{"two pods before", 0, 2, func(c *Candidate) {
			c.Pod.Resources = cluster.Vector{16000, tib / 4, 1, 2}
			c.Placed, c.FreeGPUs = 2, 4
		}, 75, 100},
		{"half a GPU beside another half", 0, 0, func(c *Candidate) {
			c.Pod.Resources, c.Pod.Milli = nil, 500
			c.Node.Board, c.Node.Shares, c.Whole = dgx(t), []int16{500}, gpu.All(8).Without(0)
		}, 12.5, 100 - 100*deviation(0, 0, 0.125)},
		{"no resources at all", 0, 0, func(c *Candidate) { c.Node.Allocatable = nil }, 50, 50},
	} {
		k := candidate(8, c.used, c.wanted)
		if c.edit != nil {
			c.edit(k)
		}
		terms := nodeTerms(k)
		if got := terms[1].Value; math.Abs(got-c.resources) > 1e-9 {
			t.Errorf("%s: resources %v, want %v", c.name, got, c.resources)
		}
		if got := terms[2].Value; math.Abs(got-c.balance) > 1e-9 {
			t.Errorf("%s: balance %v, want %v", c.name, got, c.balance)
		}
	}
}

// deviation is the standard deviation, the textbook's way.
func deviation(xs ...float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	n := float64(len(xs))
	return math.Sqrt(max(0, squares/n-sum*sum/n/n))
}

func TestHint(t *testing.T) {
	for want, hints := range map[float64]map[string]float64{
		50:  {"other": 90},
		90:  {"n": 90},
		100: {"n": math.Inf(1)},
		0:   {"n": -3},
	} {
		c := candidate(8, 0, 1, func(c *Candidate) { c.Scoring.Hint = hints })
		if got := nodeTerms(c)[3]; got.Name != "hint" || got.Value != want {
			t.Errorf("%v: %+v, want %v", hints, got, want)
		}
	}
}

func TestMean(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		weights []float64
		want    float64
	}{
		{[]float64{40, 35, 25}, 0.40*100 + 0.35*60 + 0.25*20},
		{[]float64{1, 0, 0}, 100},
		{[]float64{0, 0, 0}, 50},
		{[]float64{nan, inf, -1}, 50},
		{[]float64{nan, inf, 2}, 20},
		{[]float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, 60},
		{[]float64{math.SmallestNonzeroFloat64, 0, 0}, 100},
	} {
		terms := []Term{{Value: 100}, {Value: 60}, {Value: 20}}
		for i := range terms {
			terms[i].Weight = c.weights[i]
		}
		if got := mean(terms); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.weights, got, c.want)
		}
	}
}

// odd are numbers that nobody should send, and somebody will.
func odd(t *rapid.T, name string) float64 {
	return rapid.SampledFrom([]float64{
		0, 1, 40, 1e-300, -1, 1e308, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1),
	}).Draw(t, name)
}

// amounts are what a node may claim to have, and a pod to want.
func amounts(t *rapid.T, name string) cluster.Vector {
	return rapid.SliceOfN(rapid.SampledFrom([]int64{
		0, 1, 8, 64000, 1 << 40, math.MaxInt64, -1, math.MinInt64,
	}), 0, 5).Draw(t, name)
}

// oddCandidate draws a node, a pod and weights as broken as they come.
func oddCandidate(t *rapid.T) *Candidate {
	s := &Scoring{
		Node:   NodeWeights{odd(t, "topology"), odd(t, "resources"), odd(t, "balance"), odd(t, "hint")},
		Domain: DomainWeights{odd(t, "availability"), odd(t, "alignment"), odd(t, "utilization"), odd(t, "history")},
		Hint:   map[string]float64{"n": odd(t, "opinion")},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "kinds") {
		s.Mix = append(s.Mix, Expected{
			Resources: amounts(t, fmt.Sprint("kind ", i)),
			GPUs:      rapid.SampledFrom([]int{0, 1, 8, math.MaxInt}).Draw(t, "kind's GPUs"),
			Milli:     rapid.SampledFrom([]int{0, 1, 500, 1000, math.MaxInt}).Draw(t, "kind's share"),
			Product:   rapid.SampledFrom([]string{"", "A", "A|B", "|"}).Draw(t, "product"),
			Weight:    odd(t, "weight"),
			Supply:    odd(t, "supply"),
		})
	}
	m := &cluster.Machine{Name: "n", Allocatable: amounts(t, "allocatable")}
	m.GPU.Replicas = rapid.SampledFrom([]int{0, 1, 3, math.MaxInt}).Draw(t, "replicas")
	c := &Candidate{
		Node:     &cluster.Node{Machine: m, Used: amounts(t, "used")},
		FreeGPUs: rapid.SampledFrom([]int64{0, 1, 8, math.MaxInt64, -1}).Draw(t, "free"),
		Placed:   rapid.SampledFrom([]int{0, 1, 7, maxPods}).Draw(t, "placed"),
		Scoring:  s,
		Pod: &Shape{
			Resources:   amounts(t, "wanted"),
			GPUResource: rapid.IntRange(-1, 4).Draw(t, "GPU resource"),
			GPUs:        rapid.SampledFrom([]int64{0, 1, 2, 8, 64, math.MaxInt64}).Draw(t, "GPUs"),
			Milli:       rapid.SampledFrom([]int{0, 1, 500, 999, 1000}).Draw(t, "share"),
			Prefer:      rapid.SampledFrom([]Preference{AnyGPUs, PreferNVLink, PreferNUMA, PreferPCIe}).Draw(t, "prefer"),
		},
		Opinion:       rapid.Float64Range(0, 100).Draw(t, "opinion of the rules"),
		OpinionWeight: odd(t, "weight of the rules"),
	}
	if rapid.Bool().Draw(t, "inside known") {
		m.Board = mixedBoard(t, rapid.SampledFrom([][]int{nil, {0, -1, 0, 1}}).Draw(t, "NUMA"))
		c.Whole = gpu.Mask(rapid.Uint64().Draw(t, "whole")) & gpu.All(m.Board.Count())
		c.Node.Shares = rapid.SliceOfN(rapid.Int16Range(0, 2000), 0, m.Board.Count()).Draw(t, "shares")
	}
	return c
}

// checkScores returns what is wrong with the scores of a drawn candidate, "" if nothing.
func checkScores(t *rapid.T, terms func(*Candidate) [5]Term, mean func([]Term) float64) string {
	c := oddCandidate(t)
	all := terms(c)
	for _, term := range all {
		if !(term.Value >= 0 && term.Value <= 100) {
			return fmt.Sprintf("%s is %v", term.Name, term.Value)
		}
	}
	if score := mean(all[:]); !(score >= 0 && score <= 100) {
		return fmt.Sprintf("the mean is %v", score)
	}
	for _, s := range Builtin() {
		if score := s.Score(c); math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Sprintf("%s scores %v", s.Name(), score)
		}
	}
	return ""
}

func TestScoresAreNumbersInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkScores(t, nodeTerms, mean); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestScorePropertyFindsMistakes(t *testing.T) {
	plain := func(terms []Term) float64 {
		sum, total := 0.0, 0.0
		for _, term := range terms {
			sum += term.Weight * term.Value
			total += term.Weight
		}
		return sum / total
	}
	edited := func(i int, value func(*Candidate) float64) func(*Candidate) [5]Term {
		return func(c *Candidate) [5]Term {
			terms := nodeTerms(c)
			terms[i].Value = value(c)
			return terms
		}
	}
	for name, broken := range map[string]func(*rapid.T) string{
		"trusts weights": func(t *rapid.T) string { return checkScores(t, nodeTerms, plain) },
		"trusts hints": func(t *rapid.T) string {
			return checkScores(t, edited(3, func(c *Candidate) float64 { return c.Scoring.Hint["n"] }), mean)
		},
		"trusts what is used": func(t *rapid.T) string {
			return checkScores(t, edited(1, func(c *Candidate) float64 {
				return 100 * float64(c.Node.Used.At(0)) / float64(c.Node.Allocatable.At(0))
			}), mean)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) { found = found || broken(t) != "" })
			if !found {
				t.Error("the property holds for a broken score")
			}
		})
	}
}

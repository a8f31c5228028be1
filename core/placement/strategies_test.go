package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

func TestBuiltinStrategies(t *testing.T) {
	want := []string{"binPack", "costOptimized", "fragmentationAware", "leastLoaded", "random", "topologyAware"}
	if got := registry(t).Names(); !slices.Equal(got, want) {
		t.Errorf("built in are %v, want %v", got, want)
	}
}

func TestWhoPacksAndWhoSpreadsShares(t *testing.T) {
	var packs, spreads []string
	for _, s := range Builtin() {
		if p, ok := s.(Packer); ok && p.Packs() {
			packs = append(packs, s.Name())
		}
		if p, ok := s.(ShareChooser); ok && p.SpreadsShares() {
			spreads = append(spreads, s.Name())
		}
	}
	if want := []string{"binPack", "topologyAware"}; !slices.Equal(packs, want) {
		t.Errorf("%v pack, want %v", packs, want)
	}
	if want := []string{"leastLoaded"}; !slices.Equal(spreads, want) {
		t.Errorf("%v spread shares, want %v", spreads, want)
	}
}

// Nodes a, b and c have 8 GPUs: a has 2 of them free, b 5, c all. Node d has 4, all free.
func TestStrategiesRankNodes(t *testing.T) {
	s := world(
		nodeSpec{name: "a", gpus: 8, used: 6}, nodeSpec{name: "b", gpus: 8, used: 3},
		nodeSpec{name: "c", gpus: 8}, nodeSpec{name: "d", gpus: 4},
	)
	for _, c := range []struct {
		strategy string
		gpus     int64
		want     string
	}{
		{"leastLoaded", 1, "c"},
		{"binPack", 1, "a"},
		{"binPack", 2, "a"},
		{"binPack", 3, "d"}, // one left, on b it would be two
		{"binPack", 5, "b"},
		{"topologyAware", 1, "a"}, // nothing is known inside: best fit
		{"topologyAware", 4, "d"},
		{"fragmentationAware", 1, "b"}, // leaves what pods with 1, 2 and 4 can use everywhere
		{"fragmentationAware", 2, "a"},
		{"fragmentationAware", 4, "d"}, // rather than break up a node with 8
		{"fragmentationAware", 8, "c"},
	} {
		d := plan(t, s, ask(1, c.gpus, func(r *Request) { r.Strategy = c.strategy }))
		if got := d.Nodes(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s with %d GPUs: got %v, want %s", c.strategy, c.gpus, got, c.want)
		}
	}
}

// Of two nodes with four free GPUs, the one where these reach each other by NVLink.
func TestTopologyAwareTakesTheBestSet(t *testing.T) {
	links := make([][]int, 8)
	for i := range links {
		links[i] = make([]int, 8)
		for j := range links[i] {
			if i != j && i/4 == j/4 {
				links[i][j] = 6 // two islands of four
			}
		}
	}
	islands := board(t, gpu.Wiring{Links: links})
	node := func(name string, taken gpu.Mask) nodeSpec {
		return nodeSpec{name: name, gpus: 8, used: 4, edit: func(n *cluster.Node) { n.Board, n.Taken = islands, taken }}
	}
	s := world(node("a", gpu.MaskOf(0, 1, 4, 5)), node("b", gpu.MaskOf(0, 1, 2, 3)))
	for prefer, want := range map[Preference]string{PreferNVLink: "b", AnyGPUs: "a"} {
		d := plan(t, s, ask(1, 4, func(r *Request) { r.Strategy = "topologyAware" }, group(func(g *Group) { g.Pod.Prefer = prefer })))
		if got := d.Nodes(); len(got) != 1 || got[0] != want {
			t.Errorf("prefer %q: got %v, want %s", prefer, got, want)
		}
	}
}

// checkFuller returns what is wrong with the order of two nodes that differ in free GPUs only.
func checkFuller(t *rapid.T, score func(*Candidate) float64) string {
	wanted := rapid.Int64Range(1, 8).Draw(t, "wanted")
	used := rapid.Int64Range(0, 8-wanted).Draw(t, "used")
	fuller := rapid.Int64Range(0, 8-wanted).Draw(t, "used on the other")
	a, b := score(candidate(8, used, wanted)), score(candidate(8, fuller, wanted))
	if (used < fuller) != (a < b) || (used == fuller) != (a == b) {
		return fmt.Sprintf("with %d used the score is %v, with %d used %v", used, a, fuller, b)
	}
	return ""
}

func TestFullerNodesAreBetter(t *testing.T) {
	for name, score := range map[string]func(*Candidate) float64{
		"binPack":   BinPack{}.Score,
		"resources": func(c *Candidate) float64 { return nodeTerms(c)[1].Value },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if problem := checkFuller(t, score); problem != "" {
					t.Fatal(problem)
				}
			})
		})
	}
}

// The property must be able to fail.
func TestFullerPropertyFindsMistakes(t *testing.T) {
	for name, score := range map[string]func(*Candidate) float64{
		"spreads":          LeastLoaded{}.Score,
		"sees no GPUs":     func(*Candidate) float64 { return 1 },
		"whole nodes only": func(c *Candidate) float64 { return float64(min(c.FreeGPUs, 4)) },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) { found = found || checkFuller(t, score) != "" })
			if !found {
				t.Error("the property holds for a broken score")
			}
		})
	}
}

// Half of a GPU is in use on b: binPack fills that up, leastLoaded takes an untouched GPU.
func TestSharesOfAGPU(t *testing.T) {
	share := func(name string, shares []int16) nodeSpec {
		return nodeSpec{name: name, gpus: 2, edit: func(n *cluster.Node) {
			n.Board, n.Shares = board(t, gpu.Wiring{Count: 2}), shares
		}}
	}
	s := world(share("a", nil), share("b", []int16{0, 500}))
	for strategy, want := range map[string]string{
		"binPack": "b", "topologyAware": "b", "fragmentationAware": "b",
	} {
		r := ask(1, 0, func(r *Request) { r.Strategy = strategy }, group(func(g *Group) { g.Pod.Milli = 300 }))
		d := plan(t, s, r)
		if got := d.Nodes(); len(got) != 1 || got[0] != want || d.Groups[0].GPUs[0] != gpu.MaskOf(1) {
			t.Errorf("%s: got %v, want GPU 1 of %s", strategy, d.Groups, want)
		}
	}
	d := plan(t, world(share("b", []int16{500, 0})), ask(1, 0, group(func(g *Group) { g.Pod.Milli = 300 })))
	if d.Groups[0].GPUs[0] != gpu.MaskOf(1) {
		t.Errorf("leastLoaded: got %v, want the untouched GPU 1", d.Groups[0].GPUs)
	}
}

func TestScoresAllocateNothing(t *testing.T) {
	for name, c := range benchCandidates(t) {
		for _, s := range Builtin() {
			if n := testing.AllocsPerRun(100, func() { s.Score(c) }); n != 0 {
				t.Errorf("%s, %s: %v allocations a score", s.Name(), name, n)
			}
		}
	}
}

// benchCandidates are a pod with 2 GPUs and one with a share, on a node with 8 GPUs of which
// two are shared already and two are taken, with the default mix and with one of 100 kinds.
func benchCandidates(t testing.TB) map[string]*Candidate {
	many := DefaultScoring()
	for i := range 100 {
		e := Expected{Resources: cluster.Vector{int64(1000 * (i%12 + 1)), int64(i+1) << 28}, Weight: 1, Supply: 0.5}
		if i%3 == 0 {
			e.GPUs = 1 + i%8
		} else {
			e.Milli = 5 * (i + 1)
		}
		if i%10 == 0 {
			e.Product = "A"
		}
		many.Mix = append(many.Mix, e)
	}
	candidates := map[string]*Candidate{}
	for name, scoring := range map[string]*Scoring{"default": DefaultScoring(), "100kinds": many} {
		for pod, milli := range map[string]int{"whole": 0, "share": 300} {
			c := candidate(8, 2, 2, func(c *Candidate) {
				c.Scoring = scoring
				c.Node.Board, c.Node.Taken, c.Node.Shares = dgx(t), gpu.MaskOf(0, 1), []int16{0, 0, 500, 190}
				c.Whole = c.Node.WholeGPUs()
				c.Pod.Prefer = PreferNVLink
				if milli > 0 {
					c.Pod.GPUs, c.Pod.Milli = 0, milli
				}
			})
			candidates[fmt.Sprintf("mix=%s/pod=%s", name, pod)] = c
		}
	}
	return candidates
}

func BenchmarkScore(b *testing.B) {
	candidates := benchCandidates(b)
	for _, s := range Builtin() {
		for _, name := range slices.Sorted(maps.Keys(candidates)) {
			b.Run(fmt.Sprintf("strategy=%s/%s", s.Name(), name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Score(candidates[name])
				}
			})
		}
	}
}

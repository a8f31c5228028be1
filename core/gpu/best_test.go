package gpu

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// bestFunc is what the properties are about, so that broken variants can be put in its place.
type bestFunc func(b *Board, free Mask, k int, include Mask) (Mask, bool)

// divide calls yield with every way to divide the GPUs into sets of k, and one of what is left
// over. The parts are in the order of their lowest GPUs.
func divide(gpus []int, k int, parts []Mask, yield func([]Mask)) {
	if len(gpus) == 0 {
		yield(parts)
		return
	}
	var choose func(part Mask, next, size int)
	rest := func(part Mask) {
		var left []int
		for _, i := range gpus {
			if !part.Has(i) {
				left = append(left, i)
			}
		}
		divide(left, k, append(parts[:len(parts):len(parts)], part), yield)
	}
	choose = func(part Mask, next, size int) {
		if part.Count() == size {
			rest(part)
			return
		}
		for i := next; i < len(gpus); i++ {
			choose(part.With(gpus[i]), i+1, size)
		}
	}
	if len(gpus) >= k {
		choose(bit(gpus[0]), 1, k)
	}
	if left := len(gpus) % k; left != 0 {
		choose(bit(gpus[0]), 1, left)
	}
}

// bruteBest is the rule of NVIDIA's policy by trying everything.
func bruteBest(b *Board, free Mask, k int, include Mask) (Mask, bool) {
	if free.Count() < k || include&^free != 0 || include.Count() > k {
		return 0, false
	}
	var best []Mask
	value := int32(-1)
	divide(free.Indexes(), k, nil, func(parts []Mask) {
		holds, sum := false, int32(0)
		for _, part := range parts {
			sum += b.score.sum(part)
			holds = holds || part.Count() == k && part&include == include
		}
		if holds && (sum > value || sum == value && sooner(parts, best)) {
			best, value = append([]Mask(nil), parts...), sum
		}
	})
	var chosen Mask
	for _, part := range best {
		if part.Count() == k && part&include == include && (chosen == 0 || b.score.sum(part) > b.score.sum(chosen)) {
			chosen = part
		}
	}
	return chosen, chosen != 0
}

// sooner tells whether NVIDIA's policy comes to the division a before b: in the order of the
// lists of their parts' indexes, where what is missing to a full part comes last.
func sooner(a, b []Mask) bool {
	for p := range min(len(a), len(b)) {
		x, y := a[p].Indexes(), b[p].Indexes()
		for i := range max(len(x), len(y)) {
			switch {
			case i >= len(x):
				return false
			case i >= len(y):
				return true
			case x[i] != y[i]:
				return x[i] < y[i]
			}
		}
	}
	return false
}

// drawWiring draws the wiring of up to most GPUs: anything from nothing told to everything.
func drawWiring(t *rapid.T, most int) Wiring {
	n := rapid.IntRange(1, most).Draw(t, "gpus")
	w := Wiring{Count: n}
	if rapid.Bool().Draw(t, "links told") {
		w.Links = make([][]int, n)
		for i := range w.Links {
			w.Links[i] = make([]int, n)
			for j := range i {
				w.Links[i][j] = rapid.SampledFrom([]int{0, 1, 2, 18}).Draw(t, "links")
				w.Links[j][i] = w.Links[i][j]
			}
		}
	}
	if rapid.Bool().Draw(t, "pcie told") {
		w.PCIe = make([][]PCIe, n)
		for i := range w.PCIe {
			w.PCIe[i] = make([]PCIe, n)
			w.PCIe[i][i] = SELF
			for j := range i {
				w.PCIe[i][j] = PCIe(rapid.IntRange(int(UnknownPCIe), int(PIX)).Draw(t, "pcie"))
				w.PCIe[j][i] = w.PCIe[i][j]
			}
		}
	}
	if rapid.Bool().Draw(t, "numa told") {
		w.NUMA = rapid.SliceOfN(rapid.IntRange(-1, 2), n, n).Draw(t, "numa")
	}
	return w
}

func drawBoard(t *rapid.T, most int) *Board {
	b, err := NewBoard(drawWiring(t, most))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drawChoice draws what is asked of a board.
func drawChoice(t *rapid.T, b *Board) (free Mask, k int, include Mask) {
	gpus := rapid.Permutation(All(b.count).Indexes()).Draw(t, "gpus in the order they are taken")
	free = MaskOf(gpus[rapid.IntRange(0, b.count/2).Draw(t, "used"):]...)
	k = rapid.IntRange(1, b.count).Draw(t, "k")
	if k == 1 && free.Count() > 1 {
		k = 2 // where one is wanted, the rule is our own
	}
	if rapid.Bool().Draw(t, "includes") {
		include = MaskOf(gpus[b.count-rapid.IntRange(0, min(k, free.Count())).Draw(t, "included"):]...)
	}
	return free, k, include
}

// checkBest returns what is wrong with a drawn choice, "" if nothing.
func checkBest(t *rapid.T, best bestFunc) string {
	b := drawBoard(t, 8)
	free, k, include := drawChoice(t, b)
	want, wantOK := bruteBest(b, free, k, include)
	if got, ok := best(b, free, k, include); got != want || ok != wantOK {
		return fmt.Sprintf("%d of %v with %v: got %v %v, want %v %v", k, free, include, got, ok, want, wantOK)
	}
	return ""
}

func TestBestIsNVIDIAsChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkBest(t, (*Board).Best); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestBestPropertyFindsMistakes(t *testing.T) {
	for name, broken := range map[string]bestFunc{
		"greedy": func(b *Board, free Mask, k int, include Mask) (Mask, bool) {
			if free.Count() < k || include&^free != 0 || include.Count() > k {
				return 0, false
			}
			return b.greedy(free, k, include), true
		},
		"the first k": func(b *Board, free Mask, k int, include Mask) (Mask, bool) {
			if free.Count() < k || include&^free != 0 || include.Count() > k {
				return 0, false
			}
			set := include
			for i := range free.Each() {
				if set.Count() < k {
					set = set.With(i)
				}
			}
			return set, true
		},
		"forgets include": func(b *Board, free Mask, k int, _ Mask) (Mask, bool) {
			return b.Best(free, k, 0)
		},
		"takes what is not free": func(b *Board, free Mask, k int, include Mask) (Mask, bool) {
			return b.Best(free|include<<1|1, k, include)
		},
		"links without PCIe": func(b *Board, free Mask, k int, include Mask) (Mask, bool) {
			blind := &Board{count: b.count, links: b.links, score: newPairs(b.count)}
			blind.scorePairs()
			return blind.Best(free, k, include)
		},
		"the lowest of the sets, not of the divisions": func(b *Board, free Mask, k int, include Mask) (Mask, bool) {
			got, ok := b.Best(free, k, include)
			if !ok || k == free.Count() || k == include.Count() {
				return got, ok
			}
			t := b.table(k)
			value := t.value(uint32(free), uint32(include))
			for set := got; set != 0; set = (set - 1) & free {
				if set.Count() == k && set&include == include && t.sums[set]+t.best[free&^set] == value {
					got = set
				}
			}
			return got, ok
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				found = found || checkBest(t, broken) != ""
			})
			if !found {
				t.Error("the property holds for a broken choice")
			}
		})
	}
}

// Beyond 16 GPUs the choice is not NVIDIA's, but it is still k free GPUs with the required ones.
func TestBestOfLargeBoards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBoard(t, MaxGPUs)
		free, k, include := drawChoice(t, b)
		got, ok := b.Best(free, k, include)
		if want := free.Count() >= k && include.Count() <= k; ok != want {
			t.Fatalf("%d of %v with %v: got %v", k, free, include, ok)
		}
		if ok && (got.Count() != k || got&^free != 0 || include&^got != 0) {
			t.Fatalf("%d of %v with %v: got %v", k, free, include, got)
		}
	})
}

// Two islands of 16 with NVLink inside: a job of 16 gets one of them whole.
func TestGreedyFindsTheIslands(t *testing.T) {
	w := Wiring{Links: make([][]int, 32)}
	for i := range w.Links {
		w.Links[i] = make([]int, 32)
		for j := range w.Links[i] {
			if i != j && i%2 == j%2 {
				w.Links[i][j] = 18
			}
		}
	}
	b := board(t, w)
	if got, _ := b.Best(All(32).Without(0), 16, 0); got != 0xaaaaaaaa {
		t.Errorf("got %v, want the odd ones", got)
	}
	if got, _ := b.Best(All(32), 4, MaskOf(6)); got != MaskOf(0, 2, 4, 6) {
		t.Errorf("got %v, want four even ones with 6", got)
	}
	if got := b.MostLinks(16); got != 16*15/2*18 {
		t.Errorf("most links of 16 are %d", got)
	}
}

// What is left over of 5 GPUs in the best division, 0 and 1, has the one that is asked for, but is
// no set of 3.
func TestLeftOverIsNoSet(t *testing.T) {
	b := board(t, Wiring{Links: [][]int{
		{0, 0, 0, 0, 5},
		{0, 0, 1, 1, 0},
		{0, 1, 0, 10, 10},
		{0, 1, 10, 0, 10},
		{5, 0, 10, 10, 0},
	}})
	if got, ok := b.Best(All(5), 3, MaskOf(1)); !ok || got != MaskOf(1, 2, 3) {
		t.Errorf("got %v", got)
	}
}

func TestOneGPUIsTheOneTheRestMissesLeast(t *testing.T) {
	b := board(t, dgx1())
	for _, c := range []struct{ free, want Mask }{
		{All(8), MaskOf(0)},          // all have six links
		{MaskOf(0, 3, 6), MaskOf(6)}, // 0 and 3 are a pair
		{MaskOf(1, 5, 6, 7), MaskOf(1)},
		{MaskOf(4), MaskOf(4)},
	} {
		if got, ok := b.Best(c.free, 1, 0); !ok || got != c.want {
			t.Errorf("of %v: got %v, want %v", c.free, got, c.want)
		}
	}
	if got, _ := b.Best(All(8), 1, MaskOf(5)); got != MaskOf(5) {
		t.Errorf("with 5: got %v", got)
	}
}

func TestBestWithoutLinksKeepsToOneNUMANode(t *testing.T) {
	b := board(t, Wiring{NUMA: []int{0, 1, 0, 1, 0, 1, 0, 1}})
	for _, c := range []struct {
		free Mask
		k    int
		want Mask
	}{
		{All(8), 4, MaskOf(0, 2, 4, 6)},
		{All(8).Without(0), 4, MaskOf(1, 3, 5, 7)},
		{MaskOf(0, 1, 3, 5), 2, MaskOf(3, 5)}, // {0,1} and {3,5} come before {0,3} and {1,5}
		{MaskOf(0, 1, 2, 3, 5), 1, MaskOf(0)}, // from the node that is broken into already
	} {
		if got, _ := b.Best(c.free, c.k, 0); got != c.want {
			t.Errorf("%d of %v: got %v, want %v", c.k, c.free, got, c.want)
		}
	}
}

func TestBestOfNothing(t *testing.T) {
	b := board(t, Wiring{Count: 4})
	for _, c := range []struct {
		free    Mask
		k       int
		include Mask
		want    Mask
		ok      bool
	}{
		{All(4), 0, 0, 0, true},
		{All(4), -1, 0, 0, false},
		{All(4), 5, 0, 0, false},
		{All(64), 5, 0, 0, false},              // the board has four
		{MaskOf(0, 1), 2, MaskOf(2), 0, false}, // not free
		{All(4), 1, MaskOf(0, 1), 0, false},    // more than asked for
		{All(4), 2, 0, MaskOf(0, 1), true},     // nothing to choose by
		{All(4), 3, MaskOf(3), MaskOf(0, 1, 3), true},
	} {
		if got, ok := b.Best(c.free, c.k, c.include); ok != c.ok || got != c.want {
			t.Errorf("%d of %v with %v: got %v %v, want %v %v", c.k, c.free, c.include, got, ok, c.want, c.ok)
		}
	}
}

func TestBoardIsForManyReaders(t *testing.T) {
	b := board(t, nvswitch(8))
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for k := range 9 {
				if _, ok := b.Best(All(8), k, 0); !ok || k > 1 && b.MostLinks(k) != k*(k-1)/2*18 {
					t.Errorf("%d of 8: %v, %d links", k, ok, b.MostLinks(k))
				}
			}
		})
	}
	readers.Wait()
}

func board(t testing.TB, w Wiring) *Board {
	t.Helper()
	b, err := NewBoard(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dgx1 is the hybrid cube mesh of a DGX-1 with Volta: two fours, and a link from each GPU to
// its twin in the other.
func dgx1() Wiring {
	return Wiring{Links: [][]int{
		{0, 1, 1, 2, 2, 0, 0, 0},
		{1, 0, 2, 1, 0, 2, 0, 0},
		{1, 2, 0, 2, 0, 0, 1, 0},
		{2, 1, 2, 0, 0, 0, 0, 1},
		{2, 0, 0, 0, 0, 1, 1, 2},
		{0, 2, 0, 0, 1, 0, 2, 1},
		{0, 0, 1, 0, 1, 2, 0, 2},
		{0, 0, 0, 1, 2, 1, 2, 0},
	}}
}

// nvswitch is a board on which every GPU has 18 links to every other, in two NUMA nodes.
func nvswitch(n int) Wiring {
	w := Wiring{Count: n, Links: make([][]int, n), NUMA: make([]int, n)}
	for i := range n {
		w.Links[i] = make([]int, n)
		w.NUMA[i] = i * 2 / n
		for j := range n {
			if i != j {
				w.Links[i][j] = 18
			}
		}
	}
	return w
}

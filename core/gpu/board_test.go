package gpu

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewBoardNamesTheMistake(t *testing.T) {
	for _, c := range []struct {
		name string
		w    Wiring
		want string
	}{
		{"nothing", Wiring{}, "count is 0, and neither links nor pcie nor numa say how many GPUs there are"},
		{"negative count", Wiring{Count: -1}, "count is -1"},
		{"too many", Wiring{Count: 65}, "count is 65: a node can have at most 64 GPUs"},
		{"too many rows", Wiring{Links: make([][]int, 65)}, "count is 65"},
		{"not symmetric", Wiring{Links: [][]int{{0, 18}, {12, 0}}}, "links[0][1] is 18, links[1][0] is 12: the matrix must be symmetric"},
		{"not square", Wiring{Links: [][]int{{0, 18}, {18}}}, "links[1] has 1 entries, there are 2 GPUs"},
		{"negative links", Wiring{Links: [][]int{{0, -1}, {-1, 0}}}, "links[0][1] is -1: it must be between 0 and 64"},
		{"absurd links", Wiring{Links: [][]int{{0, 1 << 40}, {1 << 40, 0}}}, "links[0][1] is 1099511627776"},
		{"link to itself", Wiring{Links: [][]int{{0, 1}, {1, 4}}}, "links[1][1] is 4: a GPU has no link to itself"},
		{"fewer rows than count", Wiring{Count: 3, Links: [][]int{{0, 1}, {1, 0}}}, "links has 2 rows, there are 3 GPUs"},
		{"empty, not nil", Wiring{Count: 1, PCIe: [][]PCIe{}}, "pcie has 0 rows, there are 1 GPUs"},
		{"pcie not symmetric", Wiring{PCIe: [][]PCIe{{SELF, PIX}, {SYS, SELF}}}, "pcie[0][1] is PIX, pcie[1][0] is SYS"},
		{"pcie diagonal", Wiring{PCIe: [][]PCIe{{PIX}}}, "pcie[0][0] is PIX: the path of a GPU to itself is SELF"},
		{"pcie class", Wiring{PCIe: [][]PCIe{{9}}}, "pcie[0][0] is 9: no such class"},
		{"numa length", Wiring{Count: 2, NUMA: []int{0}}, "numa has 1 entries, there are 2 GPUs"},
		{"numa node", Wiring{NUMA: []int{0, -2}}, "numa[1] is -2"},
		{"lengths disagree", Wiring{Links: [][]int{{0}}, NUMA: []int{0, 0}}, "numa has 2 entries, there are 1 GPUs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewBoard(c.w)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestBoardNamesAllMistakesAtOnce(t *testing.T) {
	_, err := NewBoard(Wiring{Links: [][]int{{1}}, NUMA: []int{-5}})
	if err == nil || !strings.Contains(err.Error(), "links[0][0]") || !strings.Contains(err.Error(), "numa[0]") {
		t.Errorf("got %v", err)
	}
}

func TestBoardKeepsItsOwnCopy(t *testing.T) {
	w := dgx1()
	b := board(t, w)
	w.Links[0][3], w.Links[3][0] = 0, 0
	if got := b.Links(MaskOf(0, 3)); got != 2 {
		t.Errorf("%d links", got)
	}
}

func TestBoardTellsOfASet(t *testing.T) {
	b := board(t, Wiring{
		Links: [][]int{{0, 4, 0}, {4, 0, 2}, {0, 2, 0}},
		PCIe:  [][]PCIe{{SELF, PIX, SYS}, {PIX, SELF, UnknownPCIe}, {SYS, UnknownPCIe, SELF}},
		NUMA:  []int{0, 0, 1},
	})
	for _, c := range []struct {
		set         Mask
		links, numa int
		worst       PCIe
	}{
		{0, 0, 0, UnknownPCIe},
		{MaskOf(2), 0, 1, SELF},
		{MaskOf(0, 1), 4, 1, PIX},
		{MaskOf(0, 2), 0, 2, SYS},
		{MaskOf(1, 2), 2, 2, UnknownPCIe},
		{All(3), 6, 2, UnknownPCIe},
		{MaskOf(0, 1, 7), 4, 0, UnknownPCIe}, // there is no GPU 7
	} {
		if links, numa, worst := b.Links(c.set), b.NUMANodes(c.set), b.WorstPCIe(c.set); links != c.links || numa != c.numa || worst != c.worst {
			t.Errorf("%v: %d links, %d NUMA nodes, %s; want %d, %d, %s", c.set, links, numa, worst, c.links, c.numa, c.worst)
		}
	}
	if b.Count() != 3 || b.MostLinks(2) != 4 || b.MostLinks(3) != 6 || b.MostLinks(4) != 0 || b.MostLinks(-1) != 0 {
		t.Errorf("%d GPUs, most links %d, %d, %d, %d", b.Count(), b.MostLinks(2), b.MostLinks(3), b.MostLinks(4), b.MostLinks(-1))
	}
}

func TestUnknownIsNotBest(t *testing.T) {
	b := board(t, Wiring{Count: 2})
	if b.Links(All(2)) != 0 || b.MostLinks(2) != 0 || b.NUMANodes(All(2)) != 0 || b.WorstPCIe(All(2)) != UnknownPCIe {
		t.Error("a board that was told nothing knows something")
	}
	b = board(t, Wiring{NUMA: []int{0, -1}})
	if b.NUMANodes(All(2)) != 0 || b.NUMANodes(MaskOf(0)) != 1 {
		t.Errorf("NUMA nodes: %d, %d", b.NUMANodes(All(2)), b.NUMANodes(MaskOf(0)))
	}
}

func TestMostLinksIsTheMostOfAnySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBoard(t, 8)
		most := make([]int, b.count+1)
		for set := range All(b.count) + 1 {
			most[set.Count()] = max(most[set.Count()], b.Links(set))
		}
		for k, want := range most {
			if got := b.MostLinks(k); got != want {
				t.Fatalf("of %d: %d, want %d", k, got, want)
			}
		}
	})
}

func TestMask(t *testing.T) {
	m := MaskOf(5, 0, 63, 64, -1)
	if got := m.Indexes(); !slices.Equal(got, []int{0, 5, 63}) {
		t.Errorf("indexes %v", got)
	}
	if m.Count() != 3 || m.Lowest() != 0 || Mask(0).Lowest() != -1 || !m.Has(63) || m.Has(64) || m.Has(1) {
		t.Errorf("%v: %d, lowest %d", m, m.Count(), m.Lowest())
	}
	if got := m.Without(0).With(2).With(99).Without(99); got != MaskOf(2, 5, 63) {
		t.Errorf("got %v", got)
	}
	if All(-1) != 0 || All(0) != 0 || All(3) != 7 || All(64) != ^Mask(0) || All(99) != ^Mask(0) {
		t.Error("All is wrong")
	}
	if got := m.String(); got != "{0,5,63}" {
		t.Errorf("written as %s", got)
	}
	for i := range m.Each() {
		if i != 0 {
			t.Errorf("%d comes first", i)
		}
		break
	}
	if n := testing.AllocsPerRun(100, func() {
		sum := 0
		for i := range m.Each() {
			sum += i
		}
		if sum != 68 {
			t.Errorf("sum %d", sum)
		}
	}); n != 0 {
		t.Errorf("%v allocations a walk", n)
	}
}

func TestParsePCIe(t *testing.T) {
	for s, want := range map[string]PCIe{
		"SELF": SELF, "X": SELF, "PIX": PIX, "pxb": PXB, "PHB\n": PHB, "Node": NODE, "SYS": SYS, "unknown": UnknownPCIe,
	} {
		if got, err := ParsePCIe(s); err != nil || got != want {
			t.Errorf("%q: got %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "NV18", "PCIe(7)", "SY S"} {
		if got, err := ParsePCIe(s); err == nil || got != UnknownPCIe {
			t.Errorf("%q: got %s, %v", s, got, err)
		}
	}
	if SYS >= NODE || NODE >= PHB || PHB >= PXB || PXB >= PIX || PIX >= SELF {
		t.Error("a closer class must be larger")
	}
}

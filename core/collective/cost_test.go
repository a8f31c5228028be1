package collective

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The numbers are worked out by hand from the formulas in the package's documentation.
func TestTimesByHand(t *testing.T) {
	s := network(fatTree(8, 2, 2)...) // leaves of 2 nodes, spines of 2 leaves
	// 40 B/s of uplink, as much as two nodes of two NICs send.
	m := model(t, plain(), s)
	for _, c := range []struct {
		name       string
		seats      []Seat
		bytes      float64
		ring, tree float64
	}{
		{"one rank", whole(1, 0), 1000, 0, 0},
		// 2*1/2*1000/100 + 2*1*1; 2*1000/100/0.92 + 2*log2(2)*1
		{"one node", whole(2, 0), 1000, 10 + 2, 20/.92 + 2},
		// Both NICs: 2*3/4*1000/20. The ring is 1+10+1+10 less 1.
		{"one leaf", whole(2, 0, 1), 1000, 75 + 2*21, 100/.92 + 2*(1+10)},
		// One NIC, no NVLink: the ring is 10+10 less 10.
		{"one leaf, a rank each", whole(1, 0, 1), 1000, 100 + 2*10, 200/.92 + 2*10},
		// One node of one rank leaves one rail to the other.
		{"uneven", []Seat{{0, 2}, {1, 1}}, 1000, 2*2./3*100 + 2*20, 200/.92 + 2*(math.Log2(1.5)+10)},
		// Each edge between the leaves adds two hops.
		{"two leaves", whole(2, 0, 2), 1000, 75 + 2*(1+1+10+10+400-1), 100/.92 + 2*(1+210)},
		{"two spines", whole(2, 0, 4), 1000, 75 + 2*(1+1+10+10+800-1), 100/.92 + 2*(1+410)},
		// Four nodes of two leaves in order: two edges of four cross.
		{"in order", whole(2, 0, 1, 2, 3), 1000, 2*7./8*50 + 2*(4+40+400-1), 100/.92 + 2*(1+2*210)},
		// The same nodes, leaf by leaf in turn: all four edges cross, four flows leave each leaf.
		{"in turn", whole(2, 0, 2, 1, 3), 1000, 2*7./8*50 + 2*(4+40+800-1), 100/.92 + 2*(1+2*210)},
		{"no bytes", whole(2, 0, 1), 0, 42, 22},
		{"fewer than none", whole(2, 0, 1), -5, 42, 22},
	} {
		got := m.Gang(c.seats).AllReduce(c.bytes, nil)
		near(t, c.name+" by ring", got.Ring, c.ring)
		near(t, c.name+" by tree", got.Tree, c.tree)
	}
}

// With 8 B/s of uplink a leaf, what crosses decides.
func TestUplinksByHand(t *testing.T) {
	s := network(fatTree(8, 2, 2)...)
	f := plain()
	f.NVLinkLatency, f.NICLatency, f.HopLatency = 0, 0, 0
	f.Oversubscription = []float64{5} // 2 nodes * 2 NICs * 10 B/s / 5
	m := model(t, f, s)
	inOrder, inTurn := m.Gang(whole(2, 0, 1, 2, 3)), m.Gang(whole(2, 0, 2, 1, 3))
	near(t, "in order", inOrder.AllReduce(1000, nil).Ring, 2*7./8*1000/8)
	near(t, "in turn", inTurn.AllReduce(1000, nil).Ring, 2*2*7./8*1000/8)
	// Trees over 0 1 2 3: 0-2, 2-1, 2-3 and their mirror 3-1, 1-2, 1-0. Four edges cross between
	// {0,1} and {2,3}: 0-2, 2-1, 3-1, 1-2. They bring 500 bytes each.
	near(t, "tree in order", inOrder.AllReduce(1000, nil).Tree, 4*500/8./.92)
	// Between {0,2} and {1,3}, seats 0 and 2, 1 and 3: 2-1, 2-3, 1-2, 1-0.
	near(t, "tree in turn", inTurn.AllReduce(1000, nil).Tree, 4*500/8./.92)

	// Who is on the uplink already takes an equal share for each flow: 6 others beside 2 of one's
	// own leave a quarter.
	load := m.NewLoad()
	load.Add([]Crossing{{Level: 1, Domain: 0, Flows: 6}}, 1)
	near(t, "shared", inOrder.AllReduce(1000, load).Ring, 4*2*7./8*1000/8)
	near(t, "tree shared", inOrder.AllReduce(1000, load).Tree, 4*4*500/8./.92)
	// The ideal is bounded by trees with two edges between the leaves, which no order reaches here.
	near(t, "ideal by ring", m.Ideal(8, 1000).Ring, 2*7./8*1000/8)
	near(t, "ideal by tree", m.Ideal(8, 1000).Tree, 2*500/8./.92)
	near(t, "slowdown", inOrder.Slowdown(1000, nil), 2*7./8*.92)
	near(t, "slowdown shared", inOrder.Slowdown(1000, load), 4*2*7./8*.92)
}

func TestSharedNICs(t *testing.T) {
	s := network(fatTree(4, 2, 2)...)
	f := plain()
	f.Shared = true
	m := model(t, f, s)
	a, b := m.Gang(whole(1, 0, 1)), m.Gang([]Seat{{1, 1}, {0, 1}})
	near(t, "alone", a.AllReduce(1000, nil).Ring, 100+2*10)
	load := m.NewLoad()
	load.Add(b.Crossings(Ring), 1)
	near(t, "two on a NIC", a.AllReduce(1000, load).Ring, 200+2*10)
	near(t, "two on a NIC, by tree", a.AllReduce(1000, load).Tree, 400/.92+2*10)
	load.Remove(b.Crossings(Ring), 1)
	load.Add(b.Crossings(Ring), .5)
	near(t, "half the time", a.AllReduce(1000, load).Ring, 150+2*10)
	// Two whole nodes have no more NIC than two halves.
	near(t, "whole nodes", m.Gang(whole(2, 0, 1)).AllReduce(1000, nil).Ring, 2*3./4*100+2*21)
}

func TestCrossings(t *testing.T) {
	s := network(fatTree(8, 2, 2)...)
	m := model(t, plain(), s)
	for _, c := range []struct {
		name  string
		seats []Seat
		by    Algorithm
		want  []Crossing
	}{
		{"one leaf", whole(2, 0, 1), Ring, nil},
		{"one leaf by tree", whole(2, 0, 1), Tree, nil},
		{"two leaves", whole(2, 0, 2), Ring, []Crossing{{1, 0, 2}, {1, 1, 2}}},
		{"in turn", whole(2, 0, 2, 1, 3), Ring, []Crossing{{1, 0, 4}, {1, 1, 4}}},
		{"two spines", whole(1, 0, 1, 4), Ring, []Crossing{{1, 0, 1}, {1, 2, 1}, {0, 0, 1}, {0, 1, 1}}},
		// 0-2, 2-1 and, shifted, 1-0, 0-2 over the nodes 0, 1 and 4: three edges end at the last.
		{"two spines by tree", whole(1, 0, 1, 4), Tree, []Crossing{{1, 0, .75}, {1, 2, .75}, {0, 0, .75}, {0, 1, .75}}},
	} {
		if got := m.Gang(c.seats).Crossings(c.by); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// NCCL draws this tree in a comment: 0-8, 8-4 and 12, 4-2 and 6, 12-10 and 13, …
func TestParentsAreNCCLs(t *testing.T) {
	want := []int{2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}
	for i, up := range want {
		if got := parent(i+1, 14); got != up {
			t.Errorf("the parent of %d is %d, want %d", i+1, got, up)
		}
	}
}

func TestSeatsAreInOrderOfFirstRanks(t *testing.T) {
	got := Seats([]int{7, 7, 3, 3, 3, 7, 9})
	if want := []Seat{{7, 3}, {3, 3}, {9, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if Seats(nil) != nil {
		t.Error("nobody has a seat")
	}
}

// A node without a leaf is alone in the fabric; one without a spine is in that of its leaf.
func TestNodesOutsideTheTopology(t *testing.T) {
	s := network(place{"", ""}, place{"", ""}, place{"", "l1"}, place{"", "l1"}, place{"s", "l2"}, place{"s", "l2"})
	f := plain()
	m := model(t, f, s)
	ring := func(a, b int) float64 { return m.Gang(whole(1, a, b)).AllReduce(0, nil).Ring }
	near(t, "two without a leaf", ring(0, 1), 2*(10+4*100))
	near(t, "one leaf without a spine", ring(2, 3), 2*10)
	near(t, "one leaf with a spine", ring(4, 5), 2*10)
	near(t, "a leaf without a spine and one with", ring(2, 4), 2*(10+4*100))
}

func TestPickedAlgorithm(t *testing.T) {
	m := model(t, H100NDR(), network(fatTree(1024, 16, 32)...))
	nodes := make([]int, 128)
	for i := range nodes {
		nodes[i] = i
	}
	g := m.Gang(whole(8, nodes...))
	if a := g.AllReduce(1<<20, nil).Algorithm(); a != Tree {
		t.Errorf("1 MiB over 1,024 ranks by %s", a)
	}
	if a := g.AllReduce(16<<30, nil).Algorithm(); a != Ring {
		t.Errorf("16 GiB over 1,024 ranks by %s", a)
	}
}

// The bus bandwidth that nccl-tests print, 2(n-1)/n*S/t, comes near to the NICs' for large data.
func TestBusBandwidthOfLargeGangs(t *testing.T) {
	for _, c := range []struct {
		name   string
		fabric Fabric
		want   float64
	}{{"H100", H100NDR(), 400e9}, {"A100", A100HDR(), 200e9}, {"V100", V100EDR(), 12.5e9}} {
		m := model(t, c.fabric, network(fatTree(16, 16, 1)...))
		const bytes = 64 << 30
		g := m.Gang(whole(8, 0, 1, 2, 3))
		bus := 2 * 31. / 32 * bytes / g.AllReduce(bytes, nil).Best()
		if bus > c.want || bus < .99*c.want {
			t.Errorf("%s: %.1f GB/s, want a little less than %.1f", c.name, bus/1e9, c.want/1e9)
		}
	}
}

func TestIterationSlowdown(t *testing.T) {
	near(t, "a quarter communication, twice as slow", IterationSlowdown(.25, 2), 1.25)
	near(t, "none", IterationSlowdown(0, 7), 1)
	near(t, "more than all", IterationSlowdown(3, 7), 7)
	near(t, "less than none", IterationSlowdown(-1, 7), 1)
}

func TestMistakesAreNamed(t *testing.T) {
	s := network(fatTree(4, 2, 2)...)
	leaf := func(mbps int64, path ...string) cluster.Uplink {
		return cluster.Uplink{Level: 1, Path: path, Mbps: mbps}
	}
	for want, edit := range map[string]func(*Fabric) []cluster.Uplink{
		"0 GPUs":                   func(f *Fabric) []cluster.Uplink { f.GPUs = 0; return nil },
		"NVLink sends -1 bytes":    func(f *Fabric) []cluster.Uplink { f.NVLink = -1; return nil },
		"NIC sends NaN bytes":      func(f *Fabric) []cluster.Uplink { f.NIC = math.NaN(); return nil },
		"latency is -1 seconds":    func(f *Fabric) []cluster.Uplink { f.HopLatency = -1; return nil },
		"cannot be the shorter":    func(f *Fabric) []cluster.Uplink { f.NVLinkLatency = 11; return nil },
		"no routing 7":             func(f *Fabric) []cluster.Uplink { f.Routing = 7; return nil },
		"of level 0 is 0":          func(f *Fabric) []cluster.Uplink { f.Oversubscription = []float64{0}; return nil },
		"leaf s000/x, which has":   func(*Fabric) []cluster.Uplink { return []cluster.Uplink{leaf(1, "s000", "x")} },
		"1 values in its path":     func(*Fabric) []cluster.Uplink { return []cluster.Uplink{leaf(1, "s000")} },
		"l0000 carries 0 Mb/s: it": func(*Fabric) []cluster.Uplink { return []cluster.Uplink{leaf(0, "s000", "l0000")} },
	} {
		f := plain()
		uplinks := edit(&f)
		if _, err := New(f, s, uplinks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
}

// Two nodes of two leaves, hashed over the four links of an uplink. A link with own flows has one of
// them with 6/7, there are 7/4 such links on each of two uplinks.
func TestHashedUplinksByHand(t *testing.T) {
	s := network(fatTree(8, 2, 2)...)
	f := plain()
	f.NVLinkLatency, f.NICLatency, f.HopLatency = 0, 0, 0
	f.Routing = Hashed
	m := model(t, f, s)
	near(t, "in a leaf", m.Gang(whole(2, 0, 1)).AllReduce(1000, nil).Ring, 2*3./4*1000/20)
	two := m.Gang(whole(2, 0, 2))
	fullest := 2 - math.Pow(6./7, 2*7./4)
	near(t, "over two leaves", two.AllReduce(1000, nil).Ring, fullest*2*3./4*1000/20)
	near(t, "by tree", two.AllReduce(1000, nil).Tree, 1000./10/.92) // two edges of a quarter are a flow, on a link of its own
	// With a quarter of the capacity, there is one link.
	f.Oversubscription = []float64{4}
	near(t, "over two links", model(t, f, s).Gang(whole(2, 0, 2)).AllReduce(1000, nil).Ring, 2*2*3./4*1000/20)
	// What others have on the uplink of one leaf is met there only.
	load := m.NewLoad()
	load.Add([]Crossing{{Level: 1, Domain: 0, Flows: 4}}, 1)
	near(t, "shared", two.AllReduce(1000, load).Ring, counted(alike{2, 4, 4, 1}, alike{2, 0, 4, 1})*2*3./4*1000/20)
	// Leaf by leaf, a ring over two leaves is ideal.
	near(t, "ideal", m.Ideal(8, 1000).Ring, m.Gang(whole(2, 0, 1, 2, 3)).AllReduce(1000, nil).Ring)
	near(t, "slowdown", two.Slowdown(1000, nil), min(fullest*2*3./4, 2/.92)/(2*3./4))
}

package collective

import "testing"

// benchGang is 1,024 ranks on 128 nodes of 1,024, over 8 leaves in order.
func benchGang(b *testing.B, r Routing) (*Model, []Seat) {
	f := H100NDR()
	f.Routing = r
	m := model(b, f, network(fatTree(1024, 16, 32)...))
	nodes := make([]int, 128)
	for i := range nodes {
		nodes[i] = i
	}
	return m, whole(8, nodes...)
}

// byRouting runs a benchmark under each routing.
func byRouting(b *testing.B, run func(b *testing.B, r Routing)) {
	for _, r := range []Routing{Adaptive, Hashed} {
		b.Run(r.String(), func(b *testing.B) { run(b, r) })
	}
}

func BenchmarkSeats1024Ranks(b *testing.B) {
	ranks := make([]int, 1024)
	for i := range ranks {
		ranks[i] = i / 8
	}
	b.ReportAllocs()
	for b.Loop() {
		Seats(ranks)
	}
}

func BenchmarkGang1024Ranks(b *testing.B) {
	byRouting(b, func(b *testing.B, r Routing) {
		m, seats := benchGang(b, r)
		b.ReportAllocs()
		for b.Loop() {
			m.Gang(seats)
		}
	})
}

// Others are the gang once more, as much on each leaf.
func BenchmarkSlowdown1024Ranks(b *testing.B) {
	byRouting(b, func(b *testing.B, r Routing) {
		m, seats := benchGang(b, r)
		g, load := m.Gang(seats), m.NewLoad()
		load.Add(g.Crossings(Ring), 1)
		b.ReportAllocs()
		for b.Loop() {
			g.Slowdown(1<<30, load)
		}
	})
}

// Others are another number of flows on each leaf, so that no two cost the same.
func BenchmarkSlowdownUnevenLoad1024Ranks(b *testing.B) {
	byRouting(b, func(b *testing.B, r Routing) {
		m, seats := benchGang(b, r)
		g, load := m.Gang(seats), m.NewLoad()
		for i, c := range g.Crossings(Ring) {
			load.Add([]Crossing{c}, .3*float64(i+1))
		}
		b.ReportAllocs()
		for b.Loop() {
			g.Slowdown(1<<30, load)
		}
	})
}

// BenchmarkStart is what a replay does for each gang that starts: its place, what it costs alone
// and under load, and its flows added to the others'.
func BenchmarkStart1024Ranks(b *testing.B) {
	byRouting(b, func(b *testing.B, r Routing) {
		m, seats := benchGang(b, r)
		load := m.NewLoad()
		b.ReportAllocs()
		for b.Loop() {
			g := m.Gang(seats)
			a := g.AllReduce(1<<30, nil).Algorithm()
			g.Slowdown(1<<30, nil)
			g.Slowdown(1<<30, load)
			load.Add(g.Crossings(a), .3)
			load.Remove(g.Crossings(a), .3)
		}
	})
}

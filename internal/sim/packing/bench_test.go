package packing

import "testing"

// BenchmarkPacking fills a cluster of the size of the published one.
func BenchmarkPacking(b *testing.B) {
	c, w := drawn(b, 1, 1213, 8000)
	for _, name := range []string{ours, untold, "binPack", theirs, "bestFit"} {
		b.Run(name, func(b *testing.B) {
			m := &match{cluster: c, workload: w, typical: newTypical(w), policy: named(name), seed: 42, tune: 1.3}
			placed := 0
			m.placed = func(int, *kind, spot) { placed++ }
			for b.Loop() {
				if _, err := m.play(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(placed)/b.Elapsed().Seconds(), "placements/s")
		})
	}
}

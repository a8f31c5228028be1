package packing

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// BenchmarkPacking fills a cluster of the size of the published one, with as many kinds of pods.
func BenchmarkPacking(b *testing.B) {
	c, few := drawn(b, 1, 1213, 149)
	var pods []trace.Pod
	for i := range 8152 {
		// Some kinds are common, most are rare.
		k := &few.kinds[(i%1000)*(i%1000)/1000*len(few.kinds)/1000]
		pods = append(pods, trace.Pod{Name: fmt.Sprint(i), CPUMilli: k.cpu, MemoryMiB: k.memory, GPUs: k.gpus, Milli: k.milli, Models: k.models, Spec: k.spec})
	}
	w := newTestWorkload(b, c, pods...)
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

package explain

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// BenchmarkExplain is the question of a gang of 16 whole nodes in one leaf of four of 1,024 nodes
// full of small jobs: nothing fits, and everything is tried.
func BenchmarkExplain(b *testing.B) {
	for name, ask := range map[string]struct{ pods, level int }{"a leaf": {4, leaf}, "half the cluster": {512, -1}, "never": {16, leaf}} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(1024)
			for i := range 1024 {
				work := job(fmt.Sprintf("j%04d", i), func(w *cluster.Workload) { w.Priority = int32(i % 3) })
				w.run(work, int64(1+i%7), i)
			}
			q := &Question{Snapshot: w.snapshot(), Request: gangOf(ask.pods, ask.level)}
			q.Request.Priority = 2
			for b.Loop() {
				if _, err := Explain(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func gangOf(pods, level int) *placement.Request { return ask(pods, 8, level) }

package webhook

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkAt500ASecond has each handler answer 500 requests a second, and tells how long
// each took: reading, deciding and writing, without the network.
//
//	go test ./internal/webhook -run - -bench 500 -benchtime 5000x
func BenchmarkAt500ASecond(b *testing.B) {
	const every = 2 * time.Millisecond
	for name, request := range map[string]struct {
		path string
		body []byte
	}{
		"GPUWorkload": {WorkloadPath, review(b, workloadRequest(b, `{modelName: m, parallelism: 64, topology: {required: spine, preferred: leaf}, priorityClassName: there, template: {spec: {containers: [{name: a, image: i, env: [{name: A, value: b}], resources: {limits: {cpu: 4, memory: 32Gi}}}]}}}`, ""))},
		"Pod":         {PodPath, review(b, podRequest(b, `{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}`))},
	} {
		b.Run(name, func(b *testing.B) {
			h, _ := start(b, Limits{PerSecond: 1e6, Burst: 1e6})
			took := make([]time.Duration, b.N)
			var group sync.WaitGroup
			b.ResetTimer()
			begin := time.Now()
			for i := range b.N {
				due := begin.Add(time.Duration(i) * every)
				<-time.After(time.Until(due))
				group.Go(func() {
					start := time.Now()
					if w := post(h, request.path, request.body); w.Code != http.StatusOK {
						b.Error(w.Code)
					}
					took[i] = time.Since(start)
				})
			}
			group.Wait()
			elapsed := b.Elapsed()
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N)/elapsed.Seconds(), "requests/s")
			for _, q := range []struct {
				name string
				at   int
			}{{"p50-ms", b.N / 2}, {"p99-ms", b.N * 99 / 100}, {"max-ms", b.N - 1}} {
				b.ReportMetric(float64(took[q.at].Microseconds())/1000, q.name)
			}
		})
	}
}

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// TestTwoHundredAtOnceOnAThousandNodes submits 200 workloads to 1,000 nodes at once and reports
// how fast they were bound and what the manager needed for it. The figures are a report; what
// is tested is that all of them run and that nothing is oversold.
func TestTwoHundredAtOnceOnAThousandNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a cluster of 1,000 nodes takes a minute")
	}
	const nodes, workloads = 1000, 200
	c := ownCluster(t, fmt.Sprintf("--nodes=%d", nodes))
	ns := c.namespace(t)
	idle := c.scrape(t)

	bound := c.watchBound(t, ns)
	var group errgroup.Group
	group.SetLimit(20)
	start := time.Now()
	created := make([]time.Time, workloads)
	for i := range workloads {
		group.Go(func() error {
			w := gpuWorkload(ns, fmt.Sprintf("w%03d", i), int32(1+i%4), int32(1<<(i%4)), forever)
			created[i] = time.Now()
			return c.Create(t.Context(), w)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if n := bound.count(); n < workloads {
			return fmt.Errorf("%d of %d workloads are bound", n, workloads)
		}
		return c.allRunning(t.Context(), ns, workloads)
	})
	busy := c.scrape(t)
	if n := busy["warp_gpuworkload_scheduled_total"] - idle["warp_gpuworkload_scheduled_total"]; n != workloads {
		t.Errorf("warp_gpuworkload_scheduled_total grew by %.0f for %d workloads", n, workloads)
	}

	var waits []time.Duration
	var last time.Time
	for i := range workloads {
		at := bound.at(fmt.Sprintf("w%03d", i))
		waits = append(waits, at.Sub(created[i]))
		if at.After(last) {
			last = at
		}
	}
	slices.Sort(waits)
	took := last.Sub(start)
	t.Logf("sandbox with %d nodes ready after %s", nodes, c.readyAfter.Round(100*time.Millisecond))
	t.Logf("%d workloads of 1-4 pods bound in %s: %.1f workloads/s", workloads, took.Round(10*time.Millisecond), workloads/took.Seconds())
	t.Logf("create to Scheduled: p50 %s, p99 %s, max %s", waits[workloads/2].Round(10*time.Millisecond), waits[workloads*99/100].Round(10*time.Millisecond), waits[workloads-1].Round(10*time.Millisecond))
	t.Logf("manager: %.0f MiB resident idle, %.0f MiB after; %.2f CPU seconds for the %d workloads",
		idle["process_resident_memory_bytes"]/(1<<20), busy["process_resident_memory_bytes"]/(1<<20),
		busy["process_cpu_seconds_total"]-idle["process_cpu_seconds_total"], workloads)
	t.Logf("decisions: %.0f, mean %.0f µs", busy["warp_placement_duration_seconds_count"], 1e6*busy["warp_placement_duration_seconds_sum"]/busy["warp_placement_duration_seconds_count"])
}

func (c *cluster) allRunning(ctx context.Context, ns string, want int) error {
	var list gpuv1alpha1.GPUWorkloadList
	if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return err
	}
	running := 0
	for _, w := range list.Items {
		if w.Status.Phase == gpuv1alpha1.PhaseRunning {
			running++
		}
	}
	if running < want {
		return fmt.Errorf("%d of %d workloads run", running, want)
	}
	return nil
}

// boundTimes notes when each workload was first seen to be bound whole.
type boundTimes struct {
	mu    sync.Mutex
	times map[string]time.Time
}

func (c *cluster) watchBound(t *testing.T, ns string) *boundTimes {
	t.Helper()
	var none gpuv1alpha1.GPUWorkloadList
	if err := c.List(t.Context(), &none, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	w, err := c.follow(t.Context(), &gpuv1alpha1.GPUWorkloadList{}, none.ResourceVersion, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	b := &boundTimes{times: map[string]time.Time{}}
	go func() {
		for e := range w.ResultChan() {
			w, ok := e.Object.(*gpuv1alpha1.GPUWorkload)
			if !ok || !meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionScheduled) {
				continue
			}
			b.mu.Lock()
			if _, seen := b.times[w.Name]; !seen {
				b.times[w.Name] = time.Now()
			}
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *boundTimes) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.times)
}

func (b *boundTimes) at(name string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.times[name]
}

// scrape reads the manager's metrics: each name's sum over its labels, histograms as their
// _count and _sum.
func (c *cluster) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	response, err := http.Get(c.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				values[name] += m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				values[name] += m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				values[name+"_count"] += float64(m.GetHistogram().GetSampleCount())
				values[name+"_sum"] += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return values
}

package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The names and labels are what dashboards and alerts go by; the documents fix them to the letter.
func TestSeriesHaveTheDocumentedNamesAndCount(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	m.Scheduled("leastLoaded")
	m.Scheduled("leastLoaded")
	m.Failed("RetriesExhausted")
	m.Retried()
	m.Withdrawn()
	m.Waiting(3)
	m.FirstScheduled("leastLoaded", time.Second)
	m.Planned("feasible", time.Millisecond)
	m.Reconciled("gpuworkload", ResultError, time.Millisecond)
	m.Reconciled("gpuworkload", ResultSuccess, time.Millisecond)
	want := `
# HELP controller_reconcile_errors Passes of a controller that ended in an error.
# TYPE controller_reconcile_errors counter
controller_reconcile_errors{controller="gpuworkload"} 1
# HELP warp_gpuworkload_failed_total Failures of GPUWorkloads by reason; a failure that is retried counts, too.
# TYPE warp_gpuworkload_failed_total counter
warp_gpuworkload_failed_total{reason="RetriesExhausted"} 1
# HELP warp_gpuworkload_retries_total Retries of GPUWorkloads after a failure.
# TYPE warp_gpuworkload_retries_total counter
warp_gpuworkload_retries_total 1
# HELP warp_gpuworkload_scheduled_total Gangs of GPUWorkloads of which every pod was bound, by scheduling strategy.
# TYPE warp_gpuworkload_scheduled_total counter
warp_gpuworkload_scheduled_total{strategy="leastLoaded"} 2
# HELP warp_gpuworkload_waiting GPUWorkloads that wait for room now.
# TYPE warp_gpuworkload_waiting gauge
warp_gpuworkload_waiting 3
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "controller_reconcile_errors", "warp_gpuworkload_failed_total",
		"warp_gpuworkload_retries_total", "warp_gpuworkload_scheduled_total", "warp_gpuworkload_waiting"); err != nil {
		t.Error(err)
	}
	for name, series := range map[string]int{
		"warp_gpuworkload_reconcile_duration_seconds": 2, // one for each result
		"controller_reconcile_duration":               1,
		"warp_gpuworkload_time_to_schedule_seconds":   1,
		"warp_placement_duration_seconds":             1,
		"warp_gpuworkload_withdrawn_pods_total":       1,
	} {
		if n, err := testutil.GatherAndCount(r, name); err != nil || n != series {
			t.Errorf("%s: %d series, want %d (%v)", name, n, series, err)
		}
	}
}

func TestTwoSetsInOneRegistryAreRefused(t *testing.T) {
	r := prometheus.NewRegistry()
	if _, err := New(r); err != nil {
		t.Fatal(err)
	}
	if _, err := New(r); err == nil {
		t.Error("the names were registered twice")
	}
}

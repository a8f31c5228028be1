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
	m.FirstScheduled("leastLoaded", 8, time.Second)
	m.Planned("leastLoaded", Feasible, time.Millisecond)
	m.Preempted(EvictedForPriority, 16)
	m.Reconciled("gpuworkload", ResultError, time.Millisecond)
	m.Reconciled("gpuworkload", ResultSuccess, time.Millisecond)
	want := `
# HELP controller_reconcile_errors Passes of a controller that ended in an error.
# TYPE controller_reconcile_errors counter
controller_reconcile_errors{controller="gpuworkload"} 1
# HELP topology_placement_decisions_total Decisions by scheduling strategy and outcome (feasible, infeasible, undecided, invalid). A gang is one decision; one that waits is decided anew whenever there may be room.
# TYPE topology_placement_decisions_total counter
topology_placement_decisions_total{outcome="feasible",strategy="leastLoaded"} 1
# HELP topology_preempted_pods_total Pods evicted for a plan, by reason.
# TYPE topology_preempted_pods_total counter
topology_preempted_pods_total{reason="defragmentation"} 0
topology_preempted_pods_total{reason="priority"} 16
topology_preempted_pods_total{reason="reservation"} 0
# HELP topology_preemptions_total Workloads that lost pods to a plan, by reason (priority, defragmentation, reservation).
# TYPE topology_preemptions_total counter
topology_preemptions_total{reason="defragmentation"} 0
topology_preemptions_total{reason="priority"} 1
topology_preemptions_total{reason="reservation"} 0
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
		"topology_placement_decisions_total", "topology_preemptions_total", "topology_preempted_pods_total",
		"warp_gpuworkload_retries_total", "warp_gpuworkload_scheduled_total", "warp_gpuworkload_waiting"); err != nil {
		t.Error(err)
	}
	for name, series := range map[string]int{
		"warp_gpuworkload_reconcile_duration_seconds": 2, // one for each result
		"controller_reconcile_duration":               1,
		"warp_gpuworkload_time_to_schedule_seconds":   1,
		"warp_placement_duration_seconds":             1,
		"topology_scheduler_latency_seconds":          1,
		"topology_gang_wait_seconds":                  1,
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

// Prometheus' own linter, but for two names that the documents fix to the letter.
func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	m.Scheduled("s")
	m.Failed("r")
	m.FirstScheduled("s", 8, time.Second)
	m.Planned("s", Feasible, time.Millisecond)
	m.Reconciled("c", ResultError, time.Millisecond)
	r.MustRegister(NewCluster(gauges(&world{snapshot: smallCluster()})))
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric != "controller_reconcile_errors" && p.Metric != "controller_reconcile_duration" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestGangsWaitInTheirSizeClass(t *testing.T) {
	for pods, want := range map[int]string{0: "1", 1: "1", 2: "2-8", 8: "2-8", 9: "9-64", 64: "9-64", 65: "65-512", 512: "65-512", 513: "513+"} {
		if got := sizeClass(pods); got != want {
			t.Errorf("%d pods: %s, want %s", pods, got, want)
		}
	}
}

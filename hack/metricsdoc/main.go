// Command metricsdoc writes docs/reference/metrics.md: every metric that the
// product registers, as the registry itself describes it.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

func main() {
	families, err := gather()
	if err != nil {
		fmt.Fprintf(os.Stderr, "metricsdoc: %v\n", err)
		os.Exit(1)
	}
	write(os.Stdout, families)
}

// recorder is a registry that remembers what was registered: a metric with labels
// shows in no scrape before somebody has counted something.
type recorder struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	r.collectors = append(r.collectors, all...)
	r.Registry.MustRegister(all...)
}

// gather registers the product's metrics and returns them with one series each.
func gather() ([]*dto.MetricFamily, error) {
	r := &recorder{Registry: prometheus.NewRegistry()}
	if _, err := telemetry.NewExtender(r); err != nil {
		return nil, err
	}
	if _, err := telemetry.New(r); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	if err := r.Register(telemetry.NewCluster(telemetry.Gauges{World: world{}, Levels: []string{"leaf"}, MaxDomains: 1, Now: time.Now})); err != nil {
		return nil, fmt.Errorf("registering the cluster's metrics: %w", err)
	}
	described := 0
	for _, c := range r.collectors {
		touch(c)
		described += descriptions(c)
	}
	families, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the metrics: %w", err)
	}
	if len(families) != described {
		return nil, fmt.Errorf("%d metrics are registered, %d show: teach touch about the kind that is missing", described, len(families))
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, nil
}

// world is the smallest cluster of which every gauge has something to show.
type world struct{}

func (world) Snapshot() *cluster.Snapshot {
	return cluster.NewSnapshot(1, []cluster.Level{{Name: "leaf"}}, cluster.NewResources("nvidia.com/gpu"), []*cluster.Node{{
		Machine: &cluster.Machine{Name: "node", Path: []string{"leaf-1"}, Allocatable: cluster.Vector{0, 0, 0, 8}},
	}})
}

func (world) Heard() time.Time        { return time.Now() }
func (world) Pending() map[string]int { return map[string]int{"NoRoom": 1} }

// touch makes a metric with labels show one series.
func touch(c prometheus.Collector) {
	// More labels than any metric should have.
	for n := range 10 {
		values := make([]string, n)
		var err error
		switch vec := c.(type) {
		case *prometheus.CounterVec:
			_, err = vec.GetMetricWithLabelValues(values...)
		case *prometheus.GaugeVec:
			_, err = vec.GetMetricWithLabelValues(values...)
		case *prometheus.HistogramVec:
			_, err = vec.GetMetricWithLabelValues(values...)
		case *prometheus.SummaryVec:
			_, err = vec.GetMetricWithLabelValues(values...)
		}
		if err == nil {
			return
		}
	}
}

func descriptions(c prometheus.Collector) int {
	all := make(chan *prometheus.Desc)
	go func() {
		c.Describe(all)
		close(all)
	}()
	n := 0
	for range all {
		n++
	}
	return n
}

func write(w io.Writer, families []*dto.MetricFamily) {
	fmt.Fprint(w, `<!-- Made from internal/telemetry by scripts/generate.sh docs. Do not edit. -->
# Metrics

What gpu-orchestrator publishes about itself on `+"`:8080/metrics`"+`, beside the usual
metrics of controller-runtime (`+"`controller_runtime_*`, `workqueue_*`, `rest_client_*`"+`) and of the Go
runtime.

Times and counters are what one process has seen since it started: of several managers one acts,
and the others' stand still. The gauges of the cluster (`+"`topology_domain_*`, `topology_gpu_*`, `topology_idle_gpus`, `topology_fragmentation_ratio`, `topology_domains`, `topology_pending_workloads`, `topology_snapshot_*`"+`)
are computed at every scrape, by every manager, from the snapshot that decisions are made on: take
`+"`max by (level, domain) (topology_domain_utilization_ratio)`"+` rather than their sum. GPUs are
counted as physical ones: one that is lent to four pods counts once, a MIG instance as its share
of seven compute slices. [Operations](../operations.md#configuration-file) tells how to choose the
levels, and what limits the number of series.

What is told of decisions (`+"`topology_scheduler_latency_seconds`, `topology_placement_decisions_total`, `topology_gang_wait_seconds`, `topology_preemptions_total`, `topology_preempted_pods_total`"+`)
our scheduler publishes as well, beside kube-scheduler's own metrics, where it decides.

A domain is named by its own value (`+"`leaf-003`"+`); where two domains of a level have the same
value, both are named by all their values, outermost first (`+"`zone-a/spine-1/leaf-003`"+`).

| Metric | Type | Labels | What it tells |
| --- | --- | --- | --- |
`)
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+label.GetName()+"`")
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", family.GetName(),
			strings.ToLower(family.GetType().String()), strings.Join(labels, ", "),
			strings.ReplaceAll(family.GetHelp(), "|", `\|`))
	}
}

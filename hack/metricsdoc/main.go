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

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

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

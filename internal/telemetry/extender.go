package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Extender are the series of the scheduler extender. The zero value is of no use; see NewExtender.
type Extender struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	nodes    *prometheus.CounterVec
}

// NewExtender returns the metrics of the extender, registered with r. It fails if one of the names
// is taken.
func NewExtender(r prometheus.Registerer) (*Extender, error) {
	m := &Extender{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "warp_extender_requests_total",
			Help: "Requests to the scheduler extender, by verb (filter, prioritize, preempt, bind) and HTTP code; a binding that was refused has code 200 and outcome refused.",
		}, []string{"verb", "code", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "warp_extender_request_duration_seconds",
			Help:    "Time to answer a request to the scheduler extender, by verb, from the first byte of its body to the last of the answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}, []string{"verb"}),
		nodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "warp_extender_nodes_total",
			Help: "Nodes that kube-scheduler named to the extender, by verb (filter, preempt) and answer (kept, dropped).",
		}, []string{"verb", "answer"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.nodes} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Answered counts a request and how long it took. Outcome is "ok", "refused" or "error".
func (m *Extender) Answered(verb, code, outcome string, took time.Duration) {
	m.requests.WithLabelValues(verb, code, outcome).Inc()
	m.duration.WithLabelValues(verb).Observe(took.Seconds())
}

// Judged counts the nodes of a request that were kept and dropped.
func (m *Extender) Judged(verb string, kept, dropped int) {
	m.nodes.WithLabelValues(verb, "kept").Add(float64(kept))
	m.nodes.WithLabelValues(verb, "dropped").Add(float64(dropped))
}

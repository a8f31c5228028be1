// Package telemetry holds the metrics that the product publishes about itself. Every metric is
// declared here, so that this file and the reference made from it are the whole list.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the product's own series. The zero value is of no use; see New.
type Metrics struct {
	scheduled        *prometheus.CounterVec
	failed           *prometheus.CounterVec
	retries          prometheus.Counter
	reconcile        *prometheus.HistogramVec
	timeToSchedule   *prometheus.HistogramVec
	planDuration     *prometheus.HistogramVec
	withdrawn        prometheus.Counter
	preempted        prometheus.Counter
	moved            prometheus.Counter
	waiting          prometheus.Gauge
	reconcileErrors  *prometheus.CounterVec
	reconcileSeconds *prometheus.HistogramVec
}

// New returns the metrics, registered with r. It fails if one of the names is taken.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		scheduled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "warp_gpuworkload_scheduled_total",
			Help: "Gangs of GPUWorkloads of which every pod was bound, by scheduling strategy.",
		}, []string{"strategy"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "warp_gpuworkload_failed_total",
			Help: "Failures of GPUWorkloads by reason; a failure that is retried counts, too.",
		}, []string{"reason"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "warp_gpuworkload_retries_total",
			Help: "Retries of GPUWorkloads after a failure.",
		}),
		reconcile: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "warp_gpuworkload_reconcile_duration_seconds",
			Help:    "Time of one pass over a GPUWorkload, by result (success, requeue, error).",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"result"}),
		timeToSchedule: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "warp_gpuworkload_time_to_schedule_seconds",
			Help:    "Time from the creation of a GPUWorkload until its first gang was bound whole, by scheduling strategy.",
			Buckets: prometheus.ExponentialBuckets(0.25, 2, 16),
		}, []string{"strategy"}),
		planDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "warp_placement_duration_seconds",
			Help:    "Time the engine took to decide on a gang, by outcome (feasible, infeasible, invalid).",
			Buckets: prometheus.ExponentialBuckets(0.00001, 2, 18),
		}, []string{"outcome"}),
		withdrawn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "warp_gpuworkload_withdrawn_pods_total",
			Help: "Planned pods taken back because the scheduler did not bind them.",
		}),
		preempted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "warp_gpuworkload_preempted_total",
			Help: "GPUWorkloads that made way for one of higher priority.",
		}),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "warp_gpuworkload_moved_total",
			Help: "GPUWorkloads that moved elsewhere to make room for one that waited.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "warp_gpuworkload_waiting",
			Help: "GPUWorkloads that wait for room now.",
		}),
		reconcileErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_reconcile_errors",
			Help: "Passes of a controller that ended in an error.",
		}, []string{"controller"}),
		reconcileSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "controller_reconcile_duration",
			Help:    "Time of one pass of a controller, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"controller"}),
	}
	for _, c := range []prometheus.Collector{
		m.scheduled, m.failed, m.retries, m.reconcile, m.timeToSchedule,
		m.planDuration, m.withdrawn, m.preempted, m.moved, m.waiting, m.reconcileErrors, m.reconcileSeconds,
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Scheduled counts a gang that is bound whole.
func (m *Metrics) Scheduled(strategy string) { m.scheduled.WithLabelValues(strategy).Inc() }

// FirstScheduled records how long a workload waited for its first gang.
func (m *Metrics) FirstScheduled(strategy string, wait time.Duration) {
	m.timeToSchedule.WithLabelValues(strategy).Observe(wait.Seconds())
}

// Failed counts a failure, by its reason.
func (m *Metrics) Failed(reason string) { m.failed.WithLabelValues(reason).Inc() }

// Retried counts a retry.
func (m *Metrics) Retried() { m.retries.Inc() }

// Withdrawn counts a planned pod that was taken back.
func (m *Metrics) Withdrawn() { m.withdrawn.Inc() }

// Preempted counts a workload that made way for another.
func (m *Metrics) Preempted() { m.preempted.Inc() }

// Moved counts a workload that moved to make room for another.
func (m *Metrics) Moved() { m.moved.Inc() }

// Waiting tells how many workloads wait for room.
func (m *Metrics) Waiting(n int) { m.waiting.Set(float64(n)) }

// Planned records how long a decision took and how it came out.
func (m *Metrics) Planned(outcome string, took time.Duration) {
	m.planDuration.WithLabelValues(outcome).Observe(took.Seconds())
}

// Reconciled records one pass of a controller.
func (m *Metrics) Reconciled(controller, result string, took time.Duration) {
	m.reconcile.WithLabelValues(result).Observe(took.Seconds())
	m.reconcileSeconds.WithLabelValues(controller).Observe(took.Seconds())
	if result == ResultError {
		m.reconcileErrors.WithLabelValues(controller).Inc()
	}
}

// The results of a pass, as metrics label them.
const (
	ResultSuccess = "success"
	ResultRequeue = "requeue"
	ResultError   = "error"
)

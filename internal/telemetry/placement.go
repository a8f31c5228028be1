package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is how a decision came out.
type Outcome string

// The outcomes, which are values of the label outcome.
const (
	// Feasible is a plan.
	Feasible Outcome = "feasible"
	// Infeasible is a refusal with its reason: there is no room, or there never can be.
	Infeasible Outcome = "infeasible"
	// Undecided is a search that ended with its budget.
	Undecided Outcome = "undecided"
	// Invalid is a request that contradicts itself or names what is not there.
	Invalid Outcome = "invalid"
)

// UnknownStrategy stands in metrics for every strategy that is not registered: a user may write
// anything there, and each value would be a series for ever.
const UnknownStrategy = "unknown"

// Eviction is why running work was evicted.
type Eviction string

// The reasons for evictions, which are values of the label reason.
const (
	// EvictedForPriority made room for more important work.
	EvictedForPriority Eviction = "priority"
	// EvictedForDefragmentation made room by moving work elsewhere.
	EvictedForDefragmentation Eviction = "defragmentation"
	// EvictedForReservation held more than its time beside a reservation.
	EvictedForReservation Eviction = "reservation"
)

// Placement are the series about decisions, whoever asked for them: the manager, our scheduler
// and the extender publish the same ones, each its own. The zero value is of no use; see
// NewPlacement.
type Placement struct {
	latency     prometheus.Histogram
	decisions   *prometheus.CounterVec
	gangWait    *prometheus.HistogramVec
	preemptions *prometheus.CounterVec
	victims     *prometheus.CounterVec
}

// NewPlacement returns the metrics, registered with r. It fails if one of the names is taken.
func NewPlacement(r prometheus.Registerer) (*Placement, error) {
	p := &Placement{
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "topology_scheduler_latency_seconds",
			Help: "Time from a question for a placement to its answer, whatever that was.",
			// 10 µs to 1.3 s, around the target of 1 ms and the documents' 500 ms.
			Buckets: prometheus.ExponentialBuckets(0.00001, 2, 18),
		}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "topology_placement_decisions_total",
			Help: "Decisions by scheduling strategy and outcome (feasible, infeasible, undecided, invalid). A gang is one decision; one that waits is decided anew whenever there may be room.",
		}, []string{"strategy", "outcome"}),
		gangWait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "topology_gang_wait_seconds",
			Help:    "Time from the creation of a gang until its last pod was bound for the first time, by its number of pods (1, 2-8, 9-64, 65-512, 513+).",
			Buckets: prometheus.ExponentialBuckets(0.25, 2, 16),
		}, []string{"pods"}),
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "topology_preemptions_total",
			Help: "Workloads that lost pods to a plan, by reason (priority, defragmentation, reservation).",
		}, []string{"reason"}),
		victims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "topology_preempted_pods_total",
			Help: "Pods evicted for a plan, by reason.",
		}, []string{"reason"}),
	}
	// What never happened is a zero and not a gap: rates and alerts need the first step, too.
	for _, reason := range []Eviction{EvictedForPriority, EvictedForDefragmentation, EvictedForReservation} {
		p.preemptions.WithLabelValues(string(reason))
		p.victims.WithLabelValues(string(reason))
	}
	return p, register(r, p.latency, p.decisions, p.gangWait, p.preemptions, p.victims)
}

// Decided records one decision. The strategy is one that is registered, or UnknownStrategy.
func (p *Placement) Decided(strategy string, outcome Outcome, took time.Duration) {
	p.latency.Observe(took.Seconds())
	p.decisions.WithLabelValues(strategy, string(outcome)).Inc()
}

// GangBound records how long a gang of so many pods waited from its creation until all of it was
// bound for the first time.
func (p *Placement) GangBound(pods int, wait time.Duration) {
	p.gangWait.WithLabelValues(sizeClass(pods)).Observe(wait.Seconds())
}

// Preempted counts a workload that lost so many pods to a plan.
func (p *Placement) Preempted(reason Eviction, pods int) {
	p.preemptions.WithLabelValues(string(reason)).Inc()
	p.victims.WithLabelValues(string(reason)).Add(float64(pods))
}

// sizeClass puts gangs into a handful of classes, each eight times the one before: they wait for
// different things. A single pod waits for a node, up to eight for part of a leaf, 64 for leaves,
// 512 for a spine.
func sizeClass(pods int) string {
	switch {
	case pods <= 1:
		return "1"
	case pods <= 8:
		return "2-8"
	case pods <= 64:
		return "9-64"
	case pods <= 512:
		return "65-512"
	default:
		return "513+"
	}
}

func register(r prometheus.Registerer, all ...prometheus.Collector) error {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

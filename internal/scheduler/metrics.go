package scheduler

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// newMetrics publishes the series about decisions beside kube-scheduler's own. A second scheduler
// in one process, as tests have, publishes nothing.
func newMetrics() (*telemetry.Placement, error) {
	m, err := telemetry.NewPlacement(legacyregistry.Registerer())
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		m, err = telemetry.NewPlacement(prometheus.NewRegistry())
	}
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// decide asks the engine, and counts what it said.
func (d *desk) decide(ask *state.PodGang, q state.PodsAsked) (placement.Decision, error) {
	start := d.clock.Now()
	answer, err := d.state.PlanPods(ask, q)
	outcome := telemetry.Feasible
	switch {
	case err != nil:
		outcome = telemetry.Invalid
	case answer.Undecided:
		outcome = telemetry.Undecided
	case !answer.Feasible:
		outcome = telemetry.Infeasible
	}
	d.metrics.Decided(d.strategy(ask.Strategy), outcome, d.clock.Since(start))
	return answer, err
}

// strategy names a strategy for metrics: whoever makes pods may write anything there.
func (d *desk) strategy(asked string) string {
	if asked == "" {
		return placement.LeastLoaded{}.Name()
	}
	if _, err := d.state.Strategies().Get(asked); err != nil {
		return telemetry.UnknownStrategy
	}
	return asked
}

// boundAlone counts the wait of a pod without a gang.
func (d *desk) boundAlone(pod *corev1.Pod) {
	if pod.Spec.SchedulingGroup == nil && concerns(pod) {
		d.metrics.GangBound(1, d.clock.Since(pod.CreationTimestamp.Time))
	}
}

// boundWhole counts the wait of a gang, from its first pod on, once all of it is bound for the
// first time. The caller holds the lock.
func (d *desk) boundWhole(g *gang) {
	if g.counted || g.count(bound) < len(g.members) {
		return
	}
	g.counted = true
	d.metrics.GangBound(len(g.members), d.clock.Since(g.since))
}

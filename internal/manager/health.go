package manager

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// loop knows when the control loop last turned. Before its first turn (a standby's never
// comes) it is healthy: there is nothing to stand still.
type loop struct {
	clock clock.PassiveClock
	stall time.Duration
	last  atomic.Int64
}

func newLoop(c clock.PassiveClock, stall time.Duration) *loop {
	return &loop{clock: c, stall: stall}
}

func (l *loop) beat() { l.last.Store(l.clock.Now().UnixNano()) }

// check implements healthz.Checker.
func (l *loop) check(*http.Request) error {
	last := l.last.Load()
	if last == 0 {
		return nil
	}
	if since := l.clock.Since(time.Unix(0, last)); since > l.stall {
		return fmt.Errorf("the control loop has not turned for %s", since.Round(time.Second))
	}
	return nil
}

// addChecks serves /healthz, which fails when the control loop stands still, and /readyz,
// which succeeds once the manager has seen the whole cluster.
func addChecks(mgr ctrl.Manager, l *loop, synced func() bool) error {
	if err := mgr.AddHealthzCheck("control-loop", l.check); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	err := mgr.AddReadyzCheck("caches", func(*http.Request) error {
		if !synced() {
			return errors.New("nodes and pods have not been read completely yet")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

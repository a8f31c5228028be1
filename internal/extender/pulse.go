package extender

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// staleAfter is how long the API server may be out of reach until what is known counts as stale:
	// as long as an agent may be silent.
	staleAfter = 30 * time.Second
	pulseEvery = 5 * time.Second
)

// pulse knows when the API server was last heard of. Informers go on showing what they knew when
// their watch broke; nothing of theirs tells.
type pulse struct {
	clock clock.PassiveClock
	// reach asks the API server for as little as it can.
	reach func(context.Context) error
	last  atomic.Int64
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*pulse) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *pulse) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, p.beat, pulseEvery)
	return nil
}

func (p *pulse) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pulseEvery)
	defer cancel()
	if p.reach(ctx) == nil {
		p.last.Store(p.clock.Now().UnixNano())
	}
}

// check tells whether what the informers show is too old to answer from.
func (p *pulse) check() error {
	last := p.last.Load()
	if last == 0 {
		return errNotSynced
	}
	if since := p.clock.Since(time.Unix(0, last)); since > staleAfter {
		return fmt.Errorf("the API server has not answered for %s: what this replica knows is stale", since.Round(time.Second))
	}
	return nil
}

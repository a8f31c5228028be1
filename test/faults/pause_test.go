package faults

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
)

// elect goes over from one manager to two, of which one leads.
func (s *sweep) elect(ctx context.Context) {
	s.mu.Lock()
	// Who loses the lease ends: that is how it stops to act.
	s.expected = true
	s.mu.Unlock()
	if err := os.WriteFile(s.crew.config, []byte(elected), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := s.crew.kill("manager-a"); err != nil {
		s.t.Fatal(err)
	}
	for _, instance := range []string{"manager-a", "manager-b"} {
		if err := s.crew.start(instance); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.crew.untilLeader(ctx, ""); err != nil {
		s.t.Fatal(err)
	}
}

// pauseAll stops the leader with its writes under way, waits until the other has taken over and
// has acted for a while, and only then lets the writes go, and after them the old leader.
func (s *sweep) pauseAll(ctx context.Context, batch []heldWrite) error {
	instance := batch[0].held.Instance
	before, err := s.crew.leader(ctx)
	if err != nil {
		return err
	}
	if s.leads() != instance {
		// It was replaced already: its writes are late enough as they are.
		for _, h := range batch {
			h.armed.Let(proxy.Forward)
		}
		return nil
	}
	done := s.crew.end(instance)
	if err := s.crew.signal(instance, syscall.SIGSTOP); err != nil {
		// It lost its lease and ended just now; its writes ended with it.
		return nil //nolint:nilerr // it is started again by whoever watches the crew
	}
	_, err = s.crew.untilLeader(ctx, before)
	if err == nil {
		// Long enough for the new leader to read everything and to act on it.
		err = letPass(ctx, 1500*time.Millisecond)
	}
	already := len(s.faults.Journal())
	batch = slices.DeleteFunc(batch, heldWrite.over)
	for _, h := range batch {
		h.armed.Let(proxy.Forward)
	}
	if err == nil {
		err = s.late(ctx, batch, already)
	}
	if e := s.crew.signal(instance, syscall.SIGCONT); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.tally.pauses++
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-time.After(15 * time.Second):
		return fmt.Errorf("%s lost its lease 15 s ago and still runs", instance)
	}
}

// leads is the instance that had its lease renewed last.
func (s *sweep) leads() string {
	journal := s.faults.Journal()
	for i := len(journal) - 1; i >= 0; i-- {
		if r := journal[i]; r.Resource == "leases.coordination.k8s.io" && r.Code >= 200 && r.Code < 300 {
			return r.Instance
		}
	}
	return ""
}

// late waits until the late writes were answered and counts how.
func (s *sweep) late(ctx context.Context, batch []heldWrite, already int) error {
	wanted := make(map[string]int)
	for _, h := range batch {
		wanted[h.held.Instance+h.held.Point.String()]++
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		refused, done := 0, 0
		for _, r := range s.faults.Journal()[already:] {
			if wanted[r.Instance+r.Point] == 0 || r.Fault == "" || !r.Sent {
				continue
			}
			if r.Code >= 200 && r.Code < 300 {
				done++
			} else {
				refused++
			}
		}
		if refused+done < len(batch) {
			return false, nil
		}
		s.mu.Lock()
		s.tally.lateRefused += refused
		s.tally.lateDone += done
		s.mu.Unlock()
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the answers to %d late writes: %w", len(batch), err)
	}
	return nil
}

func letPass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

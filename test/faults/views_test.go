package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// watched are the kinds that a manager watches.
func watched() []string {
	return []string{"pods", "nodes", "jobs.batch", "gpuworkloads.gpu.warp.dev", "gpunodes.gpu.warp.dev"}
}

// viewKind is a way for a watch to go wrong, for as long as a round takes.
type viewKind struct {
	name       string
	begin, end func(f *proxy.Faults, instance, resource string)
}

func viewKinds() []viewKind {
	nothing := func(*proxy.Faults, string, string) {}
	return []viewKind{
		{"frozen", func(f *proxy.Faults, i, r string) { f.Freeze(i, r, 0) }, func(f *proxy.Faults, i, r string) { f.Thaw(i, r, false) }},
		{"missed", func(f *proxy.Faults, i, r string) { f.Freeze(i, r, 0) }, func(f *proxy.Faults, i, r string) { f.Thaw(i, r, true) }},
		{"late", func(f *proxy.Faults, i, r string) { f.DelayWatch(i, r, 1500*time.Millisecond) }, func(f *proxy.Faults, i, r string) { f.DelayWatch(i, r, 0) }},
		{"410", func(f *proxy.Faults, i, r string) { f.EndWatches(i, r, true) }, nothing},
		{"dropped", func(f *proxy.Faults, i, r string) { f.EndWatches(i, r, false) }, nothing},
	}
}

// TestViews has the manager see each kind of object late, in part, or not at all for a while,
// with flows under way. When it sees again, all must be as if it had seen all along, and what it
// knows must be what a fresh manager reads.
func TestViews(t *testing.T) {
	s := newSweep(t, 12, alone)
	ctx := t.Context()
	t.Logf("seed %d", *seed)
	if err := s.crew.start("manager-a"); err != nil {
		t.Fatal(err)
	}
	stop := s.background(ctx)
	residents := s.settleResidents(ctx)
	names := []string{"run", "run", "retry", "suspend", "delete", "reuse-name", "wait", "job-deleted", "withdraw-gang"}
	rounds := 0
	// There are no inventories in this cluster to be late with.
	seen := slices.DeleteFunc(watched(), func(resource string) bool { return strings.HasPrefix(resource, "gpunodes") })
	for _, resource := range seen {
		for _, v := range viewKinds() {
			var plans []plan
			for _, name := range names {
				plans = append(plans, plan{flow: name})
			}
			s.dice.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
			var clock sync.WaitGroup
			clock.Go(func() {
				// In the middle of what the flows do, at another moment in each round.
				_ = letPass(ctx, time.Duration(s.moment())*time.Millisecond)
				v.begin(s.faults, "manager-a", resource)
				_ = letPass(ctx, 2500*time.Millisecond)
				v.end(s.faults, "manager-a", resource)
			})
			s.each(ctx, plans, func(ctx context.Context, l *lane, p plan) {
				if err := s.flow(p).run(ctx, l); err != nil {
					s.fail(p, "with %s %s: %s: %v", resource, v.name, l.namespace, err)
				}
			})
			clock.Wait()
			rounds++
		}
	}
	t.Logf("%d rounds of %d flows", rounds, len(names))
	stop()
	s.finish(ctx, residents, briefly)
}

// moment is up to two seconds, in milliseconds. The source is drawn from under the sweep's lock:
// flows draw from it at the same time.
func (s *sweep) moment() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moments.IntN(2000)
}

// TestTimeTravel restarts the manager against an API server that tells it of a past in which
// every workload of today has a namesake that is long gone, and keeps it there for a while.
func TestTimeTravel(t *testing.T) {
	const instance, count = "manager-a", 6
	s := newSweep(t, count, alone)
	ctx := t.Context()
	// Without it the first list asks for nothing older than now.
	s.crew.env = []string{"KUBE_FEATURE_WatchListClient=false"}
	if err := s.crew.start(instance); err != nil {
		t.Fatal(err)
	}
	stop := s.background(ctx)
	residents := s.settleResidents(ctx)
	var lanes []*lane
	var old, today []*gpuv1alpha1.GPUWorkload
	for i := range count {
		l, err := s.openLane(ctx, i, fmt.Sprintf("travel-%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := l.gang("w", 2, 2, l.here, forever)
		if err := l.Create(ctx, w); err != nil {
			t.Fatal(err)
		}
		lanes, old = append(lanes, l), append(old, w)
	}
	each := func(what func(i int, l *lane) error) {
		t.Helper()
		for i, l := range lanes {
			if err := what(i, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	restart := func() {
		t.Helper()
		if err := errors.Join(s.crew.kill(instance), s.crew.start(instance)); err != nil {
			t.Fatal(err)
		}
	}
	each(func(i int, l *lane) error { return l.untilPhase(ctx, old[i], gpuv1alpha1.PhaseRunning) })
	for _, resource := range watched() {
		s.faults.RememberList(instance, resource)
	}
	restart()
	if _, err := s.crew.scenario(ctx, instance, "residents/asleep"); err != nil {
		t.Fatal(err)
	}
	each(func(i int, l *lane) error { return l.remove(ctx, old[i]) })
	each(func(i int, l *lane) error { return l.gone(ctx, old[i]) })
	each(func(i int, l *lane) error {
		w := l.gang("w", 2, 2, l.here, forever)
		today = append(today, w)
		return l.Create(ctx, w)
	})
	each(func(i int, l *lane) error { return l.untilPhase(ctx, today[i], gpuv1alpha1.PhaseRunning) })
	for _, resource := range watched() {
		s.faults.ReplayList(instance, resource, true)
		s.faults.Freeze(instance, resource, 0)
	}
	restart()
	// In the past, long enough to act on it.
	past, err := s.crew.scenario(ctx, instance, "residents/asleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := letPass(ctx, 4*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, resource := range watched() {
		s.faults.ReplayList(instance, resource, false)
		s.faults.Thaw(instance, resource, false)
	}
	if err := letPass(ctx, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	each(func(i int, l *lane) error {
		if err := l.untilPhase(ctx, today[i], gpuv1alpha1.PhaseRunning); err != nil {
			return err
		}
		if w := today[i]; w.Status.Attempt != 0 {
			return fmt.Errorf("%s/%s was started again: attempt %d, %s", w.Namespace, w.Name, w.Status.Attempt, w.Status.Message)
		}
		return nil
	})
	t.Logf("the manager saw the past: %d bytes of it", len(past))
	each(func(i int, l *lane) error { return l.remove(ctx, today[i]) })
	each(func(i int, l *lane) error { return l.gone(ctx, today[i]) })
	stop()
	s.finish(ctx, residents, briefly)
}

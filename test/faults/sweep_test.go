package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
)

const (
	// recordings is how often each flow is run to learn its writes. What some have and others
	// have not depends on timing.
	recordings = 3
	// tries is how often a plan is run whose write did not come.
	tries = 3
	// together is how long held writes are collected before the process is killed or stopped:
	// each of them is then a fault of its own, and all of them share one restart.
	together = 400 * time.Millisecond
)

// sweep runs every plan.
type sweep struct {
	*rig
	t       *testing.T
	dice    *rand.Rand
	moments *rand.Rand
	started time.Time

	mu         sync.Mutex
	namespaces map[string]plan
	written    map[string][]proxy.Record
	unplanned  map[string]bool
	failures   int
	red        map[string]bool

	lanes    chan int
	serial   atomic.Int64
	active   atomic.Int64
	tally    tally
	gate     chan heldWrite
	expected bool
}

// tally is what the report says.
type tally struct {
	points, comeAndGo, plans, fired, missed int
	requests, kills, pauses, exposures      int
	lateRefused, lateDone                   int
}

type heldWrite struct {
	armed *proxy.Armed
	held  proxy.Held
}

// over tells whether the write stands no longer: the process was killed with another one's.
func (h heldWrite) over() bool {
	select {
	case <-h.armed.Over():
		return true
	default:
		return false
	}
}

// TestSweep puts every write of every flow through every kind of fault. All workloads must end
// as they would have without, and the judge must have seen nothing wrong at any revision.
func TestSweep(t *testing.T) {
	s := newSweep(t, *lanesArg, alone)
	ctx := t.Context()
	t.Logf("seed %d", *seed)
	if err := s.crew.start("manager-a"); err != nil {
		t.Fatal(err)
	}
	stop := s.background(ctx)
	residents := s.settleResidents(ctx)
	plans := s.record(ctx)
	requests, kills, pauses := split(plans)
	s.stage(ctx, "requests", requests, nil)
	s.stage(ctx, "kills", kills, s.killAll)
	if len(pauses) > 0 {
		s.elect(ctx)
		s.stage(ctx, "pauses", pauses, s.pauseAll)
	}
	stop()
	s.finish(ctx, residents, *quietFor)
}

func newSweep(t *testing.T, lanes int, config managerConfig) *sweep {
	t.Helper()
	s := &sweep{
		rig: newRig(t, lanes, config), t: t, dice: rand.New(rand.NewPCG(*seed, 0)), moments: rand.New(rand.NewPCG(*seed, 2)), started: time.Now(),
		namespaces: make(map[string]plan), written: make(map[string][]proxy.Record), unplanned: make(map[string]bool),
		red: make(map[string]bool), lanes: make(chan int, lanes), gate: make(chan heldWrite, 256),
	}
	for i := range lanes {
		s.lanes <- i
	}
	s.faults.Follow(s.wrote)
	return s
}

// wrote notes a write with its flow.
func (s *sweep) wrote(r proxy.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[r.Namespace] = append(s.written[r.Namespace], r)
	// What is written of leases goes wrong in TestLeaders.
	if r.Resource != "leases.coordination.k8s.io" && faultPlans()[row(r)] == nil {
		s.unplanned[row(r)] = true
	}
}

func split(plans []plan) (requests, kills, pauses []plan) {
	for _, p := range plans {
		switch {
		case p.kind.kill:
			kills = append(kills, p)
		case p.kind.pause:
			pauses = append(pauses, p)
		default:
			requests = append(requests, p)
		}
	}
	return requests, kills, pauses
}

// fail notes a failure of a plan with the command that runs it again.
func (s *sweep) fail(p plan, format string, args ...any) {
	s.mu.Lock()
	s.failures++
	s.red[p.String()] = true
	s.mu.Unlock()
	if p.point == "" {
		s.t.Errorf("flow %s: %s", p.flow, fmt.Sprintf(format, args...))
		return
	}
	s.t.Errorf("%s\n    %s\n    again: %s", p, fmt.Sprintf(format, args...), again(p))
}

// record runs every flow without faults, and returns the plans for what they write.
func (s *sweep) record(ctx context.Context) []plan {
	var jobs []plan
	byFlow := make(map[string]*recording)
	var names []string
	for _, f := range flows() {
		wanted := chosen(*flowsArg, f.name) && (*planArg == "" || strings.HasPrefix(strings.TrimSpace(*planArg), f.name+" "))
		if !wanted {
			continue
		}
		byFlow[f.name] = &recording{flow: f.name, seen: make(map[string]int), rows: make(map[string]string)}
		names = append(names, f.name)
		for range recordings {
			jobs = append(jobs, plan{flow: f.name})
		}
	}
	if len(names) == 0 {
		s.t.Fatalf("there is no flow %q%s", *flowsArg, *planArg)
	}
	from := time.Now()
	s.each(ctx, jobs, func(ctx context.Context, l *lane, p plan) {
		if err := s.flow(p).run(ctx, l); err != nil {
			s.fail(p, "without any fault: %v", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		var own []proxy.Record
		for _, r := range s.written[l.namespace] {
			if *allArg || r.At.After(l.own) {
				own = append(own, r)
			}
		}
		byFlow[p.flow].note(own)
	})
	var plans []plan
	for _, name := range names {
		r := byFlow[name]
		all, without := r.plans()
		for _, w := range without {
			s.t.Errorf("no fault plan: %s: say in faultPlans which faults it is put through", w)
		}
		for _, point := range r.points {
			s.tally.points++
			if r.seen[point] < r.runs || progress(point) {
				s.tally.comeAndGo++
			}
		}
		for _, p := range all {
			if p.matches(*planArg) {
				for range *repeat {
					plans = append(plans, p)
				}
			}
		}
	}
	s.dice.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	s.tally.plans = len(plans)
	s.t.Logf("recorded %d write points of %d flows (%d of them come and go) in %s: %d plans",
		s.tally.points, len(names), s.tally.comeAndGo, time.Since(from).Round(time.Second), len(plans))
	if len(plans) == 0 {
		s.t.Fatal("there is nothing to run: no recorded write has this plan")
	}
	return plans
}

func (s *sweep) flow(p plan) flow {
	all := flows()
	return all[slices.IndexFunc(all, func(f flow) bool { return f.name == p.flow })]
}

// each runs something for every plan, as many at a time as there are lanes.
func (s *sweep) each(ctx context.Context, plans []plan, run func(context.Context, *lane, plan)) {
	var group sync.WaitGroup
	for _, p := range plans {
		number := <-s.lanes
		seed := s.dice.Uint64()
		group.Go(func() {
			defer func() { s.lanes <- number }()
			namespace := fmt.Sprintf("f%04d-%s", s.serial.Add(1), p.flow)
			s.mu.Lock()
			s.namespaces[namespace] = p
			s.mu.Unlock()
			s.active.Add(1)
			defer s.active.Add(-1)
			l, err := s.openLane(ctx, number, namespace, rand.New(rand.NewPCG(seed, 1)))
			if err != nil {
				s.fail(p, "opening its lane: %v", err)
				return
			}
			run(ctx, l, p)
			s.clearLane(ctx, l)
		})
	}
	group.Wait()
}

// clearLane takes the lane's workloads away where they would stand in the next one's way.
func (s *sweep) clearLane(ctx context.Context, l *lane) {
	if err := l.clear(ctx); err != nil {
		s.t.Errorf("clearing %s: %v", l.namespace, err)
	}
}

// stage runs plans, and those whose write did not come again. reap is called with the writes
// that are held.
func (s *sweep) stage(ctx context.Context, name string, plans []plan, reap func(context.Context, []heldWrite) error) {
	if len(plans) == 0 {
		return
	}
	from := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if reap != nil {
		go s.reap(ctx, reap)
	}
	left, fired := plans, 0
	for range tries {
		var mu sync.Mutex
		var missed []plan
		s.each(ctx, left, func(ctx context.Context, l *lane, p plan) {
			if s.one(ctx, l, p) {
				mu.Lock()
				fired++
				mu.Unlock()
				return
			}
			mu.Lock()
			missed = append(missed, p)
			mu.Unlock()
		})
		if left = missed; len(left) == 0 {
			break
		}
	}
	for _, p := range left {
		if p.core {
			s.fail(p, "not covered: every recording has this write, and %d runs with a fault plan for it had not", tries)
		}
	}
	s.tally.fired += fired
	s.tally.missed += len(left)
	s.t.Logf("%s: %d plans, %d fired, %d whose write did not come again, in %s", name, len(plans), fired, len(left), time.Since(from).Round(time.Second))
}

// one runs one plan and tells whether its fault was injected. A run whose fault was not is held
// to the same end.
func (s *sweep) one(ctx context.Context, l *lane, p plan) bool {
	armed := s.faults.Arm(l.namespace, p.point, p.kind.action)
	over := make(chan struct{})
	go func() {
		select {
		case h := <-armed.Held():
			s.gate <- heldWrite{armed: armed, held: h}
		case <-over:
		}
	}()
	err := s.flow(p).run(ctx, l)
	close(over)
	fired := s.faults.Disarm(armed)
	armed.Let(proxy.Forward)
	if err != nil {
		s.fail(p, "%s: %v", l.namespace, err)
	}
	if fired && !p.kind.kill && !p.kind.pause {
		s.mu.Lock()
		s.tally.requests++
		s.mu.Unlock()
	}
	return fired
}

// reap collects held writes and hands them on together.
func (s *sweep) reap(ctx context.Context, act func(context.Context, []heldWrite) error) {
	for {
		var batch []heldWrite
		select {
		case h := <-s.gate:
			batch = append(batch, h)
		case <-ctx.Done():
			return
		}
		for timer := time.After(together); timer != nil; {
			select {
			case h := <-s.gate:
				batch = append(batch, h)
			case <-timer:
				timer = nil
			}
		}
		batch = slices.DeleteFunc(batch, heldWrite.over)
		if len(batch) == 0 {
			continue
		}
		s.mu.Lock()
		s.tally.exposures += int(s.active.Load())
		s.mu.Unlock()
		if err := act(ctx, batch); err != nil && ctx.Err() == nil {
			s.t.Errorf("with %d writes held: %v", len(batch), err)
		}
	}
}

// killAll kills the process that waits for the held writes, and starts it again.
func (s *sweep) killAll(_ context.Context, batch []heldWrite) error {
	instance := batch[0].held.Instance
	if err := s.crew.kill(instance); err != nil {
		return err
	}
	for _, h := range batch {
		h.armed.Let(proxy.Drop)
	}
	s.mu.Lock()
	s.tally.kills++
	s.mu.Unlock()
	return s.crew.start(instance)
}

// background does what goes on all the time: foreign pods are made, and managers that ended by
// themselves are noticed and started again.
func (s *sweep) background(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { s.makeBystanders(ctx) })
	group.Go(func() {
		for tick := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-tick:
			case <-ctx.Done():
				return
			}
			for _, instance := range s.crew.crashed() {
				s.mu.Lock()
				expected := s.expected
				s.mu.Unlock()
				if !expected {
					s.t.Errorf("%s ended by itself: see managers.log", instance)
				}
				if err := errors.Join(s.crew.await(instance, time.Second), s.crew.start(instance)); err != nil {
					s.t.Errorf("starting %s again: %v", instance, err)
				}
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// promises runs a short simulation in which everybody tells the truth, and returns how a hold
// starts later than it was to, or how holds come in each other's way; "" if neither.
func promises(r *rand.Rand, decide backfiller, o Options) string {
	m := newSim(smallWorld(), decide, o)
	m.backlog.MaxReservations, m.backlog.MaxWait = 1+r.IntN(4), 1e6*minute
	priorities := int32(1 + r.IntN(2))
	promised := map[string]int{}
	for number := 0; m.now < 60; m.now++ {
		m.end()
		for r.IntN(3) == 0 {
			j := drawJob(r, number)
			j.says, j.priority = exact(j.runs), r.Int32N(priorities)
			number++
			m.arrive(j)
		}
		waited := slices.Clone(m.waits)
		if wrong := m.step(); wrong != "" {
			return wrong
		}
		if wrong := m.apart(); wrong != "" {
			return wrong
		}
		starts := map[string]int{}
		for _, h := range m.last.Reservations {
			if !h.Sure || h.Firm || h.Start != h.Latest {
				return fmt.Sprintf("with exact estimates %+v", h)
			}
			starts[h.Name] = m.now + int(h.Start/minute)
		}
		for _, j := range waited {
			start, holds := starts[j.name]
			if j.at != nil {
				start, holds = m.now, true
			}
			// Work of higher priority may come before those below it.
			if j.priority < priorities-1 {
				continue
			}
			until, was := promised[j.name]
			if was && (!holds || start > until) {
				return fmt.Sprintf("%s was to start at %d, at %d it is to start at %d (%v)", j.name, until, m.now, start, holds)
			}
			if holds {
				promised[j.name] = start
			}
		}
	}
	return ""
}

// apart tells whether what runs and what is held ever asks for more than there is, by an account
// of its own: at each moment at which a hold starts.
func (m *sim) apart() string {
	type stay struct {
		start, end int
		gpus       int64
		nodes      []string
	}
	var stays []stay
	for _, j := range m.runs {
		stays = append(stays, stay{0, j.runs - (m.now - j.started), j.gpus, j.nodes})
	}
	top := int32(-1)
	for _, j := range m.waits {
		top = max(top, j.priority)
	}
	for i := range m.last.Reservations {
		h := &m.last.Reservations[i]
		for _, j := range m.waits {
			if j.name == h.Name {
				start := int(h.Start / minute)
				stays = append(stays, stay{start, start + j.runs, j.gpus, h.Plan.Nodes()})
			}
		}
	}
	for _, at := range stays {
		used := map[string]int64{}
		for _, s := range stays {
			if s.start <= at.start && at.start < s.end {
				for _, n := range s.nodes {
					if used[n] += s.gpus; used[n] > 8 {
						return fmt.Sprintf("%d GPUs of %s in use or held in %d min from %d", used[n], n, at.start, m.now)
					}
				}
			}
		}
	}
	return ""
}

func TestHoldsKeepTheirPromises(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	cases(t, 150, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		if wrong := promises(rand.New(rand.NewPCG(seed, 1)), Backfill, o); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// greedy starts whatever fits.
func greedy(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
	none := *b
	none.Held = nil
	var out Schedule
	for _, j := range b.Queue {
		d, err := Plan(s, j.Request, o)
		if err != nil {
			return out, err
		}
		if !d.Feasible {
			out.Waits = append(out.Waits, Wait{Name: j.Request.Name})
			continue
		}
		out.Starts = append(out.Starts, Start{j.Request.Name, d})
		s = putPods(s, d.Placements(j.Request, nil))
	}
	return out, nil
}

// brokenBackfills are backfills with a mistake each.
func brokenBackfills() map[string]backfiller {
	edit := func(change func(*Backlog)) backfiller {
		return func(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
			own := *b
			own.Queue = slices.Clone(b.Queue)
			change(&own)
			return Backfill(s, &own, o)
		}
	}
	return map[string]backfiller{
		"believes that jobs run half as long": edit(func(b *Backlog) {
			for i := range b.Queue {
				b.Queue[i].Runtime = Estimate{P90: (b.Queue[i].Runtime.P90 + 1) / 2}
			}
		}),
		"forgets its holds": edit(func(b *Backlog) { b.Held = nil; slices.Reverse(b.Queue) }),
		"does not know how long it has run": edit(func(b *Backlog) {
			running := map[string]Run{}
			for name, r := range b.Running {
				running[name] = Run{Estimate: r.Estimate}
			}
			b.Running = running
		}),
		"lets everything pass": func(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
			out, err := Backfill(s, b, o)
			if err != nil {
				return out, err
			}
			more, err := greedy(s, b, o)
			if err != nil {
				return out, err
			}
			more.Waits = nil
			for _, h := range out.Reservations {
				if !slices.ContainsFunc(more.Starts, func(x Start) bool { return x.Name == h.Name }) {
					more.Reservations = append(more.Reservations, h)
				}
			}
			for _, j := range b.Queue {
				name := j.Request.Name
				if !slices.ContainsFunc(more.Starts, func(x Start) bool { return x.Name == name }) &&
					!slices.ContainsFunc(more.Reservations, func(x Reservation) bool { return x.Name == name }) {
					more.Waits = append(more.Waits, Wait{Name: name})
				}
			}
			return more, nil
		},
		"starts everything on what is free": func(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
			var out Schedule
			for _, j := range b.Queue {
				d, err := Plan(s, j.Request, o)
				if err != nil {
					return out, err
				}
				if d.Feasible {
					out.Starts = append(out.Starts, Start{j.Request.Name, d})
				} else {
					out.Waits = append(out.Waits, Wait{Name: j.Request.Name})
				}
			}
			return out, nil
		},
	}
}

func TestPromisesCanBeBroken(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	for name, broken := range brokenBackfills() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				if wrong := promises(rand.New(rand.NewPCG(seed, 1)), broken, o); wrong != "" {
					t.Logf("seed %d: %s", seed, wrong)
					return
				}
			}
			t.Error("the property holds for a broken backfill")
		})
	}
}

// starving runs a long simulation in which estimates are right, wrong, or missing, and returns
// which job waits for longer than it may, and how many steps it took to find it.
func starving(seed uint64, steps int, decide backfiller, o Options) (string, *sim) {
	r := rand.New(rand.NewPCG(seed, 2))
	m := newSim(smallWorld(), decide, o)
	m.backlog.MaxReservations, m.backlog.MaxWait = 2, 30*minute
	const longest = 20
	number := 0
	for ; m.now < steps; m.now++ {
		m.end()
		for len(m.waits) < 12 && r.IntN(4) == 0 {
			j := drawJob(r, number)
			switch r.IntN(3) {
			case 0:
				j.says = exact(j.runs)
			case 1:
				// Wrong in both directions, by up to ten times.
				j.says = Estimate{P50: time.Duration(1+r.IntN(j.runs)) * minute, P90: time.Duration(1+r.IntN(longest)) * minute / 2}
			}
			j.priority = r.Int32N(3)
			number++
			m.arrive(j)
		}
		if wrong := m.step(); wrong != "" {
			return wrong, m
		}
		for _, j := range m.waits {
			bound := int(m.backlog.MaxWait/minute) + (max(j.older, 0)+1)*longest + 1
			if waited := m.now - j.arrived; waited > bound {
				return fmt.Sprintf("%s (%d pods with %d GPUs) has waited for %d min, %d are the most", j.name, j.pods, j.gpus, waited, bound), m
			}
		}
	}
	return "", m
}

func TestNobodyStarves(t *testing.T) {
	steps := 100_000
	if testing.Short() {
		steps = 2_000
	}
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	wrong, m := starving(1, steps, Backfill, o)
	if wrong != "" {
		t.Errorf("at %d: %s", m.now, wrong)
	}
	if m.starts < steps/10 || m.passed < steps/100 || m.held < steps/10 {
		t.Errorf("%d starts, %d of them past holds, %d holds: the simulation is about nothing", m.starts, m.passed, m.held)
	}
	t.Logf("%d steps, %d starts, %d of them past holds, %d holds", m.now, m.starts, m.passed, m.held)
}

func TestStarvationIsFound(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	for name, broken := range map[string]backfiller{
		"starts whatever fits": greedy,
		"never insists": func(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
			patient := *b
			patient.MaxWait = 1e6 * minute
			return Backfill(s, &patient, o)
		},
	} {
		wrong, m := starving(1, 5_000, broken, o)
		if !strings.Contains(wrong, "has waited") {
			t.Errorf("one that %s: nobody starves in %d steps: %q", name, m.now, wrong)
		}
		t.Logf("one that %s, at %d: %s", name, m.now, wrong)
	}
}

// TestBackfillIsDeterministic asks twice, with and without what was remembered.
func TestBackfillIsDeterministic(t *testing.T) {
	remembering := Options{Strategies: registry(t), Cache: &Cache{}}
	twice := func(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
		first, err := Backfill(s, b, remembering)
		if err != nil {
			return first, err
		}
		second, err := Backfill(s, b, Options{Strategies: remembering.Strategies})
		if err == nil && !reflect.DeepEqual(first, second) {
			err = fmt.Errorf("asked twice, answered\n%+v\n%+v", first, second)
		}
		return second, err
	}
	if wrong, _ := starving(3, 500, twice, remembering); wrong != "" {
		t.Error(wrong)
	}
}

package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// promises runs a short simulation in which everybody tells the truth, and returns how a hold
// starts later than it was to, or how holds come in each other's way; "" if neither.
func promises(r *rand.Rand, s *cluster.Snapshot, decide backfiller, o Options) string {
	m := newSim(s, decide, o)
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
	board := bus(t)
	cases(t, 150, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		s := smallWorld(oneOf(t, "inside", nil, board))
		if wrong := promises(rand.New(rand.NewPCG(seed, 1)), s, Backfill, o); wrong != "" {
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
				if wrong := promises(rand.New(rand.NewPCG(seed, 1)), smallWorld(nil), broken, o); wrong != "" {
					t.Logf("seed %d: %s", seed, wrong)
					return
				}
			}
			t.Error("the property holds for a broken backfill")
		})
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

// filled runs a simulation for a while and returns it with what is known of what runs.
func filled(seed uint64, o Options) (*sim, map[string]Run, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 4))
	m := newSim(smallWorld(nil), greedy, o)
	for number := 0; m.now < 20; m.now++ {
		m.end()
		for r.IntN(3) > 0 {
			j := drawJob(r, number)
			j.says = exact(j.runs)
			number++
			m.arrive(j)
		}
		m.step()
	}
	running := map[string]Run{}
	for _, j := range m.runs {
		running[j.name] = Run{Estimate: j.says, Elapsed: time.Duration(m.now-1-j.started) * minute}
	}
	return m, running, r
}

// TestReserveIsTheEarliest tries every moment.
func TestReserveIsTheEarliest(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	later, all := uint64(0), seeds(300)
	for seed := range all {
		m, running, r := filled(seed, o)
		j := drawJob(r, 1000)
		m.arrive(j)
		h, ok, err := Reserve(m.s, j.request, running, o)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		first := -1
		for at := 0; first < 0; at++ {
			s := m.s
			for _, x := range m.runs {
				if running[x.name].Left() <= time.Duration(at)*minute {
					s = dropPods(s, x.at)
				}
			}
			if d, _ := Plan(s, j.request, o); d.Feasible {
				first = at
			}
		}
		if h.Start != time.Duration(first)*minute || !h.Sure {
			t.Fatalf("seed %d: %s, but it fits in %d min", seed, h.Why, first)
		}
		if first > 0 {
			later++
		}
	}
	if later < all/6 {
		t.Errorf("only %d of %d had to wait", later, all)
	}
}

// TestUnsureHoldsNeedNothingInVain has no estimates at all.
func TestUnsureHoldsNeedNothingInVain(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	for seed := range seeds(200) {
		m, _, r := filled(seed, o)
		j := drawJob(r, 1000)
		m.arrive(j)
		h, ok, err := Reserve(m.s, j.request, nil, o)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if h.Sure != (len(h.Needs) == 0) || h.Sure != (h.Start == 0) {
			t.Fatalf("seed %d: %+v", seed, h)
		}
		for _, spared := range append([]string{""}, h.Needs...) {
			s := m.s
			for _, x := range m.runs {
				if slices.Contains(h.Needs, x.name) && x.name != spared {
					s = dropPods(s, x.at)
				}
			}
			if d, _ := Plan(s, j.request, o); d.Feasible != (spared == "") {
				t.Fatalf("seed %d: needs %v, yet without %q it is %v", seed, h.Needs, spared, d.Feasible)
			}
		}
	}
}

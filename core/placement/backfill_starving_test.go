package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// starving runs a long simulation in which estimates are right, wrong, or missing, and returns
// which job waits for longer than it may, and how many steps it took to find it.
func starving(seed uint64, steps int, decide backfiller, o Options) (string, *sim) {
	r := rand.New(rand.NewPCG(seed, 2))
	m := newSim(smallWorld(nil), decide, o)
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
		if wrong := m.firm(); wrong != "" {
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

// firm returns what is wrong with holds that nobody may pass: on each of their nodes they fit
// beside everything that they do not wait for, and beside each other unless one waits for the
// other.
func (m *sim) firm() string {
	gpus := map[string]int64{}
	for _, j := range m.waits {
		gpus[j.name] = j.gpus
	}
	for i := range m.last.Reservations {
		h := &m.last.Reservations[i]
		if !h.Firm {
			continue
		}
		used := map[string]int64{}
		for _, j := range m.runs {
			if !slices.Contains(h.Needs, j.name) {
				for _, n := range j.nodes {
					used[n] += j.gpus
				}
			}
		}
		for k := range m.last.Reservations {
			other := &m.last.Reservations[k]
			if k > i || !other.Firm || slices.Contains(h.Needs, other.Name) {
				continue
			}
			for _, n := range other.Plan.Nodes() {
				used[n] += gpus[other.Name]
			}
		}
		for _, n := range h.Plan.Nodes() {
			if used[n] > 8 {
				return fmt.Sprintf("%d GPUs of %s are used beside the hold of %s, which waits for %v", used[n], n, h.Name, h.Needs)
			}
		}
	}
	return ""
}

func TestNobodyStarves(t *testing.T) {
	steps := 100_000
	if testing.Short() || raced {
		steps = 5_000
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

package placement

import (
	"testing"
	"time"
)

// TestNobodyIsInTheWayOfWhomHeWaitsFor lets the first of two jobs start that hold the same room
// one after the other, though by its P90 it would still be there when the second is to start.
func TestNobodyIsInTheWayOfWhomHeWaitsFor(t *testing.T) {
	empty := world(nodeSpec{name: "a1", spine: "s", leaf: "a", gpus: 4})
	s := runs(t, empty, "before", 4, "a1")
	vague := Estimate{P50: 10 * minute, P90: 100 * minute}
	b := &Backlog{
		Queue:   []Job{job("first", 1, 4, AnyLevel, vague, 0), job("second", 1, 4, AnyLevel, vague, 0)},
		Running: map[string]Run{"before": {Estimate: exact(30)}},
	}
	out := backfill(t, s, b)
	if got, want := told(out), "first holds a1 in 30 min; second holds a1 in 40 min"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	b.Held, b.Running = out.Reservations, nil
	out = backfill(t, empty, b)
	if got, want := told(out), "first starts on a1; second holds a1 in 10 min"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// A hold stands, whoever comes first by now.
	b.Queue[0], b.Queue[1] = b.Queue[1], b.Queue[0]
	if got, want := told(backfill(t, empty, b)), "first starts on a1; second holds a1 in 10 min"; got != want {
		t.Errorf("in the other order: %q, want %q", got, want)
	}
}

// TestPatience holds no room for whoever has just come.
func TestPatience(t *testing.T) {
	s := runs(t, world(nodeSpec{name: "a1", spine: "s", leaf: "a", gpus: 4}), "before", 3, "a1")
	b := &Backlog{Patience: time.Hour, Running: map[string]Run{"before": {Estimate: exact(30)}}}
	for waited, want := range map[int]string{
		0:  "small starts on a1; wide waits",
		59: "small starts on a1; wide waits",
		// It has waited for too long by then, too, and is passed by nobody.
		60: "wide holds a1 in 30 min; small waits",
	} {
		b.Queue = []Job{job("wide", 1, 4, AnyLevel, exact(10), waited), job("small", 1, 1, AnyLevel, exact(60), 0)}
		if got := told(backfill(t, s, b)); got != want {
			t.Errorf("after %d minutes: %q, want %q", waited, got, want)
		}
	}
}

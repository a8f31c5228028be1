package placement

import (
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

func pinned(w *cluster.Workload) { w.Movable = false }

// crowdedLeaves are three leaves in each of which two workloads are in the way, of which four are
// of one team.
func crowdedLeaves(t testing.TB, others func(*cluster.Workload)) *cluster.Snapshot {
	team := func(w *cluster.Workload) { w.Budget = "team" }
	return running(t, sixNodes(),
		load{name: "a", pods: on("n0", 4), edit: team}, load{name: "b", pods: on("n1", 4), edit: team},
		load{name: "c", pods: on("n2", 4), edit: team}, load{name: "d", pods: on("n3", 4), edit: team},
		load{name: "e", pods: on("n4", 4), edit: others}, load{name: "f", pods: on("n5", 4), edit: others})
}

// Also where every set is tried, none is moved that overdraws a limit.
func TestNoSetOfMovesOverdrawsALimit(t *testing.T) {
	s := crowdedLeaves(t, pinned)
	for left, want := range map[int]CertificateKind{0: NoDomainHolds, 1: Exhausted} {
		for _, most := range []int{0, 2} {
			o := MoveOptions{MaxMoves: most, Options: Options{Budgets: map[string]int{"team": left}}}
			m := defragment(t, s, ask(2, 8, inLeaf), o)
			if m.Feasible || m.Undecided || m.Certificate == nil || m.Certificate.Kind != want {
				t.Errorf("%d of the team: %q, undecided %v, %+v: %s", left, said(&m), m.Undecided, m.Certificate, m.Sentence)
			}
		}
	}
	if m := defragment(t, s, ask(2, 8, inLeaf), MoveOptions{Options: Options{Budgets: map[string]int{"team": 2}}}); len(m.Moves) != 2 {
		t.Errorf("two of the team: %q: %s", said(&m), m.Sentence)
	}
}

// That the largest sets overdraw a limit proves nothing of smaller ones.
func TestSetsThatMayNotMoveProveNothing(t *testing.T) {
	o := MoveOptions{Options: Options{Budgets: map[string]int{"team": 1}}}
	p, err := newPlanner(crowdedLeaves(t, func(*cluster.Workload) {}), ask(2, 8, inLeaf), o.Options)
	if err != nil {
		t.Fatal(err)
	}
	if newMover(p, o).proven() {
		t.Error("moving e and f makes room, and is refuted")
	}
}

func TestNothingMovesForItself(t *testing.T) {
	s := running(t, world(nodeSpec{name: "n0", gpus: 8}, nodeSpec{name: "n1", gpus: 4}), load{name: "test/gang", pods: on("n0", 4)})
	if m := defragment(t, s, ask(1, 8), MoveOptions{}); m.Feasible || m.Certificate == nil {
		t.Errorf("%q: %s", said(&m), m.Sentence)
	}
}

// Where enough of a workload goes on meanwhile, only what moves is lost.
func TestMovesCostWhatStops(t *testing.T) {
	for least, want := range map[int]float64{0: 8, 1: 4, 2: 8} {
		elastic := func(w *cluster.Workload) { w.Cost, w.MinMembers = 8, least }
		s := running(t, sixNodes(),
			load{name: "a", pods: map[string]int64{"n0": 4, "n2": 4}, edit: elastic},
			load{name: "b", pods: on("n4", 2), edit: pinned}, load{name: "c", pods: on("n3", 3), edit: pinned})
		if m := defragment(t, s, ask(2, 8, inLeaf), MoveOptions{}); said(&m) != "a: n0>n2" || m.Cost() != want {
			t.Errorf("with at least %d pods: %q costs %v, want %v", least, said(&m), m.Cost(), want)
		}
	}
}

// A workload that was promised bandwidth is not torn apart: it loads no uplink as long as one leaf
// holds it.
func TestMovesLoadNoUplinks(t *testing.T) {
	s, err := sixNodes().WithUplinks([]cluster.Uplink{
		{Level: leaf, Path: []string{"s", "l0"}, Mbps: 5}, {Level: leaf, Path: []string{"s", "l1"}, Mbps: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	s = running(t, s,
		load{name: "a", pods: map[string]int64{"n0": 4, "n1": 4}, edit: func(w *cluster.Workload) { w.Mbps = 10 }},
		load{name: "b", pods: map[string]int64{"n1": 4, "n2": 4, "n3": 4, "n4": 8, "n5": 8}, edit: pinned})
	m := defragment(t, s, ask(1, 8), MoveOptions{})
	after, ok := run(s, m.Moves)
	if !m.Feasible || !ok {
		t.Fatalf("%q: %s", said(&m), m.Sentence)
	}
	for i, left := range after.UplinksLeft()[leaf] {
		if left == 0 {
			t.Errorf("%q: leaf %d has nothing left", said(&m), i)
		}
	}
}

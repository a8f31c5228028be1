package replay

import (
	"math"
	"testing"
	"time"
)

// TestPreemption evicts a job of low priority, which starts over but for its last checkpoint.
func TestPreemption(t *testing.T) {
	jobs := text(",priority", "low 0 100 8 0", "high 50 10 8 5")
	o := defaults()
	o.Preempt = true
	for _, c := range []struct {
		checkpoint time.Duration
		want       float64
	}{
		{0, 160},                // starts over at 60
		{20 * time.Second, 120}, // had done 40 of 50, goes on at 60
		{time.Hour, 160},        // never got to its first
	} {
		o.Checkpoint = c.checkpoint
		for _, p := range []string{"fifo", "greedy", "backfill", "hrrn"} {
			got, r := starts(t, p, world(t, "flat:1x8"), jobs, o)
			if got != "low@0 high@50 low@60" || r.Preemptions != 1 || math.Abs(r.All.Completion.Max-c.want) > 1e-6 {
				t.Errorf("%s, checkpoint %v: %s, %d evicted, the last completion %v; want %v", p, c.checkpoint, got, r.Preemptions, r.All.Completion.Max, c.want)
			}
		}
	}
	o.Preempt = false
	if got, r := starts(t, "greedy", world(t, "flat:1x8"), jobs, o); got != "low@0 high@100" || r.Preemptions != 0 {
		t.Errorf("without preemption: %s", got)
	}
	// Equals are spared.
	o.Preempt = true
	if got, r := starts(t, "greedy", world(t, "flat:1x8"), text(",priority", "a 0 100 8 5", "b 50 10 8 5"), o); got != "a@0 b@100" || r.Preemptions != 0 {
		t.Errorf("of one priority: %s", got)
	}
}

// TestMoves brings two halves together, so that a job that wants a whole node starts. Spreading
// put them on two nodes.
func TestMoves(t *testing.T) {
	jobs := text("", "a 0 1000 4", "b 1 1000 4", "whole 100 50 8")
	o := defaults()
	o.MoveCost = 10 * time.Second
	if got, r := starts(t, "greedy/leastLoaded", world(t, "flat:2x8"), jobs, o); got != "a@0 b@1 whole@1001" && got != "a@0 b@1 whole@1000" || r.Moves != 0 {
		t.Errorf("without moves: %s", got)
	}
	o.Moves = 1
	got, r := starts(t, "greedy/leastLoaded", world(t, "flat:2x8"), jobs, o)
	if got != "a@0 b@1 whole@100" || r.Moves != 1 {
		t.Errorf("with moves: %s, %d moved", got, r.Moves)
	}
	// One of the two runs for ten seconds longer.
	if c := r.All.Completion; c.Max != 1010 || c.P50 != 1000 {
		t.Errorf("completions are %+v", c)
	}
}

// TestTalk has two gangs cross the same thin uplinks for half of the first one's time.
func TestTalk(t *testing.T) {
	c := world(t, "fattree:8x8/2/4@A100,oversubscription=8")
	o := defaults()
	o.Share = 1
	_, one := starts(t, "fifo", c, text("", "a 0 100 16"), o)
	if one.All.Slowdown.Mean != 1 || one.All.SlowdownAlone.Mean != 1 || one.All.Iteration != 1 {
		t.Errorf("alone at the ideal place: %+v", one.All)
	}
	// Gangs of four nodes need two leaves of two.
	_, blind := starts(t, "fifo/leastAllocated", c, text("", "a 0 100 32"), o)
	if blind.All.Slowdown.Mean <= 1 || blind.All.Slowdown.Mean != blind.All.SlowdownAlone.Mean {
		t.Errorf("alone, anywhere: %+v", blind.All)
	}
	_, two := starts(t, "fifo/leastAllocated", c, text("", "a 0 100 32", "b 50 100 32"), o)
	_, all := starts(t, "fifo/leastAllocated", c, text("", "a 0 100 32", "b 0 100 32"), o)
	if !(two.All.SlowdownAlone.Mean < two.All.Slowdown.Mean && two.All.Slowdown.Mean < all.All.Slowdown.Mean) {
		t.Errorf("beside another for half of the time %v, for all of it %v, alone %v",
			two.All.Slowdown.Mean, all.All.Slowdown.Mean, two.All.SlowdownAlone.Mean)
	}
	// Half of the time of both is shared.
	if want := (two.All.SlowdownAlone.Mean + all.All.Slowdown.Mean) / 2; math.Abs(two.All.Slowdown.Mean-want) > 1e-3 {
		t.Errorf("the mean over time is %v; want %v", two.All.Slowdown.Mean, want)
	}
	o.Share = 0.5
	_, half := starts(t, "fifo/leastAllocated", c, text("", "a 0 100 32"), o)
	if want := 0.5 + 0.5*blind.All.Slowdown.Mean; math.Abs(half.All.Iteration-want) > 1e-6 {
		t.Errorf("iterations take %v times as long; want %v", half.All.Iteration, want)
	}
}

// TestLocality counts leaves and spines.
func TestLocality(t *testing.T) {
	c := world(t, "fattree:8x8/2/2")
	// Two nodes fit a leaf, four a spine, eight nothing.
	_, r := starts(t, "fifo", c, text("", "leaf 0 10 16", "spine 20 10 32", "all 40 10 64", "node 60 10 8"), defaults())
	if r.All.Gangs != 3 || r.All.OneLeaf != 1 || r.All.OneSpine != 2 {
		t.Errorf("got %d gangs, %d in one leaf, %d in one spine", r.All.Gangs, r.All.OneLeaf, r.All.OneSpine)
	}
	// A gang that requires a leaf waits for one.
	o := defaults()
	// Once c has ended a node of each leaf is free, and a whole leaf when a has.
	scattered := text("", "c 0 5 8", "a 1 49 8", "b 2 100 8", "pair 10 5 16")
	for topology, want := range map[Topology]string{PreferLeaf: "c@0 a@1 b@2 pair@10", RequireLeaf: "c@0 a@1 b@2 pair@50"} {
		o.Topology = topology
		if got, _ := starts(t, "fifo/binPack", world(t, "fattree:4x8/2/2"), scattered, o); got != want {
			t.Errorf("%s: %s; want %s", topology, got, want)
		}
	}
}

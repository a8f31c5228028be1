package replay

import (
	"math"
	"testing"
)

// TestSeeds replays what is left to chance once for each seed, and what is not once.
func TestSeeds(t *testing.T) {
	c := world(t, "fattree:8x8/2/4")
	jobs := text("", "a 0 100 16", "b 0 200 16", "c 50 100 32", "d 60 10 64")
	policies := []Policy{policy(t, "hrrn"), policy(t, "fifo/leastAllocated")}
	o := defaults()
	o.Seeds = []int64{1, 2, 3, 4, 5, 6, 7, 8}
	started := map[int64]int{}
	o.Started = func(s Start) {
		if s.Policy == "fifo/leastAllocated" {
			started[s.Seed]++
		}
	}
	r, err := Compare(t.Context(), jobs, []Cluster{c}, policies, o)
	if err != nil {
		t.Fatal(err)
	}
	ours, stock := r.Results[0], r.Results[1]
	if ours.Runs != 1 || ours.Spread != nil || stock.Runs != 8 || stock.Jobs != 4 || stock.Events != 64 || len(started) != 8 || started[3] != 4 {
		t.Errorf("got %+v and %+v, started %v", ours, stock, started)
	}
	if Runs(policies, o) != 9 {
		t.Errorf("%d runs are announced", Runs(policies, o))
	}
	// By themselves.
	least, greatest, leaf, use := math.Inf(1), 0.0, 0, 0.0
	for _, seed := range o.Seeds {
		own := defaults()
		own.Seed = seed
		one, err := Run(policies[1], c, jobs, own)
		if err != nil {
			t.Fatal(err)
		}
		share := percent(float64(one.All.OneLeaf), float64(one.All.Gangs))
		least, greatest = min(least, share), max(greatest, share)
		leaf += one.All.OneLeaf
		use += one.GPUUse / 8
	}
	if stock.All.OneLeaf != leaf || stock.All.Gangs != 32 || stock.Spread.OneLeaf != (Range{least, greatest}) || math.Abs(stock.GPUUse-use) > 1e-9 {
		t.Errorf("%d of %d in one leaf, %+v, GPU use %v; want %d of 32, %v to %v, %v",
			stock.All.OneLeaf, stock.All.Gangs, stock.Spread, stock.GPUUse, leaf, least, greatest, use)
	}
	if stock.Spread.OneLeaf.Least == stock.Spread.OneLeaf.Greatest {
		t.Error("chance decides nothing")
	}
}

// TestNothingToSay leaves out what there is none of.
func TestNothingToSay(t *testing.T) {
	_, r := starts(t, "fifo", world(t, "flat:4x8"), text(",num_pods", "a 0 1 16 2", "b 0 1 1 1"), defaults())
	if r.All.OneLeaf != -1 || r.All.OneSpine != -1 || r.All.Gangs != 1 || share(r.All.OneLeaf, r.All.Gangs) != "-" {
		t.Errorf("a flat cluster has leaves: %+v", r.All)
	}
	if r.Sizes[0].Iteration != 0 || r.Sizes[1].Iteration == 0 {
		t.Errorf("iterations %v and %v", r.Sizes[0].Iteration, r.Sizes[1].Iteration)
	}
}

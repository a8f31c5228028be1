package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// failer is a test, of one kind or the other.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func (r *Replay) result() *Result { return r.m.result(r) }

// played replays everything and returns the replay as it is then.
func played(t failer, p Policy, c Cluster, in Trace, o Options) *Replay {
	t.Helper()
	r, err := newReplay(p, c, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := in.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	r.jobs = trace.NewJobs(in.Name, text, trace.JobsOptions{})
	r.read()
	for more := true; more; {
		if more, err = r.step(); err != nil {
			t.Fatal(err)
		}
		recount(t, r)
	}
	return r
}

// recount holds what is counted as the replay goes on against the cluster as it is.
func recount(t failer, r *Replay) {
	t.Helper()
	idle, stranded := int64(0), int64(0)
	for _, n := range r.s.Nodes() {
		idle += n.Free(r.m.gpu)
		if free := n.Free(r.m.gpu); free < n.Allocatable.At(r.m.gpu) {
			stranded += free
		}
	}
	gangs := 0
	for _, j := range r.ends {
		if j.pods > 1 {
			gangs++
		}
		for i, p := range j.placed {
			if int32(p.Node) != j.nodes[i] || !slices.Contains(r.s.At(p.Node).Pods, p.Pod) {
				t.Fatalf("pod %d of %s is not where it is said to be", i, j.request.Name)
			}
		}
	}
	if idle != r.m.idle || stranded != r.m.stranded || gangs != len(r.talks.now) {
		t.Fatalf("%d idle, %d stranded, %d gangs are counted; there are %d, %d and %d", r.m.idle, r.m.stranded, len(r.talks.now), idle, stranded, gangs)
	}
}

// TestStockScores has one node in use: one rule goes there, the other elsewhere.
func TestStockScores(t *testing.T) {
	for strategy, together := range map[string]bool{leastAllocated: false, mostAllocated: true} {
		var nodes []string
		o := defaults()
		o.Started = func(s Start) { nodes = append(nodes, s.Nodes...) }
		if _, err := Run(policy(t, "fifo/"+strategy), world(t, "flat:4x8"), text("", "a 0 100 2", "b 1 100 2"), o); err != nil {
			t.Fatal(err)
		}
		if (nodes[0] == nodes[1]) != together {
			t.Errorf("%s: %v", strategy, nodes)
		}
	}
}

// TestRanksOfStockGangs are in random order unless told otherwise.
func TestRanksOfStockGangs(t *testing.T) {
	mixed := false
	for seed := range int64(10) {
		for _, sorted := range []bool{false, true} {
			var nodes []string
			o := defaults()
			o.Seed, o.Sorted = seed, sorted
			o.Started = func(s Start) { nodes = s.Nodes }
			if _, err := Run(policy(t, "fifo/leastAllocated"), world(t, "fattree:8x8/2/2"), text("", "a 0 100 64"), o); err != nil {
				t.Fatal(err)
			}
			if sorted && !slices.IsSorted(nodes) || len(slices.Compact(slices.Sorted(slices.Values(nodes)))) != 8 {
				t.Errorf("ranks are on %v", nodes)
			}
			mixed = mixed || !slices.IsSorted(nodes)
		}
	}
	if !mixed {
		t.Error("ranks are always in order")
	}
}

// TestRoomThatEvictionLeaves is offered to others at once.
func TestRoomThatEvictionLeaves(t *testing.T) {
	o := defaults()
	o.Preempt = true
	jobs := text(",priority", "low 0 1000 16 0", "small 10 100 4 0", "high 50 1000 8 5")
	for _, p := range []string{"greedy", "sjf", "hrrn"} {
		if got, _ := starts(t, p, world(t, "flat:2x8"), jobs, o); got != "low@0 high@50 small@50 low@1050" {
			t.Errorf("%s: %s", p, got)
		}
	}
}

// TestNobodyPassesAHold by evicting or moving, either.
func TestNobodyPassesAHold(t *testing.T) {
	jobs := text(",priority", "first 0 1000 4 0", "wide 10 500 8 0", "small 500 2000 4 1")
	o := defaults()
	o.MaxWait = time.Minute
	for _, c := range []struct {
		edit func(*Options)
		want string
	}{
		{func(*Options) {}, "first@0 wide@1000 small@1500"},
		{func(o *Options) { o.Moves = 3 }, "first@0 wide@1000 small@1500"},
		// Evicting somebody of lower priority is another matter.
		{func(o *Options) { o.Preempt = true }, "first@0 wide@1000 small@1000 wide@3000"},
	} {
		own := o
		c.edit(&own)
		if got, _ := starts(t, "hrrn", world(t, "flat:1x8"), jobs, own); got != c.want {
			t.Errorf("preempt %v, moves %d: %s; want %s", own.Preempt, own.Moves, got, c.want)
		}
	}
}

// TestPreemptionPassesNobody who waits for room: in order of arrival, with a hold that any may have,
// and with one that nobody may pass. Low can be evicted, but that is enough for wide only once first has ended.
func TestPreemptionPassesNobody(t *testing.T) {
	o := defaults()
	o.Preempt = true
	for _, c := range []struct{ queue, small, want string }{
		// It would fit without evicting anybody, and until after wide is to start.
		{"fifo", "small 20 9000 3 1", "first@0 low@0 wide@1000 small@1100 low@1100"},
		{"backfill", "small 20 9000 3 1", "first@0 low@0 wide@1000 small@1100 low@1100"},
		// It would fit in the place of low.
		{"fifo", "small 500 9000 4 1", "first@0 low@0 wide@1000 small@1100 low@1100"},
		{"hrrn", "small 500 9000 4 1", "first@0 low@0 wide@1000 small@1100 low@1100"},
	} {
		own := o
		if own.MaxWait = time.Minute; c.queue == "backfill" {
			own.MaxWait = 0
		}
		jobs := text(",priority", "first 0 1000 4 1", "low 0 5000 1 0", "wide 10 100 8 1", c.small)
		if got, _ := starts(t, c.queue, world(t, "flat:1x8"), jobs, own); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.queue, c.small, got, c.want)
		}
	}
}

// TestTheOracleKnowsWhatIsLeft of a job that starts again after a checkpoint.
func TestTheOracleKnowsWhatIsLeft(t *testing.T) {
	o := defaults()
	o.Preempt, o.Checkpoint = true, 10*time.Second
	// Low has done 500 of 1000 s at 500, and ends at 1010. Passer would run until 1200.
	jobs := text(",priority", "low 0 1000 4 0", "high 500 10 8 5", "wide 505 100 8 0", "passer 900 300 4 0")
	if got, _ := starts(t, "backfill", world(t, "flat:1x8"), jobs, o); got != "low@0 high@500 low@510 wide@1010 passer@1110" {
		t.Errorf("got %s", got)
	}
}

// TestMoreThanAreLookedAt waits in a queue of one size that is longer than what is looked at.
func TestMoreThanAreLookedAt(t *testing.T) {
	rows := []string{"all 0 100 320"}
	for range 3 * depth {
		rows = append(rows, "j 1 10 1")
	}
	o := defaults()
	for _, p := range []string{"backfill", "hrrn"} {
		_, r := starts(t, p, world(t, "flat:40x8"), text("", rows...), o)
		if r.All.Waiting.Max != 99 {
			t.Errorf("%s: the last waits %v s, though all fit at 100", p, r.All.Waiting.Max)
		}
	}
}

func TestLonger(t *testing.T) {
	if got := longer(3, 2); got != "+50.0 %" {
		t.Errorf("three is longer than two by %s", got)
	}
}

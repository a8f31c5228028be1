package replay

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// TestQueues plays one crowd on one node by each queue. The node has 8 GPUs: first holds 6 of
// them until 100, wide waits for all 8, long and short want 2.
func TestQueues(t *testing.T) {
	crowd := text("", "first 0 100 6", "wide 10 50 8", "long 20 500 2", "short 30 60 2")
	for _, c := range []struct{ policy, want string }{
		// Nobody passes wide.
		{"fifo", "first@0 wide@100 long@150 short@150"},
		// Whoever fits passes, the first that comes.
		{"greedy", "first@0 long@20 short@100 wide@520"},
		{"sjf", "first@0 long@20 short@100 wide@520"},
		// Long would hold up wide, which has a reservation at 100; short ends before.
		{"backfill", "first@0 short@30 wide@100 long@150"},
		// Long is there first and fits: there are no reservations before the time.
		{"hrrn", "first@0 long@20 short@100 wide@520"},
	} {
		if got, _ := starts(t, c.policy, world(t, "flat:1x8"), crowd, defaults()); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.policy, got, c.want)
		}
	}
}

// TestOrders has three jobs wait for one node, of which every queue takes another first.
func TestOrders(t *testing.T) {
	waiting := text("", "first 0 1000 8", "old 1 2000 8", "middle 500 1500 8", "short 990 100 8")
	for _, c := range []struct{ policy, want string }{
		{"greedy", "first@0 old@1000 middle@3000 short@4500"},
		{"sjf", "first@0 short@1000 middle@1100 old@2600"},
		// Ratios at 1000: old 2999/2000, middle 2000/1500, short 110/100.
		{"hrrn", "first@0 old@1000 short@3000 middle@3100"},
	} {
		if got, _ := starts(t, c.policy, world(t, "flat:1x8"), waiting, defaults()); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.policy, got, c.want)
		}
	}
}

// TestPriorities go before everything else.
func TestPriorities(t *testing.T) {
	jobs := text(",priority", "first 0 100 8 0", "low 1 10 8 1", "high 2 1000 8 2", "small 3 1 1 0")
	for _, p := range []string{"fifo", "greedy", "sjf", "backfill", "hrrn"} {
		if got, _ := starts(t, p, world(t, "flat:1x8"), jobs, defaults()); got != "first@0 high@100 low@1100 small@1110" {
			t.Errorf("%s: %s", p, got)
		}
	}
}

// TestMaxWait lets small jobs pass a wide one for so long and no longer.
func TestMaxWait(t *testing.T) {
	var rows []string
	// There are always two that overlap, so that the node is never empty by itself.
	for i := range 40 {
		rows = append(rows, []string{"a", "b"}[i%2]+strconv.Itoa(i)+" "+strconv.Itoa(i*1800)+" 3600 4")
		if i == 0 {
			rows = append(rows, "wide 60 3600 8")
		}
	}
	o := defaults()
	waited := func(p string) float64 {
		_, r := starts(t, p, world(t, "flat:1x8"), text("", rows...), o)
		return r.All.Waiting.Max
	}
	if got := waited("greedy"); got < 39*1800 {
		t.Errorf("greedy starts wide after %v s, though small jobs keep coming", got)
	}
	o.MaxWait = 4 * hour
	// It holds the node from 60 + 4 h on, and starts when what runs then has ended.
	if got := waited("hrrn"); got < 4*3600 || got > 5*3600 {
		t.Errorf("hrrn starts wide after %v s; want 4 to 5 hours", got)
	}
}

// TestEstimates tells policies what they may know.
func TestEstimates(t *testing.T) {
	h := history{}
	if e := h.estimate(8); e.P50 != 0 || e.P90 != 0 {
		t.Errorf("nothing has ended, and the estimate is %v", e)
	}
	for i := range 10 {
		h.add(1, time.Duration(i+1)*hour)
	}
	// Sizes of which too few ended are taken together.
	h.add(8, 100*hour)
	if e := h.estimate(8); e.P50 != 6*hour || e.P90 != 10*hour {
		t.Errorf("of all jobs: %v", e)
	}
	if e := h.estimate(1); e.P50 != 5*hour || e.P90 != 9*hour {
		t.Errorf("of jobs with one GPU: %v", e)
	}
	// Only the last count.
	for range remembered {
		h.add(1, 3*hour)
	}
	if e := h.estimate(1); e.P50 != 3*hour || e.P90 != 3*hour {
		t.Errorf("of the last jobs: %v", e)
	}
	// Backfilling without estimates cannot hold room, so that long passes wide.
	crowd := text("", "first 0 100 6", "wide 10 50 8", "long 20 500 2")
	o := defaults()
	o.Estimates = NoEstimates
	if got, _ := starts(t, "backfill", world(t, "flat:1x8"), crowd, o); got != "first@0 long@20 wide@520" {
		t.Errorf("without estimates: %s", got)
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		q    float64
		n    int
		want int
	}{{0.5, 1, 0}, {0.5, 2, 0}, {0.5, 3, 1}, {0.95, 100, 94}, {0.95, 20, 18}, {0.99, 10, 9}, {1, 5, 4}, {0, 5, 0}} {
		if got := rank(c.q, c.n); got != c.want {
			t.Errorf("quantile %v of %d is number %d; want %d", c.q, c.n, got, c.want)
		}
	}
}

// TestMeasures works the figures out by hand: on two nodes with 8 GPUs each, a holds 8 for an
// hour, b waits half an hour for 16, and c holds 4 for the last hour.
func TestMeasures(t *testing.T) {
	_, r := starts(t, "fifo", world(t, "flat:2x8"), text("", "a 36000 3600 8", "b 37800 3600 16", "c 43200 3600 4"), defaults())
	// 10 h to 11 h: 8 of 16; 11 h to 12 h: all; 12 h to 13 h: 4, with 4 idle beside them.
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %v; want %v", what, got, want)
		}
	}
	near("hours", r.Hours, 3)
	near("GPU use", r.GPUUse, 100*28.0/48)
	near("fragmentation", r.Fragmentation, 100*4.0/48)
	near("time with somebody waiting", r.WaitingTime, 100*0.5/3)
	near("use in it", r.GPUUseWaiting, 50)
	near("mean wait", r.All.Waiting.Mean, 600)
	near("longest wait", r.All.Waiting.Max, 1800)
	near("median completion", r.All.Completion.P50, 3600)
	near("longest completion", r.All.Completion.Max, 5400)
	if r.Jobs != 3 || r.Events != 6 || len(r.Sizes) != 3 || r.Sizes[1].GPUs != "5-8" || r.Sizes[1].Jobs != 1 || r.All.Gangs != 1 {
		t.Errorf("got %+v", r)
	}
}

// TestNoRunTime takes jobs that end at once for the shortest, not for unknown.
func TestNoRunTime(t *testing.T) {
	jobs := text("", "first 0 100 8", "long 1 5000 8", "none 2 0 8")
	for _, p := range []string{"sjf", "hrrn"} {
		if got, _ := starts(t, p, world(t, "flat:1x8"), jobs, defaults()); got != "first@0 none@100 long@100" {
			t.Errorf("%s: %s", p, got)
		}
	}
	h := history{}
	for range 10 {
		h.add(4, 0)
	}
	if e := h.estimate(4); e.P50 <= 0 || e.P90 <= 0 || e.P90 > time.Second {
		t.Errorf("jobs that end at once are expected to take %v", e)
	}
}

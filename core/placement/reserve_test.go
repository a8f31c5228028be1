package placement

import (
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// runs puts pods with whole GPUs of workloads, by name, on nodes.
func runs(t *testing.T, s *cluster.Snapshot, name string, gpus int64, nodes ...string) *cluster.Snapshot {
	t.Helper()
	txn := s.Begin()
	w := &cluster.Workload{Name: name}
	for _, n := range nodes {
		p := &cluster.Pod{Workload: w, Use: cluster.Vector{1000, 1 << 30, 1, gpus}}
		if err := txn.Place(cluster.Placement{Node: s.IndexOf(n), Pod: p}); err != nil {
			t.Fatal(err)
		}
	}
	return txn.Snapshot()
}

func job(name string, count int, gpus int64, level int, says Estimate, waited int) Job {
	return Job{Request: ask(count, gpus, func(r *Request) {
		r.Name, r.Groups[0].Topology.Required = name, level
	}), Runtime: says, Waited: time.Duration(waited) * minute}
}

func backfill(t *testing.T, s *cluster.Snapshot, b *Backlog) Schedule {
	t.Helper()
	out, err := Backfill(s, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// told is a schedule in a few words: what starts, what holds where from when on, what waits.
func told(out Schedule) string {
	var words []string
	for _, x := range out.Starts {
		words = append(words, x.Name+" starts on "+strings.Join(x.Decision.Nodes(), " "))
	}
	for _, h := range out.Reservations {
		words = append(words, h.Name+" holds "+strings.Join(h.Plan.Nodes(), " ")+" in "+Span(h.Start))
	}
	for _, x := range out.Waits {
		words = append(words, x.Name+" waits")
	}
	return strings.Join(words, "; ")
}

func TestLeft(t *testing.T) {
	h := time.Hour
	says := Estimate{P50: 2 * h, P90: 6 * h}
	for _, tc := range []struct {
		run  Run
		want time.Duration
	}{
		{Run{says, 0}, 2 * h},
		{Run{says, h}, h},
		{Run{says, 2 * h}, 4 * h},
		{Run{says, 5 * h}, h},
		{Run{says, 6 * h}, 3 * h},
		{Run{says, 10 * h}, 5 * h},
		{Run{Estimate{P90: 2 * h}, h}, h},
		{Run{Estimate{P50: 2 * h, P90: h}, h}, h},
		{Run{Estimate{}, h}, Never},
		{Run{says, -h}, 2 * h},
	} {
		if got := tc.run.Left(); got != tc.want {
			t.Errorf("%+v is left for %s, want %s", tc.run, got, tc.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1: "1 s", 59 * time.Second: "59 s", 61 * time.Second: "2 min", time.Hour: "1 h",
		130 * minute: "2 h 10 min", 26 * time.Hour: "1 d 2 h", 48 * time.Hour: "2 d", Never: "an unknown time",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}

// TestReserveHoldsBackLeast: in an hour a gang of two fits in either leaf. In leaf a all of it
// is in use until then, in leaf b half of it stands idle.
func TestReserveHoldsBackLeast(t *testing.T) {
	s := smallWorld(nil)
	s = runs(t, s, "in-a", 8, "a1", "a2")
	s = runs(t, s, "in-b", 8, "b1")
	s = runs(t, s, "in-c", 8, "c1")
	said := map[string]Run{
		"in-a": {Estimate: exact(60)},
		"in-b": {Estimate: exact(90), Elapsed: 30 * minute},
		"in-c": {Estimate: exact(90)},
	}
	h, ok, err := Reserve(s, job("gang", 2, 8, leaf, Estimate{}, 0).Request, said, Options{})
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	if want := "gang could start in 1 h in leaf a, once in-a has ended"; h.Why != want {
		t.Errorf("%q, want %q", h.Why, want)
	}
}

// TestBackfillPasses is a gang that waits for leaf a, and small jobs that may pass it or not.
func TestBackfillPasses(t *testing.T) {
	s := smallWorld(nil)
	s = runs(t, s, "in-a", 8, "a1")
	s = runs(t, s, "others", 8, "b1", "b2", "c1", "c2")
	b := &Backlog{Running: map[string]Run{"in-a": {Estimate: exact(60)}}}
	gang := job("gang", 2, 8, leaf, exact(100), 10)
	for _, tc := range []struct {
		name  string
		small Job
		want  string
	}{
		{"ends before", job("small", 1, 4, AnyLevel, exact(60), 0), "small starts on a2; gang holds a1 a2 in 1 h"},
		{"ends later", job("small", 1, 4, AnyLevel, exact(61), 0), "gang holds a1 a2 in 1 h; small holds a1 in 2 h 40 min"},
		{"may end later", job("small", 1, 4, AnyLevel, Estimate{P50: 5 * minute, P90: 61 * minute}, 0), "gang holds a1 a2 in 1 h; small holds a1 in 2 h 40 min"},
		{"nobody knows", job("small", 1, 4, AnyLevel, Estimate{}, 0), "gang holds a1 a2 in 1 h; small holds a1 in 2 h 40 min"},
	} {
		b.Queue = []Job{gang, tc.small}
		if got := told(backfill(t, s, b)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	b.Queue = []Job{gang, job("small", 1, 4, AnyLevel, exact(61), 0)}
	b.MaxReservations = 1
	out := backfill(t, s, b)
	if want := "gang holds a1 a2 in 1 h; small waits"; told(out) != want {
		t.Errorf("%q, want %q", told(out), want)
	}
	if want := "there is room for small now, but it is held for gang (starts in 1 h)"; out.Waits[0].Why != want {
		t.Errorf("%q, want %q", out.Waits[0].Why, want)
	}
	// Nothing passes what has waited for too long.
	gang.Waited = 2 * time.Hour
	b.Queue = []Job{gang, job("small", 1, 4, AnyLevel, exact(5), 0)}
	if got, want := told(backfill(t, s, b)), "gang holds a1 a2 in 1 h; small waits"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHoldStays follows a hold in leaf a whose estimate proves wrong.
func TestHoldStays(t *testing.T) {
	s := smallWorld(nil)
	s = runs(t, s, "in-a", 8, "a1", "a2")
	s = runs(t, s, "in-b", 8, "b1", "b2")
	s = runs(t, s, "in-c", 8, "c1", "c2")
	said1 := map[string]Run{"in-a": {Estimate: exact(60)}, "in-b": {Estimate: exact(120)}}
	b := &Backlog{Running: said1, Queue: []Job{job("gang", 2, 8, leaf, exact(100), 0)}}
	steps := []struct {
		elapsed int
		want    string
	}{
		{0, "gang holds a1 a2 in 1 h"},
		{59, "gang holds a1 a2 in 1 min"},
		{60, "gang holds a1 a2 in 30 min"}, // half as long again
		{90, "gang holds b1 b2 in 30 min"}, // 45 min in leaf a by now
		{110, "gang holds b1 b2 in 10 min"},
	}
	for _, step := range steps {
		for name, r := range b.Running {
			r.Elapsed = time.Duration(step.elapsed) * minute
			b.Running[name] = r
		}
		out := backfill(t, s, b)
		if got := told(out); got != step.want {
			t.Errorf("after %d min %q, want %q", step.elapsed, got, step.want)
		}
		b.Held = out.Reservations
	}
	// A node of the hold breaks: leaf a is what is left.
	broken, machine := *s.Node("b1"), *s.Node("b1").Machine
	machine.Ready = false
	broken.Machine = &machine
	if got, want := told(backfill(t, s.Next(9, s.Resources, []*cluster.Node{&broken}), b)), "gang holds a1 a2 in 55 min"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOverdueWithoutEstimates holds the domain that needs the fewest to end, and keeps it.
func TestOverdueWithoutEstimates(t *testing.T) {
	s := smallWorld(nil)
	s = runs(t, s, "in-a", 8, "a1")
	s = runs(t, s, "in-a-too", 8, "a2")
	s = runs(t, s, "in-b", 4, "b1")
	s = runs(t, s, "in-c", 8, "c1", "c2")
	gang := job("gang", 2, 8, leaf, Estimate{}, 10)
	b := &Backlog{Queue: []Job{gang}}
	if got, want := backfill(t, s, b).Waits, "there is no room for gang now, and no estimate tells when there will be"; len(got) != 1 || got[0].Why != want {
		t.Errorf("%+v, want %q", got, want)
	}
	b.Queue[0].Waited = time.Hour
	b.Queue = append(b.Queue, job("small", 1, 4, AnyLevel, exact(1), 5))
	out := backfill(t, s, b)
	if want := "gang could start in leaf b, once in-b has ended; when that is, no estimate tells"; told(out) != "gang holds b1 b2 in an unknown time; small waits" || out.Reservations[0].Why != want {
		t.Errorf("%q, %q, want %q", told(out), out.Reservations[0].Why, want)
	}
}

// Of two jobs that take the whole cluster the one goes first that has waited longer, if both have
// waited for too long or only it has; else the one of higher priority.
func TestWhoGoesFirst(t *testing.T) {
	s := smallWorld(nil)
	for _, tc := range []struct{ high, low, first int }{
		{10, 20, 0}, {90, 200, 1}, {10, 60, 1}, {60, 10, 0}, {200, 90, 0},
	} {
		high, low := job("high", 6, 8, AnyLevel, exact(5), tc.high), job("low", 6, 8, AnyLevel, exact(5), tc.low)
		high.Request.Priority = 9
		want := []string{"high", "low"}[tc.first]
		for _, queue := range [][]Job{{high, low}, {low, high}} {
			if out := backfill(t, s, &Backlog{Queue: queue}); len(out.Starts) != 1 || out.Starts[0].Name != want {
				t.Errorf("after %d and %d min: %q, want %s to start", tc.high, tc.low, told(out), want)
			}
		}
	}
}

package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// judge tells what is wrong with a log of starts, by the trace and the sizes of the nodes alone:
// jobs that are forgotten, start twice or too early, and nodes that hold more than they have. It
// knows nothing of how the starts came about. Jobs run for as long as the trace says.
func judge(jobs map[string]drawn, perNode int, log []Start) string {
	type change struct {
		at    time.Duration
		delta int
		node  string
	}
	var changes []change
	seen := map[string]bool{}
	for _, s := range log {
		j, known := jobs[s.Job.ID]
		switch {
		case !known || seen[s.Job.ID]:
			return fmt.Sprintf("%s started twice, or never came", s.Job.ID)
		case s.At < j.submit:
			return fmt.Sprintf("%s started at %v, before it came at %v", s.Job.ID, s.At, j.submit)
		case j.gpus%len(s.Nodes) != 0 || j.gpus/len(s.Nodes) > perNode:
			return fmt.Sprintf("%s has %d pods for %d GPUs", s.Job.ID, len(s.Nodes), j.gpus)
		}
		seen[s.Job.ID] = true
		for _, n := range s.Nodes {
			each := j.gpus / len(s.Nodes)
			changes = append(changes, change{s.At, each, n}, change{s.At + j.runs, -each, n})
		}
	}
	if len(seen) != len(jobs) {
		return fmt.Sprintf("%d of %d jobs started", len(seen), len(jobs))
	}
	// What ends at a moment makes room for what starts then.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	used := map[string]int{}
	for _, c := range changes {
		if used[c.node] += c.delta; used[c.node] > perNode {
			return fmt.Sprintf("%s holds %d GPUs at %v", c.node, used[c.node], c.at)
		}
	}
	return ""
}

// drawn is a job as it was drawn.
type drawn struct {
	submit, runs time.Duration
	gpus         int
}

// crowd draws a trace for 4 nodes with 4 GPUs each, in leaves of 2.
func crowd(t *rapid.T) (map[string]drawn, Trace) {
	jobs := map[string]drawn{}
	var rows []string
	at := 0
	for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
		at += rapid.SampledFrom([]int{0, 1, 5, 20}).Draw(t, "later")
		runs := rapid.SampledFrom([]int{0, 1, 10, 30, 100}).Draw(t, "runs")
		gpus := rapid.SampledFrom([]int{1, 2, 3, 4, 6, 8, 12, 16}).Draw(t, "gpus")
		id := fmt.Sprintf("j%d", i)
		jobs[id] = drawn{time.Duration(at) * time.Second, time.Duration(runs) * time.Second, gpus}
		rows = append(rows, fmt.Sprintf("%s %d %d %d %d", id, at, runs, gpus, rapid.IntRange(0, 2).Draw(t, "priority")))
	}
	return jobs, text(",priority", rows...)
}

func replayed(t *rapid.T, c Cluster, trace Trace, o Options) []Start {
	queue := rapid.SampledFrom(Queues()).Draw(t, "queue")
	strategy := rapid.SampledFrom(Strategies()).Draw(t, "strategy")
	o.Estimates = Estimates(rapid.SampledFrom(EstimateKinds()).Draw(t, "estimates"))
	// Gangs of more than a leaf could not require one.
	o.Topology = rapid.SampledFrom([]Topology{PreferLeaf, AnyPlace}).Draw(t, "topology")
	o.MaxWait = time.Duration(rapid.SampledFrom([]int{0, 20, 200}).Draw(t, "max wait")) * time.Second
	var log []Start
	o.Started = func(s Start) { log = append(log, s) }
	p, err := ParsePolicy(queue+"/"+strategy, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Run(p, c, trace, o); err != nil {
		t.Fatal(err)
	}
	return log
}

// TestReplaysAreSound replays drawn traces by every queue and strategy.
func TestReplaysAreSound(t *testing.T) {
	c := world(t, "fattree:4x4/2/2")
	rapid.Check(t, func(t *rapid.T) {
		jobs, trace := crowd(t)
		if wrong := judge(jobs, 4, replayed(t, c, trace, defaults())); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// TestTheJudgeSees spoils sound logs in one place each.
func TestTheJudgeSees(t *testing.T) {
	c := world(t, "fattree:4x4/2/2")
	for name, spoil := range map[string]func([]Start) []Start{
		"a job that is forgotten":     func(log []Start) []Start { return log[1:] },
		"a job that starts twice":     func(log []Start) []Start { return append(log, log[0]) },
		"a job that starts too early": func(log []Start) []Start { log[0].At = log[0].Job.Submit - 1; return log },
		"a node with too much": func(log []Start) []Start {
			for i := range log {
				log[i].Nodes = slices.Repeat([]string{"node-0001"}, len(log[i].Nodes))
			}
			return log
		},
		"jobs that do not wait": func(log []Start) []Start {
			for i := range log {
				log[i].At = log[i].Job.Submit
			}
			return log
		},
	} {
		found := false
		for seed := range 1000 {
			found = found || rapid.Custom(func(t *rapid.T) bool {
				jobs, trace := crowd(t)
				return judge(jobs, 4, spoil(replayed(t, c, trace, defaults()))) != ""
			}).Example(seed)
			if found {
				break
			}
		}
		if !found {
			t.Errorf("%s is not seen", name)
		}
	}
}

// TestNobodyPasses in the order of arrival.
func TestNobodyPasses(t *testing.T) {
	c := world(t, "fattree:4x4/2/2")
	rapid.Check(t, func(t *rapid.T) {
		jobs, trace := crowd(t)
		var order []time.Duration
		last := map[int32]time.Duration{}
		o := defaults()
		o.Started = func(s Start) {
			order = append(order, s.At)
			if s.Job.Submit < last[s.Job.Priority] {
				t.Fatalf("%s came before one of the same priority that started before", s.Job.ID)
			}
			last[s.Job.Priority] = s.Job.Submit
		}
		if _, err := Run(Policy{Name: "fifo", Queue: fifo, Strategy: "binPack"}, c, trace, o); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(order) || len(order) != len(jobs) {
			t.Fatalf("starts at %v", order)
		}
	})
}

// TestPreemptionAndMovesAreSound: every job still ends, and none before it has run for as long as
// the trace says.
func TestPreemptionAndMovesAreSound(t *testing.T) {
	c := world(t, "fattree:4x4/2/2")
	rapid.Check(t, func(t *rapid.T) {
		jobs, trace := crowd(t)
		o := defaults()
		o.Preempt, o.Moves, o.MoveCost = rapid.Bool().Draw(t, "preempt"), rapid.IntRange(0, 2).Draw(t, "moves"), time.Second
		o.Checkpoint = time.Duration(rapid.SampledFrom([]int{0, 7}).Draw(t, "checkpoint")) * time.Second
		p := Policy{Queue: rapid.SampledFrom(Queues()).Draw(t, "queue"), Strategy: "topologyAware"}
		r := played(t, p, c, trace, o).result()
		least := 0.0
		for _, j := range jobs {
			least += j.runs.Seconds()
		}
		if r.Jobs != len(jobs) || r.All.Completion.Mean*float64(r.Jobs) < least-1e-3 {
			t.Fatalf("%d of %d jobs ended, after %v s in the mean", r.Jobs, len(jobs), r.All.Completion.Mean)
		}
	})
}

// TestTheSameTwice also with several replays at a time.
func TestTheSameTwice(t *testing.T) {
	c := world(t, "fattree:4x4/2/2")
	rapid.Check(t, func(t *rapid.T) {
		_, trace := crowd(t)
		var policies []Policy
		for _, q := range Queues() {
			policies = append(policies, Policy{Name: q, Queue: q, Strategy: "random"})
		}
		var out [2]strings.Builder
		for i := range out {
			r, err := Compare(t.Context(), trace, []Cluster{c}, policies, defaults())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range table.Formats() {
				if err := table.Render(&out[i], table.Format(f), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if out[0].String() != out[1].String() {
			t.Fatalf("%s\nand then\n%s", &out[0], &out[1])
		}
	})
}

package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

const leaf = 1

// fragmented is two leaves of four nodes, with a small job on one node of each.
func fragmented(edits ...func(*cluster.Workload)) *world {
	w := newWorld(8)
	w.run(job("a", edits...), 1, 0)
	w.run(job("b", edits...), 2, 4)
	return w
}

func explainIt(t *testing.T, q *Question) Explanation {
	t.Helper()
	a, err := Explain(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *Explanation) remedy(kind Kind) *Remedy {
	for i := range a.Remedies {
		if a.Remedies[i].Kind == kind {
			return &a.Remedies[i]
		}
	}
	return &Remedy{}
}

func TestVerdicts(t *testing.T) {
	never := func(w *world) { w.run(job("far", func(w *cluster.Workload) { w.Priority = 9 }), 8, 1, 2, 3, 5, 6, 7) }
	for name, c := range map[string]struct {
		world    func() *world
		ask      *placement.Request
		question func(*Question)
		verdict  Verdict
		reason   Reason
		sentence string
	}{
		"another level would do": {
			world: func() *world { return fragmented() }, ask: ask(4, 8, leaf), verdict: Change, reason: Fragmented,
			sentence: "61 GPUs are free, but no leaf has 4 free nodes; the best, leaf-0, has 3",
		},
		"an estimate tells when": {
			world: func() *world { return fragmented() }, ask: ask(4, 8, leaf), verdict: Wait, reason: Fragmented, sentence: "no leaf has 4 free nodes",
			question: func(q *Question) {
				q.Running["team/b"] = placement.Run{Estimate: placement.Estimate{P50: time.Hour}, Elapsed: 20 * time.Minute}
			},
		},
		"somebody holds it": {
			world: func() *world { w := fragmented(); never(w); return w }, ask: ask(4, 4, leaf), verdict: Ask, reason: NotEnoughGPUs,
			sentence: "4 pods of 4 GPUs are needed and 13 GPUs are free",
		},
		"a single pod": {
			world: func() *world { w := fragmented(); w.run(job("far"), 8, 1, 2, 3, 5, 6, 7); return w }, ask: ask(1, 8, placement.AnyLevel),
			verdict: Ask, reason: Fragmented, sentence: "13 GPUs are free, but no node has 8; the most, n00, has 7",
		},
		"a node is out of service": {
			world:   func() *world { w := fragmented(); w.machines[5].Cordoned = true; never2(w); return w },
			verdict: Broken, reason: NodesOutOfService, ask: ask(1, 8, placement.AnyLevel),
			sentence: "there would be room if n05 is in service: n05 is cordoned",
		},
		"it can never fit": {
			world: func() *world { return fragmented() }, ask: ask(5, 8, leaf), verdict: Change, reason: NeverFits, sentence: "cannot fit even when nothing else runs",
		},
		"no such node": {
			world: func() *world { return fragmented() }, ask: product(ask(1, 8, leaf), "H200"), verdict: Change, reason: NoSuitableNode, sentence: "no node suits",
		},
		"there is room": {
			world: func() *world { return fragmented() }, ask: ask(3, 8, leaf), verdict: Wait, reason: RoomIsThere, sentence: "there is room now",
		},
		"no nodes at all": {
			world: func() *world { return newWorld(0) }, ask: ask(3, 8, leaf), verdict: Broken, reason: NoNodes, sentence: "the cluster has no nodes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := &Question{Snapshot: c.world().snapshot(), Request: c.ask, Running: map[string]placement.Run{}}
			if c.question != nil {
				c.question(q)
			}
			a := explainIt(t, q)
			if a.Verdict != c.verdict || a.Reason != c.reason || !strings.Contains(a.Sentence, c.sentence) {
				t.Errorf("%s, %s: %s; want %s, %s: %s", a.Verdict, a.Reason, a.Sentence, c.verdict, c.reason, c.sentence)
			}
		})
	}
}

// never2 fills every node but n05.
func never2(w *world) {
	w.run(job("c"), 7, 0)
	w.run(job("d"), 8, 1, 2, 3)
	w.run(job("e"), 6, 4)
	w.run(job("f"), 8, 6, 7)
}

func product(r *placement.Request, name string) *placement.Request {
	r.Groups[0].Pod.GPU.Product = name
	return r
}

func TestMissesNameWhatIsInTheWay(t *testing.T) {
	w := fragmented(func(w *cluster.Workload) { w.Priority = 3 })
	w.machines[6].Ready = false
	a := explainIt(t, &Question{Snapshot: w.snapshot(), Request: ask(4, 8, leaf)})
	if len(a.Misses) != 3 {
		t.Fatalf("%d misses: %+v", len(a.Misses), a.Misses)
	}
	best, next := a.Misses[1], a.Misses[2]
	if best.Domain != "leaf-0" || best.Room != 3 || best.Need != 4 || len(best.Holders) != 1 || best.Holders[0] != (Holder{Workload: "team/a", Priority: 3, GPUs: 1, Nodes: 1}) {
		t.Errorf("the best: %+v", best)
	}
	if next.Domain != "leaf-1" || next.Room != 2 || next.Holders[0].Workload != "team/b" || len(next.Nodes) != 1 || next.Nodes[0] != (NodeInTheWay{Name: "n06", Why: placement.NotReady}) {
		t.Errorf("the next: %+v", next)
	}
}

func TestRemediesSayWhatTheyCost(t *testing.T) {
	w := fragmented()
	q := &Question{Snapshot: w.snapshot(), Request: ask(4, 8, leaf), Running: map[string]placement.Run{"team/a": {Elapsed: 2 * time.Hour}}}
	q.Request.Priority = 5
	a := explainIt(t, q)
	if m := a.remedy(Move); m.Sentence != "move team/a to n04" || m.Cost.Moved != 1 || !m.Cost.LostKnown || m.Cost.Lost != 2 {
		t.Errorf("move: %+v", m)
	}
	if m := a.remedy(Evict); m.Sentence != "ask team/a (priority 0, below 5) to make way" || m.Cost.Evicted != 1 {
		t.Errorf("ask: %+v", m)
	}
	if m := a.remedy(Edit); m.Sentence != "require one spine instead of one leaf" || m.Cost.Levels != 1 || m.Plan.Size() != 4 {
		t.Errorf("change: %+v", m)
	}
	if m := a.remedy(WaitFor); m.Start.Known || !strings.Contains(m.Sentence, "no estimate tells") {
		t.Errorf("wait: %+v", m)
	}
	if last := a.Remedies[len(a.Remedies)-1]; last.Kind != WaitFor {
		t.Errorf("what may never come is not the last: %s", last.Sentence)
	}
	// Nobody measured what the other one would lose.
	delete(q.Running, "team/a")
	again := explainIt(t, q)
	if m := again.remedy(Move); m.Cost.LostKnown {
		t.Errorf("unknown, but said to cost %v GPU-hours", m.Cost.Lost)
	}
}

func TestIdleHoldersAreAskedFirst(t *testing.T) {
	w := newWorld(4)
	w.run(job("busy"), 8, 0, 1)
	w.run(job("sleeps", func(w *cluster.Workload) { w.Priority = 7 }), 8, 2, 3)
	a := explainIt(t, &Question{Snapshot: w.snapshot(), Request: ask(2, 8, leaf), Idle: map[string]time.Duration{"team/sleeps": 26 * time.Hour}})
	if r := a.remedy(Evict); a.Verdict != Ask || r.Sentence != "ask team/sleeps (idle for 1 d 2 h, priority 7, above 0) to make way" {
		t.Errorf("%s: %s", a.Verdict, r.Sentence)
	}
}

func TestWhatIsForeignIsNotMoved(t *testing.T) {
	q := &Question{Snapshot: fragmented().snapshot(), Request: ask(4, 8, leaf), Foreign: func(name string) bool { return name == "team/a" }}
	a := explainIt(t, q)
	if r := a.remedy(Move); r.Sentence != "move team/b to n00" {
		t.Errorf("%q", r.Sentence)
	}
}

func TestMalformedRequestIsAnError(t *testing.T) {
	if _, err := Explain(&Question{Snapshot: fragmented().snapshot(), Request: ask(0, 8, leaf)}); err == nil {
		t.Error("no error")
	}
}

func TestWhoMayBeEvictedNeedNotBeAsked(t *testing.T) {
	w := fragmented(func(w *cluster.Workload) { w.Preemptible, w.Priority = true, 1 })
	q := &Question{Snapshot: w.snapshot(), Request: ask(4, 8, leaf)}
	q.Request.Priority = 5
	a := explainIt(t, q)
	if r := a.remedy(Preempt); r.Sentence != "let it evict team/a (priority 1, below 5, preemptible)" {
		t.Errorf("%q", r.Sentence)
	}
	if r := a.remedy(Evict); r.Sentence != "" {
		t.Errorf("and is asked: %q", r.Sentence)
	}
	q.Request.Preempts = true
	again := explainIt(t, q)
	if again.Verdict != Wait || again.Reason != VictimsLeave || !strings.Contains(again.Sentence, "once team/a (priority 1) made way") {
		t.Errorf("%s, %s: %s", again.Verdict, again.Reason, again.Sentence)
	}
}

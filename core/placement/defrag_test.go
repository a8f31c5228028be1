package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// load is a running workload in one line of a test: its pods' GPUs by node.
type load struct {
	name  string
	pods  map[string]int64
	edit  func(*cluster.Workload)
	needs *cluster.Needs
}

// running puts movable work of the given kind on the nodes, one pod for each entry.
func running(t testing.TB, s *cluster.Snapshot, loads ...load) *cluster.Snapshot {
	t.Helper()
	txn := s.Begin()
	for _, l := range loads {
		w := &cluster.Workload{Name: l.name, Movable: true, Level: -1}
		if l.edit != nil {
			l.edit(w)
		}
		for i, n := range s.Nodes() {
			if gpus, ok := l.pods[n.Name]; ok {
				pod := &cluster.Pod{Name: l.name + "/" + n.Name, Workload: w, Use: cluster.Vector{1000, 1 << 30, 1, gpus}, Needs: l.needs}
				if err := txn.Place(cluster.Placement{Node: i, Pod: pod}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return txn.Snapshot()
}

func on(node string, gpus int64) map[string]int64 { return map[string]int64{node: gpus} }

func defragment(t testing.TB, s *cluster.Snapshot, r *Request, o MoveOptions) Moves {
	t.Helper()
	o.Strategies = registry(t)
	m, err := Defragment(s, r, o)
	if err != nil {
		t.Fatal(err)
	}
	if problem := wrongMoves(s, r, &m, o); problem != "" {
		t.Fatal(problem, "; ", m.Sentence)
	}
	return m
}

// said is the moves in short: "a: n1>n2; b: n2>n3 n4>n5".
func said(m *Moves) string {
	var all []string
	for _, one := range m.Moves {
		text := one.Workload + ":"
		for _, p := range one.Pods {
			text += " " + p.From + ">" + p.To
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// sixNodes are three leaves of two nodes with 8 GPUs each.
func sixNodes() *cluster.Snapshot {
	var specs []nodeSpec
	for i := range 6 {
		specs = append(specs, nodeSpec{name: fmt.Sprintf("n%d", i), spine: "s", leaf: fmt.Sprintf("l%d", i/2), gpus: 8})
	}
	return world(specs...)
}

func inLeaf(r *Request) { r.Groups[0].Topology.Required = leaf }

func TestMovesMakeRoom(t *testing.T) {
	pinned := func(w *cluster.Workload) { w.Movable = false }
	inOneLeaf := func(w *cluster.Workload) { w.Level = leaf }
	for _, tc := range []struct {
		name  string
		loads []load
		ask   *Request
		o     MoveOptions
		want  string
		proof CertificateKind
	}{
		{name: "the leaf with the fewest workloads is cleared", want: "c: n4>n0",
			loads: []load{{name: "a", pods: on("n0", 4)}, {name: "b", pods: on("n1", 4)}, {name: "c", pods: on("n4", 4)},
				{name: "d", pods: on("n2", 2)}, {name: "e", pods: on("n3", 2)}},
			ask: ask(2, 8, inLeaf)},
		{name: "what may not move stays", want: "a: n0>n2; b: n1>n4",
			loads: []load{{name: "a", pods: on("n0", 4)}, {name: "b", pods: on("n1", 4)}, {name: "c", pods: on("n4", 4), edit: pinned},
				{name: "d", pods: on("n2", 4), edit: pinned}, {name: "e", pods: on("n3", 2), edit: pinned}},
			ask: ask(2, 8, inLeaf)},
		{name: "a gang keeps its leaf and moves whole", want: "a: n0>n4 n1>n5",
			loads: []load{{name: "a", pods: map[string]int64{"n0": 4, "n1": 4}, edit: inOneLeaf},
				{name: "b", pods: on("n2", 6), edit: pinned}, {name: "c", pods: on("n3", 6), edit: pinned},
				{name: "d", pods: on("n4", 4), edit: pinned}, {name: "e", pods: on("n5", 4), edit: pinned}},
			ask: ask(2, 8, inLeaf)},
		{name: "only the pods in the way move", want: "a: n0>n2",
			loads: []load{{name: "a", pods: map[string]int64{"n0": 4, "n2": 4}}, {name: "b", pods: on("n4", 2), edit: pinned},
				{name: "c", pods: on("n3", 3), edit: pinned}},
			ask: ask(2, 8, inLeaf)},
		{name: "a move makes room for another", want: "c: n2>n4; a: n0>n2",
			loads: []load{{name: "a", pods: on("n0", 4), needs: &cluster.Needs{Selector: cluster.Selector{Labels: map[string]string{"leaf": "l1"}}}},
				{name: "b", pods: on("n3", 8), edit: pinned}, {name: "c", pods: on("n2", 6)}, {name: "d", pods: on("n5", 3), edit: pinned},
				{name: "e", pods: on("n4", 2), edit: pinned}},
			ask: ask(2, 8, inLeaf)},
		{name: "not all moves are needed within the limit", proof: TooManyMoves, o: MoveOptions{MaxMoves: 1},
			loads: []load{{name: "a", pods: on("n0", 4)}, {name: "b", pods: on("n1", 4)}, {name: "c", pods: on("n2", 4)},
				{name: "d", pods: on("n3", 4)}, {name: "e", pods: on("n4", 4)}, {name: "f", pods: on("n5", 4)}},
			ask: ask(2, 8, inLeaf)},
		{name: "what moved already stays", proof: NoDomainHolds, o: MoveOptions{Moved: []string{"a", "b", "c"}},
			loads: []load{{name: "a", pods: on("n0", 4)}, {name: "b", pods: on("n2", 4)}, {name: "c", pods: on("n4", 4)}},
			ask:   ask(2, 8, inLeaf)},
		{name: "moves make no GPUs", proof: TooMuchInAll,
			loads: []load{{name: "a", pods: on("n0", 8)}, {name: "b", pods: on("n1", 8)}, {name: "c", pods: on("n2", 8)},
				{name: "d", pods: on("n3", 8)}, {name: "e", pods: on("n4", 8)}, {name: "f", pods: on("n5", 1)}},
			ask: ask(2, 8, inLeaf)},
		{name: "what is in the way fits nowhere", proof: Exhausted, o: MoveOptions{Options: Options{Budget: 1000}},
			loads: []load{{name: "a", pods: on("n0", 5)}, {name: "b", pods: on("n2", 5)}, {name: "c", pods: on("n3", 5)}, {name: "d", pods: on("n4", 5)},
				{name: "e", pods: on("n5", 5)}, {name: "f", pods: on("n1", 5)}},
			ask: ask(2, 8, inLeaf)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := defragment(t, running(t, sixNodes(), tc.loads...), tc.ask, tc.o)
			if m.Undecided || m.Feasible != (tc.proof == "") || said(&m) != tc.want {
				t.Errorf("feasible %v, undecided %v: %q, want %q; %s", m.Feasible, m.Undecided, said(&m), tc.want, m.Sentence)
			}
			if tc.proof != "" && (m.Certificate == nil || m.Certificate.Kind != tc.proof) {
				t.Errorf("certificate %+v, want %s; %s", m.Certificate, tc.proof, m.Sentence)
			}
			t.Log(m.Sentence)
		})
	}
}

// Two workloads that could only change places with each other are no plan.
func TestNoMoveWaitsForItself(t *testing.T) {
	s := running(t, world(nodeSpec{name: "n0", gpus: 8}, nodeSpec{name: "n1", gpus: 8}),
		load{name: "a", pods: on("n0", 7)}, load{name: "b", pods: on("n1", 2)},
		load{name: "c", pods: on("n1", 1), edit: func(w *cluster.Workload) { w.Movable = false }})
	r := ask(1, 6)
	m := defragment(t, s, r, MoveOptions{})
	if m.Feasible || !m.Undecided {
		t.Errorf("%s: %s", said(&m), m.Sentence)
	}
	// A third node breaks the circle.
	s = running(t, world(nodeSpec{name: "n0", gpus: 8}, nodeSpec{name: "n1", gpus: 8}, nodeSpec{name: "n2", gpus: 2}),
		load{name: "a", pods: on("n0", 7)}, load{name: "b", pods: on("n1", 2)},
		load{name: "c", pods: on("n1", 1), edit: func(w *cluster.Workload) { w.Movable = false }})
	if m = defragment(t, s, r, MoveOptions{}); len(m.Moves) != 1 && len(m.Moves) != 2 {
		t.Errorf("%s: %s", said(&m), m.Sentence)
	}
}

// Options that speak of limits hold for moves, too.
func TestMovesKeepToLimits(t *testing.T) {
	budgeted := func(w *cluster.Workload) { w.Budget, w.Cost = "team", 3 }
	s := running(t, sixNodes(),
		load{name: "a", pods: on("n0", 4), edit: budgeted}, load{name: "b", pods: on("n1", 4), edit: budgeted},
		load{name: "c", pods: on("n2", 4), edit: budgeted}, load{name: "d", pods: on("n3", 4), edit: budgeted},
		load{name: "e", pods: on("n4", 4)}, load{name: "f", pods: on("n5", 4)})
	r := ask(2, 8, inLeaf)
	if m := defragment(t, s, r, MoveOptions{Options: Options{Budgets: map[string]int{"team": 1}}}); said(&m) != "e: n4>n0; f: n5>n1" || m.Cost() != 0 {
		t.Errorf("with one of the team: %s, %s", said(&m), m.Sentence)
	}
	if m := defragment(t, s, r, MoveOptions{Options: Options{Budget: 1}}); m.Feasible || !m.Undecided {
		t.Errorf("without a budget: %s", m.Sentence)
	}
	r = ask(1, 8)
	if m := defragment(t, sixNodes(), r, MoveOptions{}); !m.Feasible || len(m.Moves) != 0 || m.Plan.Size() != 1 {
		t.Errorf("in an empty cluster: %s", m.Sentence)
	}
	r.Groups[0].Count = 0
	if _, err := Defragment(s, r, MoveOptions{}); err == nil || !strings.Contains(err.Error(), "defragmenting for test/gang: 0 pods") {
		t.Errorf("a gang of no pods: %v", err)
	}
}

// A gang of two groups is made room for, too.
func TestMovesForSeveralGroups(t *testing.T) {
	s := running(t, sixNodes(),
		load{name: "a", pods: on("n0", 4)}, load{name: "b", pods: on("n2", 4)}, load{name: "c", pods: on("n4", 5)})
	r := ask(1, 8, inLeaf)
	r.Groups[0].Name = "workers"
	r.Groups = append(r.Groups, r.Groups[0])
	r.Groups[1].Name = "leader"
	r.Groups[1].Pod = ask(1, 5).Groups[0].Pod
	r.Sets = []Set{{Groups: []int{0, 1}, Topology: Topology{Required: leaf, Preferred: AnyLevel}}}
	m, err := Defragment(s, r, MoveOptions{})
	if err != nil || !m.Feasible || len(m.Moves) != 1 || len(m.Plan.Groups) != 2 {
		t.Errorf("%v: %s: %s", err, said(&m), m.Sentence)
	}
}

func TestTidy(t *testing.T) {
	s := running(t, sixNodes(),
		load{name: "a", pods: on("n0", 2)}, load{name: "b", pods: on("n1", 4)}, load{name: "c", pods: on("n2", 3)},
		load{name: "d", pods: on("n3", 5)}, load{name: "e", pods: on("n4", 4)}, load{name: "f", pods: on("n5", 4)})
	r := ask(2, 8, inLeaf)
	for most, want := range map[int]int{1: 1, 2: 2} {
		o := MoveOptions{MaxMoves: most, Options: Options{Strategies: registry(t)}}
		m, err := Tidy(s, r, o)
		if err != nil || m.Plan.Size() != want || len(m.Moves) > most {
			t.Errorf("%d moves: room for %d, want %d: %s (%v)", most, m.Plan.Size(), want, m.Sentence, err)
		}
		sized := ask(want, 8, inLeaf)
		if problem := wrongMoves(s, sized, &m, o); problem != "" {
			t.Error(problem)
		}
	}
	if m, err := Tidy(sixNodes(), r, MoveOptions{MaxMoves: 1}); err != nil || len(m.Moves) != 0 || m.Plan.Size() != 2 {
		t.Errorf("in an empty cluster: %s, %v", m.Sentence, err)
	}
	if _, err := Tidy(s, r, MoveOptions{}); err == nil {
		t.Error("tidying without a limit is let pass")
	}
}

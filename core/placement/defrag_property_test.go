package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// moveFunc is what the properties are about, so that broken variants can be put in its place.
type moveFunc func(*cluster.Snapshot, *Request, MoveOptions) (Moves, error)

// drawMoves draws up to six nodes with work on them that mostly may move, and a gang.
func drawMoves(t *rapid.T) (*cluster.Snapshot, *Request, MoveOptions) {
	specs := make([]nodeSpec, between(t, 2, 6, "nodes"))
	for i := range specs {
		leaves := oneOf(t, "leaf", "l0", "l1", "")
		specs[i] = nodeSpec{name: fmt.Sprintf("n%d", i), spine: "s", leaf: leaves, gpus: oneOf[int64](t, "gpus", 4, 4, 2)}
		ready, labelled := !chance(t, 12, "down"), chance(t, 2, "labelled")
		specs[i].edit = func(n *cluster.Node) {
			n.Ready = ready
			if labelled {
				n.Labels["zone"] = "a"
			}
		}
	}
	txn := world(specs...).Begin()
	for i := range 8 - between(t, 0, 6, "fewer workloads") {
		w := &cluster.Workload{
			Name: fmt.Sprintf("w%d", i), Movable: !chance(t, 6, "pinned"), Protected: chance(t, 12, "protected"),
			Level: oneOf(t, "level", -1, -1, leaf), Cost: float64(between(t, 0, 3, "cost")),
			Budget: oneOf(t, "budget", "", "", "", "team"),
		}
		var needs *cluster.Needs
		if chance(t, 5, "selected") {
			needs = &cluster.Needs{Selector: cluster.Selector{Labels: map[string]string{"zone": "a"}}}
		}
		gpus := oneOf[int64](t, "gpus a pod", 2, 1, 3)
		for k := range between(t, 1, 2, "pods") {
			pod := &cluster.Pod{Name: fmt.Sprintf("w%d-%d", i, k), Workload: w, Use: cluster.Vector{0, 0, 1, gpus}, Needs: needs}
			_ = txn.Place(cluster.Placement{Node: between(t, 0, len(specs)-1, "node"), Pod: pod}) // Where there is room.
		}
	}
	r := ask(between(t, 1, 3, "count"), oneOf[int64](t, "gpus of the gang", 4, 4, 3, 2), func(r *Request) {
		r.Groups[0].Topology.Required = oneOf(t, "required", AnyLevel, leaf)
		r.Groups[0].Pod.Resources = cluster.Vector{0, 0, 1, r.Groups[0].Pod.GPUs}
	})
	o := MoveOptions{MaxMoves: oneOf(t, "most", 0, 1, 2)}
	if chance(t, 4, "moved") {
		o.Moved = []string{"w0"}
	}
	if rapid.Bool().Draw(t, "limited") {
		o.Budgets = map[string]int{"team": between(t, 0, 1, "of the team")}
	}
	return txn.Snapshot(), r, o
}

// inVain returns the name of a workload whose move can be left out of the plan, "" for none.
func inVain(s *cluster.Snapshot, r *Request, m *Moves) string {
	for i := range m.Moves {
		txn := s.Begin()
		ok := true
		for k := range m.Moves {
			ok = ok && (k == i || m.Moves[k].Make(txn) == nil)
		}
		if ok && largestGang(txn.Snapshot(), r) >= r.Groups[0].least() {
			return m.Moves[i].Workload
		}
	}
	return ""
}

// tallyMoves counts what came out.
type tallyMoves struct{ known, optimal, missed, feasible, proofs, undecided, moves int }

// checkMoves returns what is wrong with the answer to a drawn question. Without a sum it does not
// try every way to move, which is dear.
func checkMoves(t *rapid.T, defragment moveFunc, o Options, sum *tallyMoves) string {
	s, r, limits := drawMoves(t)
	limits.Strategies = o.Strategies
	m, err := defragment(s, r, limits)
	if err != nil {
		return err.Error()
	}
	if problem := wrongMoves(s, r, &m, limits); problem != "" {
		return problem
	}
	if name := inVain(s, r, &m); name != "" {
		return name + " moves in vain"
	}
	if sum == nil {
		return ""
	}
	most := limits.MaxMoves
	if most == 0 {
		most = 6
	}
	fewest, known := newShuffles(s, r, limits).fewest(most)
	switch {
	case m.Undecided:
		sum.undecided++
		if known && fewest >= 0 {
			sum.missed++
		}
	case m.Feasible:
		sum.feasible++
	default:
		sum.proofs++
	}
	if !known {
		return ""
	}
	switch {
	case m.Feasible && fewest < 0:
		return "brute force finds no way"
	case m.Feasible && len(m.Moves) < fewest:
		return fmt.Sprintf("%d moves, brute force needs %d", len(m.Moves), fewest)
	case m.Feasible && m.LowerBound > fewest:
		return fmt.Sprintf("a bound of %d, %d moves do", m.LowerBound, fewest)
	case !m.Feasible && !m.Undecided && fewest >= 0:
		return fmt.Sprintf("proven impossible (%s), %d moves do", m.Sentence, fewest)
	case m.Feasible && fewest > 0:
		sum.known++
		sum.moves += len(m.Moves)
		if len(m.Moves) == fewest {
			sum.optimal++
		}
	}
	return ""
}

func TestMovesAreSoundAndNearlyFewest(t *testing.T) {
	o := Options{Strategies: registry(t)}
	var sum tallyMoves
	cases(t, 2000, func(t *rapid.T) {
		if problem := checkMoves(t, Defragment, o, &sum); problem != "" {
			t.Fatal(problem)
		}
	})
	t.Logf("%+v: %d of %d plans with moves have the fewest", sum, sum.optimal, sum.known)
	if missed := sum.known - sum.optimal; sum.known == 0 || missed > 1+sum.known/50 {
		t.Errorf("%d of %d plans have the fewest moves", sum.optimal, sum.known)
	}
}

// The properties must be able to fail: each of these mistakes is found.
func TestMovePropertiesFindMistakes(t *testing.T) {
	const claimsTooMuch, provesTooMuch = "claims too much", "proves what it isn't"
	asIs, podAsIs := func(*cluster.Workload) {}, func(*cluster.Pod) {}
	saying := func(edit func(*Moves)) moveFunc {
		return func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			m, err := Defragment(s, r, o)
			edit(&m)
			return m, err
		}
	}
	for name, broken := range map[string]moveFunc{
		"moves what may not move":        seeingWork(func(w *cluster.Workload) { w.Movable = true }, podAsIs),
		"moves what is protected":        seeingWork(func(w *cluster.Workload) { w.Protected = false }, podAsIs),
		"ignores the level of what runs": seeingWork(func(w *cluster.Workload) { w.Level = -1 }, podAsIs),
		"ignores what pods need":         seeingWork(asIs, func(p *cluster.Pod) { p.Needs = nil }),
		"forgets what moved already": func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			o.Moved = nil
			return Defragment(s, r, o)
		},
		"ignores budgets": func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			o.Budgets = nil
			return Defragment(s, r, o)
		},
		"ignores the limit": func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			o.MaxMoves = 0
			return Defragment(s, r, o)
		},
		"ignores the required level": func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			wide := *r
			wide.Groups = slices.Clone(r.Groups)
			wide.Groups[0].Topology.Required = AnyLevel
			return Defragment(s, &wide, o)
		},
		"moves in any order": saying(func(m *Moves) { slices.Reverse(m.Moves) }),
		"forgets a move":     saying(func(m *Moves) { m.Moves = m.Moves[:max(0, len(m.Moves)-1)] }),
		"makes a move twice": saying(func(m *Moves) { m.Moves = append(m.Moves, m.Moves...) }),
		claimsTooMuch:        saying(func(m *Moves) { m.LowerBound++ }),
		provesTooMuch:        saying(func(m *Moves) { *m = Moves{Certificate: &Certificate{}} }),
		"leaves in what is in vain": func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
			m, err := Defragment(s, r, o)
			if m.Feasible {
				moveOneMore(s, r, &m, o)
			}
			return m, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, found := Options{Strategies: registry(t)}, false
			var sum *tallyMoves
			if name == claimsTooMuch || name == provesTooMuch {
				sum = &tallyMoves{} // Only trying everything shows it.
			}
			until(t, 2000, &found, func(t *rapid.T) {
				found = checkMoves(t, broken, o, sum) != ""
			})
			if !found {
				t.Error("the properties hold for a broken variant")
			}
		})
	}
}

// seeingWork is a variant that sees other work than there is.
func seeingWork(edit func(*cluster.Workload), pods func(*cluster.Pod)) moveFunc {
	return func(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
		work := map[*cluster.Workload]*cluster.Workload{}
		original := map[*cluster.Pod]*cluster.Pod{}
		var nodes []*cluster.Node
		for _, n := range s.Nodes() {
			next := *n
			next.Pods = nil
			for _, p := range n.Pods {
				own := *p
				if work[p.Workload] == nil {
					w := *p.Workload
					edit(&w)
					work[p.Workload] = &w
				}
				own.Workload = work[p.Workload]
				pods(&own)
				original[&own] = p
				next.Pods = append(next.Pods, &own)
			}
			nodes = append(nodes, &next)
		}
		m, err := Defragment(s.Next(s.Generation+1, s.Resources, nodes), r, o)
		for i := range m.Moves {
			for k := range m.Moves[i].Pods {
				p := &m.Moves[i].Pods[k]
				was := original[p.Before.Pod]
				p.Before.Pod, p.After.Pod.Workload, p.After.Pod.Needs = was, was.Workload, was.Needs
			}
		}
		return m, err
	}
}

// moveOneMore appends a move that nobody needs, if there is room for one.
func moveOneMore(s *cluster.Snapshot, r *Request, m *Moves, o MoveOptions) {
	after, _ := run(s, m.Moves)
	for i, n := range after.Nodes() {
		for _, p := range n.Pods {
			w := p.Workload
			if !w.Movable || w.Protected || w.Level >= 0 || p.Needs != nil || slices.Contains(o.Moved, w.Name) ||
				slices.ContainsFunc(m.Moves, func(m Move) bool { return m.Workload == w.Name }) {
				continue
			}
			for k, to := range after.Nodes() {
				one := Move{Workload: w.Name, Pods: []PodMove{{
					Pod: p.Name, From: n.Name, To: to.Name, Before: cluster.Placement{Node: i, Pod: p}, After: cluster.Placement{Node: k, Pod: p},
				}}}
				if txn := after.Begin(); k != i && to.Ready && one.Make(txn) == nil {
					if d, err := Plan(txn.Snapshot(), r, o.Options); err == nil && d.Feasible {
						m.Moves, m.Plan = append(m.Moves, one), d
						return
					}
				}
			}
		}
	}
}

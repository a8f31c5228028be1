package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// mover is the search for moves.
//
// It goes forward from the cluster as it is: what a place is promised to is held there, while
// what has to leave it is still where it was. So each workload is given a place that is free
// when it moves, and the order in which they were found is one in which they can be made.
type mover struct {
	// p plans the request on the cluster as it is; without is the cluster without anything
	// that may move, and e the workloads that may.
	p       *planner
	o       MoveOptions
	e       *eviction
	without *cluster.Snapshot

	state
	// steps counts questions of where something fits; budget bounds them.
	steps, budget int
}

// state is how far one way of making room has come.
type state struct {
	// s is the cluster after the moves so far; held is what is promised beside.
	s    *cluster.Snapshot
	held []cluster.Placement
	// gone are the workloads that moved, or wait for their turn.
	gone  map[*cluster.Workload]bool
	moves []Move
}

// maxChain is how long a chain of moves may get, of which each makes room for the next.
const maxChain = 3

// moveDomains is in how many domains room is tried to be made.
const moveDomains = 8

// fewToMove is how many workloads are so few that every way to choose among them is tried.
const fewToMove = 64

func newMover(p *planner, o MoveOptions) *mover {
	m := &mover{p: p, o: o, budget: o.Budget}
	if m.budget <= 0 {
		m.budget = DefaultBudget
	}
	m.reset()
	m.e = m.eviction(p)
	m.without = m.e.without()
	return m
}

func (m *mover) reset() {
	m.state = state{s: m.p.s, gone: map[*cluster.Workload]bool{}}
}

// save returns the state so that setting it again takes back what comes after.
func (m *mover) save() state {
	saved := m.state
	saved.gone = maps.Clone(m.gone)
	saved.held, saved.moves = slices.Clip(m.held), slices.Clip(m.moves)
	return saved
}

// eviction is that of what may move now.
func (m *mover) eviction(p *planner) *eviction {
	e := newEviction(p, m.mayMove)
	e.splits = true
	return e
}

func (m *mover) mayMove(w *cluster.Workload) bool {
	if !w.Movable || w.Protected || w.Name == m.p.request.Name || m.gone[w] || slices.Contains(m.o.Moved, w.Name) {
		return false
	}
	return m.budgetLeft(w) > 0
}

// budgetLeft returns how many more workloads of its budget may move, those in gone counted.
func (m *mover) budgetLeft(w *cluster.Workload) int {
	left, limited := m.o.Budgets[w.Budget]
	if w.Budget == "" || !limited {
		return 1
	}
	for other := range m.gone {
		if other.Budget == w.Budget {
			left--
		}
	}
	return left
}

func (m *mover) out() bool { return m.steps >= m.budget }

// search returns the moves of the best way found to make room, nil if none was: without chains
// first, as what moves only to make room for another move is a move more.
func (m *mover) search() []Move {
	for depth := 1; depth <= maxChain && !m.out(); depth++ {
		m.reset()
		if _, ok := m.clear(m.p, nil, depth); ok {
			return m.needed(m.moves)
		}
	}
	return nil
}

// clear returns a plan for what p asks for, after moving what is in its way. The leaving pods
// are its own, which leave their places for it.
func (m *mover) clear(p *planner, leaving []cluster.Placement, depth int) (Decision, bool) {
	now := *p
	now.s = putPods(dropPods(m.s, leaving), m.held)
	if d, ok := m.place(&now, now.s); ok || depth == 0 {
		return d, ok
	}
	e := m.eviction(&now)
	if len(e.all) == 0 {
		return Decision{}, false
	}
	without := e.without()
	if !e.fits(without) {
		m.steps += e.checks
		return Decision{}, false
	}
	for _, o := range m.waysOut(e, without) {
		if m.out() {
			break
		}
		if d, ok := m.try(&now, o, depth-1); ok {
			return d, true
		}
	}
	return Decision{}, false
}

// place plans a request on s at the smallest size that will do.
func (m *mover) place(p *planner, s *cluster.Snapshot) (Decision, bool) {
	m.steps++
	own := *p
	own.s = s
	own.options.Explain = false
	own.cache = p.trialCache()
	if len(p.request.Groups) > 1 || len(p.request.Sets) > 0 {
		d := own.plan()
		return d, d.Feasible
	}
	least := p.request.Groups[0]
	least.Count, least.MinCount = least.leastWhole(), 0
	g := own.gang(s, &least)
	g.restrict(p.request.Avoid)
	_, takes, ok := g.place(s.Whole())
	if !ok {
		return Decision{}, false
	}
	return Decision{Feasible: true, Groups: []Assignment{g.assign(takes)}}, true
}

// waysOut returns sets of workloads without which there is room, those of the fewest first.
// What is put back first stays: once what is small, so that few move; once what is large, so
// that what moves finds a place; once what is dear.
func (m *mover) waysOut(e *eviction, without *cluster.Snapshot) []*outcome {
	defer func(before int) { m.steps += e.checks - before }(e.checks)
	var found []*outcome
	for i, order := range []func(a, b *prey) int{
		m.smallerFirst, func(a, b *prey) int { return m.smallerFirst(b, a) }, dearer,
	} {
		if i != 1 && e.p.request != m.p.request && len(e.all) > fewToMove {
			continue // In a chain only what finds a place easily is worth the question.
		}
		slices.SortFunc(e.all, order)
		e.lacking = i == 1
		for _, d := range e.domains(without, moveDomains) {
			found = append(found, e.putBack(without, e.byNode(without, d)))
		}
		if len(e.all) <= improveChecks/4 {
			found = append(found, e.putBack(without, nil))
		}
	}
	slices.SortStableFunc(found, (*outcome).compare)
	return found
}

// smallerFirst orders workloads by how many GPUs they hold.
func (m *mover) smallerFirst(a, b *prey) int {
	return cmp.Or(
		cmp.Compare(m.gpus(a), m.gpus(b)),
		cmp.Compare(b.Cost, a.Cost),
		strings.Compare(a.Name, b.Name),
	)
}

func (m *mover) gpus(v *prey) int64 {
	sum := int64(0)
	for _, at := range v.pods {
		sum += at.Pod.Use.At(m.p.request.Groups[0].Pod.GPUResource)
	}
	return sum
}

// try gives what p asks for its place in the outcome, and what has to leave others.
func (m *mover) try(p *planner, o *outcome, depth int) (Decision, bool) {
	d, ok := m.place(p, o.s)
	if !ok {
		return d, false
	}
	saved := m.save()
	m.held = append(m.held, d.Placements(p.request, &cluster.Workload{Name: p.request.Name, Mbps: p.request.Groups[0].Mbps})...)
	for _, v := range o.gone {
		if m.budgetLeft(v.Workload) < 1 {
			m.state = saved
			return d, false
		}
		m.gone[v.Workload] = true
	}
	ok = m.relocateAll(o, depth)
	if !ok {
		m.state = saved
	}
	m.held = saved.held
	return d, ok
}

// relocateAll finds places for what has to leave, what is hardest to place first. What finds
// none waits until others have left theirs, and only then makes others move.
func (m *mover) relocateAll(o *outcome, depth int) bool {
	pending := slices.Clone(o.gone)
	slices.SortFunc(pending, m.harder)
	for chain := 0; len(pending) > 0; {
		left := make([]*prey, 0, len(pending))
		for _, v := range pending {
			if !m.relocate(v, o.kept[v], chain) {
				left = append(left, v)
			}
		}
		switch {
		case len(left) < len(pending):
			chain = 0
		case chain == depth || m.out():
			return false
		default:
			chain++
		}
		pending = left
	}
	return true
}

// harder orders workloads by how hard a place for them is to find: those with a level of their
// own, with larger pods, with more of them.
func (m *mover) harder(a, b *prey) int {
	largest := func(v *prey) int64 {
		most := int64(0)
		for _, at := range v.pods {
			most = max(most, at.Pod.Use.At(m.p.request.Groups[0].Pod.GPUResource))
		}
		return most
	}
	return cmp.Or(
		cmp.Compare(min(b.Level, 0), min(a.Level, 0)),
		cmp.Compare(largest(b), largest(a)),
		cmp.Compare(m.gpus(b), m.gpus(a)),
		strings.Compare(a.Name, b.Name),
	)
}

// needed leaves out moves that are in vain, the dearest first, until none is.
func (m *mover) needed(moves []Move) []Move {
	order := slices.Clone(moves)
	slices.SortStableFunc(order, func(a, b Move) int { return cmp.Compare(b.Cost, a.Cost) })
	after, ok := run(m.p.s, moves)
	for again := ok; again; {
		again = false
		for _, one := range order {
			i := slices.IndexFunc(moves, func(m Move) bool { return m.Workload == one.Workload })
			if i < 0 {
				continue
			}
			// The quick question first: most moves are needed.
			back := putPods(dropPods(after, one.places(func(p *PodMove) cluster.Placement { return p.After })),
				one.places(func(p *PodMove) cluster.Placement { return p.Before }))
			if !m.e.fits(back) {
				continue
			}
			rest := slices.Delete(slices.Clone(moves), i, i+1)
			if s, ok := run(m.p.s, rest); ok && m.e.fits(s) {
				moves, after, again = rest, s, true
			}
		}
	}
	return moves
}

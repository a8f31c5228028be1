package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// jointSteps bounds the search for places for the gang and a set of workloads at once, and
// jointCost is what it counts against the budget.
const (
	jointSteps = 2000
	jointCost  = 200
	// orderSteps bounds the search for an order in which moves can be made.
	orderSteps = 500
	// maxTogether is for how many workloads places are looked for at once.
	maxTogether = 16
)

// smaller tries every set of workloads, from the bound up to one less than what is known to do
// (0: any number up to what is allowed), as far as the budget reaches. It returns moves if it
// finds any, and the bound, raised past the sizes of which every set was refuted.
func (m *mover) smaller(bound, known int) ([]Move, int) {
	most := len(m.e.all)
	if m.o.MaxMoves > 0 {
		most = min(most, m.o.MaxMoves)
	}
	if known > 0 {
		most = min(most, known-1)
	}
	m.steps = 0
	for size, sure := bound, true; size <= most && m.affords(size) && !m.out(); size++ {
		var found []Move
		m.sets(size, func(set []*prey) bool {
			moves, refuted := m.together(set)
			if sure = sure && refuted; moves != nil {
				found = m.needed(moves)
			}
			return found == nil && !m.out()
		})
		if found != nil {
			return found, min(bound, len(found))
		}
		if sure = sure && !m.out(); sure {
			bound = size + 1
		}
	}
	return nil, bound
}

// proven tells whether it can be shown, within the budget, that no set that is allowed makes room:
// what fewer workloads make room for, more do, too. So it looks at the largest sets; at smaller
// ones only where larger ones would overdraw a limit on evictions.
func (m *mover) proven() bool {
	size := len(m.e.all)
	if k := m.o.MaxMoves; k > 0 {
		size = min(size, k)
	}
	m.steps = 0
	for all, overdrawn := true, true; overdrawn; size-- {
		if !m.affords(size) {
			return false
		}
		overdrawn = m.sets(size, func(set []*prey) bool {
			_, refuted := m.together(set)
			all = refuted && !m.out()
			return all
		})
		if !all {
			return false
		}
	}
	return true
}

// affords tells whether the budget reaches to ask about every set of a size.
func (m *mover) affords(size int) bool {
	if size > maxTogether {
		return false
	}
	n, count := len(m.e.all), 1
	for i := range min(size, n-size) {
		if count = count * (n - i) / (i + 1); count > m.budget {
			return false
		}
	}
	return true
}

// sets calls visit for every set of so many workloads until it returns false, but for those that
// would overdraw a limit on evictions: whether it left out any, it returns.
func (m *mover) sets(size int, visit func([]*prey) bool) (overdrawn bool) {
	set := make([]*prey, 0, size)
	var next func(from int) bool
	next = func(from int) bool {
		if o := (outcome{gone: set}); len(m.o.Budgets) > 0 && !o.within(m.o.Budgets) {
			overdrawn = true
			return true
		}
		if len(set) == size {
			return visit(set)
		}
		for i := from; i <= len(m.e.all)-(size-len(set)); i++ {
			set = append(set, m.e.all[i])
			ok := next(i + 1)
			set = set[:len(set)-1]
			if !ok {
				return false
			}
		}
		return true
	}
	next(0)
	return overdrawn
}

// together looks for places for the gang and for all of the set at once. It returns moves that
// can be made one after the other; refuted means that there are none, in whatever order.
func (m *mover) together(set []*prey) (moves []Move, refuted bool) {
	m.steps++
	var pods []cluster.Placement
	for _, v := range set {
		pods = append(pods, v.pods...)
	}
	s := dropPods(m.p.s, pods)
	if !m.e.fits(s) {
		return nil, !m.e.vague
	}
	m.steps += jointCost
	r := *m.p.request
	r.Groups = slices.Clone(r.Groups)
	r.Sets = slices.Clone(r.Sets)
	for i := range r.Groups {
		r.Groups[i].Count, r.Groups[i].MinCount = r.Groups[i].leastWhole(), 0
	}
	asked := make([]wanting, len(set))
	for i, v := range set {
		asked[i] = m.wants(v, v.pods, nil)
		if asked[i].set != nil {
			joint := *asked[i].set
			joint.Groups = nil
			for k := range asked[i].groups {
				joint.Groups = append(joint.Groups, len(r.Groups)+k)
			}
			r.Sets = append(r.Sets, joint)
		}
		r.Groups = append(r.Groups, asked[i].groups...)
	}
	p := m.packer(s, &r)
	p.cache = m.p.trialCache()
	p.options.Explain, p.options.Budget = false, jointSteps
	d := p.planSeveral()
	if !d.Feasible {
		return nil, !d.Undecided && m.asTheyAre(set)
	}
	at := len(m.p.request.Groups)
	m.reset()
	for i, v := range set {
		if move := m.moveOf(v, asked[i], d.Groups[at:]); len(move.Pods) > 0 {
			moves = append(moves, move)
		}
		at += len(asked[i].groups)
	}
	steps := 0
	return order(m.p.s, moves, &steps), false
}

// asTheyAre tells whether every pod of the set could be given the place that it has: else it
// proves nothing that they cannot be placed anew.
func (m *mover) asTheyAre(set []*prey) bool {
	if len(m.p.request.Avoid) > 0 {
		return false
	}
	for _, v := range set {
		home := -2
		for _, at := range v.pods {
			n := m.p.s.At(at.Node)
			shape := m.shapeOf(at.Pod)
			q := newNeed(&shape, m.p.s.Resources)
			if q.filterKind(n.Machine) != Fits || oversold(n) {
				return false
			}
			d := m.p.s.DomainOf(min(v.Level, len(m.p.s.Levels)-1), at.Node)
			if d < 0 || home >= 0 && d != home {
				return false
			}
			home = d
		}
	}
	return true
}

func oversold(n *cluster.Node) bool {
	for i, used := range n.Used {
		if used > n.Allocatable.At(i) {
			return true
		}
	}
	return false
}

// order returns the moves in an order in which each finds its targets free, nil if there is none
// or it takes too long to find.
func order(s *cluster.Snapshot, moves []Move, steps *int) []Move {
	if len(moves) == 0 {
		return []Move{}
	}
	for i := range moves {
		if *steps++; *steps > orderSteps {
			return nil
		}
		txn := s.Begin()
		if moves[i].Make(txn) != nil {
			continue
		}
		rest := slices.Delete(slices.Clone(moves), i, i+1)
		if ordered := order(txn.Snapshot(), rest, steps); ordered != nil {
			return append([]Move{moves[i]}, ordered...)
		}
	}
	return nil
}

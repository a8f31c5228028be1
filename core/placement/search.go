package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// search places several groups one after the other, each on what the ones before left, and
// goes back where the next one finds no room.
type search struct {
	p *planner
	// sizes is how many pods of each group are to be placed.
	sizes []int
	// steps counts placements tried; limit ends the search.
	steps, limit int
	// width is how many places are tried for one group before going back; 0 means all.
	width int
	// placed is what is placed at present, by group.
	placed []placedGroup
	// best is the best complete plan so far; extra is how many steps may still go into finding
	// a better one.
	best  *solution
	extra int
}

// placedGroup is where one group is.
type placedGroup struct {
	choice choice
	bound  cluster.Domain
	takes  []take
	pods   Assignment
}

// solution is a complete plan.
type solution struct {
	groups []placedGroup
	s      *cluster.Snapshot
	// spread is the number of domains of each level, widest first, summed over the units that
	// ask for a level.
	spread []int
}

// task is a unit to be placed inside a domain.
type task struct {
	unit  *unit
	bound cluster.Domain
}

// out tells whether the search has to end.
func (q *search) out() bool { return q.steps >= q.limit }

// run places the tasks in order. It returns true once the search is over: a plan is found and
// nothing more is to be spent on a better one.
func (q *search) run(s *cluster.Snapshot, tasks []task) bool {
	if len(tasks) == 0 {
		return q.complete(s)
	}
	t, rest := tasks[0], tasks[1:]
	if t.unit.group >= 0 {
		return q.runGroup(s, t, rest)
	}
	for _, d := range q.domains(s, t) {
		next := make([]task, 0, len(t.unit.parts)+len(rest))
		for _, part := range t.unit.parts {
			next = append(next, task{unit: part, bound: d})
		}
		if q.run(s, append(next, rest...)) {
			return true
		}
		if q.out() {
			return q.best != nil
		}
	}
	return false
}

// complete records a plan and tells whether to stop.
func (q *search) complete(s *cluster.Snapshot) bool {
	found := &solution{groups: slices.Clone(q.placed), s: s}
	found.spread = q.p.spreadOf(found.groups)
	if q.best == nil {
		q.limit = min(q.limit, q.steps+q.extra)
	}
	if q.best == nil || slices.Compare(found.spread, q.best.spread) < 0 {
		q.best = found
	}
	return q.out()
}

// domains returns the domains in which the unit may be placed: those of its preferred level
// first, then of ever wider ones, last those of its required level. Within a level those come
// first that the unit fills best.
func (q *search) domains(s *cluster.Snapshot, t task) []cluster.Domain {
	var found []cluster.Domain
	gangs := q.gangs(s, t.unit)
	widest := max(t.unit.topology.Required, t.bound.Level)
	for level := max(t.unit.topology.Preferred, widest); level >= widest; level-- {
		first := len(found)
		room := map[cluster.Domain]int64{}
		for _, d := range q.candidates(s, t.bound, level) {
			if !located(s, d, t.unit.topology.Required) {
				continue
			}
			if left, ok := q.leaves(gangs, d); ok {
				room[d] = left
				found = append(found, d)
			}
		}
		slices.SortStableFunc(found[first:], func(a, b cluster.Domain) int {
			return int(min(max(room[a]-room[b], -1), 1))
		})
	}
	return found
}

// located tells whether d, which is of the level or of a narrower one, is in a domain of it: the
// nodes of a narrower one may lack the label.
func located(s *cluster.Snapshot, d cluster.Domain, level int) bool {
	return level < 0 || d.First == d.End || s.DomainOf(level, d.First) >= 0
}

func (q *search) candidates(s *cluster.Snapshot, bound cluster.Domain, level int) []cluster.Domain {
	g := gang{s: s}
	return g.candidates(bound, level)
}

// gangs returns the groups of a unit as far as it matters for whether a domain may hold each of
// them by itself.
func (q *search) gangs(s *cluster.Snapshot, u *unit) []*gang {
	gangs := make([]*gang, len(u.groups))
	for k, i := range u.groups {
		g := q.gang(s, i)
		g.links = nil // A part of a domain that holds the group loads no uplink in it.
		if g.group.KeptInSlices {
			g.group.Slices = nil // New pods alone need not be whole ones.
		}
		gangs[k] = g
	}
	return gangs
}

// leaves tells whether every group would fit in d by itself, and all together as far as their
// sizes tell, and how many units of GPU would be left there. A domain that fails here needs no
// search.
func (q *search) leaves(gangs []*gang, d cluster.Domain) (int64, bool) {
	var free, want int64
	for _, g := range gangs {
		if !g.holdsKept(d) || !g.holds(d, g.layer(d), int64(g.group.Count)) {
			return 0, false
		}
		// In GPUs where pods ask for them, else in pods: what is compared is one request.
		free += g.whole(d, g.layer(d)) * max(1, g.view.need.GPUs)
		want += int64(g.group.Count) * max(1, g.view.need.GPUs)
	}
	if len(gangs) > 1 {
		if most, asked, ok := usable(gangs, d); ok {
			return most - asked, most >= asked
		}
	}
	return free - want, true
}

// gang is the group with the size that is to be placed.
func (q *search) gang(s *cluster.Snapshot, i int) *gang {
	group := q.p.request.Groups[i]
	group.Count, group.MinCount = q.sizes[i], 0
	g := q.p.trial(s, &group)
	g.restrict(q.p.request.Avoid)
	return g
}

// runGroup tries the places for one group.
func (q *search) runGroup(s *cluster.Snapshot, t task, rest []task) bool {
	if q.sizes[t.unit.group] == 0 {
		q.placed[t.unit.group] = placedGroup{bound: t.bound}
		return q.run(s, rest)
	}
	tried := 0
	over := false
	q.places(s, t, len(rest) == 0, func(c choice, takes []take) bool {
		q.steps++
		tried++
		next := q.commit(s, t, c, takes)
		over = q.run(next, rest)
		return !over && !q.out() && (q.width == 0 || tried < q.width)
	})
	return over || q.out() && q.best != nil
}

// commit puts the group's pods on their nodes.
func (q *search) commit(s *cluster.Snapshot, t task, c choice, takes []take) *cluster.Snapshot {
	i := t.unit.group
	g := q.gang(s, i)
	own := slices.Clone(takes)
	a := g.assign(own)
	q.placed[i] = placedGroup{choice: c, bound: t.bound, takes: own, pods: a}
	return addPods(s, &a, g.group)
}

// addPods returns the snapshot with the pods of an assignment.
func addPods(s *cluster.Snapshot, a *Assignment, group *Group) *cluster.Snapshot {
	w := &cluster.Workload{Name: group.Name, Mbps: group.Mbps}
	var changed []*cluster.Node
	for rank := 0; rank < len(a.At); {
		node := a.At[rank]
		var pods []*cluster.Pod
		for ; rank < len(a.At) && a.At[rank] == node; rank++ {
			pods = append(pods, a.pod(rank, &group.Pod, w))
		}
		changed = append(changed, s.At(int(node)).With(pods...))
	}
	return s.Next(s.Generation+1, s.Resources, changed)
}

// spreadOf counts domains: by level, widest first, the sum over all units that ask for one.
func (p *planner) spreadOf(groups []placedGroup) []int {
	sum := make([]int, len(p.s.Levels))
	g := gang{s: p.s}
	var visit func(u *unit)
	visit = func(u *unit) {
		if u.topology != NoTopology() || u == p.root && p.packs {
			var takes []take
			for _, i := range u.groups {
				takes = append(takes, groups[i].takes...)
			}
			sortTakes(takes)
			for l, n := range g.domainsOf(takes, 0) {
				sum[l] += n
			}
		}
		for _, part := range u.parts {
			visit(part)
		}
	}
	visit(p.root)
	return sum
}

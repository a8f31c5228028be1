package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// preempt looks for workloads of lower priority whose place the request can take. Refused is
// the decision without them, which stands if there are none.
//
// Room and topology are one question: the search starts from the world in which everything
// that may be evicted is gone. What does not fit there is refused at once, with a proof. What
// does keeps fitting while one workload after the other is put back; those that cannot be are
// the victims, so that none is taken in vain.
func (p *planner) preempt(refused Decision) Decision {
	e := newEviction(p, p.mayEvict)
	for _, v := range e.all {
		v.rank = v.Priority
	}
	if len(e.all) == 0 {
		refused.Why.Sentence += "; nothing that runs may be evicted for it"
		return refused
	}
	without := e.without()
	if !e.fits(without) {
		return e.refuse(without, refused)
	}
	best := e.search(without)
	if best == nil {
		best = e.searchWithin(p.options.Budgets)
	}
	if best == nil {
		refused.Undecided = true
		refused.Why.Certificate = nil
		refused.Why.Sentence = "no set of evictions within the budgets was found; " + refused.Why.Sentence
		return refused
	}
	after := *p
	after.s = best.s
	d := after.plan()
	for _, w := range best.gone {
		d.Victims = append(d.Victims, w.victim(best.kept[w]))
	}
	slices.SortFunc(d.Victims, func(a, b Victim) int { return strings.Compare(a.Workload, b.Workload) })
	d.Why.Sentence += e.words(d.Victims)
	return d
}

// searchWithin searches again among fewer workloads: of each budget only as many as it has left,
// the cheapest, so that no choice among them overdraws it.
func (e *eviction) searchWithin(budgets map[string]int) *outcome {
	left := maps.Clone(budgets)
	chosen := map[*cluster.Workload]bool{}
	for _, v := range slices.Backward(e.all) {
		n, limited := left[v.Budget]
		if limited = limited && v.Budget != ""; !limited || n > 0 {
			chosen[v.Workload] = true
		}
		if limited {
			left[v.Budget] = n - 1
		}
	}
	fewer := newEviction(e.p, func(w *cluster.Workload) bool { return chosen[w] })
	for _, v := range fewer.all {
		v.rank = v.Priority
	}
	if without := fewer.without(); fewer.fits(without) {
		return fewer.search(without)
	}
	return nil
}

// eviction is the search for what has to leave its place: victims, or workloads that move.
type eviction struct {
	p *planner
	// all are the workloads that may be evicted; search sorts them, the dearest first.
	all []*prey
	// at are those with pods on a node, by its position.
	at map[int][]*prey
	// checks counts how often it was asked whether the request fits.
	checks int
	// vague says that fits is not sure that there is no room.
	vague bool
	group *Group
	// splits says that a workload may leave a part of its nodes whatever its minimum is, because
	// what leaves goes on elsewhere.
	splits bool
	// lacking says that those nodes come first on which the fewest GPUs are lacking, rather than
	// those on which the fewest workloads are.
	lacking bool
}

// prey is a workload that may be evicted, with its pods.
type prey struct {
	*cluster.Workload
	pods []cluster.Placement
	// size is how many pods it has in all, those outside the snapshot's pods not counted.
	size int
	// rank is the priority by which it is spared; where all are alike, it is 0 for all.
	rank int32
}

// cost is what is lost with the workload; what is no amount counts as nothing.
func (v *prey) cost() float64 {
	if v.Cost >= 0 {
		return v.Cost
	}
	return 0
}

// newEviction finds the workloads that may leave their places.
func newEviction(p *planner, may func(*cluster.Workload) bool) *eviction {
	e := &eviction{p: p, at: map[int][]*prey{}}
	known := map[*cluster.Workload]*prey{}
	for i, n := range p.s.Nodes() {
		for _, pod := range n.Pods {
			w := pod.Workload
			if w == nil || !may(w) {
				continue
			}
			v := known[w]
			if v == nil {
				v = &prey{Workload: w}
				known[w] = v
				e.all = append(e.all, v)
			}
			if k := len(v.pods); k == 0 || v.pods[k-1].Node != i {
				e.at[i] = append(e.at[i], v)
			}
			v.pods = append(v.pods, cluster.Placement{Node: i, Pod: pod})
			v.size++
		}
	}
	if len(p.request.Groups) == 1 && len(p.request.Sets) == 0 {
		least := p.request.Groups[0]
		least.Count, least.MinCount = least.leastWhole(), 0
		e.group = &least
	}
	return e
}

// mayEvict tells whether a workload may be evicted: preemptible, of lower priority, past its
// minimum run time, and within its budget.
func (p *planner) mayEvict(w *cluster.Workload) bool {
	if !w.Preemptible || w.Protected || w.Priority >= p.request.Priority || w.Name == p.request.Name {
		return false
	}
	left, limited := p.options.Budgets[w.Budget]
	return w.Budget == "" || !limited || left > 0
}

// dearer orders workloads: those of higher priority first, then those that lose more, then the
// larger ones.
func dearer(a, b *prey) int {
	return cmp.Or(
		cmp.Compare(b.rank, a.rank),
		cmp.Compare(b.cost(), a.cost()),
		cmp.Compare(b.size, a.size),
		strings.Compare(a.Name, b.Name),
	)
}

// without returns the snapshot in which nothing runs that may be evicted.
func (e *eviction) without() *cluster.Snapshot {
	changed := make([]*cluster.Node, 0, len(e.at))
	gone := map[int][]*cluster.Pod{}
	for _, v := range e.all {
		for _, at := range v.pods {
			gone[at.Node] = append(gone[at.Node], at.Pod)
		}
	}
	for i, pods := range gone {
		changed = append(changed, e.p.s.At(i).Without(pods...))
	}
	return e.p.s.Next(e.p.s.Generation+1, e.p.s.Resources, changed)
}

// fits tells whether the request fits in s, at its smallest useful size. Where it does not,
// vague tells whether that is no proof.
func (e *eviction) fits(s *cluster.Snapshot) bool {
	e.checks++
	if e.group == nil {
		trial := *e.p
		trial.s = s
		trial.options.Explain = false
		d := trial.plan()
		e.vague = d.Undecided
		return d.Feasible
	}
	own := *e.p
	own.cache = e.p.trialCache()
	g := own.gang(s, e.group)
	e.vague = g.vague()
	g.restrict(e.p.request.Avoid)
	if e.group.KeptInSlices && len(e.group.Kept) > 0 {
		_, _, ok := g.place(s.Whole())
		return ok
	}
	widest := e.group.Topology.Required
	if g.links != nil {
		_, ok := g.chooseByLinks(s.Whole())
		return ok
	}
	for _, d := range g.candidates(s.Whole(), widest) {
		if g.holdsKept(d) && g.holds(d, g.layer(d), int64(e.group.Count)) {
			return true
		}
	}
	return false
}

// refuse says that the request does not fit even without everything that may be evicted.
func (e *eviction) refuse(without *cluster.Snapshot, refused Decision) Decision {
	after := *e.p
	after.s, after.unchanged = without, true
	d := after.plan()
	if d.Undecided {
		d.Why.Sentence = fmt.Sprintf("with all %s gone: %s", plural(len(e.all), "workload")+" of lower priority", d.Why.Sentence)
		return d
	}
	d.Why.Room = refused.Why.Room
	d.Why.Changes = refused.Why.Changes
	d.Why.Sentence = fmt.Sprintf("%s; without the %s of lower priority it would still not fit: %s",
		refused.Why.Sentence, plural(len(e.all), "workload"), d.Why.Sentence)
	return d
}

// words names the victims.
func (e *eviction) words(victims []Victim) string {
	names := make([]string, 0, 3)
	for _, v := range victims[:min(3, len(victims))] {
		names = append(names, fmt.Sprintf("%s (priority %d)", v.Workload, v.Priority))
	}
	text := strings.Join(names, ", ")
	if more := len(victims) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return ", once " + text + " made way"
}

// victim tells which pods leave; kept are those that stay.
func (v *prey) victim(kept map[*cluster.Pod]bool) Victim {
	found := Victim{Workload: v.Name, Priority: v.Priority, Cost: v.cost(), Whole: len(kept) == 0}
	for _, at := range v.pods {
		if !kept[at.Pod] {
			found.Evicted = append(found.Evicted, at)
		}
	}
	if !found.Whole && v.size > 0 {
		found.Cost *= float64(len(found.Evicted)) / float64(v.size)
	}
	return found
}

// outcome is a set of victims with the snapshot without them.
type outcome struct {
	s *cluster.Snapshot
	// gone are the workloads that lose pods; kept are the pods that those keep that go on.
	gone []*prey
	kept map[*prey]map[*cluster.Pod]bool
}

// compare orders outcomes: the lower the highest priority that is evicted the better, then the
// fewer workloads, then the fewer GPU-hours, then the fewer pods.
func (o *outcome) compare(other *outcome) int {
	a, b := o.measure(), other.measure()
	return slices.Compare(a[:], b[:])
}

func (o *outcome) measure() [4]float64 {
	var m [4]float64
	for k, v := range o.gone {
		if k == 0 || float64(v.rank) > m[0] {
			m[0] = float64(v.rank)
		}
		left := len(v.pods) - len(o.kept[v])
		m[1]++
		m[2] += v.cost() * float64(left) / float64(max(1, v.size))
		m[3] += float64(left)
	}
	return m
}

// within tells whether no budget is overdrawn.
func (o *outcome) within(budgets map[string]int) bool {
	used := map[string]int{}
	for _, v := range o.gone {
		used[v.Budget]++
	}
	for name := range maps.Keys(used) {
		if left, limited := budgets[name]; name != "" && limited && used[name] > left {
			return false
		}
	}
	return true
}

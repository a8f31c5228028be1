package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// firstWidth is how many places are tried for each group before the search becomes a complete
// one; betterSteps is how many steps may go into improving a plan that is found.
const (
	firstWidth  = 8
	betterSteps = 256
)

// planSeveral places a request of several groups: all at full size, for want of room all at
// their minimum and then grown, and for want of that by trying everything.
func (p *planner) planSeveral() Decision {
	p.largest = largest(p.s)
	p.root = p.units()
	full, least := p.sizes()
	budget := p.options.Budget
	if budget <= 0 {
		budget = DefaultBudget
	}
	if found := p.likely(full, budget/8); found != nil {
		return p.decideSeveral(found)
	}
	if !slices.Equal(full, least) {
		if found := p.likely(least, budget/8); found != nil {
			return p.decideSeveral(p.grow(found))
		}
	}
	if d, refused := p.refuseAlone(least); refused {
		return d
	}
	if p.devicesMatter() {
		// It cannot be a proof then, and every step of it is dear.
		budget /= 10
	}
	q := p.searchFor(least, 0, budget)
	switch {
	case q.best != nil:
		return p.decideSeveral(p.grow(q.best))
	case q.out() || p.devicesMatter():
		return p.undecided(q.steps)
	}
	return p.exhausted()
}

// likely searches the likely places only, once with what is hardest to place first and once
// the other way round: the small group that is bound to a few nodes may spoil a packing if it
// comes last.
func (p *planner) likely(sizes []int, limit int) *solution {
	best := p.searchFor(sizes, firstWidth, limit).best
	p.root.reverse()
	other := p.searchFor(sizes, firstWidth, limit).best
	p.root.reverse()
	if best == nil || other != nil && slices.Compare(other.spread, best.spread) < 0 {
		return other
	}
	return best
}

// sizes returns the groups' full sizes and the smallest ones that will do.
func (p *planner) sizes() (full, least []int) {
	for i := range p.request.Groups {
		g := &p.request.Groups[i]
		full, least = append(full, g.Count), append(least, g.leastWhole())
	}
	return full, least
}

// largest returns the most of each resource that any node has.
func largest(s *cluster.Snapshot) cluster.Vector {
	v := make(cluster.Vector, s.Resources.Len())
	for _, n := range s.Nodes() {
		for i := range v {
			v[i] = max(v[i], n.Allocatable.At(i))
		}
	}
	return v
}

func (p *planner) searchFor(sizes []int, width, limit int) *search {
	q := &search{
		p:      p,
		sizes:  sizes,
		limit:  limit,
		width:  width,
		placed: make([]placedGroup, len(sizes)),
		extra:  betterSteps,
	}
	q.run(p.s, []task{{unit: p.root, bound: p.s.Whole()}})
	return q
}

// trialCache is the memory of the search, apart from that of the cluster as it is.
func (p *planner) trialCache() *Cache {
	if p.cache.trial == nil {
		p.cache.trial = &Cache{}
	}
	return p.cache.trial
}

// trial is gang over a snapshot of the search. What it works with is its own: the search holds
// several at a time.
func (p *planner) trial(s *cluster.Snapshot, group *Group) *gang {
	own := *p
	own.cache = p.trialCache()
	g := own.gang(s, group)
	fits := room{}
	fits.copyOf(g.room)
	g.room, g.work = &fits, &scratch{}
	return g
}

// grow adds to a plan of minimum sizes what still fits, group by group.
func (p *planner) grow(found *solution) *solution {
	grown := &solution{groups: slices.Clone(found.groups), s: found.s}
	for i := range p.request.Groups {
		g := &p.request.Groups[i]
		placed := &grown.groups[i]
		more := *g
		more.Count, more.MinCount = g.Count-len(placed.pods.Nodes), 1
		if more.Count <= 0 {
			continue
		}
		more.Kept = slices.Concat(g.Kept, placed.pods.Nodes)
		more.Limits = limitsLeft(g.Limits, placed.pods.Nodes)
		trial := p.trial(grown.s, &more)
		if trial.links != nil {
			continue // What is added may make traffic cross uplinks that it did not cross before.
		}
		trial.restrict(p.request.Avoid)
		_, takes, ok := trial.place(placed.bound)
		if !ok {
			continue
		}
		a := trial.assign(slices.Clone(takes))
		grown.s = addPods(grown.s, &a, g)
		placed.takes = append(slices.Clone(placed.takes), takes...)
		placed.pods = joined(placed.pods, a)
	}
	return grown
}

// limitsLeft returns the limits less one for each pod that is placed.
func limitsLeft(limits map[string]int, placed []string) map[string]int {
	if limits == nil {
		return nil
	}
	left := maps.Clone(limits)
	for _, name := range placed {
		left[name]--
	}
	return left
}

// joined appends the pods of b to those of a.
func joined(a, b Assignment) Assignment {
	if a.GPUs != nil || b.GPUs != nil {
		gpus := make([]gpu.Mask, len(a.At)+len(b.At))
		copy(gpus, a.GPUs)
		copy(gpus[len(a.At):], b.GPUs)
		a.GPUs = gpus
	}
	a.Name = b.Name
	a.Nodes = append(a.Nodes, b.Nodes...)
	a.At = append(a.At, b.At...)
	a.Instances = append(a.Instances, b.Instances...)
	a.Offers = append(a.Offers, b.Offers...)
	return a
}

// decideSeveral turns a plan of several groups into a Decision.
func (p *planner) decideSeveral(found *solution) Decision {
	d := Decision{Feasible: true}
	d.Why.Nodes = p.s.Len()
	for i := range found.groups {
		a := found.groups[i].pods
		a.Name = p.request.Groups[i].Name
		d.Groups = append(d.Groups, a)
	}
	p.nameDomain(&d)
	d.Why.Sentence = describe(&d, p.request)
	if p.options.Explain {
		first := p.root.parts[0].groups[0]
		if placed := &found.groups[first]; len(placed.takes) > 0 {
			g := p.gang(p.s, &p.request.Groups[first])
			g.restrict(p.request.Avoid)
			p.explainPlan(&d, g, placed.choice, placed.takes)
		}
	}
	return d
}

// nameDomain says which domain holds all groups, if one of a level that somebody asked for
// does: the narrowest.
func (p *planner) nameDomain(d *Decision) {
	narrowest := AnyLevel
	var visit func(u *unit)
	visit = func(u *unit) {
		narrowest = max(narrowest, u.topology.Required, u.topology.Preferred)
		for _, part := range u.parts {
			visit(part)
		}
	}
	visit(p.root)
	for level := narrowest; level >= 0; level-- {
		domain := -1
		same := true
		for i := range d.Groups {
			for _, at := range d.Groups[i].At {
				at := p.s.DomainOf(level, int(at))
				same = same && at >= 0 && (domain < 0 || at == domain)
				domain = at
			}
		}
		if same && domain >= 0 {
			d.Domain, d.Level = p.s.DomainName(p.s.Domains(level)[domain]), p.s.Levels[level].Name
			return
		}
	}
}

// refuseAlone looks for a group that does not fit even if it has the cluster for itself, and
// for a set of which no domain holds every group by itself. Where that is so as far as pods could
// be counted the decision is undecided; searching goes by the same counts.
func (p *planner) refuseAlone(least []int) (d Decision, refused bool) {
	for i := range p.request.Groups {
		group := p.request.Groups[i]
		group.Count, group.MinCount = least[i], 0
		g := p.gang(p.s, &group)
		g.restrict(p.request.Avoid)
		if g.links != nil && len(group.Slices) > 0 {
			continue // Uplinks cut slices in ways that only a search knows.
		}
		if _, _, ok := g.place(p.s.Whole()); !ok {
			if p.quick {
				return Decision{Undecided: g.vague()}, true
			}
			d := p.refuse(g)
			if group.Name != "" {
				d.Why.Sentence = fmt.Sprintf("group %s: %s", group.Name, d.Why.Sentence)
			}
			return d, true
		}
	}
	return p.refuseSet(p.root, least)
}

// refuseSet looks for a set of which no domain of its required level could hold all groups.
func (p *planner) refuseSet(u *unit, least []int) (d Decision, refused bool) {
	q := &search{p: p, sizes: least}
	t := task{unit: u, bound: p.s.Whole()}
	if u.group < 0 && len(q.domains(p.s, t)) == 0 {
		vague := 0
		for _, g := range q.gangs(p.s, u) {
			vague = max(vague, len(g.view.vague))
		}
		if vague > 0 {
			return unproven(p.tooMuch(q, t), vague), true
		}
		return Decision{Why: p.tooMuch(q, t)}, true
	}
	for _, part := range u.parts {
		if d, refused := p.refuseSet(part, least); refused {
			return d, true
		}
	}
	return Decision{}, false
}

// tooMuch explains that no domain can hold all groups of a set, though each of them fits
// somewhere.
func (p *planner) tooMuch(q *search, t task) Explanation {
	names := p.groupNames(t.unit)
	why := p.together(t.unit)
	why.Certificate = &Certificate{Kind: TooMuchInAll, Groups: names}
	level := t.unit.topology.Required
	all := "the groups " + strings.Join(names, ", ")
	gangs := q.gangs(p.s, t.unit)
	for _, d := range q.candidates(p.s, t.bound, level) {
		if most, want, ok := usable(gangs, d); ok && (int(most) > why.Certificate.Room || why.Certificate.Domain == "") {
			why.Certificate.Domain, why.Certificate.Room, why.Certificate.Need = p.s.DomainName(d), int(most), int(want)
		}
	}
	where := "the cluster"
	if level >= 0 {
		why.Certificate.Level = p.s.Levels[level].Name
		where = "no " + why.Certificate.Level
	}
	switch c := why.Certificate; {
	case c.Domain != "" && c.Room < c.Need && level < 0:
		why.Sentence = fmt.Sprintf("%s ask for %d GPUs together, and pods of their sizes can use at most %d of those free%s",
			all, c.Need, c.Room, why.remedy())
	case c.Domain != "" && c.Room < c.Need:
		why.Sentence = fmt.Sprintf("%s ask for %d GPUs in one %s, and pods of their sizes can use at most %d of those free in the best, %s%s",
			all, c.Need, c.Level, c.Room, c.Domain, why.remedy())
	default:
		*c = Certificate{Kind: NoDomainHoldsEach, Groups: names, Level: c.Level}
		why.Sentence = fmt.Sprintf("%s has room for each of %s, which must share one%s", where, all, why.remedy())
	}
	return why
}

func (p *planner) groupNames(u *unit) []string {
	names := make([]string, len(u.groups))
	for k, i := range u.groups {
		names[k] = p.request.Groups[i].Name
	}
	return names
}

// devicesMatter tells whether there is more to a placement than how many pods go on a node:
// then trying every number of pods is not trying everything.
func (p *planner) devicesMatter() bool {
	return slices.ContainsFunc(p.request.Groups, func(g Group) bool {
		return g.Pod.Milli > 0 && g.Pod.GPUs == 0 || len(g.Pod.MIG) > 0 || g.Pod.Include != 0 || g.KeptInSlices
	})
}

func (p *planner) undecided(steps int) Decision {
	why := p.together(p.root)
	after := fmt.Sprintf("after %d steps", steps)
	if p.devicesMatter() && steps < p.options.Budget {
		after = "by trying every number of pods on every node, because how single GPUs are cut and shared was tried in one way only"
	}
	why.Sentence = fmt.Sprintf("each group of %s would fit by itself; whether they fit together is not decided %s%s",
		p.request.Name, after, why.remedy())
	return Decision{Undecided: true, Why: why}
}

func (p *planner) exhausted() Decision {
	names := p.groupNames(p.root)
	why := p.together(p.root)
	why.Certificate = &Certificate{Kind: Exhausted, Groups: names}
	why.Sentence = fmt.Sprintf("each of the groups %s would fit by itself, but not together: every way was tried%s",
		strings.Join(names, ", "), why.remedy())
	if len(names) == 1 {
		why.Sentence = fmt.Sprintf("there is no way to place %s that keeps slices whole and uplinks within their bandwidth%s",
			gangWords(p.s, &p.request.Groups[0]), why.remedy())
	}
	return Decision{Why: why}
}

// together is what is known of groups that do not fit together: of the one that is hardest to
// place what keeps nodes from it and how much of it would fit, and edits that would help.
func (p *planner) together(u *unit) Explanation {
	if p.quick {
		return Explanation{}
	}
	hardest := u
	for len(hardest.parts) > 0 {
		hardest = hardest.parts[0]
	}
	g := p.gang(p.s, &p.request.Groups[hardest.groups[0]])
	g.restrict(p.request.Avoid)
	why := p.count(g)
	why.Group = g.group.Name
	g.extremes(&why)
	why.Misses = g.misses()
	why.Changes = p.changes(u.groups, 0)
	return why
}

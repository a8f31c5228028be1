package placement

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Plan decides where the pods of the request go.
//
// It returns an error only for a request that is malformed: an unknown strategy, no pods, a
// level the snapshot does not have, slices that do not divide one another. No room is not an
// error: the decision says why.
//
// For a request of one group the answer is exact: Plan finds a plan if there is one, and a
// decision that is not Feasible is a proof that there is none in this snapshot; but where pods
// ask for MIG instances of several profiles, and counting how many fit on a node takes too long,
// what is not found stays undecided, and slices behind uplinks are searched for. With a Cache
// it looks only at the nodes that changed since the last question about the same shape, then
// at the domains, then at the nodes of the domain it chooses.
//
// For several groups, which compete for the same nodes in different shapes, it searches within
// Options.Budget and may leave the question undecided.
func Plan(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
	p, err := newPlanner(s, r, o)
	if err != nil {
		return Decision{}, fmt.Errorf("planning %s: %w", r.Name, err)
	}
	d := p.plan()
	if !d.Feasible && r.Preempts {
		d = p.preempt(d)
	}
	d.Generation = s.Generation
	return d, nil
}

// plan is Plan without preemption.
func (p *planner) plan() Decision {
	if len(p.request.Groups) == 1 && len(p.request.Sets) == 0 {
		return p.planOne(&p.request.Groups[0])
	}
	return p.planSeveral()
}

// planner holds what one Plan works with.
type planner struct {
	s        *cluster.Snapshot
	request  *Request
	options  Options
	strategy Strategy
	packs    bool
	seeded   bool
	scoring  *Scoring
	cache    *Cache
	// unchanged asks for no edits of the request that would be met: the world is not as it is.
	unchanged bool
	// quick asks for no explanation; anySize, beside that, for a plan of any size that will do: only
	// whether there is one matters.
	quick, anySize bool
	// root is the tree of what is placed together, largest the most of each resource that any
	// node has: of requests with several groups.
	root    *unit
	largest cluster.Vector
}

func newPlanner(s *cluster.Snapshot, r *Request, o Options) (*planner, error) {
	if o.Strategies == nil {
		builtin, err := NewRegistry(Builtin()...)
		if err != nil {
			return nil, err
		}
		o.Strategies = builtin
	}
	strategy, err := o.Strategies.Get(r.Strategy)
	if err != nil {
		return nil, err
	}
	if err := check(s, r); err != nil {
		return nil, err
	}
	p := &planner{s: s, request: r, options: o, strategy: strategy, scoring: o.Scoring, cache: o.Cache, quick: o.Brief}
	if packer, ok := strategy.(Packer); ok {
		p.packs = packer.Packs()
	}
	if seeded, ok := strategy.(Seeded); ok {
		p.seeded = seeded.Seeded()
	}
	if p.cache == nil {
		p.cache = &Cache{}
	}
	if p.scoring == nil {
		p.scoring = p.cache.defaultScoring()
	}
	return p, nil
}

// planOne places a request of one group.
func (p *planner) planOne(group *Group) Decision {
	g := p.gang(p.s, group)
	if i, ok := p.single(g); ok {
		p.cache.work.takes = append(p.cache.work.takes[:0], take{node: i, count: 1})
		return p.decide(g, g.choiceOf(i), p.cache.work.takes)
	}
	g.restrict(p.request.Avoid)
	if i := g.bestNodeIn(p.s.Whole()); i >= 0 {
		p.cache.work.takes = append(p.cache.work.takes[:0], take{node: i, count: 1})
		return p.decide(g, g.choiceOf(i), p.cache.work.takes)
	}
	c, takes, ok := g.place(p.s.Whole())
	if g.links != nil && len(group.Slices) > 0 && (!ok || c.size < group.Count && !p.anySize) {
		above := 0
		if ok {
			above = c.size
		}
		if d := p.planBySize(above); d.Feasible || !ok {
			return d
		}
		g = p.gang(p.s, group) // The search used the same storage.
		g.restrict(p.request.Avoid)
		c, takes, ok = g.place(p.s.Whole())
	}
	if !ok && p.quick {
		return Decision{Undecided: g.vague()}
	}
	if !ok {
		return p.refuse(g)
	}
	return p.decide(g, c, takes)
}

// planBySize places more than so many pods of a group whose slices uplinks cut in ways that sums
// do not tell: only a search is exact, and it is made for one size after the other. What fits
// also fits less a slice, so that of the sizes below the full one few are tried.
func (p *planner) planBySize(above int) Decision {
	group := &p.request.Groups[0]
	d := p.planSize(group.Count)
	if d.Feasible {
		return d
	}
	step := group.step()
	low, high := max(group.leastWhole(), above+1), group.Count-1
	for low, high = (low+step-1)/step, high/step; low <= high; {
		slices := low + (high-low)/2
		if next := p.planSize(slices * step); next.Feasible {
			d, low = next, slices+1
		} else {
			if !d.Feasible {
				d = next // What is said in the end is about the smallest.
			}
			high = slices - 1
		}
	}
	if d.Feasible {
		d.Why.Sentence = describe(&d, p.request)
	}
	return d
}

// planSize searches for a plan of exactly so many pods of the only group.
func (p *planner) planSize(size int) Decision {
	fixed, own := *p.request, *p
	fixed.Groups = []Group{p.request.Groups[0]}
	fixed.Groups[0].Count, fixed.Groups[0].MinCount = size, 0
	own.request = &fixed
	own.quick = p.quick || size > p.request.Groups[0].leastWhole()
	return own.planSeveral()
}

// gang prepares a group for being planned over s.
func (p *planner) gang(s *cluster.Snapshot, group *Group) *gang {
	v := p.cache.view(s, &group.Pod)
	g := &gang{
		s:        s,
		group:    group,
		view:     v,
		room:     &v.room,
		strategy: p.strategy,
		packs:    p.packs,
		scoring:  p.scoring,
		seed:     p.request.Seed,
		work:     &p.cache.work,
	}
	if group.Mbps > 0 {
		g.links = s.UplinksLeft()
	}
	return g
}

// single returns the node for a single pod, read off the strategy's ranking: what takes a
// microsecond instead of a walk over the domains. It is false where the request asks for more
// than that.
func (p *planner) single(g *gang) (int, bool) {
	group := g.group
	picker, picks := p.strategy.(Picker)
	picks = picks && len(group.Pod.Likes) == 0 && g.view.opinions == nil
	if group.Count != 1 || p.seeded && !picks || len(p.request.Avoid) > 0 || group.Limits != nil || len(group.Kept) > 0 {
		return 0, false
	}
	for _, t := range [2]int{group.Topology.Required, group.Topology.Preferred} {
		if t >= 0 && g.levelTotal(t) != g.room.total {
			return 0, false
		}
	}
	for _, s := range group.Slices {
		if g.levelTotal(s.Level) != g.room.total {
			return 0, false
		}
	}
	if picks {
		fit := g.view.census()
		if fit.total() == 0 {
			return 0, false
		}
		return fit.nth(picker.Pick(fit.total(), p.request.Seed)), true
	}
	i := g.view.ranking(p.strategy, p.scoring).best()
	return i, i >= 0
}

// choiceOf is the choice of the domain that the node at position i is in: the narrowest that
// the group asked for.
func (g *gang) choiceOf(i int) choice {
	t := g.group.Topology
	for _, level := range []int{t.Preferred, t.Required} {
		if level < 0 {
			continue
		}
		if d := g.s.DomainOf(level, i); d >= 0 {
			return choice{Domain: g.s.Domains(level)[d], size: 1}
		}
	}
	return choice{Domain: g.s.Whole(), size: 1}
}

// bestNodeIn returns the node for a group of a single pod that the ranking cannot tell, by the
// same rule: of the nodes in a domain of the preferred level, or else of all, the one the
// strategy likes best. It is -1 for other groups, and where no node is left.
func (g *gang) bestNodeIn(d cluster.Domain) int {
	if g.group.Count != 1 || g.group.KeptInSlices && len(g.group.Kept) > 0 {
		return -1
	}
	best, top, preferred := -1, 0.0, false
	for i := d.First; i < d.End; i++ {
		if g.room.fits[i] == 0 || !g.joins(i, g.group.Topology.Required) {
			continue
		}
		near := g.joins(i, g.group.Topology.Preferred)
		if s := g.score(i, 0); best < 0 || near && !preferred || near == preferred && s > top {
			best, top, preferred = i, s, near
		}
	}
	return best
}

// joins tells whether the node at position i is in a domain of the level, with all members
// that stay.
func (g *gang) joins(i, level int) bool {
	if level < 0 {
		return true
	}
	d := g.s.DomainOf(level, i)
	return d >= 0 && g.holdsKept(g.s.Domains(level)[d])
}

// place chooses a domain inside bound and the nodes in it.
func (g *gang) place(bound cluster.Domain) (choice, []take, bool) {
	if g.group.KeptInSlices && len(g.group.Kept) > 0 && len(g.group.Slices) > 0 {
		return g.rejoin(bound)
	}
	c, ok := g.choose(bound)
	if !ok {
		return c, nil, false
	}
	g.work.takes = g.split(g.work.takes[:0], c.Domain, int64(c.size))
	g.order(g.work.takes)
	return c, g.work.takes, g.linksCarry(g.work.takes, c.size)
}

// decide turns a placement of the request's only group into a Decision.
func (p *planner) decide(g *gang, c choice, takes []take) Decision {
	d := Decision{Feasible: true, Groups: []Assignment{g.assign(takes)}}
	if c.Level >= 0 {
		d.Domain, d.Level = g.s.DomainName(c.Domain), g.s.Levels[c.Level].Name
	}
	d.Why.Nodes = g.s.Len()
	d.Why.Sentence = describe(&d, p.request)
	if p.options.Explain {
		p.explainPlan(&d, g, c, takes)
	}
	return d
}

// defaultScoring keeps the address of the default weights, by which rankings are known.
func (c *Cache) defaultScoring() *Scoring {
	if c.scoring == nil {
		c.scoring = DefaultScoring()
	}
	return c.scoring
}

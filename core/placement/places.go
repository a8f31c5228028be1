package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// places calls try with places for the group until it returns false: first the choice that a
// request of this group alone would get, then the other domains, and for single pods the other
// nodes. A complete search (width 0) goes on to every way there is, but for the last group, of
// which one place is as good as another for whether there is a plan.
func (q *search) places(s *cluster.Snapshot, t task, last bool, try func(choice, []take) bool) {
	g := q.gang(s, t.unit.group)
	if g.group.KeptInSlices && len(g.group.Kept) > 0 {
		if c, takes, ok := g.place(t.bound); ok {
			try(c, takes)
		}
		return
	}
	widest := max(g.group.Topology.Required, t.bound.Level)
	if q.width == 0 {
		q.everyPlace(g, t.bound, widest, last, try)
		return
	}
	narrowest := max(g.group.Topology.Preferred, widest)
	if g.links != nil {
		narrowest = len(s.Levels) - 1 // As in chooseByLinks.
	}
	for level := narrowest; level >= widest; level-- {
		found := g.ranked(t.bound, level, g.group.Count)
		g.judgeIfAlone(found)
		slices.SortStableFunc(found, func(a, b choice) int { return g.compare(&a, &b) })
		for _, c := range found {
			if !g.tryIn(c, q.width, try) {
				return
			}
		}
	}
}

// judgeIfAlone judges a single choice, which ranked leaves unjudged.
func (g *gang) judgeIfAlone(found []choice) {
	if len(found) == 1 {
		g.judge(found)
	}
}

// tryIn tries the domain's best split and, for one pod, its other nodes.
func (g *gang) tryIn(c choice, width int, try func(choice, []take) bool) bool {
	takes := g.split(nil, c.Domain, int64(c.size))
	g.order(takes)
	if !g.linksCarry(takes, c.size) {
		return true
	}
	if !try(c, takes) {
		return false
	}
	if g.group.Count != 1 {
		return true
	}
	type rival struct {
		node  int
		score float64
	}
	var rivals []rival
	for i := c.First; i < c.End; i++ {
		if g.room.fits[i] > 0 && i != takes[0].node {
			rivals = append(rivals, rival{i, g.score(i, 0)})
		}
	}
	slices.SortStableFunc(rivals, func(a, b rival) int { return sign(a.score >= b.score) - sign(b.score >= a.score) })
	for _, r := range rivals[:min(len(rivals), width)] {
		if !try(c, []take{{node: r.node, count: 1}}) {
			return false
		}
	}
	return true
}

// everyPlace tries every way to place the group.
func (q *search) everyPlace(g *gang, bound cluster.Domain, widest int, last bool, try func(choice, []take) bool) {
	for _, d := range g.candidates(bound, widest) {
		free := *g
		free.links = nil
		if !g.holdsKept(d) || !free.holds(d, g.layer(d), int64(g.group.Count)) {
			continue
		}
		c := choice{Domain: d, size: g.group.Count}
		if last && g.links == nil {
			takes := g.split(nil, d, int64(c.size))
			g.order(takes)
			if !try(c, takes) {
				return
			}
			continue
		}
		e := everyWay{q: q, g: g, choice: c, try: try}
		if !e.visit(d.First, g.group.Count) {
			return
		}
	}
}

// everyWay enumerates the ways to put a group's pods on the nodes of a domain.
type everyWay struct {
	q      *search
	g      *gang
	choice choice
	takes  []take
	try    func(choice, []take) bool
}

// visit decides how many of the left pods go on the node at position i, most first. It
// returns false to end the search.
func (e *everyWay) visit(i, left int) bool {
	if left == 0 {
		if !e.g.slicesWhole(e.takes) || !e.g.linksCarry(e.takes, e.choice.size) {
			return true
		}
		own := slices.Clone(e.takes)
		e.g.order(own)
		return e.try(e.choice, own)
	}
	if i == e.choice.End || e.q.out() {
		return !e.q.out()
	}
	e.q.steps++
	most := min(int(e.g.room.fits[i]), left)
	// A node like the one before takes no more than that did: the other way round is the same.
	if i > e.choice.First && e.q.p.alike(e.g.s, i-1, i) {
		before := 0
		if n := len(e.takes); n > 0 && e.takes[n-1].node == i-1 {
			before = e.takes[n-1].count
		}
		most = min(most, before)
	}
	for k := most; k >= 0; k-- {
		n := len(e.takes)
		if k > 0 {
			e.takes = append(e.takes, take{node: i, count: k})
		}
		ok := e.visit(i+1, left-k)
		e.takes = e.takes[:n]
		if !ok {
			return false
		}
	}
	return true
}

// slicesWhole tells whether the takes can be ranked so that every slice is in one domain: all
// domains but that of a short last slice hold whole ones.
func (g *gang) slicesWhole(takes []take) bool {
	for _, s := range g.group.Slices {
		count, total := map[int]int{}, 0
		for _, t := range takes {
			d := g.s.DomainOf(s.Level, t.node)
			if d < 0 {
				return false
			}
			count[d] += t.count
			total += t.count
		}
		short := 0
		for _, n := range count {
			if rest := n % s.Size; rest > 0 {
				if short++; rest != total%s.Size {
					return false
				}
			}
		}
		if short > 1 || short == 0 && total%s.Size > 0 {
			return false
		}
	}
	return true
}

// linksCarry tells whether the takes are of all pods of a gang of that size, and the uplink of
// every domain that holds some of them, but not all, has the bandwidth for those. Only gangs with
// slices and bandwidth can fail: what a domain takes of them is an estimate.
func (g *gang) linksCarry(takes []take, size int) bool {
	if g.links == nil {
		return true
	}
	total := 0
	for _, t := range takes {
		total += t.count
	}
	if total != size {
		return false
	}
	for level := range g.links {
		inside := map[int]int64{}
		for _, t := range takes {
			inside[g.s.DomainOf(level, t.node)] += int64(t.count)
		}
		for d, pods := range inside {
			if d >= 0 && pods < int64(total) && g.links[level][d] >= 0 && pods > g.links[level][d]/g.group.Mbps {
				return false
			}
		}
	}
	return true
}

// alike tells whether nothing that the request asks for sets two nodes apart.
func (p *planner) alike(s *cluster.Snapshot, i, j int) bool {
	a, b := s.At(i), s.At(j)
	if a.Machine == nil || b.Machine == nil || a.Taken != b.Taken || len(a.Shares) > 0 || len(b.Shares) > 0 ||
		len(a.Instances) > 0 || len(b.Instances) > 0 || a.Board != b.Board || a.Broken != b.Broken || a.Geometry != b.Geometry {
		return false
	}
	for l := range s.Levels[:max(0, len(s.Levels)-1)] {
		if s.DomainOf(l, i) != s.DomainOf(l, j) || s.DomainOf(l, i) < 0 {
			return false
		}
	}
	if last := len(s.Levels) - 1; last >= 0 && !p.ownDomains(s, i, j) {
		return false
	}
	for r := range s.Resources.Len() {
		if a.Free(r) != b.Free(r) {
			return false
		}
	}
	for k := range p.request.Groups {
		v := p.trialCache().view(s, &p.request.Groups[k].Pod)
		if v.kinds[i] != v.kinds[j] {
			return false
		}
		if slices.Contains(p.request.Groups[k].Kept, a.Name) || slices.Contains(p.request.Groups[k].Kept, b.Name) ||
			p.request.Groups[k].Limits != nil || p.request.Groups[k].Mbps > 0 {
			return false
		}
	}
	return !slices.Contains(p.request.Avoid, a.Name) && !slices.Contains(p.request.Avoid, b.Name)
}

// ownDomains tells whether each of the two nodes is a domain of the last level by itself, or
// both are in one.
func (p *planner) ownDomains(s *cluster.Snapshot, i, j int) bool {
	last := len(s.Levels) - 1
	a, b := s.DomainOf(last, i), s.DomainOf(last, j)
	if a < 0 || b < 0 || a == b {
		return a == b
	}
	all := s.Domains(last)
	return all[a].End-all[a].First == 1 && all[b].End-all[b].First == 1
}

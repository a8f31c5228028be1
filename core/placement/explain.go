package placement

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// refuse says that there is no room for the group, and why; where nodes may take more than was
// counted, only that none was found. It walks the nodes and domains a second time, which only a
// refusal pays for.
func (p *planner) refuse(g *gang) Decision {
	why := p.explain(g)
	if !g.vague() {
		return Decision{Why: why}
	}
	return unproven(why, len(g.view.vague))
}

// vague tells whether more pods of the group may fit on some node than are counted. Then that
// there is no room for them is no proof.
func (g *gang) vague() bool { return len(g.view.vague) > 0 }

// unproven is a refusal that is none, as on some nodes more may fit.
func unproven(why Explanation, nodes int) Decision {
	why.Certificate = nil
	why.Sentence = fmt.Sprintf("%s; that is not decided: on %s counting the MIG instances that fit took too long, and there may be room for more",
		why.Sentence, plural(nodes, "node"))
	return Decision{Undecided: true, Why: why}
}

// explain explains why there is no room for the group.
func (p *planner) explain(g *gang) Explanation {
	why := p.count(g)
	why.Group = g.group.Name
	g.extremes(&why)
	why.NeedGPUs = int64(g.group.leastWhole()) * g.group.Pod.GPUs
	empty, exact := g.ifEmpty()
	empty.restrict(nil)
	level := g.group.Topology.Required
	why.NoLevel = level >= 0 && len(g.s.Domains(level)) == 0
	for _, d := range g.candidates(g.s.Whole(), level) {
		if !g.holdsKept(d) {
			continue
		}
		if room := g.mostIn(d); room > why.Room || why.Best == "" {
			why.Room, why.Best = room, g.s.DomainName(d)
		}
		why.RoomEmpty = max(why.RoomEmpty, empty.mostIn(d))
	}
	why.Misses = g.misses()
	why.Never = exact && why.RoomEmpty < g.group.leastWhole()
	if g.links != nil {
		free := *g
		free.links = nil
		for _, d := range g.candidates(g.s.Whole(), level) {
			why.LinksBind = why.LinksBind || g.holdsKept(d) && free.mostIn(d) >= g.group.leastWhole()
		}
	}
	why.Certificate = &Certificate{
		Kind:   NoDomainHolds,
		Groups: []string{g.group.Name},
		Domain: why.Best,
		Room:   why.Room,
		Need:   g.group.leastWhole(),
	}
	if level >= 0 {
		why.Certificate.Level = g.s.Levels[level].Name
	}
	why.Changes = p.changes([]int{p.indexOf(g.group.Name)}, why.Room)
	why.Sentence = g.refusal(&why)
	return why
}

// mostIn returns how many pods d takes: in whole slices, or in the size that is wanted, of which
// the last slice may be short.
func (g *gang) mostIn(d cluster.Domain) int {
	whole := min(g.whole(d, g.layer(d)), maxCount)
	most := max(g.sizeIn(d), int(roundDown(whole, g.group.step())))
	for level := d.Level + 1; g.links != nil && level < len(g.s.Levels); level++ {
		// Inside one domain of d the group loads no uplink of it.
		first, end := g.s.Within(level, d)
		for _, c := range g.s.Domains(level)[first:end] {
			whole = min(g.whole(c, g.layer(c)), maxCount)
			most = max(most, g.sizeIn(c), int(roundDown(whole, g.group.step())))
		}
	}
	return most
}

// count tells what keeps nodes out, over the nodes as they are now.
func (p *planner) count(g *gang) Explanation {
	why := Explanation{Nodes: g.s.Len()}
	avoided := make(map[int]bool, len(p.request.Avoid))
	for _, name := range p.request.Avoid {
		avoided[g.s.IndexOf(name)] = true
	}
	levels := g.insisted()
	for i, reason := range g.view.reasons {
		if reason == Fits {
			reason = g.keptFrom(i, levels)
			if reason == Fits && avoided[i] {
				reason = Avoided
			}
		}
		if reason != Fits {
			why.Removed[reason]++
		}
		if reason == ByPolicy {
			why.refused(g.view.need.refusal(g.s.At(i).Machine))
		}
	}
	return why
}

// refused counts one more node that Rules keep pods off.
func (why *Explanation) refused(by string) {
	i := slices.IndexFunc(why.Refusals, func(r Refusal) bool { return r.Why == by })
	if i < 0 {
		i = len(why.Refusals)
		why.Refusals = append(why.Refusals, Refusal{Why: by})
	}
	why.Refusals[i].Nodes++
}

// keptFrom tells what of the request, rather than of the pod, keeps the group from a node.
func (g *gang) keptFrom(i int, levels []int) Reason {
	for _, l := range levels {
		if g.s.DomainOf(l, i) < 0 {
			return NotLocated
		}
	}
	if g.group.Limits != nil && g.group.Limits[g.s.At(i).Name] == 0 {
		return Limited
	}
	return Fits
}

// extremes finds the largest suitable node, and the one with the most free GPUs.
func (g *gang) extremes(why *Explanation) {
	q := &g.view.need
	for _, n := range g.s.Nodes() {
		if q.suits(n.Machine) != Fits {
			continue
		}
		why.Suitable++
		if all := n.Allocatable.At(q.GPUResource); all > why.Largest {
			why.Largest, why.LargestNode = all, n.Name
		}
		if !n.Ready || n.Cordoned {
			continue
		}
		free := q.freeGPUs(n)
		why.FreeGPUs += free
		if free > why.MostFree {
			why.MostFree, why.MostFreeNode = free, n.Name
		}
	}
}

// freeGPUs returns how many GPUs of the node the pod could have if it needed nothing else.
func (q *need) freeGPUs(n *cluster.Node) int64 {
	free := n.Free(q.GPUResource)
	if q.whole && n.Board != nil {
		free = min(free, int64(n.WholeGPUs().Count()))
	}
	return free
}

// ifEmpty is the gang in a cluster in which nothing runs and every node is in service, and
// whether what fits there is counted exactly.
func (g *gang) ifEmpty() (*gang, bool) {
	empty := *g
	empty.links = nil
	empty.room = &room{}
	empty.work = &scratch{}
	empty.room.reset(g.s)
	all := true
	for i, n := range g.s.Nodes() {
		fits, exact := g.view.need.fitsEmpty(n.Machine)
		empty.room.set(g.s, i, fits)
		all = all && exact
	}
	return &empty, all
}

// misses returns, for the cluster and for each level, the domain with the most room.
func (g *gang) misses() []Miss {
	var misses []Miss
	for level := AnyLevel; level < len(g.s.Levels); level++ {
		best := Miss{Room: -1}
		for _, d := range g.candidates(g.s.Whole(), level) {
			if level >= 0 && !g.holdsKept(d) {
				continue
			}
			if room := int(min(g.whole(d, g.layer(d)), maxCount)); room > best.Room {
				best = Miss{Domain: g.s.DomainName(d), Room: room}
			}
		}
		if best.Room < 0 {
			continue
		}
		if level >= 0 {
			best.Level = g.s.Levels[level].Name
		}
		misses = append(misses, best)
	}
	return misses
}

// explainPlan adds to a plan what it was chosen for and what came next.
func (p *planner) explainPlan(d *Decision, g *gang, c choice, takes []take) {
	counted := p.count(g)
	counted.Sentence = d.Why.Sentence
	d.Why = counted
	d.Why.Group = g.group.Name
	d.Why.Room = int(min(g.whole(c.Domain, g.layer(c.Domain)), maxCount))
	d.Why.Best = g.s.DomainName(c.Domain)
	d.Why.Misses = g.misses()
	used := make(map[int]bool, len(takes))
	for _, t := range takes {
		used[t.node] = true
	}
	d.Why.Chosen = p.scoreOf(g, takes[0].node)
	next, top := -1, 0.0
	for i := c.First; i < c.End; i++ {
		if g.room.fits[i] == 0 || used[i] {
			continue
		}
		if s := g.score(i, 0); next < 0 || s > top {
			next, top = i, s
		}
	}
	if next >= 0 {
		d.Why.Next = p.scoreOf(g, next)
	}
	if c.Level >= 0 {
		p.explainDomain(d, g, c)
	}
}

// explainDomain adds the score of the domain, and of the one that would have been next.
func (p *planner) explainDomain(d *Decision, g *gang, c choice) {
	if g.packs && c.spread == nil {
		c.spread = g.spread(c.Domain, c.size)
	}
	d.Why.ChosenDomain = p.domainScoreOf(g, &c)
	var next *choice
	for _, domain := range g.candidates(g.s.Whole(), c.Level) {
		rival := choice{Domain: domain, size: g.sizeIn(domain), room: g.whole(domain, g.layer(domain))}
		if domain == c.Domain || rival.size < c.size || !g.holdsKept(domain) {
			continue
		}
		one := []choice{rival}
		g.judge(one)
		if next == nil || g.compare(&one[0], next) < 0 {
			next = &one[0]
		}
	}
	if next != nil {
		d.Why.NextDomain = p.domainScoreOf(g, next)
	}
}

// domainScoreOf is the score of a domain with its terms; nil if the strategy scores none.
func (p *planner) domainScoreOf(g *gang, c *choice) *DomainScore {
	scorer, ok := p.strategy.(DomainScorer)
	if !ok {
		return nil
	}
	if c.room == 0 {
		c.room = g.whole(c.Domain, g.layer(c.Domain))
	}
	candidate := g.domainCandidate(c)
	score := &DomainScore{Level: g.s.Levels[c.Level].Name, Domain: g.s.DomainName(c.Domain), Score: scorer.ScoreDomain(&candidate)}
	if terms, explains := p.strategy.(DomainTermExplainer); explains {
		score.Terms = terms.DomainTerms(&candidate)
	}
	return score
}

// scoreOf is the score of the node at position i, with its terms.
func (p *planner) scoreOf(g *gang, i int) *NodeScore {
	c := Candidate{Node: g.s.At(i), Pod: &g.view.need.Shape, Scoring: g.scoring, Seed: g.seed}
	g.view.opine(&c, i)
	scoreNode(p.strategy, &g.view.need, &c)
	s := &NodeScore{Node: c.Node.Name, Score: p.strategy.Score(&c), Affinity: g.view.need.affinity(c.Node.Machine), Opinion: c.Opinion}
	if terms, ok := p.strategy.(TermExplainer); ok {
		s.Terms = terms.Terms(&c)
	}
	return s
}

func levelName(s *cluster.Snapshot, level int) string {
	if level < 0 {
		return "none"
	}
	return s.Levels[level].Name
}

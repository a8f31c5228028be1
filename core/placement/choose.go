package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// choice is a domain with what a plan there would be like.
type choice struct {
	cluster.Domain
	// size is how many pods the plan would place, room how many fit, liked how many of them
	// would go to nodes the strategy marks as preferred.
	size  int
	room  int64
	liked int
	// spread is the number of domains that the pods would be in, by level from the first
	// inside the domain to the last; nil for strategies that do not pack.
	spread []int
	score  float64
}

// choose returns the domain inside bound to place the group in. The whole group in a preferred
// domain comes first, then in ever wider ones up to the required level, then, for an elastic
// group, the domain with the most room.
func (g *gang) choose(bound cluster.Domain) (choice, bool) {
	t := g.group.Topology
	if g.links != nil {
		return g.chooseByLinks(bound)
	}
	for level := t.Preferred; level > max(t.Required, bound.Level); level-- {
		if c, ok := g.best(bound, level, g.group.Count); ok {
			return c, true
		}
	}
	return g.best(bound, max(t.Required, bound.Level), g.group.least())
}

// chooseByLinks goes from the narrowest level outwards: inside one domain the group loads no
// uplink of it, so that what does not fit in a wide one, part by part, may fit there whole.
func (g *gang) chooseByLinks(bound cluster.Domain) (choice, bool) {
	widest := max(g.group.Topology.Required, bound.Level)
	for level := len(g.s.Levels) - 1; level > widest; level-- {
		if c, ok := g.best(bound, level, g.group.Count); ok {
			return c, true
		}
	}
	var found choice
	ok := false
	for level := len(g.s.Levels) - 1; level >= widest; level-- {
		if c, fits := g.best(bound, level, g.group.least()); fits && (!ok || c.size > found.size) {
			found, ok = c, true
		}
	}
	return found, ok
}

// candidates returns the domains of a level inside bound.
func (g *gang) candidates(bound cluster.Domain, level int) []cluster.Domain {
	if level <= bound.Level {
		return []cluster.Domain{bound}
	}
	first, end := g.s.Within(level, bound)
	return g.s.Domains(level)[first:end]
}

// best returns the domain of the level that takes the largest part of the group, at least the
// given number of pods. Among equals it is the one with more room on nodes the strategy
// prefers; for strategies that pack, the one in which the group is in fewer domains, level by
// level from the widest; then the one the strategy scores highest; then the one that keeps
// the least room afterwards, so that large domains stay whole for large gangs; then the first.
func (g *gang) best(bound cluster.Domain, level, least int) (choice, bool) {
	found := g.ranked(bound, level, least)
	if len(found) == 0 {
		return choice{}, false
	}
	best := 0
	for i := range found {
		if i > 0 && g.compare(&found[i], &found[best]) < 0 {
			best = i
		}
	}
	return found[best], true
}

// ranked returns the domains of the level that take the largest part of the group, judged.
func (g *gang) ranked(bound cluster.Domain, level, least int) []choice {
	var found []choice
	for _, d := range g.candidates(bound, level) {
		if !g.holdsKept(d) {
			continue
		}
		c := choice{Domain: d, size: g.sizeIn(d)}
		if c.size < max(least, 1) {
			continue
		}
		c.room = g.whole(d, g.layer(d))
		c.liked = g.liked(d, c.size)
		found = append(found, c)
	}
	if len(found) < 2 {
		return found
	}
	most, liked := 0, 0
	for i := range found {
		if found[i].size > most || found[i].size == most && found[i].liked > liked {
			most, liked = found[i].size, found[i].liked
		}
	}
	found = slices.DeleteFunc(found, func(c choice) bool { return c.size < most || c.liked < liked })
	g.judge(found)
	return found
}

// judge fills in what only domains that are otherwise equal are compared by: it is dear.
func (g *gang) judge(found []choice) {
	scorer, scores := g.strategy.(DomainScorer)
	for i := range found {
		c := &found[i]
		if g.packs {
			c.spread = g.spread(c.Domain, c.size)
		}
		if scores {
			candidate := g.domainCandidate(c)
			c.score = scorer.ScoreDomain(&candidate)
		}
	}
}

func (g *gang) compare(a, b *choice) int {
	if c := slices.Compare(a.spread, b.spread); c != 0 {
		return c
	}
	switch {
	case a.score != b.score:
		return sign(a.score > b.score)
	case a.room != b.room:
		return sign(a.room < b.room)
	}
	return a.First - b.First
}

// sign is -1 where the first of two is the better one, 1 where it is not.
func sign(better bool) int {
	if better {
		return -1
	}
	return 1
}

// liked returns how many of size pods would go to nodes that the strategy marks as preferred;
// strategies without such nodes like all domains the same.
func (g *gang) liked(d cluster.Domain, size int) int {
	s, ok := g.strategy.(NodePreferrer)
	if !ok {
		return 0
	}
	total := 0
	for i := d.First; i < d.End && total < size; i++ {
		if g.room.fits[i] > 0 && s.Prefers(g.s.At(i)) {
			total += int(g.room.fits[i])
		}
	}
	return min(total, size)
}

// spread returns how many domains of each level inside d size pods would be in.
func (g *gang) spread(d cluster.Domain, size int) []int {
	w := g.work
	if w.nesting == len(w.trials) {
		w.trials = append(w.trials, nil)
	}
	w.nesting++
	takes := g.split(w.trials[w.nesting-1][:0], d, int64(size))
	w.nesting--
	w.trials[w.nesting] = takes
	return g.domainsOf(takes, d.Level+1)
}

// domainsOf counts the domains of each level from the given one on that the takes are in. A
// node in no domain of a level counts as one of its own.
func (g *gang) domainsOf(takes []take, from int) []int {
	counts := make([]int, max(0, len(g.s.Levels)-from))
	for l := range counts {
		last := -2
		for _, t := range takes {
			d := g.s.DomainOf(from+l, t.node)
			if d < 0 || d != last {
				counts[l]++
			}
			last = d
		}
	}
	return counts
}

// domainCandidate is what a DomainScorer is told of a choice.
func (g *gang) domainCandidate(c *choice) DomainCandidate {
	q := &g.view.need
	d := DomainCandidate{
		Key:     DomainKey(pathOf(g.s, c.Domain)),
		Wanted:  g.group.Count,
		Room:    int(c.room),
		Parts:   1,
		Fewest:  1,
		Taking:  int64(c.size) * q.GPUs,
		Scoring: g.scoring,
	}
	for i := c.First; i < c.End; i++ {
		n := g.s.At(i)
		d.GPUs += n.Allocatable.At(q.GPUResource)
		d.FreeGPUs += n.Free(q.GPUResource)
	}
	if len(c.spread) > 0 {
		d.Parts = c.spread[0]
		d.Fewest = g.fewest(c)
	}
	return d
}

// fewest returns in how many domains of the next level the plan would be if each held as many
// pods as the roomiest does.
func (g *gang) fewest(c *choice) int {
	most := int64(0)
	g.eachChild(c.Domain, c.Level+1, func(child cluster.Domain) {
		most = max(most, g.whole(child, g.layer(child)))
	})
	if most == 0 {
		return 1
	}
	return int((int64(c.size) + most - 1) / most)
}

func pathOf(s *cluster.Snapshot, d cluster.Domain) []string {
	if d.Level < 0 || d.First >= d.End {
		return nil
	}
	return s.At(d.First).Path[:min(d.Level+1, len(s.Levels))]
}

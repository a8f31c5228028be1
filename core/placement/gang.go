package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// gang is one group being planned: what it asks for, and how much of it fits where.
type gang struct {
	s        *cluster.Snapshot
	group    *Group
	view     *view
	room     *room
	strategy Strategy
	packs    bool
	scoring  *Scoring
	seed     uint64
	// links is what each uplink has left, by level and domain; nil where nobody asks.
	links [][]int64
	work  *scratch
}

// scratch is storage that one decision after the other uses.
type scratch struct {
	room  room
	takes []take
	queue nodeQueue
	// trials are what a split is weighed with, by how many of them are under way; parts and
	// nodes are those a split is between, and filled from.
	trials  [][]take
	nesting int
	parts   [][]part
	depth   int
	nodes   []int32
}

// part is one of the domains, or of the nodes outside all of them, that a gang is split over.
type part struct {
	cluster.Domain
	// room is how many pods fit, in the units in which they are given out.
	room int64
}

// take is count pods on the node at a position.
type take struct {
	node, count int
}

// layer returns the index of the first slice layer that d may divide, which is the first whose
// domains are inside d.
func (g *gang) layer(d cluster.Domain) int {
	for i, s := range g.group.Slices {
		if s.Level > d.Level {
			return i
		}
	}
	return len(g.group.Slices)
}

// fitsIn returns how many pods fit on the nodes of d, which is a domain or the nodes outside
// all domains of its level.
func (g *gang) fitsIn(d cluster.Domain) int64 {
	if d.Level < 0 || d.First < d.End && g.s.DomainOf(d.Level, d.First) >= 0 {
		return g.room.in(g.s, d)
	}
	total := int64(0)
	for _, n := range g.room.fits[d.First:d.End] {
		total += int64(n)
	}
	return total
}

// behindLinks is whole where pods in different domains inside d talk through the uplinks of
// those domains: each of them takes no more pods than its uplink has bandwidth for, and still
// whole slices.
func (g *gang) behindLinks(d cluster.Domain) int64 {
	if d.Level == len(g.s.Levels)-1 {
		return g.fitsIn(d)
	}
	layer := g.layer(d)
	total := int64(0)
	g.eachChild(d, d.Level+1, func(c cluster.Domain) {
		room := min(g.behindLinks(c), g.linkCap(c))
		if layer < len(g.group.Slices) {
			if g.group.Slices[layer].Level == c.Level && g.s.DomainOf(c.Level, c.First) < 0 {
				return // Nodes outside the slices' level.
			}
			room = roundDown(room, g.group.Slices[layer].Size)
		}
		total += room
	})
	return total
}

// linkCap returns how many pods the uplink of d carries. Nodes outside all domains of their
// level have no uplink that anybody knows of.
func (g *gang) linkCap(d cluster.Domain) int64 {
	if g.links == nil || d.Level < 0 {
		return maxPods
	}
	i := g.s.DomainOf(d.Level, d.First)
	if i < 0 || g.links[d.Level][i] < 0 {
		return maxPods
	}
	return g.links[d.Level][i] / g.group.Mbps
}

// eachChild calls visit for the domains of a level inside d and for what is between them: the
// nodes that are in none, as if they were a domain of the level.
func (g *gang) eachChild(d cluster.Domain, level int, visit func(cluster.Domain)) {
	all := g.s.Domains(level)
	first, end := g.s.Within(level, d)
	at := d.First
	for _, c := range all[first:end] {
		if at < c.First {
			visit(cluster.Domain{Level: level, First: at, End: c.First})
		}
		visit(c)
		at = c.End
	}
	if at < d.End {
		visit(cluster.Domain{Level: level, First: at, End: d.End})
	}
}

// whole returns how many pods fit in d in whole slices of every layer from the given one on.
func (g *gang) whole(d cluster.Domain, layer int) int64 {
	switch {
	case g.links != nil:
		return g.behindLinks(d)
	case layer == len(g.group.Slices):
		return g.fitsIn(d)
	}
	s := g.group.Slices[layer]
	first, end := g.s.Within(s.Level, d)
	total := int64(0)
	for _, c := range g.s.Domains(s.Level)[first:end] {
		total += roundDown(g.whole(c, layer+1), s.Size)
	}
	return total
}

// holds tells whether x pods fit in d in slices of which, where x is not a multiple of their
// size, the last one is short.
func (g *gang) holds(d cluster.Domain, layer int, x int64) bool {
	if layer == len(g.group.Slices) {
		return g.whole(d, layer) >= x
	}
	s := g.group.Slices[layer]
	rest := x % int64(s.Size)
	if rest == 0 {
		return g.whole(d, layer) >= x
	}
	_, k, ok := g.shortSlice(d, layer, x)
	return ok && k >= 0
}

// shortSlice finds the domain of the layer inside d that should hold the short last slice of x
// pods, and how many pods in whole slices fit there beside it. It is false if x do not fit.
func (g *gang) shortSlice(d cluster.Domain, layer int, x int64) (cluster.Domain, int64, bool) {
	s := g.group.Slices[layer]
	size := int64(s.Size)
	rest := x % size
	total := g.whole(d, layer)
	first, end := g.s.Within(s.Level, d)
	var best cluster.Domain
	beside, found := int64(-1), false
	for _, c := range g.s.Domains(s.Level)[first:end] {
		full := roundDown(g.whole(c, layer+1), s.Size)
		with := full
		if !g.holds(c, layer+1, full+rest) {
			with = full - size // The short slice takes the place of a whole one.
		}
		// Of the domains that do, one that loses no whole slice for it.
		if with >= 0 && total-full+with >= x-rest && (!found || with-full > beside-g.fullIn(best, layer)) {
			best, beside, found = c, with, true
		}
	}
	return best, beside, found
}

func (g *gang) fullIn(d cluster.Domain, layer int) int64 {
	return roundDown(g.whole(d, layer+1), g.group.Slices[layer].Size)
}

// sizeIn returns how many pods of the group a plan in d would place: all that are wanted, or
// for want of room as many as fit in whole slices.
func (g *gang) sizeIn(d cluster.Domain) int {
	layer := g.layer(d)
	want := int64(g.group.Count)
	if g.holds(d, layer, want) {
		return g.group.Count
	}
	return int(roundDown(min(g.whole(d, layer), want), g.group.step()))
}

// holdsKept tells whether all members that stay are inside the domain.
func (g *gang) holdsKept(d cluster.Domain) bool {
	if d.Level < 0 {
		return true
	}
	for _, name := range g.group.Kept {
		// Of a node that is gone nobody knows where it was.
		if i := g.s.IndexOf(name); i >= 0 && !d.Holds(i) {
			return false
		}
	}
	return true
}

// score returns the strategy's opinion of one more pod on the node at position i.
func (g *gang) score(i, placed int) float64 {
	c := &g.work.queue.c
	*c = Candidate{Node: g.s.At(i), Pod: &g.view.need.Shape, Placed: placed, Scoring: g.scoring, Seed: g.seed}
	g.view.opine(c, i)
	return scoreNode(g.strategy, &g.view.need, c)
}

func roundDown[T int | int64](n T, step int) T { return n - n%T(step) }

// restrict limits the room to nodes that are in a domain of every level the group insists on,
// and that nothing of the request keeps it from. It returns whether it had to: then g.room is
// a copy.
func (g *gang) restrict(avoid []string) bool {
	group := g.group
	levels := slices.DeleteFunc(g.insisted(), func(l int) bool { return g.levelTotal(l) == g.room.total })
	if len(levels) == 0 && len(avoid) == 0 && group.Limits == nil {
		return false
	}
	own := &g.work.room
	own.copyOf(g.room)
	g.room = own
	for i := range own.fits {
		if own.fits[i] > 0 && slices.ContainsFunc(levels, func(l int) bool { return g.s.DomainOf(l, i) < 0 }) {
			own.set(g.s, i, 0)
		}
	}
	if group.Limits != nil {
		for i := range own.fits {
			if limit := group.Limits[g.s.At(i).Name]; int(own.fits[i]) > limit {
				own.set(g.s, i, int32(limit))
			}
		}
	}
	for _, name := range avoid {
		if i := g.s.IndexOf(name); i >= 0 {
			own.set(g.s, i, 0)
		}
	}
	return true
}

// insisted returns the levels of which every node of the group must be in a domain.
func (g *gang) insisted() []int {
	var levels []int
	if l := g.group.Topology.Required; l >= 0 {
		levels = append(levels, l)
	}
	for _, s := range g.group.Slices {
		levels = append(levels, s.Level)
	}
	return levels
}

// levelTotal returns how many pods fit on nodes that are in a domain of the level.
func (g *gang) levelTotal(level int) int64 {
	total := int64(0)
	for _, n := range g.room.sums[level] {
		total += n
	}
	return total
}

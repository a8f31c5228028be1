package placement

import (
	"cmp"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// split appends to takes how x pods of the group go onto the nodes of d, in which they fit.
//
// Level by level it uses as few domains as it can: the largest ones whole, and for the last
// part the one in which that part is in the fewest domains and which it leaves with the least
// room, so that large domains stay whole for large gangs. A strategy that does not pack is
// given all nodes at once as soon as neither a slice nor a preference asks for less.
func (g *gang) split(takes []take, d cluster.Domain, x int64) []take {
	level, ok := g.nextLevel(d)
	if !ok {
		return g.fill(takes, d, x)
	}
	layer := g.layer(d)
	w := g.work
	if w.depth == len(w.parts) {
		w.parts = append(w.parts, nil)
	}
	parts := g.partsOf(w.parts[w.depth][:0], d, level)
	w.parts[w.depth] = parts
	w.depth++
	defer func() { w.depth-- }()

	if layer < len(g.group.Slices) && x%int64(g.group.Slices[layer].Size) > 0 {
		i, n := g.short(d, parts, x)
		takes = g.split(takes, parts[i].Domain, n)
		x -= n
		parts = slices.Delete(parts, i, i+1)
	}
	for _, p := range g.pieces(parts, x) {
		takes = g.split(takes, p.Domain, p.room)
	}
	return takes
}

// pieces returns the parts that x pods go to, with how many as their room: as few parts as can
// be, the largest ones whole.
func (g *gang) pieces(parts []part, x int64) []part {
	var chosen []part
	slack := int64(0)
	// The roomiest first, so that what is used whole is a run at the front.
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.room, a.room) })
	for x > 0 && len(parts) > 0 && parts[0].room > 0 {
		if parts[0].room < x {
			chosen = append(chosen, parts[0])
			x -= parts[0].room
			parts = parts[1:]
			continue
		}
		p := parts[g.last(parts, x)]
		slack = p.room - x
		chosen = append(chosen, part{Domain: p.Domain, room: x})
		x = 0
	}
	if g.packs && slack > 0 && len(chosen) > 1 && len(chosen) <= maxShifts {
		g.shift(chosen, slack)
	}
	return chosen
}

// maxShifts is up to how many parts it is tried which of them should be the one that is not
// used whole: trying costs a split for each.
const maxShifts = 8

// shift lets another part than the last be the one that is not used whole, where the pods are
// in fewer domains inside the parts then.
func (g *gang) shift(chosen []part, slack int64) {
	last := len(chosen) - 1
	whole := chosen[last].room + slack
	spread := func(i int) []int {
		// Only what changes is compared: part i without its slack, and the last one with it.
		a := g.spread(chosen[i].Domain, int(chosen[i].room-slack))
		b := g.spread(chosen[last].Domain, int(whole))
		c := g.spread(chosen[i].Domain, int(chosen[i].room))
		d := g.spread(chosen[last].Domain, int(chosen[last].room))
		for l := range a {
			a[l] += b[l] - c[l] - d[l]
		}
		return a
	}
	best, gain := -1, make([]int, max(0, len(g.s.Levels)-chosen[last].Level-1))
	for i := range chosen[:last] {
		if chosen[i].room <= slack || chosen[i].Level != chosen[last].Level {
			continue
		}
		if s := spread(i); slices.Compare(s, gain) < 0 {
			best, gain = i, s
		}
	}
	if best >= 0 {
		chosen[best].room -= slack
		chosen[last].room = whole
	}
}

// nextLevel returns the level at which to split d, false if its nodes are next.
func (g *gang) nextLevel(d cluster.Domain) (int, bool) {
	last := len(g.s.Levels) - 1
	if !g.packs && g.links == nil {
		last = min(last, g.group.Topology.Preferred)
		if n := len(g.group.Slices); n > 0 {
			last = max(last, g.group.Slices[n-1].Level)
		}
	}
	layer := g.layer(d)
	for level := d.Level + 1; level <= last; level++ {
		if first, end := g.s.Within(level, d); first < end {
			return level, true
		}
		if layer < len(g.group.Slices) && g.group.Slices[layer].Level == level {
			break
		}
	}
	return 0, false
}

// partsOf appends the parts of d that take any pods, each with its room in whole slices.
func (g *gang) partsOf(parts []part, d cluster.Domain, level int) []part {
	layer := g.layer(d)
	g.eachChild(d, level, func(c cluster.Domain) {
		// What a part talks about with the others goes through its uplink.
		room := min(g.whole(c, g.layer(c)), g.linkCap(c))
		if layer < len(g.group.Slices) {
			if g.group.Slices[layer].Level == level && g.s.DomainOf(level, c.First) < 0 {
				return // Nodes outside the slices' level.
			}
			room = roundDown(room, g.group.Slices[layer].Size)
		}
		// A part without room for a whole slice may still hold the short one.
		if room > 0 || layer < len(g.group.Slices) {
			parts = append(parts, part{Domain: c, room: room})
		}
	})
	return parts
}

// last returns the part that takes all that is left best, -1 if none takes it.
func (g *gang) last(parts []part, x int64) int {
	best, several := -1, false
	for i := range parts {
		if parts[i].room < x {
			continue
		}
		several = several || best >= 0
		if best < 0 || parts[i].room < parts[best].room {
			best = i
		}
	}
	if !several || !g.packs || parts[best].Level >= len(g.s.Levels)-1 {
		return g.bestNode(parts, best, x)
	}
	var spread []int
	best = -1
	for i := range parts {
		if parts[i].room < x {
			continue
		}
		s := g.spread(parts[i].Domain, int(x))
		if c := slices.Compare(s, spread); best < 0 || c < 0 || c == 0 && parts[i].room < parts[best].room {
			best, spread = i, s
		}
	}
	// All of it fits on one node: which one is the strategy's to say, unless it has an opinion
	// on domains and so wants to be asked about those.
	if _, scores := g.strategy.(DomainScorer); !scores && !slices.ContainsFunc(spread, func(n int) bool { return n > 1 }) {
		if i := g.bestInside(parts, x); i >= 0 {
			return i
		}
	}
	return best
}

// bestNode returns, of parts that are single nodes, the one that takes all that is left and
// that the strategy likes best; for other parts it is the given one.
func (g *gang) bestNode(parts []part, best int, x int64) int {
	if best < 0 || !g.packs || parts[best].End-parts[best].First != 1 {
		return best
	}
	var top float64
	best = -1
	for i := range parts {
		if parts[i].room < x || parts[i].End-parts[i].First != 1 {
			continue
		}
		if s := g.score(parts[i].First, 0); best < 0 || s > top || s == top && parts[i].First < parts[best].First {
			best, top = i, s
		}
	}
	return best
}

// bestInside returns, of parts each of which has a node that takes all that is left, the one
// with the node that the strategy likes best.
func (g *gang) bestInside(parts []part, x int64) int {
	best, top, first := -1, 0.0, 0
	for i := range parts {
		for k := parts[i].First; k < parts[i].End && parts[i].room >= x; k++ {
			if int64(g.room.fits[k]) < x {
				continue
			}
			if s := g.score(k, 0); best < 0 || s > top || s == top && k < first {
				best, top, first = i, s, k
			}
		}
	}
	return best
}

// short returns the part that should hold the short last slice of x pods, and how many pods to
// place there with it.
func (g *gang) short(d cluster.Domain, parts []part, x int64) (int, int64) {
	layer := g.layer(d)
	home, beside, _ := g.shortSlice(d, layer, x)
	rest := x % int64(g.group.Slices[layer].Size)
	for i := range parts {
		if parts[i].First <= home.First && home.End <= parts[i].End {
			return i, min(x, parts[i].room-g.fullIn(home, layer)+beside+rest)
		}
	}
	panic("placement: the short slice is in no part of its domain")
}

// fill appends to takes how x pods go onto nodes of d, whatever domain they are in.
func (g *gang) fill(takes []take, d cluster.Domain, x int64) []take {
	if x <= 0 {
		return takes
	}
	if d.End-d.First == 1 {
		return append(takes, take{node: d.First, count: int(x)})
	}
	if g.packs {
		return g.pack(takes, d, x)
	}
	return g.fillByScore(takes, d, x)
}

// pack uses as few nodes as it can: those that take most first, and for the rest, of the
// nodes that take all of it, the one that the strategy scores highest.
func (g *gang) pack(takes []take, d cluster.Domain, x int64) []take {
	nodes := g.work.nodes[:0]
	for i := d.First; i < d.End; i++ {
		if g.room.fits[i] > 0 {
			nodes = append(nodes, int32(i))
		}
	}
	g.work.nodes = nodes
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(g.room.fits[b], g.room.fits[a]) })
	for x > 0 && len(nodes) > 0 {
		if int64(g.room.fits[nodes[0]]) >= x {
			best, top := -1, 0.0
			for _, i := range nodes {
				if int64(g.room.fits[i]) < x {
					break
				}
				if s := g.score(int(i), 0); best < 0 || s > top || s == top && int(i) < best {
					best, top = int(i), s
				}
			}
			return append(takes, take{node: best, count: int(x)})
		}
		takes = append(takes, take{node: int(nodes[0]), count: int(g.room.fits[nodes[0]])})
		x -= int64(g.room.fits[nodes[0]])
		nodes = nodes[1:]
	}
	return takes
}

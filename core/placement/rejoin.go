package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// rejoin places pods beside members that stay, in slices that hold for all of them together:
// the slices that lost members are made whole again where they are, from the innermost layer
// outwards, and what is left over forms slices of its own.
func (g *gang) rejoin(bound cluster.Domain) (choice, []take, bool) {
	t := g.group.Topology
	home, ok := g.homeOf(bound, max(t.Required, bound.Level))
	if !ok {
		return choice{}, nil, false
	}
	for level := t.Preferred; level > home.Level; level-- {
		if d, within := g.homeOf(home, level); within {
			if c, takes, fits := g.rejoinIn(d); fits {
				return c, takes, true
			}
		}
	}
	return g.rejoinIn(home)
}

// homeOf returns the domain of the level that holds all members that stay.
func (g *gang) homeOf(bound cluster.Domain, level int) (cluster.Domain, bool) {
	for _, d := range g.candidates(bound, level) {
		if g.holdsKept(d) {
			return d, true
		}
	}
	return cluster.Domain{}, false
}

func (g *gang) rejoinIn(d cluster.Domain) (choice, []take, bool) {
	count, total := g.group.Count, g.group.Count+len(g.group.Kept)
	own := room{}
	own.copyOf(g.room)
	rest := *g.group
	filler := *g
	filler.room, filler.group = &own, &rest
	members := make(map[int]int, len(g.group.Kept))
	for _, name := range g.group.Kept {
		if i := g.s.IndexOf(name); i >= 0 {
			members[i]++
		}
	}
	var takes []take
	for layer := len(g.group.Slices) - 1; layer >= 0; layer-- {
		s := g.group.Slices[layer]
		mayBeShort := total%s.Size > 0
		for _, home := range g.candidates(d, s.Level) {
			here := 0
			for i, n := range members {
				if home.Holds(i) {
					here += n
				}
			}
			if here%s.Size == 0 {
				continue
			}
			missing := s.Size - here%s.Size
			if missing > count || !filler.holds(home, layer+1, int64(missing)) {
				if mayBeShort && here%s.Size == total%s.Size {
					mayBeShort = false
					continue
				}
				return choice{}, nil, false
			}
			filled := filler.split(nil, home, int64(missing))
			for _, t := range filled {
				own.set(g.s, t.node, own.fits[t.node]-int32(t.count))
				members[t.node] += t.count
			}
			takes = append(takes, filled...)
			count -= missing
		}
	}
	c := choice{Domain: d, size: g.group.Count}
	if count == 0 {
		return c, takes, true
	}
	rest.Count, rest.MinCount = count, 0
	if filler.sizeIn(d) < count {
		return choice{}, nil, false
	}
	return c, filler.split(takes, d, int64(count)), true
}

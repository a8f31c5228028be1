package placement

import (
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// rejoin places pods beside members that stay, in slices that hold for all of them together:
// every domain of a layer ends up with whole slices, but for one that holds the short last one.
func (g *gang) rejoin(bound cluster.Domain) (choice, []take, bool) {
	t := g.group.Topology
	home, ok := g.homeOf(bound, max(t.Required, bound.Level))
	if !ok {
		return choice{}, nil, false
	}
	for level := t.Preferred; level > home.Level; level-- {
		if d, within := g.homeOf(home, level); within {
			if c, takes, fits := g.rejoinIn(d, g.group.Count); fits {
				return c, takes, true
			}
		}
	}
	for size := g.group.Count; size >= g.group.least(); size-- {
		// A group with slices that is given less than it wants is given whole ones.
		if whole := (len(g.group.Kept)+size)%g.group.step() == 0; whole || size == g.group.Count {
			if c, takes, fits := g.rejoinIn(home, size); fits {
				return c, takes, true
			}
		}
	}
	return choice{}, nil, false
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

func (g *gang) rejoinIn(d cluster.Domain, size int) (choice, []take, bool) {
	r := rejoining{gang: g, members: make(map[int]int64, len(g.group.Kept))}
	total := int64(size)
	for _, name := range g.group.Kept {
		i := g.s.IndexOf(name)
		if i < 0 || !d.Holds(i) {
			continue
		}
		for _, slice := range g.group.Slices {
			if g.s.DomainOf(slice.Level, i) < 0 {
				return choice{}, nil, false // It is in no slice, whoever joins it.
			}
		}
		r.members[i]++
		total++
	}
	best := -1
	ways := r.ways(d, g.layer(d), total)
	for i, w := range ways {
		// The way that has to move least towards whole slices.
		if w.low <= int64(size) && int64(size) <= w.high && (best < 0 || w.low < ways[best].low) {
			best = i
		}
	}
	if best < 0 {
		return choice{}, nil, false
	}
	r.put(d, g.layer(d), int64(size), ways[best].short)
	return choice{Domain: d, size: size}, r.takes, true
}

// rejoining is one question of rejoin.
type rejoining struct {
	*gang
	// members is how many members stay, by the position of their node.
	members map[int]int64
	takes   []take
}

// way is how many new pods a domain can take so that its members, old and new, form slices: any
// number from low to high in steps of a slice. With a short last slice it also says where that
// is, from the outermost layer inwards.
type way struct {
	low, high int64
	short     []cluster.Domain
}

// ways returns the ways in which d can hold slices of the layers from the given one on. Total
// tells, by its remainders, how short the last slice of each layer is.
func (r *rejoining) ways(d cluster.Domain, layer int, total int64) []way {
	if layer == len(r.group.Slices) {
		return []way{{high: r.whole(d, layer)}}
	}
	homes, size := r.homes(d, layer)
	sum, torn := way{}, 0
	whole := make([]way, len(homes))
	fits := make([]bool, len(homes))
	for i, home := range homes {
		if whole[i], fits[i] = r.wholeWay(home, layer); !fits[i] {
			torn++
		}
		sum.low, sum.high = sum.low+whole[i].low, sum.high+whole[i].high
	}
	rest := total % size
	if rest == 0 {
		if torn > 0 {
			return nil
		}
		return []way{sum}
	}
	var found []way
	for i, home := range homes {
		if torn > 1 || torn == 1 && fits[i] {
			continue // Another one is torn, and only one may be.
		}
		for _, w := range r.ways(home, layer+1, rest) {
			if w, ok := w.steps(size, rest-r.in(home)); ok {
				found = append(found, way{
					low:   sum.low - whole[i].low + w.low,
					high:  sum.high - whole[i].high + w.high,
					short: append([]cluster.Domain{home}, w.short...),
				})
			}
		}
	}
	return found
}

// homes returns the domains of a layer inside d, and the size of its slices.
func (r *rejoining) homes(d cluster.Domain, layer int) ([]cluster.Domain, int64) {
	slice := r.group.Slices[layer]
	first, end := r.s.Within(slice.Level, d)
	return r.s.Domains(slice.Level)[first:end], int64(slice.Size)
}

// wholeWay is the way in which a domain of the layer holds whole slices only.
func (r *rejoining) wholeWay(home cluster.Domain, layer int) (way, bool) {
	inside := r.ways(home, layer+1, 0)
	if len(inside) == 0 {
		return way{}, false
	}
	return inside[0].steps(int64(r.group.Slices[layer].Size), -r.in(home))
}

// steps narrows a way to numbers that leave the remainder when divided by size. It is false,
// and nothing, if there is none.
func (w way) steps(size, remainder int64) (way, bool) {
	up := ((remainder-w.low)%size + size) % size
	down := ((w.high-remainder)%size + size) % size
	w.low, w.high = w.low+up, w.high-down
	if w.low > w.high {
		return way{}, false
	}
	return w, true
}

// in returns how many members stay in d.
func (r *rejoining) in(d cluster.Domain) int64 {
	n := int64(0)
	for i, members := range r.members {
		if d.Holds(i) {
			n += members
		}
	}
	return n
}

// put places x pods in d, which can hold them in the way whose short slices are given: first
// what makes slices whole, then the rest, beside members that stay if there is room.
func (r *rejoining) put(d cluster.Domain, layer int, x int64, short []cluster.Domain) {
	if x == 0 {
		return
	}
	if layer == len(r.group.Slices) {
		r.takes = r.split(r.takes, d, x)
		return
	}
	homes, size := r.homes(d, layer)
	parts := make([]way, len(homes))
	total := x + r.in(d)
	for i, home := range homes {
		parts[i], _ = r.wholeWay(home, layer)
		if len(short) > 0 && home == short[0] {
			parts[i] = r.shortWay(home, layer, short[1:], size, total)
		}
		x -= parts[i].low
	}
	for x > 0 {
		best := -1
		for i := range parts {
			if parts[i].high > parts[i].low && (best < 0 || r.better(homes, parts, i, best)) {
				best = i
			}
		}
		more := min(x, parts[best].high-parts[best].low)
		parts[best].low += more
		x -= more
	}
	for i, home := range homes {
		r.put(home, layer+1, parts[i].low, parts[i].short)
	}
}

// shortWay is the way in which home holds the short last slice, in the inner domains given.
func (r *rejoining) shortWay(home cluster.Domain, layer int, inner []cluster.Domain, size, total int64) way {
	rest := total % size
	for _, w := range r.ways(home, layer+1, rest) {
		if w, ok := w.steps(size, rest-r.in(home)); ok && slices.Equal(w.short, inner) {
			return w
		}
	}
	panic("placement: the way with the short slice is gone")
}

// better tells whether home i takes more pods before home k does: those with members come
// first, then those with more room.
func (r *rejoining) better(homes []cluster.Domain, parts []way, i, k int) bool {
	a, b := r.in(homes[i]) > 0, r.in(homes[k]) > 0
	if a != b {
		return a
	}
	return parts[i].high-parts[i].low > parts[k].high-parts[k].low
}

package gpu

import (
	"math"
	"slices"
)

// fitsBudget is how many states Fits looks at for each number of pods it tries: about 10 ms.
const fitsBudget = 1 << 13

// Fits says how many pods fit at once on the usable GPUs, each with instances of all wanted
// profiles, up to limit. Unused instances are taken or give way, as with Place. Where one
// profile is wanted, once or more often, the answer is always exact. Else a search decides, and
// where it gives up after 2^13 states, exact is false and at least n fit.
func (g *Geometry) Fits(existing []Instance, usable Mask, want []string, limit int) (n int, exact bool) {
	wanted, ok := g.wanted(want)
	switch {
	case !ok || limit <= 0:
		return 0, true
	case len(want) == 0:
		return limit, true
	}
	devices := g.devices(existing, usable)
	p := placer{g: g, wanted: wanted}
	kinds, each := p.demand(p.order())
	most := min(limit, g.mostPods(devices, kinds, each))
	if len(kinds) == 1 || most == 0 {
		return most, true
	}
	need := each.times(most)
	s := newSolver(g, devices, kinds, need, true)
	s.ignoreCost() // whether anything gives way is of no interest here
	low, high, exact := 0, most, true
	for try := most; low < high; try = (low + high + 1) / 2 {
		s.budget, s.gaveUp = fitsBudget, false
		if s.search(0, each.times(try)) < impossible {
			low = try
			continue
		}
		exact = exact && !s.gaveUp
		high = try - 1
	}
	return low, exact
}

// times returns n times the amounts.
func (a amounts) times(n int) amounts {
	for k := range a {
		a[k] *= uint16(n)
	}
	return a
}

// mostPods bounds how many pods fit: as many as any of their wishes allows alone. With a single
// kind that is how many do fit.
func (g *Geometry) mostPods(devices []device, kinds []int, each amounts) int {
	most := math.MaxInt
	for k, profile := range kinds {
		n := 0
		for i := range devices {
			n += g.room(&devices[i], profile)
		}
		most = min(most, n/int(each[k]))
	}
	return most
}

// room returns how many instances of the profile fit on a GPU, idle ones aside.
func (g *Geometry) room(d *device, profile int) int {
	p := &g.profiles[profile]
	odd := slices.ContainsFunc(d.idle, func(x idle) bool {
		return x.profile == profile && (!slices.Contains(p.Starts, x.start) || x.slices != span(x.start, p.Memory))
	})
	if odd {
		// An instance where none should be: it counts, as it exists.
		var need amounts
		need[0] = maxSlices
		return int(newSolver(g, []device{*d}, []int{profile}, need, true).most[0][0])
	}
	n := min(len(p.disjoint(d.held.slices)), p.Max-int(d.held.count[profile]))
	if p.Compute > 0 {
		n = min(n, (g.compute-int(d.held.compute))/p.Compute)
	}
	if p.Media && d.held.media {
		n = 0
	}
	if g.engines > 0 && p.engines > 0 {
		n = min(n, (g.engines-int(d.held.engines))/p.engines)
	}
	return max(n, 0)
}

package gpu

import (
	"cmp"
	"slices"
)

// tally is what the instances on one GPU take of it. It is small and copied freely.
type tally struct {
	slices  uint8 // memory slices, bit i is slice i
	media   bool
	compute int16
	engines int16
	count   [maxProfiles]uint8 // instances of each profile
}

// fits tells whether a new instance of the profile may start there beside what is counted.
func (g *Geometry) fits(t *tally, profile, start int) bool {
	return t.slices&span(start, g.profiles[profile].Memory) == 0 && g.allows(t, profile)
}

// allows is fits without the memory slices: compute, media, and the most of a profile.
func (g *Geometry) allows(t *tally, profile int) bool {
	p := &g.profiles[profile]
	return int(t.compute)+p.Compute <= g.compute &&
		int(t.count[profile]) < p.Max &&
		(!t.media || !p.Media) &&
		(g.engines == 0 || int(t.engines)+p.engines <= g.engines)
}

// add counts one more instance. The profile may be -1, for one that is not known.
func (g *Geometry) add(t *tally, profile int, slices uint8) {
	t.slices |= slices
	if profile < 0 {
		return
	}
	p := &g.profiles[profile]
	t.media = t.media || p.Media
	t.compute += int16(p.Compute)
	t.engines += int16(p.engines)
	t.count[profile]++
}

// idle is an existing instance that nobody uses. Those of a GPU are in the order of their
// profiles, the smallest first, and their starts.
type idle struct {
	index   int // in the list of existing instances
	profile int // -1 if not known
	start   int
	slices  uint8
}

// device is one GPU with its instances.
type device struct {
	gpu  int
	held tally // by instances in use
	all  tally // by these and the idle ones
	idle []idle
}

// devices sorts the existing instances onto the usable GPUs. Of an instance of unknown profile
// without a size nothing is known: it has the whole GPU.
func (g *Geometry) devices(existing []Instance, usable Mask) []device {
	devices := make([]device, 0, usable.Count())
	var at [MaxGPUs]int
	for i := range usable.Each() {
		at[i] = len(devices)
		devices = append(devices, device{gpu: i})
	}
	for i, x := range existing {
		if !usable.Has(x.GPU) {
			continue
		}
		d := &devices[at[x.GPU]]
		profile, taken := g.locate(x)
		g.add(&d.all, profile, taken)
		if x.Used {
			g.add(&d.held, profile, taken)
		} else {
			d.idle = append(d.idle, idle{index: i, profile: profile, start: x.Start, slices: taken})
		}
	}
	for i := range devices {
		slices.SortStableFunc(devices[i].idle, func(a, b idle) int {
			return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(a.start, b.start))
		})
	}
	return devices
}

// locate returns the profile of an instance, -1 if it is not known, and its memory slices.
func (g *Geometry) locate(x Instance) (profile int, taken uint8) {
	profile = g.find(x.Profile)
	size := x.Size
	if size <= 0 && profile >= 0 {
		size = g.profiles[profile].Memory
	}
	if size <= 0 || x.Start < 0 || x.Start >= maxSlices {
		return profile, span(0, maxSlices)
	}
	return profile, span(x.Start, min(size, maxSlices))
}

// take makes the idle instance i one in use.
func (g *Geometry) take(d *device, i int) idle {
	x := d.idle[i]
	d.idle = append(d.idle[:i:i], d.idle[i+1:]...)
	g.add(&d.held, x.profile, x.slices)
	return x
}

// create adds a new instance in use.
func (g *Geometry) create(d *device, profile, start int) {
	taken := span(start, g.profiles[profile].Memory)
	g.add(&d.held, profile, taken)
	g.add(&d.all, profile, taken)
}

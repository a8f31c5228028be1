package gpu

import (
	"cmp"
	"slices"
)

// Instance is a MIG instance: Size memory slices from Start on of one GPU.
type Instance struct {
	GPU     int
	Profile string
	// Start is the first memory slice; Size 0 is the size of the profile.
	Start, Size int
	// Used tells that a pod has it. One that is not used may give way to others.
	Used bool
}

// Place says where instances of the wanted profiles go, all at once or not at all, on the
// usable GPUs, which are in MIG mode and have the existing instances. got and reused are in the
// order of want: got[i] is in use for want[i], and reused[i] tells that it is one of the
// existing.
//
// Existing instances that nobody uses are taken first, then free placements. Where that does not
// do, unused instances give way, as few as possible: Replaced names them. Instances in use are
// never touched. If there is a placement, one is found; the same question has the same answer.
//
// The search for the fewest ends after 2^15 states, with the fewest found so far; that is not
// reached with up to 16 GPUs, where the longest question measured took 12 ms. The search for any
// placement does not end before it is sure, which may be long where more than a hundred
// instances of many profiles are wanted on 64 GPUs.
func (g *Geometry) Place(existing []Instance, usable Mask, want []string) (got []Instance, reused []bool, ok bool) {
	wanted, ok := g.wanted(want)
	if !ok {
		return nil, nil, false
	}
	p := placer{
		g:        g,
		existing: existing,
		devices:  g.devices(existing, usable),
		wanted:   wanted,
		got:      make([]Instance, len(want)),
		reused:   make([]bool, len(want)),
	}
	if !p.place(usable) {
		return nil, nil, false
	}
	return p.got, p.reused, true
}

// wanted returns the profile of each name, false if there is none for one of them, or if they
// are more than the largest node has slices.
func (g *Geometry) wanted(want []string) ([]int, bool) {
	if len(want) > MaxGPUs*maxSlices {
		return nil, false
	}
	wanted := make([]int, len(want))
	for i, name := range want {
		if wanted[i] = g.find(name); wanted[i] < 0 {
			return nil, false
		}
	}
	return wanted, true
}

// placer works on one question.
type placer struct {
	g        *Geometry
	existing []Instance
	devices  []device
	wanted   []int // profiles, in the order of the question
	got      []Instance
	reused   []bool
}

func (p *placer) place(usable Mask) bool {
	left := p.reuse()
	if p.fill(left) {
		return true
	}
	// First come, first served does not do. Is there a cleverer way?
	spare := slices.ContainsFunc(p.existing, func(x Instance) bool { return !x.Used && usable.Has(x.GPU) })
	p.devices = p.g.devices(p.existing, usable)
	left = p.reuse()
	if p.solve(left, !spare, false) {
		return true
	}
	if !spare {
		return false
	}
	// Or one at the expense of instances that nobody uses?
	p.devices = p.g.devices(p.existing, usable)
	return p.solve(p.order(), true, true)
}

// order returns the places in the question by how hard they are to meet: the largest profile
// first, then the one with the fewest starts.
func (p *placer) order() []int {
	order := make([]int, len(p.wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := p.wanted[i], p.wanted[j]
		pa, pb := &p.g.profiles[a], &p.g.profiles[b]
		return cmp.Or(
			cmp.Compare(pb.Memory, pa.Memory),
			cmp.Compare(len(pa.Starts), len(pb.Starts)),
			cmp.Compare(a, b),
		)
	})
	return order
}

// reuse takes idle instances of the wanted profiles and returns what is still wanted. It costs
// the rest nothing, as idle instances are in the way of the others either way.
func (p *placer) reuse() (left []int) {
	for _, i := range p.order() {
		if !p.reuseOne(i) {
			left = append(left, i)
		}
	}
	return left
}

func (p *placer) reuseOne(i int) bool {
	for d := range p.devices {
		for x := range p.devices[d].idle {
			if p.devices[d].idle[x].profile == p.wanted[i] {
				p.setReused(i, p.g.take(&p.devices[d], x))
				return true
			}
		}
	}
	return false
}

func (p *placer) setReused(i int, x idle) {
	p.got[i] = p.existing[x.index]
	p.got[i].Used = true
	if p.got[i].Size <= 0 {
		p.got[i].Size = p.g.profiles[x.profile].Memory
	}
	p.reused[i] = true
}

func (p *placer) setNew(i, gpu, start int) {
	profile := &p.g.profiles[p.wanted[i]]
	p.got[i] = Instance{GPU: gpu, Profile: profile.Name, Start: start, Size: profile.Memory, Used: true}
	p.reused[i] = false
}

// fill puts new instances beside all that exist, each where it does the least damage to what
// could still be placed.
func (p *placer) fill(left []int) bool {
	for _, i := range left {
		profile := p.wanted[i]
		best, at, least := -1, 0, 0
		for d := range p.devices {
			all := &p.devices[d].all
			for _, start := range p.g.starts(profile) {
				if !p.g.fits(all, profile, start) {
					continue
				}
				if damage := p.g.damage(all, profile, start); best < 0 || damage < least {
					best, at, least = d, start, damage
				}
			}
		}
		if best < 0 {
			return false
		}
		p.g.create(&p.devices[best], profile, at)
		p.setNew(i, p.devices[best].gpu, at)
	}
	return true
}

// starts returns the starts of a profile in the order in which equals are tried: instances of
// one slice from the high end, all others from the low end, so that the rest stays in one
// piece.
func (g *Geometry) starts(profile int) []int {
	starts := g.profiles[profile].Starts
	if g.profiles[profile].Memory == 1 {
		starts = slices.Clone(starts)
		slices.Reverse(starts)
	}
	return starts
}

// damage returns the memory slices of all placements that are possible now and would not be any
// more, so that the large ones weigh most.
func (g *Geometry) damage(t *tally, profile, start int) int {
	damage := 0
	taken := span(start, g.profiles[profile].Memory)
	for q := range g.profiles {
		other := &g.profiles[q]
		if other.name.variant != "" || !g.allows(t, q) {
			continue
		}
		for _, s := range other.Starts {
			if m := span(s, other.Memory); m&t.slices == 0 && m&taken != 0 {
				damage += other.Memory
			}
		}
	}
	return damage
}

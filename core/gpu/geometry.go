package gpu

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// maxSlices is the most memory slices of a GPU: eight, of which compute has seven.
	maxSlices = 8
	// maxProfiles is more than any model has: the RTX PRO 6000 has eleven.
	maxProfiles = 16
)

// Geometry is how GPUs of one model can be cut into MIG instances. It never changes and may be
// read by many at a time.
type Geometry struct {
	profiles []Profile // from the smallest
	// slices, compute and engines are what a GPU has; engines 0 are not counted.
	slices, compute, engines int
	// sliceMiB is a memory slice in MiB as far as one can rely on it, 0 if unknown.
	sliceMiB float64
}

// Placements says where instances of a profile may start, and how many memory slices they take.
type Placements struct {
	Starts []int
	Size   int
}

// NewGeometry makes the geometry of a model from its profiles' placements. The error names the
// profile.
func NewGeometry(profiles map[string]Placements) (*Geometry, error) {
	switch {
	case len(profiles) == 0:
		return nil, errors.New("no MIG profiles")
	case len(profiles) > maxProfiles:
		return nil, fmt.Errorf("%d MIG profiles: there can be at most %d", len(profiles), maxProfiles)
	}
	all := make([]Profile, 0, len(profiles))
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[name]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("MIG profile %q: %w", name, err)
		}
		all = append(all, newProfile(name, p.Starts, p.Size))
	}
	g := newGeometry(all)
	for i := range g.profiles {
		p := &g.profiles[i]
		if strings.TrimSpace(p.Name) == "" {
			return nil, errors.New("a MIG profile without a name")
		}
		for j := range i {
			if q := &g.profiles[j]; p.name != (profileName{}) && p.name == q.name {
				return nil, fmt.Errorf("MIG profiles %q and %q are the same", q.Name, p.Name)
			}
		}
	}
	return g, nil
}

func (p Placements) check() error {
	if p.Size < 1 || p.Size > maxSlices {
		return fmt.Errorf("size is %d: it must be between 1 and %d memory slices", p.Size, maxSlices)
	}
	if len(p.Starts) == 0 {
		return errors.New("no start: it could never be placed")
	}
	var seen Mask
	for i, s := range p.Starts {
		switch {
		case s < 0 || s+p.Size > maxSlices:
			return fmt.Errorf("starts[%d] is %d: with size %d it must be between 0 and %d", i, s, p.Size, maxSlices-p.Size)
		case seen.Has(s):
			return fmt.Errorf("starts[%d] is %d for the second time", i, s)
		}
		seen = seen.With(s)
	}
	return nil
}

// newGeometry orders the profiles and works out what a GPU has: 4 compute slices with up to 4
// memory slices, else 7 with 8, and always as much as the largest profile takes.
func newGeometry(profiles []Profile) *Geometry {
	slices.SortFunc(profiles, bySize)
	g := &Geometry{profiles: profiles, slices: 4, compute: 4}
	for _, p := range profiles {
		if p.Starts[len(p.Starts)-1]+p.Memory > 4 {
			g.slices, g.compute = 8, 7
		}
	}
	// Names round up to gigabytes, and instances have up to a tenth less than their share: a
	// 1g.5gb has 4.75 GiB, a 1g.18gb 16 of 141/8.
	const sure = 0.9
	gb := math.Inf(1)
	for _, p := range profiles {
		g.compute = max(g.compute, p.Compute)
		if p.name.gb > 0 {
			gb = min(gb, float64(p.name.gb)/float64(p.Memory))
		}
	}
	if !math.IsInf(gb, 1) {
		g.sliceMiB = gb * 1024 * sure
	}
	return g
}

// Profiles returns all profiles, from the smallest. They are the caller's.
func (g *Geometry) Profiles() []Profile {
	profiles := slices.Clone(g.profiles)
	for i := range profiles {
		profiles[i].Starts = slices.Clone(profiles[i].Starts)
	}
	return profiles
}

// MemorySlices returns how many memory slices a GPU has: 8, or 4.
func (g *Geometry) MemorySlices() int { return g.slices }

// ComputeSlices returns how many compute slices a GPU has: 7, or 4.
func (g *Geometry) ComputeSlices() int { return g.compute }

// Profile returns the profile of a name. The name may be that of the resource
// ("mig-1g.10gb.me"), and its gigabytes may be those of another driver: what counts is how many
// slices of compute and of memory it means.
func (g *Geometry) Profile(name string) (Profile, bool) {
	i := g.find(name)
	if i < 0 {
		return Profile{}, false
	}
	p := g.profiles[i]
	p.Starts = slices.Clone(p.Starts)
	return p, true
}

// find returns the index of the profile of a name, -1 if there is none.
func (g *Geometry) find(name string) int {
	for i := range g.profiles {
		if g.profiles[i].Name == name {
			return i
		}
	}
	want, ok := parseProfile(name)
	if !ok {
		return -1
	}
	best, off := -1, 0
	for i := range g.profiles {
		have := &g.profiles[i].name
		if have.compute != want.compute || have.variant != want.variant {
			continue
		}
		differ := max(have.gb-want.gb, want.gb-have.gb)
		if differ <= drift(max(have.gb, want.gb)) && (best < 0 || differ < off) {
			best, off = i, differ
		}
	}
	return best
}

// Milli returns how many thousandths of a GPU's compute an instance of the profile has, rounded
// down; 0 if that was not told.
func (g *Geometry) Milli(p Profile) int {
	return p.Compute * 1000 / g.compute
}

// MemoryMiB returns the memory in MiB that an instance of the profile surely has: nine tenths
// of what its name says. 0 is unknown.
func (g *Geometry) MemoryMiB(p Profile) int64 {
	return int64(g.sliceMiB * float64(p.Memory))
}

// SmallestFor returns the smallest profile with at least so many thousandths of a GPU's compute
// and at least so much memory in MiB; 0 asks for none. A thousandth less is let pass: 142 of
// 1000 is what a seventh is called. Media extensions and graphics are not given unasked.
func (g *Geometry) SmallestFor(milli int, memoryMiB int64) (Profile, bool) {
	for _, p := range g.profiles {
		if p.name.variant != "" || milli > 0 && (p.Compute == 0 || p.Compute*1000 < (milli-1)*g.compute) {
			continue
		}
		if memoryMiB <= 0 || g.MemoryMiB(p) >= memoryMiB {
			p.Starts = slices.Clone(p.Starts)
			return p, true
		}
	}
	return Profile{}, false
}

package gpu

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Profile is a size in which MIG cuts GPUs of a model.
type Profile struct {
	// Name is the profile's name, such as "1g.10gb" or "1g.10gb+me".
	Name string
	// Compute and Memory are the slices that an instance takes; Compute 0 was not told.
	Compute, Memory int
	// Starts are the memory slices at which an instance may start, ascending.
	Starts []int
	// Max is how many instances a GPU can have at once.
	Max int
	// Media tells that an instance has the media extension, of which a GPU has one.
	Media bool

	name    profileName
	engines int // media engines, of those that the geometry counts
}

// profileName is a profile's name, taken apart: "1g.10gb+me" is 1, 10 and "me".
type profileName struct {
	compute, gb int
	// variant is what follows the memory: "me", "me.all", "gfx", "-me" or nothing.
	variant string
}

// parseProfile reads a name as NVML writes it, or as the resource and the config file write it:
// "mig-1g.10gb.me" is "1g.10gb+me".
func parseProfile(s string) (profileName, bool) {
	slice, rest, ok := strings.Cut(strings.TrimPrefix(s, "mig-"), "g.")
	if !ok {
		return profileName{}, false
	}
	memory, variant, ok := strings.Cut(rest, "gb")
	if !ok {
		return profileName{}, false
	}
	n := profileName{compute: number(slice), gb: number(memory)}
	switch variant {
	case "":
	case "+me", ".me", "+me.all", ".me.all", "+gfx", ".gfx":
		n.variant = variant[1:]
	case "-me":
		n.variant = variant
	default:
		return profileName{}, false
	}
	return n, n.compute > 0 && n.gb > 0
}

// number reads a positive number of up to four digits, 0 if it is none.
func number(s string) int {
	if s == "" || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// drift is by how many gigabytes two names of one profile may differ. Drivers round the memory
// of the instance, or of the GPU: 3g.39gb and 3g.40gb, 1g.23gb and 1g.24gb, 7g.186gb and
// 7g.189gb are the same. No two profiles with equal compute are as close.
func drift(gb int) int { return (6 + gb/5) / 10 }

// newProfile works out what follows from a name and its placements.
func newProfile(name string, starts []int, size int) Profile {
	p := Profile{Name: name, Memory: size, Starts: slices.Clone(starts)}
	slices.Sort(p.Starts)
	p.name, _ = parseProfile(name)
	p.Compute = p.name.compute
	if slice, _, ok := strings.Cut(name, "g."); ok && p.Compute == 0 {
		p.Compute = number(slice)
	}
	p.Media = p.name.variant == "me" || p.name.variant == "me.all"
	p.Max = len(p.disjoint(0))
	if p.Media {
		p.Max = 1
	}
	return p
}

// disjoint returns as many starts as fit beside the taken slices, from the lowest: with equal
// sizes no other choice gives more.
func (p *Profile) disjoint(taken uint8) []int {
	var starts []int
	for _, s := range p.Starts {
		if m := span(s, p.Memory); taken&m == 0 {
			taken |= m
			starts = append(starts, s)
		}
	}
	return starts
}

// span is the set of memory slices from start on; bit i is slice i.
func span(start, size int) uint8 {
	return uint8((1<<size - 1) << start)
}

// bySize orders profiles from the smallest.
func bySize(a, b Profile) int {
	return cmp.Or(
		cmp.Compare(a.Compute, b.Compute),
		cmp.Compare(a.Memory, b.Memory),
		cmp.Compare(len(a.name.variant), len(b.name.variant)),
		cmp.Compare(a.Name, b.Name),
	)
}

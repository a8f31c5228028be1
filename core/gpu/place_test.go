package gpu

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// placeFunc is what the properties are about, so that broken variants can be put in its place.
type placeFunc func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool)

// drawGeometry draws a real model, or a made-up one whose rules are stranger than any model's.
func drawGeometry(t *rapid.T) *Geometry {
	if rapid.Bool().Draw(t, "real") {
		m := rapid.SampledFrom([]string{"A100-40GB", "H100-80GB", "A30", "RTX-PRO-6000"}).Draw(t, "model")
		g, ok := GeometryOf(m, 0)
		if !ok {
			t.Fatalf("no geometry of %s", m)
		}
		return g
	}
	profiles := map[string]Placements{}
	names := []string{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "odd"}
	for range rapid.IntRange(1, 4).Draw(t, "profiles") {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		starts := rapid.SliceOfNDistinct(rapid.IntRange(0, maxSlices-size), 1, 4, rapid.ID).Draw(t, "starts")
		profiles[rapid.SampledFrom(names).Draw(t, "name")] = Placements{starts, size}
	}
	g, err := NewGeometry(profiles)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawNode draws the instances of up to two GPUs.
func drawNode(t *rapid.T, g *Geometry) (existing []Instance, usable Mask) {
	gpus := rapid.IntRange(1, 2).Draw(t, "gpus")
	for gpu := range gpus {
		for range rapid.IntRange(0, 6).Draw(t, "instances") {
			p := rapid.SampledFrom(g.profiles).Draw(t, "profile")
			x := Instance{GPU: gpu, Profile: p.Name, Start: rapid.SampledFrom(p.Starts).Draw(t, "start"), Size: p.Memory}
			x.Used = rapid.Bool().Draw(t, "in use")
			if checkGPU(g, append(slices.Clone(existing), x), gpu) == "" {
				existing = append(existing, x)
			}
		}
	}
	return existing, All(gpus).Without(rapid.IntRange(0, 9).Draw(t, "not usable"))
}

func drawWant(t *rapid.T, g *Geometry, most int) []string {
	var names []string
	for _, p := range g.profiles {
		names = append(names, p.Name)
	}
	return rapid.SliceOfN(rapid.SampledFrom(names), 1, most).Draw(t, "want")
}

// checkGPU judges the instances of one GPU by the rules of MIG alone.
func checkGPU(g *Geometry, instances []Instance, gpu int) string {
	var taken uint8
	compute, media, engines := 0, 0, 0
	count := map[string]int{}
	for _, x := range instances {
		if x.GPU != gpu {
			continue
		}
		p, ok := g.Profile(x.Profile)
		switch {
		case !ok || !slices.Contains(p.Starts, x.Start) || x.Size != p.Memory:
			return fmt.Sprintf("%+v cannot be", x)
		case taken&span(x.Start, x.Size) != 0:
			return fmt.Sprintf("%+v overlaps another", x)
		}
		taken |= span(x.Start, x.Size)
		compute += p.Compute
		engines += p.engines
		if p.Media {
			media++
		}
		if count[p.Name]++; count[p.Name] > p.Max {
			return fmt.Sprintf("%d instances of %s", count[p.Name], p.Name)
		}
	}
	switch {
	case compute > g.compute:
		return fmt.Sprintf("%d compute slices", compute)
	case media > 1:
		return fmt.Sprintf("%d media extensions", media)
	case g.engines > 0 && engines > g.engines:
		return fmt.Sprintf("%d media engines", engines)
	}
	return ""
}

// brute finds, by trying everything, whether the wanted instances can be beside those in use,
// and with how few of the unused ones gone.
func brute(g *Geometry, existing []Instance, usable Mask, want []string) (fewest int, ok bool) {
	var placed, idle []Instance
	for _, x := range existing {
		if x.Used {
			placed = append(placed, x)
		} else if usable.Has(x.GPU) {
			idle = append(idle, x)
		}
	}
	want = slices.Sorted(slices.Values(want))
	fewest = len(idle)
	if !bruteFill(g, len(placed), placed, nil, usable, want) {
		return 0, false // what is gone can be made anew
	}
	for kept := range uint(1) << len(idle) {
		if gone := len(idle) - bits.OnesCount(kept); gone < fewest {
			var spare []Instance
			for i, x := range idle {
				if kept>>i&1 == 1 {
					spare = append(spare, x)
				}
			}
			if bruteFill(g, len(placed), placed, spare, usable, want) {
				fewest = gone
			}
		}
	}
	return fewest, true
}

// bruteFill puts the wanted instances, sorted, beside the placed and the spare ones, or onto the
// latter. The first placed ones were there before.
func bruteFill(g *Geometry, fixed int, placed, spare []Instance, usable Mask, want []string) bool {
	size := 0
	for _, w := range want {
		p, _ := g.Profile(w)
		size += p.Memory
	}
	for _, x := range placed {
		if usable.Has(x.GPU) {
			size += x.Size
		}
	}
	if size > g.slices*usable.Count() {
		return false
	}
	if len(want) == 0 {
		return true
	}
	if i := slices.IndexFunc(spare, func(x Instance) bool { return x.Profile == want[0] }); i >= 0 {
		// No other choice is better: the spare one is in the way of others either way.
		rest := slices.Delete(slices.Clone(spare), i, i+1)
		return bruteFill(g, fixed, with(placed, spare[i]), rest, usable, want[1:])
	}
	p, _ := g.Profile(want[0])
	for gpu := range usable.Each() {
		for _, start := range p.Starts {
			x := Instance{GPU: gpu, Profile: p.Name, Start: start, Size: p.Memory, Used: true}
			if n := len(placed); n > fixed && placed[n-1].Profile == x.Profile && placed[n-1].Used && before(x, placed[n-1]) {
				continue // equal ones in ascending order only
			}
			if checkGPU(g, append(with(placed, x), spare...), gpu) == "" && bruteFill(g, fixed, with(placed, x), spare, usable, want[1:]) {
				return true
			}
		}
	}
	return false
}

// with returns a copy of the list with one more.
func with(list []Instance, x Instance) []Instance {
	return append(list[:len(list):len(list)], x)
}

func before(a, b Instance) bool {
	return a.GPU < b.GPU || a.GPU == b.GPU && a.Start < b.Start
}

// checkPlace returns what is wrong with a drawn placement, "" if nothing.
func checkPlace(t *rapid.T, place placeFunc) string {
	g := drawGeometry(t)
	existing, usable := drawNode(t, g)
	want := drawWant(t, g, 4)
	fewest, possible := brute(g, existing, usable, want)
	got, reused, ok := place(g, existing, usable, want)
	if ok != possible {
		return fmt.Sprintf("%v beside %+v: placed %v, possible %v", want, existing, ok, possible)
	}
	if !ok {
		return ""
	}
	replaced := g.Replaced(existing, got)
	if len(replaced) != fewest {
		return fmt.Sprintf("%v beside %+v: %+v give way to %+v, %d would do", want, existing, replaced, got, fewest)
	}
	return checkPlaced(g, existing, usable, want, placement{got, reused, replaced})
}

type placement struct {
	got      []Instance
	reused   []bool
	replaced []Instance
}

// checkPlaced judges a placement by the rules alone.
func checkPlaced(g *Geometry, existing []Instance, usable Mask, want []string, p placement) string {
	after := slices.Clone(existing)
	for _, x := range p.replaced {
		if x.Used {
			return fmt.Sprintf("%+v is in use and would have to go", x)
		}
		i := slices.Index(after, x)
		after = slices.Delete(after, i, i+1)
	}
	for i, x := range p.got {
		if !usable.Has(x.GPU) || !x.Used || x.Profile != want[i] {
			return fmt.Sprintf("got %+v for %s", x, want[i])
		}
		x.Used = false
		at := slices.Index(after, x)
		if p.reused[i] != (at >= 0) {
			return fmt.Sprintf("%+v is said to be reused: %v", x, p.reused[i])
		}
		x.Used = true
		if at >= 0 {
			after[at] = x
		} else {
			after = append(after, x)
		}
	}
	for gpu := range usable.Each() {
		if problem := checkGPU(g, after, gpu); problem != "" {
			return fmt.Sprintf("%v beside %+v: got %+v: %s", want, existing, p.got, problem)
		}
	}
	return ""
}

func TestPlaceIsSoundAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			if problem := checkPlace(t, (*Geometry).Place); problem != "" {
				t.Fatal(problem)
			}
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestPlacePropertyFindsMistakes(t *testing.T) {
	edited := func(edit func(g *Geometry, existing []Instance) (*Geometry, []Instance)) placeFunc {
		return func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool) {
			copied := *g
			copied.profiles = slices.Clone(g.profiles)
			h, edited := edit(&copied, slices.Clone(existing))
			return h.Place(edited, usable, want)
		}
	}
	for name, broken := range map[string]placeFunc{
		"greedy alone": func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool) {
			wanted, _ := g.wanted(want)
			p := placer{
				g: g, existing: existing, devices: g.devices(existing, usable), wanted: wanted,
				got: make([]Instance, len(want)), reused: make([]bool, len(want)),
			}
			return p.got, p.reused, p.fill(p.reuse())
		},
		"gives up idle instances first": func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool) {
			inUse := slices.DeleteFunc(slices.Clone(existing), func(x Instance) bool { return !x.Used })
			return g.Place(inUse, usable, want)
		},
		"keeps every idle instance": edited(func(g *Geometry, existing []Instance) (*Geometry, []Instance) {
			for i := range existing {
				existing[i].Used = true
			}
			return g, existing
		}),
		"takes instances in use": edited(func(g *Geometry, existing []Instance) (*Geometry, []Instance) {
			for i := range existing {
				existing[i].Used = false
			}
			return g, existing
		}),
		"forgets the compute slices": edited(func(g *Geometry, existing []Instance) (*Geometry, []Instance) {
			g.compute = 100
			return g, existing
		}),
		"forgets the media extension": edited(func(g *Geometry, existing []Instance) (*Geometry, []Instance) {
			for i := range g.profiles {
				if g.profiles[i].Media {
					g.profiles[i].Media, g.profiles[i].Max = false, 8
				}
			}
			return g, existing
		}),
		"forgets the media engines": edited(func(g *Geometry, existing []Instance) (*Geometry, []Instance) {
			g.engines = 0
			return g, existing
		}),
		"uses GPUs that are not usable": func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool) {
			return g.Place(existing, usable|1, want)
		},
		"knows the first GPU only": func(g *Geometry, existing []Instance, usable Mask, want []string) ([]Instance, []bool, bool) {
			return g.Place(existing, usable&1, want)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				for range 10 {
					found = found || checkPlace(t, broken) != ""
				}
			})
			if !found {
				t.Error("the property holds for a broken placement")
			}
		})
	}
}

// fitsFunc is Fits, or a broken variant.
type fitsFunc func(g *Geometry, existing []Instance, usable Mask, want []string, limit int) (int, bool)

func checkFits(t *rapid.T, fits fitsFunc) string {
	g := drawGeometry(t)
	existing, usable := drawNode(t, g)
	want := drawWant(t, g, 3)
	limit := rapid.IntRange(0, 5).Draw(t, "limit")
	most := 0
	for all := want; most < limit; all = append(all[:len(all):len(all)], want...) {
		if _, ok := brute(g, existing, usable, all); !ok {
			break
		}
		most++
	}
	n, exact := fits(g, existing, usable, want, limit)
	if n != most || !exact {
		return fmt.Sprintf("%v beside %+v: %d fit (exact %v), should be %d", want, existing, n, exact, most)
	}
	return ""
}

func TestFitsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkFits(t, (*Geometry).Fits); problem != "" {
			t.Fatal(problem)
		}
	})
}

func TestFitsPropertyFindsMistakes(t *testing.T) {
	for name, broken := range map[string]fitsFunc{
		"each wish alone": func(g *Geometry, existing []Instance, usable Mask, want []string, limit int) (int, bool) {
			least := limit
			for _, w := range want {
				n, _ := g.Fits(existing, usable, []string{w}, limit)
				least = min(least, n)
			}
			return least, true
		},
		"idle instances stay": func(g *Geometry, existing []Instance, usable Mask, want []string, limit int) (int, bool) {
			all := slices.Clone(existing)
			for i := range all {
				all[i].Used = true
			}
			return g.Fits(all, usable, want, limit)
		},
		"one too many": func(g *Geometry, existing []Instance, usable Mask, want []string, limit int) (int, bool) {
			n, _ := g.Fits(existing, usable, want, limit)
			return min(n+1, limit), true
		},
		"by memory alone": func(g *Geometry, existing []Instance, usable Mask, want []string, limit int) (int, bool) {
			free, size := 8*usable.Count(), 0
			for _, x := range existing {
				if x.Used && usable.Has(x.GPU) {
					free -= x.Size
				}
			}
			for _, w := range want {
				p, _ := g.Profile(w)
				size += p.Memory
			}
			return min(free/size, limit), true
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				for range 10 {
					found = found || checkFits(t, broken) != ""
				}
			})
			if !found {
				t.Error("the property holds for a broken count")
			}
		})
	}
}

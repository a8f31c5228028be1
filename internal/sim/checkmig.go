package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// The most MIG slices of a GPU, and the most profiles of a model.
const (
	maxSlices   = 8
	maxProfiles = 16
)

// profiles checks the MIG profiles that a node describes, and returns their geometry.
func (c *checker) profiles(p path, profiles map[string]MIGProfile) *gpu.Geometry {
	before := len(*c.src.problems)
	if len(profiles) > maxProfiles {
		c.bad(p, "has %s; expected up to %d", counted(len(profiles), "profile"), maxProfiles)
	}
	placements := make(map[string]gpu.Placements, len(profiles))
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		profile := profiles[name]
		if profile.Size < 1 || profile.Size > maxSlices {
			c.bad(p.with(name, "size"), "is %d; expected 1 to %d memory slices", profile.Size, maxSlices)
			continue
		}
		if len(profile.Starts) == 0 {
			c.bad(p.with(name, "starts"), "is empty; expected the memory slices at which the profile may start")
		}
		for i, start := range profile.Starts {
			if last := maxSlices - profile.Size; start < 0 || start > last {
				c.bad(p.with(name, "starts", i), "is %d; expected 0 to %d for a size of %d", start, last, profile.Size)
			}
		}
		placements[name] = gpu.Placements{Starts: profile.Starts, Size: profile.Size}
	}
	if len(*c.src.problems) > before {
		return nil
	}
	g, err := gpu.NewGeometry(placements)
	if err != nil {
		c.bad(p, "is wrong: %v; expected each profile once, with a name", err)
		return nil
	}
	return g
}

// geometryOf returns what is known of a product, nil for nothing. Building it takes a while, so
// nodes of a product share theirs.
func (c *checker) geometryOf(product string, memoryMiB int64) *gpu.Geometry {
	if product == "" {
		return nil
	}
	key := fmt.Sprint(product, " ", memoryMiB)
	if _, asked := c.geometries[key]; !asked {
		c.geometries[key], _ = gpu.GeometryOf(product, memoryMiB)
	}
	return c.geometries[key]
}

// instances checks the MIG instances that exist on a node.
func (c *checker) instances(p path, o *occupied) {
	g := o.geometry
	if len(o.GPUs.MIG) > 0 && g == nil {
		if len(o.GPUs.MIGProfiles) == 0 {
			c.bad(p, "has instances of a GPU whose MIG profiles are not known; expected a product with MIG, or migProfiles")
		}
		return
	}
	cells := map[[2]int]int{}
	for i, m := range o.GPUs.MIG {
		at := p.with(i)
		if m.GPU < 0 || m.GPU >= len(o.free) {
			c.bad(at.with("gpu"), "is %d; expected %s", m.GPU, upTo(len(o.free)))
			continue
		}
		profile, ok := g.Profile(m.Profile)
		if !ok {
			c.bad(at.with("profile"), "%q is no profile of this GPU; expected one of %s", m.Profile, strings.Join(profileNames(g), ", "))
			continue
		}
		if !slices.Contains(profile.Starts, m.Start) {
			c.bad(at.with("start"), "is %d; expected %s, where %s may start", m.Start, either(profile.Starts), m.Profile)
			continue
		}
		for slice := m.Start; slice < m.Start+profile.Memory; slice++ {
			if other, taken := cells[[2]int{m.GPU, slice}]; taken {
				c.bad(at, "overlaps mig[%d] at slice %d of GPU %d; expected instances beside each other", other, slice, m.GPU)
				break
			}
			cells[[2]int{m.GPU, slice}] = i
		}
		if m.inUse() {
			if slices.Contains(o.GPUs.Used, m.GPU) || o.free[m.GPU] > 0 && o.free[m.GPU] < 1000 {
				c.bad(at, "is in use on GPU %d, which is in use otherwise, too; expected one of the two", m.GPU)
			}
			o.free[m.GPU] = 0
		}
	}
}

// migModels are the GPUs of which one has any profile that there is.
func migModels() []string {
	return []string{
		"A30", "A100", "A800", "H20", "H100", "H200", "H800", "GH200", "B200", "B300", "GB200", "GB300", "RTX-PRO-6000",
	}
}

// isProfile tells whether a node, or a GPU that no node has, knows the MIG profile.
func (c *checker) isProfile(name string) bool {
	for _, o := range c.nodes {
		if o.geometry == nil {
			continue
		}
		if _, ok := o.geometry.Profile(name); ok {
			return true
		}
	}
	return slices.ContainsFunc(migModels(), func(model string) bool {
		g, ok := gpu.GeometryOf(model+"-MIG-"+name, 0)
		if !ok {
			return false
		}
		_, ok = g.Profile(name)
		return ok
	})
}

// either lists numbers of which one is expected: "0, 2 or 4".
func either(numbers []int) string {
	text := ""
	for i, n := range numbers {
		switch {
		case i == 0:
		case i == len(numbers)-1:
			text += " or "
		default:
			text += ", "
		}
		text += strconv.Itoa(n)
	}
	return text
}

func (m MIGInstance) inUse() bool { return m.Used == nil || *m.Used }

func profileNames(g *gpu.Geometry) []string {
	var names []string
	for _, p := range g.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

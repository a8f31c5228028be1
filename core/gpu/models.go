package gpu

import (
	"fmt"
	"math"
	"strings"
)

// model is a GPU model with MIG. Where several share a name, their memory tells them apart.
type model struct {
	name string
	// form is a further word of the product that this model has and its namesakes do not.
	form string
	// gb holds the gigabytes in the names of the profiles: of 1g, 1g with double memory, 2g,
	// 3g, 4g and 7g; of a GPU with four slices: 1g, 2g and 4g.
	gb []int
}

// memory returns the memory of the whole GPU in gigabytes.
func (m model) memory() int { return m.gb[len(m.gb)-1] }

// models are the models that are known. Sources: nvidia-smi mig -lgip of A100, H100 and A30,
// and the configurations that NVIDIA's mig-parted ships. The export models have the layout of
// their originals.
func models() []model {
	return []model{
		{name: "A100", gb: []int{5, 10, 10, 20, 20, 40}},
		{name: "A100", gb: []int{10, 20, 20, 40, 40, 80}},
		{name: "A800", gb: []int{5, 10, 10, 20, 20, 40}},
		{name: "A800", gb: []int{10, 20, 20, 40, 40, 80}},
		{name: "H100", form: "PCIE", gb: []int{10, 20, 20, 40, 40, 80}},
		{name: "H100", form: "NVL", gb: []int{12, 24, 24, 47, 47, 94}},
		{name: "H100", gb: []int{12, 24, 24, 48, 48, 96}},
		{name: "H800", gb: []int{10, 20, 20, 40, 40, 80}},
		{name: "H800", form: "NVL", gb: []int{12, 24, 24, 47, 47, 94}},
		{name: "H20", gb: []int{12, 24, 24, 48, 48, 96}},
		{name: "GH200", gb: []int{12, 24, 24, 48, 48, 96}},
		{name: "GH200", gb: []int{18, 36, 36, 72, 72, 144}},
		{name: "H200", gb: []int{18, 35, 35, 71, 71, 141}},
		{name: "B200", gb: []int{23, 45, 45, 90, 90, 180}},
		{name: "GB200", gb: []int{23, 47, 47, 93, 93, 186}},
		{name: "B300", gb: []int{34, 67, 67, 135, 135, 269}},
		{name: "GB300", gb: []int{35, 70, 70, 139, 139, 278}},
		{name: "A30", gb: []int{6, 12, 24}},
		{name: "RTXPRO6000", gb: []int{24, 48, 96}},
	}
}

// geometry returns the geometry of the model. Placements are those of nvidia-smi mig -lgipp on
// A100, H100 and A30; newer models with seven slices are laid out like them.
func (m model) geometry() *Geometry {
	var all []Profile
	add := func(format string, gb, size, engines int, starts ...int) {
		p := newProfile(fmt.Sprintf(format, gb), starts, size)
		p.engines = engines
		all = append(all, p)
	}
	if len(m.gb) == 6 {
		add("1g.%dgb", m.gb[0], 1, 0, 0, 1, 2, 3, 4, 5, 6)
		add("1g.%dgb+me", m.gb[0], 1, 0, 0, 1, 2, 3, 4, 5, 6)
		add("1g.%dgb", m.gb[1], 2, 0, 0, 2, 4, 6)
		add("2g.%dgb", m.gb[2], 2, 0, 0, 2, 4)
		add("3g.%dgb", m.gb[3], 4, 0, 0, 4)
		add("4g.%dgb", m.gb[4], 4, 0, 0)
		add("7g.%dgb", m.gb[5], 8, 0, 0)
		return newGeometry(all)
	}
	add("1g.%dgb", m.gb[0], 1, 1, 0, 1, 2, 3)
	add("1g.%dgb+me", m.gb[0], 1, 1, 0, 1, 2, 3)
	add("2g.%dgb", m.gb[1], 2, 2, 0, 2)
	add("4g.%dgb", m.gb[2], 4, 4, 0)
	if m.name == "A30" {
		add("2g.%dgb+me", m.gb[1], 2, 2, 0, 2)
		return newGeometry(all)
	}
	// The RTX PRO 6000 has four media engines: a slice has one, unless it leaves it ("-me"),
	// or takes all ("+me.all").
	add("1g.%dgb+me.all", m.gb[0], 1, 4, 0, 1, 2, 3)
	add("1g.%dgb+gfx", m.gb[0], 1, 1, 0, 1, 2, 3)
	add("1g.%dgb-me", m.gb[0], 1, 0, 0, 1, 2, 3)
	add("2g.%dgb+me.all", m.gb[1], 2, 4, 0, 2)
	add("2g.%dgb+gfx", m.gb[1], 2, 2, 0, 2)
	add("2g.%dgb-me", m.gb[1], 2, 0, 0, 2)
	add("4g.%dgb+gfx", m.gb[2], 4, 4, 0)
	g := newGeometry(all)
	g.engines = 4
	return g
}

// GeometryOf returns the geometry of a product, as the label nvidia.com/gpu.product or DCGM
// write it, in upper or lower case: "NVIDIA-A100-SXM4-80GB", "H100-80GB",
// "A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-H200-SHARED". memoryMiB is the memory of the product, 0
// if unknown. It is false for a GPU that has no MIG or is not known, and where the model comes
// with different memories and nothing tells with which.
//
// Each call builds the geometry anew: keep it.
func GeometryOf(product string, memoryMiB int64) (*Geometry, bool) {
	whole, instance, isMIG := strings.Cut(strings.ToUpper(product), "-MIG-")
	words := strings.FieldsFunc(whole, func(r rune) bool { return r == '-' || r == ' ' || r == '_' })
	known := namesakes(words)
	for _, w := range words {
		if gb := number(strings.TrimSuffix(strings.TrimSuffix(w, "B"), "G")); gb > 0 && strings.Contains(w, "G") {
			if m, ok := nearest(known, float64(gb)); ok {
				return m.geometry(), true
			}
			memoryMiB = max(memoryMiB, 1) // it says something, and that is not known: ask the memory
		}
	}
	for _, m := range known {
		for _, w := range words {
			if m.form == w {
				return m.geometry(), true
			}
		}
	}
	if isMIG {
		// The memory is that of the instance, as the rest of the name is.
		return withProfile(known, strings.ToLower(strings.TrimSuffix(instance, "-SHARED")))
	}
	if memoryMiB > 0 {
		m, ok := nearest(known, float64(memoryMiB)/1024)
		if !ok {
			return nil, false
		}
		return m.geometry(), true
	}
	if len(known) != 1 {
		return nil, false
	}
	return known[0].geometry(), true
}

// namesakes returns the models with the name that is among the words.
func namesakes(words []string) []model {
	joined := "-" + strings.Join(words, "-") + "-"
	joined = strings.Replace(joined, "-RTX-PRO-6000-", "-RTXPRO6000-", 1)
	var known []model
	for _, m := range models() {
		if strings.Contains(joined, "-"+m.name+"-") {
			known = append(known, m)
		}
	}
	return known
}

// nearest returns the model whose memory is nearest, if it is off by less than a tenth: labels
// round, and some count what the driver reserves.
func nearest(known []model, gb float64) (model, bool) {
	var best model
	off := math.Inf(1)
	for _, m := range known {
		if o := math.Abs(gb/float64(m.memory()) - 1); o < off {
			best, off = m, o
		}
	}
	return best, off < 0.1
}

// withProfile returns the geometry of the only model that has the profile, or of the only one.
func withProfile(known []model, profile string) (*Geometry, bool) {
	var found *Geometry
	for _, m := range known {
		g := m.geometry()
		if len(known) > 1 && g.find(profile) < 0 {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = g
	}
	return found, found != nil
}

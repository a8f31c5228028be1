package gpu

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestGeometryOf(t *testing.T) {
	for _, c := range []struct {
		product   string
		memoryMiB int64
		want      string // the whole GPU's profile, "" if there is none
	}{
		{"NVIDIA-A100-SXM4-40GB", 40960, "7g.40gb"},
		{"NVIDIA-A100-SXM4-80GB", 81920, "7g.80gb"},
		{"NVIDIA-A100-PCIE-40GB", 0, "7g.40gb"},
		{"NVIDIA A100-SXM4-80GB", 0, "7g.80gb"},
		{"A100-SXM4-40GB-MIG-1g.5gb", 4864, "7g.40gb"},
		{"NVIDIA-A100-SXM4-MIG-1g.5gb", 4864, "7g.40gb"},
		{"NVIDIA-A100-SXM4-MIG-2g.20gb-SHARED", 19968, "7g.80gb"},
		{"NVIDIA-A100-SXM4-80GB-MIG-INVALID", 0, "7g.80gb"},
		{"NVIDIA-A100-SXM4-MIG-INVALID", 0, ""},
		{"A100", 40960, "7g.40gb"},
		{"A100", 81251, "7g.80gb"},
		{"A100", 0, ""}, // two it could be
		{"A100-SXM-64GB", 65536, ""},
		{"nvidia-a100-80gb", 0, "7g.80gb"},
		{"NVIDIA-A800-SXM4-80GB", 81920, "7g.80gb"},
		{"H100-80GB", 81559, "7g.80gb"},
		{"NVIDIA-H100-80GB-HBM3", 81559, "7g.80gb"},
		{"NVIDIA H100 80GB HBM3", 0, "7g.80gb"},
		{"NVIDIA-H100-80GB-HBM3-SHARED", 81559, "7g.80gb"},
		{"nvidia-h100-mega-80gb", 0, "7g.80gb"},
		{"NVIDIA-H100-PCIe", 0, "7g.80gb"},
		{"NVIDIA-H100-NVL", 95830, "7g.94gb"},
		{"NVIDIA-H100-NVL-MIG-1g.12gb", 11008, "7g.94gb"},
		{"NVIDIA-H100", 97871, "7g.96gb"},
		{"NVIDIA-H100", 0, ""},
		{"NVIDIA-H20", 97871, "7g.96gb"},
		{"NVIDIA-GH200-480GB", 97871, "7g.96gb"}, // 480 GB are the CPU's
		{"NVIDIA-GH200-480GB", 0, ""},
		{"NVIDIA-GH200-144G-HBM3e", 147456, "7g.144gb"},
		{"NVIDIA-H200", 143771, "7g.141gb"},
		{"NVIDIA-H200-SHARED", 0, "7g.141gb"},
		{"NVIDIA-H200-MIG-1g.18gb", 16384, "7g.141gb"},
		{"nvidia-h200-141gb", 0, "7g.141gb"},
		{"NVIDIA-B200", 183359, "7g.180gb"},
		{"NVIDIA-GB200", 189471, "7g.186gb"},
		{"NVIDIA-B300-SXM6-AC", 275040, "7g.269gb"},
		{"NVIDIA-GB300", 284208, "7g.278gb"},
		{"NVIDIA-A30", 24576, "4g.24gb"},
		{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "4g.96gb"},
		{"NVIDIA-RTX-6000-Ada-Generation", 49140, ""},
		{"NVIDIA-A10", 23028, ""},
		{"NVIDIA-A100X", 81920, ""},
		{"Tesla-V100-SXM2-16GB", 16384, ""},
		{"NVIDIA-H200", 16384, ""}, // not what an H200 has
		{"", 0, ""},
		{"-MIG-", 0, ""},
	} {
		g, ok := GeometryOf(c.product, c.memoryMiB)
		if ok != (c.want != "") {
			t.Errorf("%s with %d MiB: known %v", c.product, c.memoryMiB, ok)
			continue
		}
		if !ok {
			continue
		}
		if _, ok := g.Profile(c.want); !ok || !slices.ContainsFunc(g.profiles, func(p Profile) bool { return p.Name == c.want }) {
			t.Errorf("%s with %d MiB has %v, not %s", c.product, c.memoryMiB, names(g), c.want)
		}
	}
}

func names(g *Geometry) []string {
	var names []string
	for _, p := range g.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// What nvidia-smi lists on the real cards.
func TestTables(t *testing.T) {
	type row struct {
		compute, memory, most int
		starts                []int
	}
	layout := []row{
		{1, 1, 7, []int{0, 1, 2, 3, 4, 5, 6}},
		{1, 1, 1, []int{0, 1, 2, 3, 4, 5, 6}}, // +me
		{1, 2, 4, []int{0, 2, 4, 6}},
		{2, 2, 3, []int{0, 2, 4}},
		{3, 4, 2, []int{0, 4}},
		{4, 4, 1, []int{0}},
		{7, 8, 1, []int{0}},
	}
	tables := map[string][]string{
		"A100-40GB": {"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
		"A100-80GB": {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
		"H100-80GB": {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
		"H100-NVL":  {"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"},
		"H100-96GB": {"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"},
		"H200":      {"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
		"B200":      {"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"},
		"GB200":     {"1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"},
		"B300":      {"1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"},
		"GB300":     {"1g.35gb", "1g.35gb+me", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb"},
	}
	check := func(product string, names []string, rows []row) {
		g, ok := GeometryOf(product, 0)
		if !ok {
			t.Fatalf("%s is not known", product)
		}
		if len(g.profiles) != len(rows) {
			t.Errorf("%s has %d profiles, want %d", product, len(g.profiles), len(rows))
		}
		for i, want := range rows {
			p, ok := g.Profile(names[i])
			if !ok || p.Name != names[i] || p.Compute != want.compute || p.Memory != want.memory || p.Max != want.most ||
				!slices.Equal(p.Starts, want.starts) || p.Media != strings.HasSuffix(names[i], "+me") {
				t.Errorf("%s %s is %+v, want %+v", product, names[i], p, want)
			}
		}
	}
	for _, product := range slices.Sorted(maps.Keys(tables)) {
		check(product, tables[product], layout)
		if g, _ := GeometryOf(product, 0); g.MemorySlices() != 8 || g.ComputeSlices() != 7 {
			t.Errorf("%s has %d and %d slices", product, g.MemorySlices(), g.ComputeSlices())
		}
	}
	check("A30", []string{"1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb"}, []row{
		{1, 1, 4, []int{0, 1, 2, 3}}, {1, 1, 1, []int{0, 1, 2, 3}}, {2, 2, 2, []int{0, 2}}, {2, 2, 1, []int{0, 2}}, {4, 4, 1, []int{0}},
	})
	for name, most := range map[string]int{"1g.24gb": 4, "1g.24gb+me": 1, "1g.24gb+me.all": 1, "1g.24gb-me": 4, "2g.48gb": 2, "2g.48gb+gfx": 2, "4g.96gb": 1} {
		g, _ := GeometryOf("RTX PRO 6000", 0)
		if p, ok := g.Profile(name); !ok || p.Name != name || p.Max != most || g.MemorySlices() != 4 || g.ComputeSlices() != 4 {
			t.Errorf("RTX PRO 6000 %s is %+v", name, p)
		}
	}
}

func TestNamesDrift(t *testing.T) {
	for _, c := range []struct{ product, name, want string }{
		{"H100-80GB", "3g.39gb", "3g.40gb"},
		{"A100-80GB", "7g.79gb", "7g.80gb"},
		{"H100-NVL", "3g.48gb", "3g.47gb"},
		{"H100-NVL", "7g.96gb", "7g.94gb"},
		{"GB200", "1g.24gb", "1g.23gb"},
		{"GB200", "3g.95gb", "3g.93gb"},
		{"GB200", "7g.189gb", "7g.186gb"},
		{"H100-80GB", "1g.10gb.me", "1g.10gb+me"},
		{"H100-80GB", "mig-1g.10gb.me", "1g.10gb+me"},
		{"H100-80GB", "mig-1g.20gb", "1g.20gb"},
		{"RTX-PRO-6000", "mig-1g.24gb.me.all", "1g.24gb+me.all"},
		{"RTX-PRO-6000", "mig-1g.24gb-me", "1g.24gb-me"},
		{"RTX-PRO-6000", "2g.48gb.gfx", "2g.48gb+gfx"},
		// Other slices are other profiles, however near the name.
		{"H100-80GB", "1g.5gb", ""},
		{"H100-80GB", "1g.12gb", ""},
		{"A100-40GB", "1g.6gb", ""},
		{"A100-40GB", "2g.20gb", ""},
		{"A100-40GB", "4g.10gb", ""},
		{"B200", "2g.47gb", ""},
		{"A100-40GB", "5g.20gb", ""},
		{"A30", "3g.12gb", ""},
		{"A100-40GB", "1c.3g.20gb", ""},
		{"A100-40GB", "3g.20gb+you", ""},
		{"A100-40GB", "2g.10gb+me", ""},
		{"A100-40GB", "-1g.5gb", ""},
		{"A100-40GB", "g.gb", ""},
		{"A100-40GB", "", ""},
	} {
		g, ok := GeometryOf(c.product, 0)
		if !ok {
			t.Fatalf("%s is not known", c.product)
		}
		if p, ok := g.Profile(c.name); p.Name != c.want || ok != (c.want != "") {
			t.Errorf("%s on %s is %q, want %q", c.name, c.product, p.Name, c.want)
		}
	}
}

// No name may mean two profiles: what is in one driver's table may not drift onto another's.
func TestDriftKeepsProfilesApart(t *testing.T) {
	for _, m := range models() {
		g := m.geometry()
		for i, p := range g.profiles {
			for _, q := range g.profiles[:i] {
				if p.name.compute == q.name.compute && p.name.variant == q.name.variant && p.name.gb-q.name.gb <= 2*drift(p.name.gb) {
					t.Errorf("%s and %s of %s are too close", p.Name, q.Name, m.name)
				}
			}
		}
	}
}

func TestNewGeometryNamesTheMistake(t *testing.T) {
	ok := Placements{[]int{0}, 1}
	many := map[string]Placements{}
	for i := range 17 {
		many[strings.Repeat("x", i+1)] = ok
	}
	for _, c := range []struct {
		profiles map[string]Placements
		want     string
	}{
		{nil, "no MIG profiles"},
		{many, "17 MIG profiles: there can be at most 16"},
		{map[string]Placements{"": ok}, "a MIG profile without a name"},
		{map[string]Placements{"1g.5gb": {[]int{0}, 0}}, `MIG profile "1g.5gb": size is 0`},
		{map[string]Placements{"1g.5gb": {[]int{0}, 9}}, `MIG profile "1g.5gb": size is 9`},
		{map[string]Placements{"1g.5gb": {nil, 1}}, `MIG profile "1g.5gb": no start`},
		{map[string]Placements{"3g.20gb": {[]int{0, 5}, 4}}, `MIG profile "3g.20gb": starts[1] is 5: with size 4 it must be between 0 and 4`},
		{map[string]Placements{"1g.5gb": {[]int{-1}, 1}}, `MIG profile "1g.5gb": starts[0] is -1`},
		{map[string]Placements{"1g.5gb": {[]int{2, 2}, 1}}, `MIG profile "1g.5gb": starts[1] is 2 for the second time`},
		{map[string]Placements{"1g.5gb+me": ok, "1g.5gb.me": ok}, `MIG profiles "1g.5gb+me" and "1g.5gb.me" are the same`},
	} {
		if _, err := NewGeometry(c.profiles); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestMadeUpGeometry(t *testing.T) {
	g, err := NewGeometry(map[string]Placements{
		"3g.20gb": {[]int{4, 0}, 4},
		"1g.test": {[]int{6, 0, 1}, 1},
		"half":    {[]int{0, 1, 4}, 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Profile{
		"3g.20gb": {Compute: 3, Max: 2, Starts: []int{0, 4}},
		"1g.test": {Compute: 1, Max: 3, Starts: []int{0, 1, 6}},
		"half":    {Compute: 0, Max: 2, Starts: []int{0, 1, 4}},
	} {
		if p, ok := g.Profile(name); !ok || p.Compute != want.Compute || p.Max != want.Max || !slices.Equal(p.Starts, want.Starts) {
			t.Errorf("%s is %+v", name, p)
		}
	}
	p, _ := g.Profile("half")
	p.Starts[0] = 7
	g.Profiles()[0].Starts[0] = 7
	if again, _ := g.Profile("half"); again.Starts[0] != 0 || g.profiles[0].Starts[0] == 7 {
		t.Error("a caller can write into the geometry")
	}
	if g.Milli(p) != 0 {
		t.Errorf("a share of %d was not told", g.Milli(p))
	}
}

func TestSmallestFor(t *testing.T) {
	for _, c := range []struct {
		product   string
		milli     int
		memoryMiB int64
		want      string
	}{
		{"A100-40GB", 0, 0, "1g.5gb"},
		{"A100-40GB", 1, 0, "1g.5gb"},
		{"A100-40GB", 143, 0, "1g.5gb"}, // a seventh, as people round it
		{"A100-40GB", 144, 0, "2g.10gb"},
		{"A100-40GB", 250, 0, "2g.10gb"},
		{"A100-40GB", 400, 0, "3g.20gb"},
		{"A100-40GB", 500, 0, "4g.20gb"},
		{"A100-40GB", 600, 0, "7g.40gb"},
		{"A100-40GB", 1000, 0, "7g.40gb"},
		{"A100-40GB", 1002, 0, ""},
		{"A100-40GB", 100, 4608, "1g.5gb"}, // it has 4864
		{"A100-40GB", 100, 5120, "1g.10gb"},
		{"A100-40GB", 200, 10240, "3g.20gb"},
		{"A100-40GB", 100, 40960, ""},
		{"H200", 100, 16000, "1g.18gb"},
		{"H200", 100, 17000, "1g.35gb"},
		{"A30", 250, 0, "1g.6gb"},
		{"A30", 500, 0, "2g.12gb"},
		{"A30", 600, 0, "4g.24gb"},
	} {
		g, _ := GeometryOf(c.product, 0)
		p, ok := g.SmallestFor(c.milli, c.memoryMiB)
		if p.Name != c.want || ok != (c.want != "") {
			t.Errorf("%d thousandths and %d MiB of %s: %q, want %q", c.milli, c.memoryMiB, c.product, p.Name, c.want)
		}
	}
	g, _ := GeometryOf("H100-80GB", 0)
	for name, want := range map[string]int{"1g.10gb": 142, "1g.20gb": 142, "3g.40gb": 428, "7g.80gb": 1000} {
		if p, _ := g.Profile(name); g.Milli(p) != want {
			t.Errorf("%s is %d thousandths, want %d", name, g.Milli(p), want)
		}
	}
	if p, _ := g.Profile("3g.40gb"); g.MemoryMiB(p) != 36864 {
		t.Errorf("3g.40gb surely has %d MiB", g.MemoryMiB(p))
	}
}

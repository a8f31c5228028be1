package gpu

import (
	"strings"
	"testing"
)

func FuzzParsePCIe(f *testing.F) {
	for _, s := range []string{"", "X", "SELF", "pix", "PXB ", "PHB", "NODE", "SYS", "unknown", "NV18", "PCIe(7)", "ſys"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePCIe(s)
		if err != nil {
			if p != UnknownPCIe {
				t.Errorf("%q: %s with %v", s, p, err)
			}
			return
		}
		if again, err := ParsePCIe(p.String()); again != p || err != nil {
			t.Errorf("%q is %s, which is %s, %v", s, p, again, err)
		}
	})
}

func FuzzGeometryOf(f *testing.F) {
	for _, s := range []string{
		"NVIDIA-A100-SXM4-80GB", "A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-H100-NVL-SHARED", "H100-80GB", "NVIDIA-GH200-480GB",
		"NVIDIA-A100-SXM4-MIG-INVALID", "RTX PRO 6000", "-MIG-", "A100-99999999999999999999GB", "A100-GB", "A100--0GB",
	} {
		f.Add(s, int64(81559), "mig-3g.39gb")
	}
	f.Add("A100", int64(-1), "9999g.9999gb+me.all")
	f.Add("A30", int64(1)<<62, "-1g.5gb")
	f.Fuzz(func(t *testing.T, product string, memoryMiB int64, profile string) {
		g, ok := GeometryOf(product, memoryMiB)
		if !ok {
			if g != nil {
				t.Errorf("%q is not known, but has a geometry", product)
			}
			return
		}
		if _, again := GeometryOf(strings.ToLower(product), memoryMiB); product == strings.ToUpper(product) && !again {
			t.Errorf("%q in small letters is not known", product)
		}
		p, ok := g.Profile(profile)
		if !ok {
			return
		}
		if q, ok := g.Profile(p.Name); !ok || q.Name != p.Name {
			t.Errorf("%q is %q, which is %q", profile, p.Name, q.Name)
		}
		if got, _, ok := g.Place(nil, 1, []string{profile}); !ok || checkGPU(g, got, 0) != "" {
			t.Errorf("%q on an empty GPU: %+v %v", profile, got, ok)
		}
	})
}

// FuzzNewBoard reads a wiring from bytes: a number of GPUs, and then a byte for each entry.
func FuzzNewBoard(f *testing.F) {
	f.Add(2, []byte{0, 18, 18, 0}, []byte{6, 5, 5, 6}, []byte{0, 1})
	f.Add(2, []byte{0, 18, 12, 0}, []byte{}, []byte{})
	f.Add(0, []byte{}, []byte{}, []byte{255})
	f.Add(17, make([]byte, 17*17), []byte{}, []byte{})
	f.Add(-1, []byte{1, 2, 3}, []byte{1, 2, 3}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, count int, links, pcie, numa []byte) {
		w := Wiring{Count: count}
		width := max(1, min(count, 70))
		for row := range rows(links, width) {
			var of []int
			for _, x := range row {
				of = append(of, int(int8(x)))
			}
			w.Links = append(w.Links, of)
		}
		for row := range rows(pcie, width) {
			var of []PCIe
			for _, x := range row {
				of = append(of, PCIe(x))
			}
			w.PCIe = append(w.PCIe, of)
		}
		for _, x := range numa {
			w.NUMA = append(w.NUMA, int(int8(x)))
		}
		b, err := NewBoard(w)
		if err != nil {
			if b != nil || err.Error() == "" {
				t.Errorf("%+v: a board with %q", w, err)
			}
			return
		}
		all := All(b.Count())
		if b.Count() < 1 || b.Count() > MaxGPUs || b.Links(all) < 0 || b.NUMANodes(all) > b.Count() || b.WorstPCIe(all) > SELF {
			t.Errorf("%+v: %d GPUs, %d links, %d NUMA nodes", w, b.Count(), b.Links(all), b.NUMANodes(all))
		}
		k := (b.Count() + 1) / 2
		if set, ok := b.Best(all, k, bit(b.Count()-1)); !ok || set.Count() != k || !set.Has(b.Count()-1) || set&^all != 0 {
			t.Errorf("%+v: the best %d are %v %v", w, k, set, ok)
		}
	})
}

// rows cuts bytes into rows of a width, the last of which may be shorter.
func rows(data []byte, width int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(width, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

package gpu

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// scenario is what these tests read of the conformance files; scenario.md beside them says what
// it means.
type scenario struct {
	Name  string
	Nodes []struct {
		Name string
		GPUs struct {
			Product   string
			MemoryMiB int64
			Links     [][]int
			PCIe      [][]string
			NUMA      []int
			Used      []int
			MIG       []struct {
				GPU     int
				Profile string
				Start   int
				Used    *bool
			}
			MIGProfiles map[string]Placements
		}
	}
	Request struct {
		Groups []struct {
			Count       int
			Requests    map[string]string
			GPUsInclude []int
			MIG         []string
		}
	}
	Expect struct {
		Feasible bool
		GPUs     map[string][]int
		MIG      []struct {
			GPU     int
			Profile string
			Start   int
		}
		Policy string
	}
}

// scenarios reads a conformance file. It lies beside the repository and not in it: without it
// the test is skipped, but not in continuous integration.
func scenarios(t *testing.T, file string) []scenario {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "conformance", file)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing, and CI=true turns skips into failures", path)
		}
		t.Skipf("%s is missing: put the conformance files there to run this test", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Scenarios []scenario }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all.Scenarios
}

func TestAgreesWithNVIDIAsAllocator(t *testing.T) {
	cases, choices := scenarios(t, "gpuallocator.json"), 0
	for _, s := range cases {
		t.Run(s.Name, func(t *testing.T) {
			told := s.Nodes[0].GPUs
			w := Wiring{Links: told.Links, NUMA: told.NUMA}
			for _, row := range told.PCIe {
				classes := make([]PCIe, len(row))
				for j, name := range row {
					var err error
					if classes[j], err = ParsePCIe(name); err != nil {
						t.Fatal(err)
					}
				}
				w.PCIe = append(w.PCIe, classes)
			}
			b, group := board(t, w), s.Request.Groups[0]
			free := All(b.Count()) &^ MaskOf(told.Used...)
			got, ok := b.Best(free, number(group.Requests["nvidia.com/gpu"]), MaskOf(group.GPUsInclude...))
			if ok != s.Expect.Feasible {
				t.Fatalf("got %v %v, want feasible %v", got, ok, s.Expect.Feasible)
			}
			if want := MaskOf(s.Expect.GPUs[s.Nodes[0].Name]...); s.Expect.Policy != "" {
				choices++
				if got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	if len(cases) < 14 || choices < 12 {
		t.Errorf("%d cases with %d choices: there were 14 with 12", len(cases), choices)
	}
}

func TestAgreesWithHAMiOnMIG(t *testing.T) {
	cases, choices := scenarios(t, "hami-mig.json"), 0
	for _, s := range cases {
		t.Run(s.Name, func(t *testing.T) {
			told, group := s.Nodes[0].GPUs, s.Request.Groups[0]
			g, err := NewGeometry(told.MIGProfiles)
			if err != nil {
				t.Fatal(err)
			}
			var existing []Instance
			for _, x := range told.MIG {
				existing = append(existing, Instance{GPU: x.GPU, Profile: x.Profile, Start: x.Start, Used: x.Used == nil || *x.Used})
			}
			var want []string
			for range group.Count {
				want = append(want, group.MIG...)
			}
			usable := All(len(told.NUMA))
			got, _, ok := g.Place(existing, usable, want)
			if ok != s.Expect.Feasible {
				t.Fatalf("got %+v %v, want feasible %v", got, ok, s.Expect.Feasible)
			}
			if n, exact := g.Fits(existing, usable, group.MIG, group.Count); !exact || (n == group.Count) != ok {
				t.Errorf("%d of %d fit (exact %v)", n, group.Count, exact)
			}
			agreesWithModel(t, g, told.Product, told.MemoryMiB)
			if s.Expect.Policy == "" {
				return
			}
			// HAMi chooses one after the other, where we choose together: as sets they are equal.
			choices++
			var where, wanted []Instance
			for _, x := range got {
				where = append(where, Instance{GPU: x.GPU, Profile: x.Profile, Start: x.Start})
			}
			for _, x := range s.Expect.MIG {
				wanted = append(wanted, Instance{GPU: x.GPU, Profile: x.Profile, Start: x.Start})
			}
			for _, x := range wanted {
				if len(where) != len(wanted) || !slices.Contains(where, x) {
					t.Fatalf("got %+v, want %+v", where, wanted)
				}
			}
		})
	}
	if len(cases) < 46 || choices < 6 {
		t.Errorf("%d cases with %d choices: there were 46, and at least 6", len(cases), choices)
	}
}

// agreesWithModel compares a full table of a scenario with ours for the product.
func agreesWithModel(t *testing.T, told *Geometry, product string, memoryMiB int64) {
	t.Helper()
	if len(told.profiles) < 6 {
		return // some scenarios tell a part, or one of their own
	}
	known, ok := GeometryOf(product, memoryMiB)
	if !ok {
		t.Fatalf("%s with %d MiB is not known", product, memoryMiB)
	}
	for _, want := range told.profiles {
		if p, ok := known.Profile(want.Name); !ok || p.Name != want.Name || p.Memory != want.Memory || !slices.Equal(p.Starts, want.Starts) {
			t.Errorf("%s of %s is %+v, want %+v", want.Name, product, p, want)
		}
	}
}

package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/collective"
)

// domains counts the nodes of each domain of a level.
func domains(t *testing.T, s *cluster.Snapshot, level string) map[string]int {
	t.Helper()
	l, ok := s.Level(level)
	if !ok {
		t.Fatalf("there is no level %s", level)
	}
	counts := map[string]int{}
	for _, d := range s.Domains(l) {
		counts[s.DomainName(d)] = d.End - d.First
	}
	return counts
}

func snapshot(t *testing.T, c *Cluster) *cluster.Snapshot {
	t.Helper()
	s, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collective.New(c.Fabric, s, c.Uplinks); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFatTreeOfDefaults(t *testing.T) {
	c, err := Shape("fattree:1024x8")
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, c)
	leaves, spines := domains(t, s, "leaf"), domains(t, s, "spine")
	if s.Len() != 1024 || len(leaves) != 64 || leaves["leaf-064"] != 16 || len(spines) != 2 || spines["spine-02"] != 512 {
		t.Errorf("%d nodes, leaves %v, spines %v", s.Len(), leaves, spines)
	}
	n := s.Node("node-0017")
	if !slices.Equal(n.Path, []string{"spine-01", "leaf-002", "node-0017"}) || n.Labels[leafLabel] != "leaf-002" || !n.Ready {
		t.Errorf("the 17th node is %+v", n.Machine)
	}
	if want := (cluster.Vector{224_000, 2048 << 30, unlimitedPods, 8}); !slices.Equal(n.Allocatable, want) || c.Resources.Index(gpuResource) != 3 {
		t.Errorf("it offers %v, want %v", n.Allocatable, want)
	}
	if n.Board != s.Node("node-1024").Board || n.WholeGPUs().Count() != 8 || n.GPU.Product != "H100" {
		t.Error("it has not 8 H100s on a board that all share")
	}
	if s.UplinksLeft() != nil || len(c.Notes) != 0 {
		t.Errorf("uplinks are known, or something is to be told: %v", c.Notes)
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		text          string
		nodes, gpus   int
		leaves        map[string]int
		spines        int
		model, uplink string
	}{
		{"fattree:40x8/16/32", 40, 8, map[string]int{"leaf-001": 16, "leaf-002": 16, "leaf-003": 8}, 1, "H100", ""},
		{"fattree:3x4/1/2@A100", 3, 4, map[string]int{"leaf-001": 1, "leaf-002": 1, "leaf-003": 1}, 2, "A100", ""},
		{"fattree:4x8/2,oversubscription=2", 4, 8, map[string]int{"leaf-001": 2, "leaf-002": 2}, 1, "H100", "[3200000 3200000]"},
		{"fattree:4x2/2@A100-SXM4-80GB,oversubscription=1", 4, 2, map[string]int{"leaf-001": 2, "leaf-002": 2}, 1, "A100-SXM4-80GB", "[800000 800000]"},
		{"fattree:4x8/4@V100,oversubscription=2.5", 4, 8, map[string]int{"leaf-001": 4}, 1, "V100", "[160000]"},
		{"fattree:1x64", 1, 64, map[string]int{"leaf-001": 1}, 1, "H100", ""},
		{"flat:64x8", 64, 8, nil, 0, "H100", ""},
		{"flat:2x1@T4", 2, 1, nil, 0, "T4", ""},
	} {
		got, err := Shape(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		s := snapshot(t, got)
		if s.Len() != c.nodes || s.At(0).Board.Count() != c.gpus || s.At(0).GPU.Product != c.model || got.Fabric.GPUs != c.gpus {
			t.Errorf("%s: %d nodes of %d %s", c.text, s.Len(), s.At(0).Board.Count(), s.At(0).GPU.Product)
		}
		if c.leaves == nil {
			if len(got.Levels) != 1 || got.Levels[0].Name != "host" {
				t.Errorf("%s: levels %v", c.text, got.Levels)
			}
			continue
		}
		if leaves := domains(t, s, "leaf"); fmt.Sprint(leaves) != fmt.Sprint(c.leaves) || len(domains(t, s, "spine")) != c.spines {
			t.Errorf("%s: leaves %v, spines %v", c.text, leaves, domains(t, s, "spine"))
		}
		if left := s.UplinksLeft(); (left != nil || c.uplink != "") && fmt.Sprint(left[1]) != c.uplink {
			t.Errorf("%s: uplinks %v, want %s", c.text, left, c.uplink)
		}
	}
}

func TestShapesTellTheRouting(t *testing.T) {
	for text, want := range map[string]collective.Routing{
		"fattree:4x8/2":                                        collective.Adaptive,
		"fattree:4x8/2,routing=adaptive":                       collective.Adaptive,
		"fattree:4x8/2,routing=hashed":                         collective.Hashed,
		"fattree:4x8/2@A100,routing=hashed,oversubscription=2": collective.Hashed,
		"fattree:4x8/2@A100,oversubscription=2,routing=hashed": collective.Hashed,
		"fattree:4x8/2,oversubscription=2,routing=adaptive":    collective.Adaptive,
	} {
		c, err := Shape(text)
		if err != nil {
			t.Error(err)
			continue
		}
		snapshot(t, c)
		if c.Fabric.Routing != want || strings.Contains(text, "oversubscription") != (len(c.Uplinks) == 2) {
			t.Errorf("%s: routing is %s, with uplinks %v", text, c.Fabric.Routing, c.Uplinks)
		}
	}
}

// The links of an uplink are those that the shape gives it, whether it is told what they carry or not:
// on fewer, flows meet more often.
func TestHashedShapesAreSlower(t *testing.T) {
	slowdown := func(text string) float64 {
		c, err := Shape(text)
		if err != nil {
			t.Fatal(err)
		}
		s := snapshot(t, c)
		m, err := collective.New(c.Fabric, s, c.Uplinks)
		if err != nil {
			t.Fatal(err)
		}
		var ranks []int
		for _, name := range []string{"node-0001", "node-0017", "node-0033", "node-0049"} {
			for i := range s.Len() {
				for range 8 {
					if s.At(i).Name == name {
						ranks = append(ranks, i)
					}
				}
			}
		}
		return m.Gang(collective.Seats(ranks)).Slowdown(1<<30, nil)
	}
	even := slowdown("fattree:64x8")
	hashed, told := slowdown("fattree:64x8,routing=hashed"), slowdown("fattree:64x8,routing=hashed,oversubscription=1")
	fewer := slowdown("fattree:64x8,oversubscription=4,routing=hashed")
	if !(even < hashed && hashed == told && told < fewer) || slowdown("fattree:64x8/64,routing=hashed") != 1 {
		t.Errorf("slowdowns are %v evenly, %v hashed, %v with uplinks told, %v with a quarter of the links", even, hashed, told, fewer)
	}
}

func TestUnknownModelIsTold(t *testing.T) {
	c, err := Shape("flat:2x1@T4")
	if err != nil || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "T4") {
		t.Errorf("got %v, %v", c.Notes, err)
	}
}

func TestWrongShapes(t *testing.T) {
	for text, want := range map[string]string{
		"tree:3x8":                         `character 1: found "tree:3x8"; expected fattree: or flat:`,
		"":                                 `character 1: the text ends; expected fattree: or flat:`,
		"fattree:":                         `character 9: the text ends; expected the number of nodes`,
		"fattree:x8":                       `character 9: found "x8"; expected the number of nodes`,
		"fattree:0x8":                      `character 9: 0; expected the number of nodes, 1 to 131072`,
		"fattree:99999999999999999999x8":   `character 9: 99999999999999999999; expected the number of nodes, 1 to 131072`,
		"fattree:-1x8":                     `character 9: found "-1x8"; expected the number of nodes`,
		"fattree:40y8":                     `character 11: found "y8"; expected x and the GPUs of a node`,
		"fattree:40x65":                    `character 12: 65; expected the GPUs of a node, 1 to 64`,
		"fattree:40x8/":                    `character 14: the text ends; expected the nodes of a leaf`,
		"fattree:40x8/0":                   `character 14: 0; expected the nodes of a leaf, 1 to`,
		"fattree:40x8/16/z":                `character 17: found "z"; expected the leaves of a spine`,
		"fattree:40x8/16/32/2":             `character 19: found "/2"; expected /, @, a comma or the end`,
		"fattree:40x8 ":                    `character 13: found " "; expected /, @, a comma or the end`,
		"fattree:40x8@":                    `character 14: the text ends; expected a model of GPU`,
		"fattree:40x8@H 100":               `character 14: found "H 100"; expected a model of GPU`,
		"fattree:40x8,over=2":              `character 14: found "over=2"; expected oversubscription= or routing=`,
		"fattree:40x8,oversubscription=":   `character 31: the text ends; expected a number of 1 to 1000`,
		"fattree:40x8,oversubscription=.5": `character 31: found ".5"; expected a number of 1 to 1000`,
		"fattree:40x8,oversubscription=1,oversubscription=2": `character 33: oversubscription is there twice`,
		"fattree:40x8,routing=":                              `character 22: the text ends; expected adaptive or hashed`,
		"fattree:40x8,routing=ecmp,oversubscription=2":       `character 22: found "ecmp,oversubscription=2"; expected adaptive or hashed`,
		"fattree:40x8,routing=hashed,routing=adaptive":       `character 29: routing is there twice; expected it once`,
		"fattree:40x8,routing=hashed,oversubscription":       `character 29: found "oversubscription"; expected oversubscription= or routing=`,
		"fattree:40x8,routing=hashed@A100":                   `character 22: found "hashed@A100"; expected adaptive or hashed`,
		"flat:3x8,routing=hashed":                            `character 10: flat has no uplinks to route over`,
		"flat:3x8/2":                                         `character 9: flat has no leaves`,
		"flat:3x8,oversubscription=2":                        `character 10: flat has no uplinks`,
	} {
		_, err := Shape(text)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("cluster %q: ", text)+want) || !strings.HasSuffix(err.Error(), example) {
			t.Errorf("%q: got\n%v\nwant\n%s", text, err, want)
		}
	}
}

// FuzzShape makes whatever it can of a text: what it makes, it makes as the text says.
func FuzzShape(f *testing.F) {
	for _, text := range []string{"fattree:40x8/16/32@H100,oversubscription=2", "flat:64x8", "fattree:1024x8", "fattree:3x8/2@V100", "fattree:3x8,routing=hashed,oversubscription=2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &shapeParser{text: text}
		s := p.shape()
		if p.err != nil {
			if !strings.HasSuffix(p.err.Error(), example) {
				t.Errorf("no example in %v", p.err)
			}
			return
		}
		if s.nodes > 200 {
			return // right, and slow
		}
		c, err := s.build()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, fmt.Sprintf("%dx%d", len(c.Nodes), c.Nodes[0].Board.Count())) && !strings.Contains(text, ":0") && !strings.Contains(text, "x0") {
			t.Errorf("%q became %d nodes of %d GPUs", text, len(c.Nodes), c.Nodes[0].Board.Count())
		}
		for leaf, n := range domains(t, snapshot(t, c), c.Levels[len(c.Levels)-1].Name) {
			if n != 1 {
				t.Errorf("%d nodes are called %s", n, leaf)
			}
		}
	})
}

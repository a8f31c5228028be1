package fabric

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// capture is a real fabric of DGX machines, as irregular as they are. It is not part of this
// repository.
const capture = "../../../../shared/data/topology/ibnetdiscover/example.out"

func discovered(t *testing.T, file string, m Machine) *Cluster {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Discovered(file, bytes.NewReader(data), m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantNotes(t *testing.T, c *Cluster, want ...string) {
	t.Helper()
	if !slices.Equal(c.Notes, want) {
		t.Errorf("notes:\n%s\nwant:\n%s", strings.Join(c.Notes, "\n"), strings.Join(want, "\n"))
	}
}

// The file was written by hand: two units of three rails, with one of each irregularity.
func TestRails(t *testing.T) {
	c := discovered(t, "testdata/rails.txt", Machine{GPUs: 4, Model: "A100"})
	wantNotes(t, c,
		"6 hosts in 2 groups of 6 leaves, under 1 group of 2 spines",
		"1 of 24 links between leaves and spines are missing, if each leaf should have 2 to each spine",
		"kept: 2 hosts whose leaves are not all those of their group",
		"left out: 2 HCAs that tell no host, about 1 host by the usual 3 links",
		"left out: 1 host with at most half of the usual 3 links: manager",
		"kept: 1 host with fewer than the usual 3 links",
	)
	s := snapshot(t, c)
	for host, leaf := range map[string]string{
		"alpha": "leaf-1-rail-1+2", "beta": "leaf-1-rail-1+2", "zeta": "leaf-1-rail-1+2",
		"gamma": "leaf-2-rail-1+2", "delta": "leaf-2-rail-1+2", "epsilon": "leaf-2-rail-1+2",
	} {
		if n := s.Node(host); n == nil || !slices.Equal(n.Path, []string{"spine-1+1", leaf, host}) || n.Board.Count() != 4 {
			t.Errorf("%s is %+v", host, n)
		}
	}
	// Three leaves with four links of 100 Gb/s each, and one link less.
	if left := s.UplinksLeft(); fmt.Sprint(left[0], left[1]) != "[-1] [1200000 1100000]" {
		t.Errorf("uplinks %v", left)
	}
	if c.Fabric.NIC != 3*100e9/8/4 || c.Fabric.Shared {
		t.Errorf("three NICs of 100 Gb/s for four GPUs became %+v", c.Fabric)
	}
}

// TestRealFabric counts what a person counts in the file.
func TestRealFabric(t *testing.T) {
	if _, err := os.Stat(capture); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing, and CI=true turns skips into failures", capture)
		}
		t.Skipf("%s is missing: no real fabric is read", capture)
	}
	c := discovered(t, capture, Machine{})
	wantNotes(t, c,
		"119 hosts in 8 groups of 31 leaves, under 1 group of 9 spines",
		"26 of 558 links between leaves and spines are missing, if each leaf should have 2 to each spine",
		"left out: 72 HCAs that tell no host, about 18 hosts by the usual 4 links",
		"left out: 2 hosts with at most half of the usual 4 links: B11-P1-CUFM-02, ubuntu",
		"kept: 10 hosts with fewer than the usual 4 links",
	)
	s := snapshot(t, c)
	want := map[string]int{
		"A09-P1-IBLEAF-01-01+2": 10, "A09-P1-IBLEAF-01-02+3": 11, "A09-P1-IBLEAF-01-03+3": 18, "A09-P1-IBLEAF-01-04+3": 17,
		"B09-P1-IBLEAF-01-05+3": 18, "B09-P1-IBLEAF-01-06+3": 15, "B09-P1-IBLEAF-01-07+3": 16, "B09-P1-IBLEAF-01-08+3": 14,
	}
	if got := domains(t, s, "leaf"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("leaves %v", got)
	}
	if got := domains(t, s, "spine"); got["A10-P1-IBSPINE-01+8"] != 119 {
		t.Errorf("spines %v", got)
	}
	// 53 links of 400 Gb/s go up from the unit that has three leaves, 66 from the next.
	if left := s.UplinksLeft(); left[1][0] != 53*400_000 || left[1][1] != 66*400_000 {
		t.Errorf("uplinks %v", left[1])
	}
	// Four NICs of 400 Gb/s for eight GPUs.
	if c.Fabric.NIC != 25e9 {
		t.Errorf("a GPU has %g bytes a second of NIC", c.Fabric.NIC)
	}
}

// small builds the output of ibnetdiscover from links such as "a1 L1 4xEDR": HCA a1 is of host a.
// Nodes whose names begin with L, S or C are switches.
func small(links ...string) string {
	ids, ports := map[string]string{}, map[string][]string{}
	var order []string
	id := func(name string) string {
		if ids[name] == "" {
			kind := "H"
			if strings.ContainsAny(name[:1], "LSC") {
				kind = "S"
			}
			ids[name] = fmt.Sprintf("%s-%x", kind, len(ids)+1)
			order = append(order, name)
		}
		return ids[name]
	}
	for _, link := range links {
		f := strings.Fields(link + " ")
		a, b := f[0], f[1]
		p, q := len(ports[a])+1, len(ports[b])+1
		rate := strings.Join(f[2:], "")
		ports[a] = append(ports[a], fmt.Sprintf("[%d] \"%s\"[%d] # \"\" lid 1 %s\n", p, id(b), q, rate))
		ports[b] = append(ports[b], fmt.Sprintf("[%d] \"%s\"[%d] # \"\" lid 1 %s\n", q, id(a), p, rate))
	}
	var text strings.Builder
	for _, name := range order {
		kind, description := "Ca", name[:1]+" mlx5_"+name[1:]
		if strings.HasPrefix(ids[name], "S") {
			kind, description = "Switch", "MF0;"+name+":x"
		}
		fmt.Fprintf(&text, "%s 36 \"%s\" # \"%s\"\n%s\n", kind, ids[name], description, strings.Join(ports[name], ""))
	}
	return text.String()
}

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		name  string
		links []string
		// paths is host: spine/leaf.
		paths   map[string]string
		uplinks string
	}{
		{
			"one NIC a host, one group a leaf",
			[]string{"a1 L1 4xHDR", "b1 L1 4xHDR", "c1 L2 4xHDR", "L1 S1 4xHDR", "L2 S1 4xHDR"},
			map[string]string{"a": "S1/L1", "b": "S1/L1", "c": "S1/L2"},
			"[{1 [S1 L1] 200000} {1 [S1 L2] 200000}]",
		},
		{
			"pods under spines of their own, joined by a core",
			[]string{"a1 L1 4xHDR", "b1 L2 4xHDR", "L1 S1 4xHDR", "L2 S2 4xHDR", "S1 C1 4xEDR", "S2 C1 4xEDR", "S2 C1 4xEDR"},
			map[string]string{"a": "S1/L1", "b": "S2/L2"},
			"[{1 [S1 L1] 200000} {1 [S2 L2] 200000} {0 [S1] 100000} {0 [S2] 200000}]",
		},
		{
			"a spine a rail, joined by the hosts",
			[]string{"a1 L1 4xHDR", "a2 L2 4xHDR", "b1 L3 4xHDR", "b2 L4 4xHDR", "L1 S1 4xHDR", "L3 S1 4xHDR", "L2 S2 4xHDR", "L4 S2 4xHDR"},
			map[string]string{"a": "S1+1/L1+1", "b": "S1+1/L3+1"},
			"[{1 [S1+1 L1+1] 400000} {1 [S1+1 L3+1] 400000}]",
		},
		{
			"no spine at all, and rates that nobody tells",
			[]string{"a1 L1", "b1 L2", "L1 L2"},
			map[string]string{"a": "/L1", "b": "/L2"},
			"[]",
		},
		{
			"no group has more than half of a stray's leaves",
			[]string{"a1 L1 4xHDR", "a2 L2 4xHDR", "b1 L1 4xHDR", "b2 L2 4xHDR", "c1 L2 4xHDR", "c2 L3 4xHDR"},
			map[string]string{"a": "/L1+1", "b": "/L1+1", "c": "/L3"},
			"[]",
		},
	} {
		got, err := Discovered("small.out", strings.NewReader(small(c.links...)), Machine{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		paths := map[string]string{}
		for _, n := range snapshot(t, got).Nodes() {
			paths[n.Name] = n.Path[0] + "/" + n.Path[1]
		}
		if fmt.Sprint(paths) != fmt.Sprint(c.paths) || fmt.Sprint(got.Uplinks) != c.uplinks && len(got.Uplinks) > 0 {
			t.Errorf("%s: %v, %v", c.name, paths, got.Uplinks)
		}
	}
}

func TestHostsOfOneNameAreLeftOut(t *testing.T) {
	text := small("a1 L1 4xHDR", "a2 L1 4xHDR", "b1 L1 4xHDR", "b2 L1 4xHDR", "L1 S1 4xHDR")
	c, err := Discovered("small.out", strings.NewReader(strings.Replace(text, "b mlx5_2", "b mlx5_1", 1)), Machine{})
	if err != nil || len(c.Nodes) != 1 || !slices.Contains(c.Notes, "left out: names that several hosts have: b") {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestNobodyIsAProblem(t *testing.T) {
	_, err := Discovered("small.out", strings.NewReader(small("L1 S1 4xHDR")), Machine{})
	if err == nil || !strings.Contains(err.Error(), "small.out: there is no host; expected HCAs that tell theirs") {
		t.Errorf("got %v", err)
	}
}

func FuzzDiscovered(f *testing.F) {
	if rails, err := os.ReadFile("testdata/rails.txt"); err == nil {
		f.Add(string(rails))
	} else {
		f.Fatal(err)
	}
	f.Add(small("a1 L1 4xHDR", "b1 L2", "L1 S1 4xHDR", "L2 S1 4xHDR", "S1 C1 1xSDR"))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Discovered("fuzz.out", strings.NewReader(text), Machine{})
		if err != nil {
			return
		}
		s := snapshot(t, c)
		if s.Len() == 0 || len(c.Notes) == 0 {
			t.Error("a cluster of nothing")
		}
		for _, n := range s.Nodes() {
			if n.Path[1] == "" || n.Allocatable.At(cluster.CPU) == 0 {
				t.Errorf("%s is nowhere: %v", n.Name, n.Path)
			}
		}
	})
}

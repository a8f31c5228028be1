package fabric

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// files opens the texts of a test.
type files map[string]string

func (f files) open(name string) (io.ReadCloser, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func TestLoadTellsSourcesApart(t *testing.T) {
	rails, err := os.ReadFile("testdata/rails.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := files{
		"fabric.out": string(rails), "dir@x/fabric": string(rails), "a,routing=b/fabric": string(rails),
		"Nodes.CSV": "sn,cpu_milli,memory_mib,gpu,model\na,1000,2,2,V100\nb,1000,2,0,\n",
	}
	for source, want := range map[string]struct {
		nodes   int
		model   string
		routing collective.Routing
	}{
		"flat:3x2@A100": {3, "A100", 0}, "fabric.out": {6, "H100", 0}, "fabric.out@A100": {6, "A100", 0},
		"dir@x/fabric": {6, "H100", 0}, "dir@x/fabric@V100": {6, "V100", 0}, "Nodes.CSV": {2, "V100", 0},
		"fabric.out,routing=hashed": {6, "H100", collective.Hashed}, "Nodes.CSV,routing=hashed": {2, "V100", collective.Hashed},
		"dir@x/fabric@V100,routing=hashed": {6, "V100", collective.Hashed}, "fabric.out@A100,routing=adaptive": {6, "A100", 0},
		"fattree:3x2@A100,routing=hashed": {3, "A100", collective.Hashed}, "a,routing=b/fabric": {6, "H100", 0},
	} {
		c, err := Load(source, all.open)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if len(c.Nodes) != want.nodes || c.Nodes[0].GPU.Product != want.model || c.Fabric.Routing != want.routing {
			t.Errorf("%s: %d nodes with %q, %s routing", source, len(c.Nodes), c.Nodes[0].GPU.Product, c.Fabric.Routing)
		}
	}
	if _, err := Load("nothing.out", all.open); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	want := `cluster "fabric.out@A100,routing=ecmp": character 25: found "ecmp"; expected adaptive or hashed`
	if _, err := Load("fabric.out@A100,routing=ecmp", all.open); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var problems problem.Problems
	if _, err := Load("Nodes.CSV", files{"Nodes.CSV": "sn\na\n"}.open); !errors.As(err, &problems) {
		t.Errorf("got %v", err)
	}
}

func TestNodes(t *testing.T) {
	c, err := Nodes("nodes.csv", []trace.Node{
		{Name: "a", CPUMilli: 64_000, MemoryMiB: 512, GPUs: 8, Model: "A100", Spine: "s1", Leaf: "l1"},
		{Name: "b", CPUMilli: 64_000, MemoryMiB: 512, GPUs: 8, Model: "A100", Spine: "s1", Leaf: "l1"},
		{Name: "c", CPUMilli: 32_000, MemoryMiB: 256, GPUs: 2, Model: "T4", Spine: "s1", Leaf: "l2"},
		{Name: "d", CPUMilli: 1_000, MemoryMiB: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNotes(t, c, "1 of 4 nodes tell neither spine nor leaf: they are in no domain")
	s := snapshot(t, c)
	if !slices.Equal(s.Node("d").Path, []string{"", "", "d"}) || s.Node("d").Board != nil || s.Node("d").Allocatable.At(3) != 0 {
		t.Errorf("d is %+v", s.Node("d").Machine)
	}
	if a := s.Node("a"); a.Board != s.Node("b").Board || !slices.Equal(a.Allocatable, cluster.Vector{64_000, 512 << 20, unlimitedPods, 8}) {
		t.Errorf("a is %+v", a.Machine)
	}
	if l := domains(t, s, "leaf"); l["l1"] != 2 || l["l2"] != 1 {
		t.Errorf("leaves %v", l)
	}
	if c.Fabric.NIC != 25e9 || c.Fabric.GPUs != 8 {
		t.Errorf("the fabric of A100s is %+v", c.Fabric)
	}
}

func TestNodesWithoutTopologyOrGPUs(t *testing.T) {
	c, err := Nodes("nodes.csv", []trace.Node{{Name: "a", CPUMilli: 1000, MemoryMiB: 1}})
	if err != nil || len(c.Levels) != 1 || len(c.Notes) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
	snapshot(t, c)
	if _, err := Nodes("nodes.csv", nil); err == nil || err.Error() != "nodes.csv: there is no node; expected one a row" {
		t.Errorf("got %v", err)
	}
	if _, err := Nodes("nodes.csv", []trace.Node{{Name: "a", GPUs: 65}}); err == nil || !strings.Contains(err.Error(), "nodes.csv: node a: ") {
		t.Errorf("got %v", err)
	}
}

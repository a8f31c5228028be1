package importing

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

func TestSettle(t *testing.T) {
	f := Found{Jobs: []trace.Job{
		{ID: "b", Submit: 100 * time.Second}, {ID: "a", Submit: 90 * time.Second}, {ID: "b", Submit: 95 * time.Second},
		{ID: "b", Submit: 100 * time.Second}, {ID: "b#2", Submit: 400 * time.Second},
	}}
	f.Settle()
	want := []trace.Job{
		{ID: "a"}, {ID: "b", Submit: 5 * time.Second}, {ID: "b#3", Submit: 10 * time.Second},
		{ID: "b#4", Submit: 10 * time.Second}, {ID: "b#2", Submit: 310 * time.Second},
	}
	if !reflect.DeepEqual(f.Jobs, want) {
		t.Errorf("got  %v\nwant %v", f.Jobs, want)
	}
	if f.Span() != 310*time.Second {
		t.Errorf("the span is %v", f.Span())
	}
}

func example() *Found {
	return &Found{
		Nodes: []trace.Node{{Name: "n", GPUs: 8, Model: "H100"}},
		Jobs:  []trace.Job{{ID: "a", GPUs: 8, Duration: 90 * time.Minute}, {ID: "b", GPUs: 2, Duration: time.Hour, Submit: 72 * time.Hour}},
		Left:  Notes{{1200, "jobs that asked for no GPU"}},
	}
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := example().Save(dir, false)
	if want := []string{filepath.Join(dir, NodesFile), filepath.Join(dir, JobsFile)}; err != nil || !reflect.DeepEqual(paths, want) {
		t.Fatalf("wrote %v, %v", paths, err)
	}
	before, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}

	// What is there stays unless it is to be written over, and nothing of the rest is written.
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	other := example()
	other.Jobs = other.Jobs[:1]
	var exists *ExistsError
	if _, err := other.Save(dir, false); !errors.As(err, &exists) || exists.Path != paths[1] {
		t.Errorf("written over: %v", err)
	}
	if after, err := os.ReadFile(paths[1]); err != nil || !bytes.Equal(before, after) {
		t.Errorf("changed: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there is %v, %v", entries, err)
	}
	if _, err := other.Save(dir, true); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

// TestNothingUnreadableIsWritten finds out before anybody simulates with it.
func TestNothingUnreadableIsWritten(t *testing.T) {
	dir := t.TempDir()
	f := example()
	f.Jobs[1].GPUs = 0
	_, err := f.Save(dir, false)
	if err == nil || !strings.Contains(err.Error(), "cannot be read back: jobs.csv:3:") {
		t.Errorf("got %v", err)
	}
	var problems problem.Problems
	if errors.As(err, &problems) {
		t.Error("it is not the fault of a file that somebody gave us")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

// TestAPlaceThatCannotBeWritten leaves nothing behind.
func TestAPlaceThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	// A folder that is not empty cannot be written over by a file.
	if err := os.MkdirAll(filepath.Join(dir, JobsFile, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := example().Save(dir, true); err == nil || !strings.Contains(err.Error(), "putting jobs.csv in its place") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{".nodes.csv.part", ".jobs.csv.part"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := example().Save(file, false); err == nil {
		t.Error("a file is no folder")
	}
}

func TestSummary(t *testing.T) {
	var out strings.Builder
	f := example()
	f.Pods = []trace.Pod{{Name: "p"}}
	f.Changed.Add("nodes of 2 kinds")
	f.Summary(&out, []string{"d/nodes.csv", "d/jobs.csv"})
	want := `wrote d/nodes.csv, d/jobs.csv: 1 node with 8 GPUs; 2 jobs of 14.0 GPU-hours, submitted over 3.0 days; 1 pod
left out:
    1200  jobs that asked for no GPU
changed on the way:
       1  nodes of 2 kinds
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if got := span(90 * time.Minute); got != "1h30m0s" {
		t.Errorf("90 minutes are shown as %s", got)
	}
}

package packing

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// TestTheSameTwice: what is written does not depend on which runs end first.
func TestTheSameTwice(t *testing.T) {
	c, w := drawn(t, 2, 12, 40)
	other := *w
	other.Name = "other, with a comma"
	written := func(workloads ...*Workload) map[string]string {
		var done atomic.Int64
		e, err := NewExperiment(c, workloads, Options{Policies: []string{All}, Seeds: []int64{1, 2}, Tune: 1.2, Done: func() { done.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Play(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if int(done.Load()) != e.Runs() || e.Runs() != len(workloads)*len(Policies())*2 {
			t.Errorf("%d of %d runs were counted", done.Load(), e.Runs())
		}
		texts := map[string]string{}
		for _, format := range table.Formats() {
			var b bytes.Buffer
			if err := table.Render(&b, table.Format(format), r); err != nil {
				t.Fatal(err)
			}
			texts[format] = b.String()
		}
		var b bytes.Buffer
		if err := r.Draw(&b, "x.svg"); err != nil {
			t.Fatal(err)
		}
		texts["svg"] = b.String()
		return texts
	}
	for _, workloads := range [][]*Workload{{w}, {w, &other}} {
		first := written(workloads...)
		was := runtime.GOMAXPROCS(1)
		second := written(workloads...)
		runtime.GOMAXPROCS(was)
		for name, text := range first {
			if text != second[name] {
				t.Errorf("%s differs", name)
			}
		}
		lines := strings.Split(strings.TrimSpace(first["csv"]), "\n")
		if want := 1 + len(workloads)*len(Policies())*2*121; len(lines) != want || lines[0] != "workload,policy,seed,arrived,allocated,unallocated,fragmentation" {
			t.Errorf("%d lines, want %d, after %s", len(lines), want, lines[0])
		}
	}
}

// TestOursRunAsTheyAreTold: the mix is what tells the two runs of one strategy apart.
func TestOursRunAsTheyAreTold(t *testing.T) {
	c, w := drawn(t, 4, 40, 120)
	play := func(name string) *Run {
		run, err := (&match{cluster: c, workload: w, typical: newTypical(w), policy: named(name), seed: 1, tune: 1.3}).play()
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	if told, not := play(ours), play(untold); slices.Equal(told.Columns, not.Columns) {
		t.Error("what a strategy is told changes nothing")
	}
	if a, b := play("random"), play("randomFit"); slices.Equal(a.Columns, b.Columns) {
		t.Error("two random policies are one")
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]string{
		"42-51": "[42 43 44 45 46 47 48 49 50 51]", "0": "[0]", "7, 1-2": "[7 1 2]", "3-3": "[3]",
		"":                      `seeds are "": expected whole numbers and ranges of them, such as 42-51 or 1,7,20-29`,
		"1,,2":                  `seeds are "1,,2": expected whole numbers and ranges of them, such as 42-51 or 1,7,20-29`,
		"-1":                    `seeds are "-1": expected whole numbers and ranges of them, such as 42-51 or 1,7,20-29`,
		"1-2-3":                 `seeds are "1-2-3": expected whole numbers and ranges of them, such as 42-51 or 1,7,20-29`,
		"5-1":                   `seeds are "5-1": the range 5-1 ends before it begins`,
		"1-3,2":                 `seeds are "1-3,2": 2 is there twice`,
		"1-9999":                `seeds are "1-9999": more than 1000`,
		"0-4611686018427387903": `seeds are "0-4611686018427387903": more than 1000`,
	} {
		seeds, err := ParseSeeds(text)
		got := fmt.Sprint(seeds)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	c, w := drawn(t, 1, 3, 3)
	for want, o := range map[string]Options{
		"unknown policy \"best\": choose among leastLoaded, random,": {Policies: []string{"fgd", "best"}, Seeds: []int64{1}, Tune: 1},
		"no seed given": {Tune: 1},
		"tune is 0:":    {Seeds: []int64{1}},
		"tune is -1:":   {Seeds: []int64{1}, Tune: -1},
		"tune is NaN:":  {Seeds: []int64{1}, Tune: math.NaN()},
		"tune is 11: expected a multiple of the GPUs, 0.01 to 10": {Seeds: []int64{1}, Tune: 11},
	} {
		if _, err := NewExperiment(c, []*Workload{w}, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := NewExperiment(c, nil, Options{Seeds: []int64{1}, Tune: 1}); err == nil {
		t.Error("nothing to play was accepted")
	}
	chosen, err := choose([]string{"FGD", Published, "binpack", "binPack"})
	if err != nil || len(chosen) != 7 || chosen[0].name != "fgd" || chosen[6].name != "binPack" {
		t.Errorf("got %+v, %v", chosen, err)
	}
}

// TestNothingToFill and nothing to fill it with are problems of the files.
func TestNothingToFill(t *testing.T) {
	if _, err := NewCluster("n.csv", []trace.Node{{Name: "a"}}); err == nil || err.Error() != "n.csv: none of its 1 nodes has a GPU; expected at least one to fill" {
		t.Error(err)
	}
	c := newTestCluster(t, trace.Node{Name: "a", GPUs: 1})
	if _, err := NewWorkload("w", "p.csv", []trace.Pod{{Name: "p"}}, c); err == nil || err.Error() != "p.csv: none of its 1 pods asks for a GPU; expected some to fill the cluster with" {
		t.Error(err)
	}
	for file, want := range map[string]string{"a/openb_pod_list_default.csv": "default", "x.csv": "x", "-": "-", "openb_pod_list_.csv": "openb_pod_list_"} {
		if got := WorkloadName(file); got != want {
			t.Errorf("%s is called %s, want %s", file, got, want)
		}
	}
}

// TestAShorterList ends before all GPUs are asked for, and is judged there.
func TestAShorterList(t *testing.T) {
	c, w := drawn(t, 1, 10, 100)
	e, err := NewExperiment(c, []*Workload{w}, Options{Seeds: []int64{1}, Tune: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Judged != 50 || r.End != 50 || len(r.Runs[0].Columns) != 51 || !strings.Contains(r.Text(), "UNALLOCATED AT 50 %") {
		t.Errorf("judged at %d of %d:\n%s", r.Judged, r.End, r.Text())
	}
	if err := r.Draw(&bytes.Buffer{}, ".svg"); err != nil {
		t.Error(err)
	}
}

// TestAPanicIsAnError that names the run.
func TestAPanicIsAnError(t *testing.T) {
	c, w := drawn(t, 1, 3, 5)
	e, err := NewExperiment(c, []*Workload{w}, Options{Seeds: []int64{7}, Tune: 1, Done: func() { panic("full") }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Play(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "internal error: playing ") || !strings.HasSuffix(err.Error(), "on test with seed 7: full") {
		t.Error(err)
	}
}

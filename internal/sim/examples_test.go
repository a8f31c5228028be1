package sim

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const examples = "../../examples/scenarios"

// readExamples returns the scenarios that users are shown, in the order of their files.
func readExamples(t *testing.T) []*Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d examples in %s: %v", len(files), examples, err)
	}
	var inputs []Input
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, []byte("# ")) {
			t.Errorf("%s does not start with a comment that says what it shows", file)
		}
		inputs = append(inputs, Input{Name: filepath.Base(file), Data: data})
	}
	scenarios, err := Read(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

// TestExamples holds the examples to what they say of themselves, and the table to how it looks.
func TestExamples(t *testing.T) {
	for _, s := range readExamples(t) {
		t.Run(s.Name, func(t *testing.T) {
			if file := s.src.file; file != s.Name+".yaml" {
				t.Errorf("scenario %s is in %s", s.Name, file)
			}
			r, err := Place(s, Options{Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			compareExpected(t, s.Expect, r)
			for _, wrong := range judge(s, &r.Answer) {
				t.Error(wrong)
			}
			var table bytes.Buffer
			if err := Render(&table, Table, Style{}, r); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", s.Name+".txt"), table.Bytes())
			for line := range strings.Lines(table.String()) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
					t.Errorf("a line of %d columns: %s", n, line)
				}
			}
		})
	}
}

func compareExpected(t *testing.T, e *Expect, r *Result) {
	t.Helper()
	if e == nil || e.Feasible == nil {
		t.Fatal("the example does not say what it expects")
	}
	if r.Feasible != *e.Feasible || r.Expectation == nil || !r.Expectation.Agrees {
		t.Errorf("feasible is %v, expected %v: %s", r.Feasible, *e.Feasible, r.Reason)
	}
	if e.Placement != nil && !reflect.DeepEqual(r.Placement, e.Placement) {
		t.Errorf("placement is %v, expected %v", r.Placement, e.Placement)
	}
	if e.MaxFeasible != nil && r.MaxFeasible != *e.MaxFeasible {
		t.Errorf("maxFeasible is %d, expected %d", r.MaxFeasible, *e.MaxFeasible)
	}
	for node, want := range e.GPUs {
		if got := slices.Concat(r.GPUs[node]...); !slices.Equal(got, want) {
			t.Errorf("GPUs of %s are %v, expected %v", node, got, want)
		}
	}
	for i, want := range e.MIG {
		if i >= len(r.MIG) || ExpectedMIG(r.MIG[i]) != want {
			t.Errorf("MIG instances are %v, expected %v", r.MIG, e.MIG)
			break
		}
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./internal/sim -update writes it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the table changed; if it is better now, go test ./internal/sim -update\ngot:\n%s\nwant:\n%s", got, want)
	}
}

// TestJudgeCanFail breaks good answers in the ways that the judge is there to find.
func TestJudgeCanFail(t *testing.T) {
	scenarios := map[string]*Scenario{}
	for _, s := range readExamples(t) {
		scenarios[s.Name] = s
	}
	cases := []struct {
		scenario, want string
		spoil          func(a *Answer)
	}{
		{"02-gang-in-one-leaf", "main: 3 pods placed", func(a *Answer) { a.Placement["main"]["n7"]-- }},
		{"02-gang-in-one-leaf", "spread over 2 domains", func(a *Answer) { a.Placement["main"] = map[string]int{"n7": 2, "n3": 2} }},
		{"02-gang-in-one-leaf", "of nvidia.com/gpu on n7", func(a *Answer) { a.Placement["main"] = map[string]int{"n7": 4} }},
		{"02-gang-in-one-leaf", "nowhere is no node", func(a *Answer) { a.Placement["main"]["nowhere"] = 1 }},
		{"03-refusal-with-nearest-miss", "infeasible, yet", func(a *Answer) { a.Placement["main"] = map[string]int{"a1": 1} }},
		{"03-refusal-with-nearest-miss", "b3 is not ready", func(a *Answer) {
			a.Feasible, a.Placement["main"] = true, map[string]int{"b1": 2, "b2": 2, "b3": 2}
		}},
		{"04-slices-across-leaves", "slices of 4", func(a *Answer) { a.Placement["stages"] = map[string]int{"n1": 2, "n3": 1, "n4": 2, "n5": 2, "n6": 1} }},
		{"01-best-nvlink-pair", "GPU 0 of dgx", func(a *Answer) { a.GPUs["dgx"] = [][]int{{0, 1}} }},
		{"01-best-nvlink-pair", "GPU 1 of dgx", func(a *Answer) { a.GPUs["dgx"] = [][]int{{1, 1}} }},
		{"01-best-nvlink-pair", "sizes", func(a *Answer) { a.GPUs["dgx"] = [][]int{{1}} }},
		{"08-sharing-a-gpu", "GPU 0 of n1", func(a *Answer) { a.GPUs["n1"] = [][]int{{0}, {0}, {1}} }},
		{"07-mig-onto-what-is-free", "overlaps", func(a *Answer) { a.MIG[1].Start = 2 }},
		{"07-mig-onto-what-is-free", "may not start", func(a *Answer) { a.MIG[1].Start = 3 }},
		{"07-mig-onto-what-is-free", "instances", func(a *Answer) { a.MIG = a.MIG[:1] }},
	}
	for _, tc := range cases {
		r, err := Place(scenarios[tc.scenario], Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Answer
		a.GPUs, a.MIG = maps.Clone(a.GPUs), slices.Clone(a.MIG)
		tc.spoil(&a)
		if found := strings.Join(judge(scenarios[tc.scenario], &a), "; "); !strings.Contains(found, tc.want) {
			t.Errorf("%s spoilt so that it says %q: the judge finds %q", tc.scenario, tc.want, found)
		}
	}
}

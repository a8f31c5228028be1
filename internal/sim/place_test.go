package sim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// place answers the scenario, or fails.
func place(t *testing.T, file string) *Result {
	t.Helper()
	scenarios, err := Read(Input{Name: "test.yaml", Data: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Place(scenarios[0], Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range judge(scenarios[0], &r.Answer) {
		t.Error(wrong)
	}
	return r
}

// TestPrevious is a group of two on x, which has room for three, beside y, which has room for
// one more.
func TestPrevious(t *testing.T) {
	cases := []struct {
		name, group, node string
		want              map[string]int
		reason            string
	}{
		{"grows", "count: 4, requests: {nvidia.com/gpu: 1}", "x", map[string]int{"x": 3, "y": 1}, ""},
		{"grows as far as it can", "count: 9, minCount: 3, requests: {nvidia.com/gpu: 1}", "x", map[string]int{"x": 3, "y": 1}, "room for 2 of the 7 wanted"},
		{"stays", "count: 2, requests: {nvidia.com/gpu: 1}", "x", map[string]int{"x": 2}, "nothing is to be placed"},
		{"shrinks", "count: 1, requests: {nvidia.com/gpu: 1}", "x", map[string]int{"x": 1}, ""},
		{"has enough already", "count: 5, minCount: 1, topology: {required: kubernetes.io/hostname}, requests: {nvidia.com/gpu: 1, cpu: 4}", "x", map[string]int{"x": 2}, "there is no room for more"},
		{"starts afresh where a node is gone", "count: 1, requests: {nvidia.com/gpu: 1}", "gone", map[string]int{"y": 1}, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := place(t, fmt.Sprintf(`
name: previous
levels: [kubernetes.io/hostname]
nodes:
- {name: x, labels: {kubernetes.io/hostname: x}, allocatable: {nvidia.com/gpu: 3, cpu: 8}}
- {name: "y", labels: {kubernetes.io/hostname: "y"}, allocatable: {nvidia.com/gpu: 1}}
request:
  name: job
  groups: [{name: g, previous: {%s: 2}, %s}]
`, tc.node, tc.group))
			if !r.Feasible || !reflect.DeepEqual(r.Placement["g"], tc.want) {
				t.Errorf("placed %v, want %v: %s", r.Placement["g"], tc.want, r.Reason)
			}
			if !strings.Contains(r.Reason, tc.reason) {
				t.Errorf("says %q, want %q", r.Reason, tc.reason)
			}
		})
	}
}

// TestReplacingKeepsTheSet has the leader lost, while the workers of its set stay in rack b.
func TestReplacingKeepsTheSet(t *testing.T) {
	r := place(t, `
name: replaces
levels: [rack, kubernetes.io/hostname]
nodes:
- {name: a1, labels: {rack: a, kubernetes.io/hostname: a1}, allocatable: {cpu: 8}}
- {name: b1, labels: {rack: b, kubernetes.io/hostname: b1}, allocatable: {cpu: 8}}
- {name: b2, labels: {rack: b, kubernetes.io/hostname: b2}, allocatable: {cpu: 8}}
running:
- {name: l, workload: job, group: leader, node: gone, requests: {cpu: 4}}
- {name: w, workload: job, group: workers, node: b1, requests: {cpu: 6}}
request:
  name: job
  groups:
  - {name: leader, count: 1, requests: {cpu: 4}, together: all, topology: {required: rack}}
  - {name: workers, count: 1, requests: {cpu: 6}, together: all}
  replaces: [l]
`)
	if want := map[string]map[string]int{"leader": {"b2": 1}}; !reflect.DeepEqual(r.Placement, want) {
		t.Errorf("placed %v, want %v: %s", r.Placement, want, r.Reason)
	}
}

// TestKinds narrows nodes by what their GPUs are.
func TestKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"product: NVIDIA-A30":                      "a30",
		"architecture: Hopper":                     "h100",
		"minMemoryMiB: 40000":                      "h100",
		"product: NVIDIA-A30, minMemoryMiB: 40000": "",
	} {
		r := place(t, fmt.Sprintf(`
name: kinds
nodes:
- {name: a30, allocatable: {nvidia.com/gpu: 1}, gpus: {product: NVIDIA-A30, memoryMiB: 24576, architecture: ampere}}
- {name: h100, allocatable: {nvidia.com/gpu: 1}, gpus: {product: NVIDIA-H100-80GB-HBM3, memoryMiB: 81559, architecture: hopper}}
request: {name: job, groups: [{name: g, count: 1, requests: {nvidia.com/gpu: 1}, gpu: {%s}}]}
`, kind))
		if want == "" && r.Feasible || want != "" && r.Placement["g"][want] != 1 {
			t.Errorf("%s: placed %v, want it on %q", kind, r.Placement, want)
		}
	}
}

func TestOtherVendors(t *testing.T) {
	r := place(t, `
name: amd
nodes: [{name: x, allocatable: {amd.com/gpu: 4}}]
request: {name: job, groups: [{name: g, count: 5, requests: {amd.com/gpu: 1}}]}
`)
	if r.Feasible || r.MaxFeasible != 4 || r.Explanation.Certificate == nil {
		t.Errorf("feasible %v, room for %d, certificate %v", r.Feasible, r.MaxFeasible, r.Explanation.Certificate)
	}
	r = place(t, `
name: fpga
nodes: [{name: x, allocatable: {cpu: 4}}]
request: {name: job, groups: [{name: g, count: 1, requests: {example.com/fpga: 1}}]}
`)
	if r.Feasible || r.Explanation.Removed["noSuchResource"] != 1 {
		t.Errorf("feasible %v, removed %v", r.Feasible, r.Explanation.Removed)
	}
}

func TestContradictionIsAnsweredAsSuch(t *testing.T) {
	r := place(t, `
name: contradiction
nodes: [{name: x}]
request: {name: job, groups: [{name: g, count: 2, minCount: 3}]}
expect: {invalid: true, feasible: false}
`)
	if r.Feasible || !strings.Contains(r.Reason, "request.groups[0].minCount: is 3, but count is 2") || !r.Expectation.Agrees {
		t.Errorf("answers %+v", r.Answer)
	}
}

// TestHintDecides shows that the scenario's own weights reach the engine.
func TestHintDecides(t *testing.T) {
	for hinted, other := range map[string]string{"a": "b", "b": "a"} {
		r := place(t, fmt.Sprintf(`
name: hint
nodes:
- {name: a, allocatable: {nvidia.com/gpu: 8}}
- {name: b, allocatable: {nvidia.com/gpu: 8}}
request: {name: job, groups: [{name: g, count: 1, requests: {nvidia.com/gpu: 1}}]}
scoring: {node: {topology: 40, resources: 35, balance: 25, hint: 50}, hint: {%s: 100, %s: 0}}
`, hinted, other))
		if r.Placement["g"][hinted] != 1 {
			t.Errorf("%s is hinted, placed %v", hinted, r.Placement)
		}
	}
}

// TestLargeGangIsShort keeps a plan over many nodes readable.
func TestLargeGangIsShort(t *testing.T) {
	var file strings.Builder
	file.WriteString("name: large\nlevels: [example.com/spine, example.com/leaf, kubernetes.io/hostname]\nnodes:\n")
	for i := range 1024 {
		fmt.Fprintf(&file, "- {name: n%04d, labels: {example.com/spine: s%d, example.com/leaf: l%02d, kubernetes.io/hostname: n%04d}, allocatable: {nvidia.com/gpu: 8}}\n", i, i/512, i/16, i)
	}
	file.WriteString("request: {name: job, groups: [{name: g, count: 512, requests: {nvidia.com/gpu: 8}}]}\n")
	start := time.Now()
	r := place(t, file.String())
	var table strings.Builder
	if err := Render(&table, Table, Style{}, r); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(table.String(), "\n"); lines > 90 {
		t.Errorf("%d lines for 512 pods", lines)
	}
	for _, want := range []string{"n0000 … n0015 (16)  128 → 0 of 128 GPUs free  → g 0-15", "… 16 more leaves with pods"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	t.Logf("read, answered and shown in %s", time.Since(start))
}

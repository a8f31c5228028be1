package sim

import (
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// shownTable answers the scenario as the table does.
func shownTable(t *testing.T, file string) string {
	t.Helper()
	var table strings.Builder
	if err := Render(&table, Table, Style{}, place(t, file)); err != nil {
		t.Fatal(err)
	}
	return table.String()
}

const twoRacks = `
levels: [spine, rack, kubernetes.io/hostname]
nodes:
- {name: n1, labels: {spine: s, rack: a, kubernetes.io/hostname: n1}, allocatable: {nvidia.com/gpu: 4}}
- {name: n2, labels: {spine: s, rack: a, kubernetes.io/hostname: n2}, allocatable: {nvidia.com/gpu: 4}}
- {name: n3, labels: {spine: s, rack: b, kubernetes.io/hostname: n3}, allocatable: {nvidia.com/gpu: 8}}
`

const threeGPUs = "requests: {nvidia.com/gpu: 3}"

// TestTableSays holds the table to what it tells a person of each kind of answer.
func TestTableSays(t *testing.T) {
	lost := `running:
- {name: t-0, workload: t, node: n1, requests: {nvidia.com/gpu: 4}}
- {name: t-1, workload: t, node: gone, requests: {nvidia.com/gpu: 4}}
- {name: t-2, workload: t, node: gone, requests: {nvidia.com/gpu: 4}}
`
	cases := []struct {
		name, file string
		want, not  []string
	}{
		{
			"a group that grows", "name: a" + twoRacks + "request: {name: t, groups: [{name: w, count: 4, topology: {required: rack}, previous: {n1: 2}, requests: {nvidia.com/gpu: 2}}]}",
			[]string{"w: 2 new beside 2 that stay.", "n1 0 of 4 GPUs free → w: 2 stay", "→ w: 2 new"}, nil,
		},
		{
			"a group that cannot grow", "name: a" + twoRacks + "request: {name: t, groups: [{name: w, count: 9, topology: {required: rack}, previous: {n1: 2}, requests: {nvidia.com/gpu: 1}}]}",
			[]string{"holds 6 of the 7 more pods of w that are needed", "or with count 8.", "fits now with count 8"}, nil,
		},
		{
			"a group that shrinks", "name: a" + twoRacks + "request: {name: t, groups: [{name: w, count: 2, topology: {required: rack}, previous: {n1: 2, n2: 1}, requests: {nvidia.com/gpu: 1}}]}",
			[]string{"w: 2 of 3 that run stay.", "n1 2 of 4 GPUs free → w: 2 stay", "n2 3 → 4 of 4 GPUs free"}, []string{"w 0-1", " new"},
		},
		{
			"a member that is replaced", "name: a" + twoRacks + lost[:strings.LastIndex(lost, "- ")] + "request: {name: t, groups: [{name: w, count: 2, requests: {nvidia.com/gpu: 4}}], replaces: [t-1]}",
			[]string{"w: 1 in place of t-1 beside 1 that stays.", "→ w: in place of t-1", "→ w: 1 stays"}, nil,
		},
		{
			"two of which one is replaced", "name: a" + twoRacks + lost + "request: {name: t, groups: [{name: w, count: 3, topology: {required: rack}, requests: {nvidia.com/gpu: 4}}], replaces: [t-1, t-2]}",
			[]string{", or replacing only 1 of them, ", "fits now replacing only 1 of them"}, []string{"with count", "with 1 pod"},
		},
		{
			"uplinks", "name: a" + twoRacks + "uplinks: [{level: rack, domain: s/a, mbps: 900}, {level: rack, domain: s/b, mbps: 12500}]\nrequest: {name: t, groups: [{name: w, count: 4, bandwidthMbps: 300, " + threeGPUs + "}]}",
			[]string{"900 → 300 of 900 Mbit/s up", "12.5 → 11.9 of 12.5 Gbit/s up"}, nil,
		},
		{
			"a preferred level that is missed", "name: a" + twoRacks + "request: {name: t, groups: [{name: w, count: 4, topology: {preferred: rack}, " + threeGPUs + "}]}",
			[]string{"preferred rack: no rack holds all 4, the best, a, 2; spread over 2, all in spine s instead"}, nil,
		},
		{
			"a preferred level that is kept", "name: a" + twoRacks + "request: {name: t, groups: [{name: w, count: 2, topology: {preferred: rack}, " + threeGPUs + "}]}",
			nil, []string{"preferred "},
		},
		{
			"a preferred level of a set", "name: a" + twoRacks + "request: {name: t, groups: [{name: v, count: 2, " + threeGPUs + "}, {name: w, count: 2, " + threeGPUs + "}], sets: [{groups: [v, w], preferred: rack}]}",
			[]string{"preferred v and w, rack: spread over 2, all in spine s instead", "for v scores"}, nil,
		},
		{
			"scores without terms", "name: a" + twoRacks + "request: {name: t, strategy: costOptimized, groups: [{name: w, count: 1, " + threeGPUs + "}]}",
			[]string{"chosen n3 next best n"}, []string{"scores"},
		},
		{
			"vendors", `
name: a
nodes: [{name: n, allocatable: {nvidia.com/gpu: 2}}, {name: a, allocatable: {amd.com/gpu: 8}}, {name: i, allocatable: {gpu.intel.com/i915: 3}}]
request: {name: t, groups: [{name: v, count: 1, requests: {nvidia.com/gpu: 1}}, {name: w, count: 1, requests: {amd.com/gpu: 4}}]}`,
			[]string{"2 → 1 of 2 nvidia.com/gpu, 8 → 4 of 8 amd.com/gpu free", "n 2 → 1 of 2 nvidia.com/gpu free →", "a 8 → 4 of 8 amd.com/gpu free →", "i 3 gpu.intel.com/i915"}, nil,
		},
		{
			"one vendor of two", `
name: a
nodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}, {name: a, allocatable: {amd.com/gpu: 8}}]
request: {name: t, groups: [{name: v, count: 1, requests: {nvidia.com/gpu: 1}}]}`,
			[]string{"cluster 1 → 0 of 1 GPU free", "a 8 amd.com/gpu └──"}, nil,
		},
		{
			"shares", `
name: a
nodes:
- {name: s, allocatable: {nvidia.com/gpu.shared: 8}, gpus: {product: Tesla-T4, replicas: 4, sharing: time-slicing}}
- {name: h, allocatable: {nvidia.com/gpu: 20, nvidia.com/gpucores: 200, nvidia.com/gpumem: 80000}}
- {name: p, allocatable: {nvidia.com/gpu: 4}}
- {name: r, allocatable: {nvidia.com/gpu: 8}, gpus: {product: Tesla-T4, replicas: 4, sharing: time-slicing}}
request: {name: t, groups: [{name: v, count: 6, gpuMilli: 250, nodeSelector: {}}]}`,
			[]string{"h 20 of 20 vGPU slots free", "p 4 of 4 GPUs free", "s 8 → 2 of 8 nvidia.com/gpu.shared free", "on 1 nvidia.com/gpu.shared each"}, []string{"24", "28 of"},
		},
		{
			"one of each", "name: a\nnodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}]\nrequest: {name: t, groups: [{name: v, count: 1, minCount: 1, requests: {nvidia.com/gpu: 2}}]}",
			[]string{"0 of the 1 pod of v that is needed"}, []string{"1 GPUs", "1 pods of"},
		},
		{
			"a change of one group of two", `
name: a
nodes: [{name: n, allocatable: {cpu: 8}}, {name: m, allocatable: {cpu: 2}}]
request: {name: t, groups: [{name: v, count: 4, requests: {cpu: 3}}, {name: w, count: 1, requests: {cpu: 2}}]}`,
			[]string{"fits now with count 2 of v", "of v, room for 2 in the cluster"}, nil,
		},
		{
			"an expectation", "name: a" + twoRacks + "request: {name: t, groups: [{name: v, count: 1}]}\nexpect: {feasible: false}",
			[]string{"expected infeasible, but it is not"}, nil,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			// Lines are broken where they end.
			table := strings.Join(strings.Fields(shownTable(t, tc.file)), " ")
			for _, want := range tc.want {
				if !strings.Contains(table, want) {
					t.Errorf("no %q in\n%s", want, table)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(table, not) {
					t.Errorf("%q in\n%s", not, table)
				}
			}
		})
	}
}

// TestEveryReasonHasWords finds reasons of the engine that a person would be shown as a name.
func TestEveryReasonHasWords(t *testing.T) {
	var why placement.Explanation
	for r := range why.Removed {
		if name := placement.Reason(r).String(); r > 0 && reasonText(name) == name && name != "cordoned" && name != "avoided" {
			t.Errorf("no words for %s", name)
		}
	}
}

// TestLinesSayWhyNot makes sure that a program is told what a refusal rests on.
func TestLinesSayWhyNot(t *testing.T) {
	r := place(t, "name: a\nnodes: [{name: x, ready: false}, {name: z, allocatable: {cpu: 1}}]\nrequest: {name: j, groups: [{name: g, count: 1, requests: {cpu: 2}}]}")
	undecided := &Result{Answer: Answer{Name: "b", Undecided: true}}
	var lines strings.Builder
	if err := Render(&lines, JSONLines, Style{}, r, undecided); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"removed":{"nodeTooSmall":1,"notReady":1}`, `"feasible":false,"undecided":true`} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in\n%s", want, lines.String())
		}
	}
	if strings.Count(lines.String(), "undecided") != 1 {
		t.Errorf("what is decided is called undecided in\n%s", lines.String())
	}
}

func TestMoreOfNothing(t *testing.T) {
	leaves := []*domain{{level: "example.com/leaf"}, {level: "example.com/leaf"}}
	for shown, want := range map[int]string{0: "… 2 leaves", 1: "… 2 more leaves"} {
		if got := more(leaves, shown); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
	if got := more(leaves[:1], 1); got != "… 1 more leaf" {
		t.Errorf("says %q", got)
	}
}

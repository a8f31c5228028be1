package sim

import (
	"strings"
	"testing"
)

const underPolicy = `
name: under-policy
nodes:
- {name: a, allocatable: {nvidia.com/gpu: 8}}
- {name: b, allocatable: {nvidia.com/gpu: 8}}
- {name: c, allocatable: {nvidia.com/gpu: 8}}
request:
  name: w
  strategy: leastLoaded
  groups: [{name: main, count: 1, requests: {nvidia.com/gpu: 4}}]
`

// A scenario may say what the operator of its cluster says of nodes.
func TestPolicyOfAScenario(t *testing.T) {
	for name, test := range map[string]struct{ policy, node, reason string }{
		"none":         {"", "a", ""},
		"refuses":      {"policy: {nodes: [{name: a, refused: 'policy gold: not here'}]}", "b", ""},
		"prefers":      {"policy: {weight: 10, nodes: [{name: a, score: 20}, {name: c, score: 80}]}", "c", ""},
		"neutral":      {"policy: {weight: 10, nodes: [{name: a, score: 20}, {name: c, score: 49.5}]}", "b", ""},
		"says nothing": {"policy: {nodes: [{name: c, score: 100}]}", "a", ""},
		"refuses all": {
			"policy: {nodes: [{name: a, refused: x}, {name: b, refused: x}, {name: c, refused: y}]}", "",
			"of 3 nodes 2 refused by x, 1 refused by y",
		},
	} {
		scenarios, err := Read(Input{Name: "file", Data: []byte(underPolicy + test.policy)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := Place(scenarios[0], Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Feasible != (test.node != "") || test.node != "" && r.Placement["main"][test.node] != 1 || !strings.Contains(r.Reason, test.reason) {
			t.Errorf("%s: placed %v: %s", name, r.Placement, r.Reason)
		}
		if test.node == "" && r.Removed["byPolicy"] != 3 {
			t.Errorf("%s: removed %v", name, r.Removed)
		}
	}
}

func TestPoliciesThatCannotBe(t *testing.T) {
	for policy, says := range map[string]string{
		"{weight: -1}": "policy.weight", "{weight: 2e9}": "policy.weight",
		"{nodes: [{name: z}]}":                        `"z" is no node`,
		"{nodes: [{name: a}, {name: a}]}":             `"a" is named twice`,
		"{weight: 1, nodes: [{name: a, score: 101}]}": "policy.nodes[0].score",
		"{node: []}": "policy",
	} {
		_, err := Read(Input{Name: "file", Data: []byte(underPolicy + "policy: " + policy)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", policy, err, says)
		}
	}
}

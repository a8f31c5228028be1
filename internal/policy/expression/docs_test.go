package expression

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// docs/policies.md names everything that an expression sees, and what it may cost.
func TestPoliciesPageTellsEveryFact(t *testing.T) {
	data, err := os.ReadFile("../../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, field := range slices.Collect(maps.Keys(nodeType().Fields)) {
		if !strings.Contains(page, "`node."+field+"`") {
			t.Errorf("node.%s is not there", field)
		}
	}
	for _, field := range slices.Concat(slices.Collect(maps.Keys(gpuType().Fields)), slices.Collect(maps.Keys(taintType().Fields))) {
		if !strings.Contains(page, "`"+field+"`") {
			t.Errorf("%s is not there", field)
		}
	}
	for field := range workloadType().Fields {
		if !strings.Contains(page, "`workload."+field+"`") {
			t.Errorf("workload.%s is not there", field)
		}
	}
	// What is declared is filled in, and what is filled in is declared.
	if got, want := slices.Sorted(maps.Keys(nodeValue(h100(), testResources(), nil))), slices.Sorted(maps.Keys(nodeType().Fields)); !slices.Equal(got, want) {
		t.Errorf("a node has %v, declared are %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(workloadValue(llama(), workloadFields()))), slices.Sorted(maps.Keys(workloadType().Fields)); !slices.Equal(got, want) {
		t.Errorf("a workload has %v, declared are %v", got, want)
	}
	if b := policy.DefaultBudget(); b.PerNode != 4_000 || b.PerDecision != 4_000_000 || strings.Count(page, "| 4,000 |") != 1 || strings.Count(page, "| 4,000,000 |") != 2 {
		t.Errorf("the page tells another budget than %+v", b)
	}
}

package policy

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Report is what there is to say of a policy.
type Report struct {
	// Generation is the generation of the policy that the rest speaks of.
	Generation int64
	// Problem is why its spec is not in force, nil if it is.
	Problem *Problem
	// InForce is the edition that is, nil for none.
	InForce *gpuv1alpha1.PolicyEdition
	// CostPerNode is the most that the expressions in force cost on one node.
	CostPerNode int64
	// Failures are the expressions that could not be evaluated on some node.
	Failures []Failure
	// Shadow is the policy that goes before this one for every workload, "" if there is none.
	Shadow string
}

// Report tells of a policy; false if it is not known.
func (b *Book) Report(name string) (Report, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.policies[name]
	if !ok {
		return Report{}, false
	}
	r := Report{Generation: p.generation, Problem: p.problem}
	e := p.inForce
	if e == nil {
		return r, true
	}
	r.CostPerNode = e.cost()
	r.InForce = &gpuv1alpha1.PolicyEdition{Generation: e.generation}
	if e.generation != p.generation {
		// It was read from JSON, and can be written as it.
		if raw, err := json.Marshal(e.spec); err == nil {
			r.InForce.Spec = &runtime.RawExtension{Raw: raw}
		}
	}
	if e.rules != nil {
		r.Failures = e.rules.Failures()
	}
	for _, other := range b.ranked {
		if other == p {
			break
		}
		if other.inForce.selectsAll() {
			r.Shadow = other.name
			break
		}
	}
	return r, true
}

// Tally is for how many workloads a policy holds.
type Tally struct {
	// Holds is how many it holds for, Overruled how many it selects beside and another one holds
	// for; By names those others, in the order of precedence.
	Holds, Overruled int
	By               []string
}

// Count tells, by policy, for how many of the workloads each holds.
func (b *Book) Count(workloads []Workload) map[string]*Tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	tallies := make(map[string]*Tally, len(b.policies))
	for name := range b.policies {
		tallies[name] = &Tally{}
	}
	for i := range workloads {
		w := &workloads[i]
		namespace := b.labelsOf(w.Namespace)
		var winner *entry
		for _, p := range b.ranked {
			switch {
			case !p.inForce.selects(w, namespace):
			case winner == nil:
				winner = p
				tallies[p.name].Holds++
			default:
				t := tallies[p.name]
				t.Overruled++
				if !slices.Contains(t.By, winner.name) {
					t.By = append(t.By, winner.name)
				}
			}
		}
	}
	order := make(map[string]int, len(b.ranked))
	for i, p := range b.ranked {
		order[p.name] = i
	}
	for _, t := range tallies {
		slices.SortFunc(t.By, func(x, y string) int { return order[x] - order[y] })
	}
	return tallies
}

// Sentence says on how many nodes the expression could not be evaluated, and why.
func (f Failure) Sentence() string {
	where := "node " + f.Node
	if f.Nodes > 1 {
		where = fmt.Sprintf("%d nodes, such as %s", f.Nodes, f.Node)
	}
	return fmt.Sprintf("%s cannot be evaluated on %s: %s", f.Expression, where, f.Why)
}

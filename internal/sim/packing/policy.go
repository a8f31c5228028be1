package packing

import (
	"fmt"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// mix is what a strategy is told of the pods to come.
type mix int

const (
	// traceMix is the list that the pods are drawn from: what FGD knows, too.
	traceMix mix = iota
	// defaultMix is placement.DefaultMix: what a cluster goes by where nobody says.
	defaultMix
)

// The names that stand for several policies.
const (
	All        = "all"
	Published  = "published"
	Strategies = "strategies"
)

// untold is the strategy that is played a second time, without being told of the pods to come.
const untold = "fragmentationAware:defaultMix"

// policy is one of those that can be played.
type policy struct {
	name string
	// strategy is the name of a strategy of the product, with what it is told; "" for a published
	// policy, whose name in the published results is label.
	strategy string
	mix      mix
	label    string
}

// policies are all there are: the product's strategies, then those of the FGD paper.
func policies() []policy {
	var all []policy
	for _, s := range placement.Builtin() {
		all = append(all, policy{name: s.Name(), strategy: s.Name()})
	}
	strategy, _, _ := strings.Cut(untold, ":")
	all = append(all, policy{name: untold, strategy: strategy, mix: defaultMix})
	return append(all,
		policy{name: "randomFit", label: "01-Random"},
		policy{name: "dotProd", label: "02-DotProd"},
		policy{name: "gpuClustering", label: "03-GpuClustering"},
		policy{name: "gpuPacking", label: "04-GpuPacking"},
		policy{name: "bestFit", label: "05-BestFit"},
		policy{name: "fgd", label: "06-FGD"},
	)
}

// named returns the policy of that name; a policy without a name if there is none.
func named(name string) policy {
	for _, p := range policies() {
		if p.name == name {
			return p
		}
	}
	return policy{}
}

// Policies returns the names of all policies.
func Policies() []string {
	var names []string
	for _, p := range policies() {
		names = append(names, p.name)
	}
	return names
}

// DefaultPolicies are those that are played where nobody says.
func DefaultPolicies() []string { return []string{"fragmentationAware", "fgd"} }

// choose returns the policies of the given names, in their order and each once. All, Published
// and Strategies stand for several; case does not matter.
func choose(names []string) ([]policy, error) {
	var chosen []policy
	seen := map[string]bool{}
	for _, name := range names {
		found := false
		for _, p := range policies() {
			switch {
			case strings.EqualFold(name, p.name), strings.EqualFold(name, All),
				strings.EqualFold(name, Published) && p.strategy == "",
				strings.EqualFold(name, Strategies) && p.strategy != "":
			default:
				continue
			}
			found = true
			if !seen[p.name] {
				seen[p.name] = true
				chosen = append(chosen, p)
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown policy %q: choose among %s; %s, %s and %s stand for several",
				name, strings.Join(Policies(), ", "), All, Published, Strategies)
		}
	}
	return chosen, nil
}

// placer returns what plays the policy.
func (p policy) placer(c *Cluster, w *Workload, o *order, now *world, t typical) (placer, error) {
	if p.strategy != "" {
		return newProduct(p.strategy, p.mix, c, w, o)
	}
	var r rule
	switch p.name {
	case "randomFit":
		return &randomFit{world: now, rest: o.rest}, nil
	case "dotProd":
		r = dotProd{}
	case "gpuClustering":
		r = gpuClustering{}
	case "gpuPacking":
		r = gpuPacking{}
	case "bestFit":
		r = bestFit{}
	default:
		r = &fgd{typical: t}
	}
	return &scan{rule: r, world: now, known: make([][]opinion, len(w.kinds))}, nil
}

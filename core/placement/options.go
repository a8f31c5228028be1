package placement

import (
	"sync"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Options is what a decision depends on beside the cluster and the request.
type Options struct {
	// Strategies are those that a request may name; nil means the built-in ones.
	Strategies *Registry
	// Scoring weighs nodes and domains against each other; nil means DefaultScoring.
	Scoring *Scoring
	// Cache remembers, between decisions, what does not change; nil works without. It never
	// changes an answer.
	Cache *Cache
	// Budget bounds the search for gangs of several groups, in steps; 0 means DefaultBudget. A
	// search that runs out of it leaves the question undecided.
	Budget int
	// Budgets is how many more workloads of each Workload.Budget may be evicted; one that is not
	// named may lose any number.
	Budgets map[string]int
	// Explain asks for the scores of the nodes that were chosen and of the next best, and for
	// the nearest miss per level of a plan that was made. Refusals are always explained.
	Explain bool
	// Brief leaves out why: a refusal has neither sentence nor certificate. It is for callers
	// that ask about the same request again and again and tell nobody.
	Brief bool
}

// DefaultBudget is the number of steps that the search for gangs of several groups may take.
const DefaultBudget = 20000

// Scoring is how good nodes and domains are judged. It must not change once it is in use, and
// must not be copied: a Cache knows it by its address, and it keeps what it works out.
type Scoring struct {
	Node   NodeWeights
	Domain DomainWeights
	// History is how well work went in a domain, 0 to 100, by DomainKey; absent is neutral, 50.
	History map[string]float64
	// Hint is a predictor's opinion of a node, 0 to 100, by name; absent is neutral, 50.
	Hint map[string]float64
	// Mix is the work expected in the near future, for fragmentationAware; empty means a mix
	// of one, two, four and eight GPUs (DefaultMix).
	Mix []Expected

	once   sync.Once
	demand *demand
}

// NodeWeights are the parts that the terms have in a node's score, which is their weighted
// mean. The defaults are those of requirement document 4: 40, 35, 25, and no hint.
type NodeWeights struct {
	Topology, Resources, Balance, Hint float64
}

// DomainWeights are the parts that the terms have in a domain's score, which is their weighted
// mean. The defaults are those of requirement document 5: 40, 30, 20, 10.
type DomainWeights struct {
	Availability, Alignment, Utilization, History float64
}

// Expected is a kind of pod that is expected to come, with its share of all that come.
type Expected struct {
	// Resources is what the pod takes beside GPUs; entries at the GPU's index are ignored.
	Resources cluster.Vector
	// GPUs is the number of whole GPUs, Milli the share of one; one of them is zero, or both.
	GPUs, Milli int
	// Product narrows the kind of GPU; "" takes any, "A|B" takes both.
	Product string
	// Weight is its share; weights need not add up to anything.
	Weight float64
	// Supply is the share of the cluster's GPUs that such pods can have, above 0 and up to 1;
	// 0 is not known and counts as 1. The smaller it is, the dearer these GPUs are to others.
	// WithSupply works it out.
	Supply float64
}

// DefaultScoring returns the weights of the requirement documents, no history, no hints.
func DefaultScoring() *Scoring {
	return &Scoring{
		Node:   NodeWeights{Topology: 40, Resources: 35, Balance: 25},
		Domain: DomainWeights{Availability: 40, Alignment: 30, Utilization: 20, History: 10},
	}
}

// DomainKey names a domain in Scoring.History: the values of all levels down to its own,
// joined by "/".
func DomainKey(path []string) string {
	key := ""
	for i, v := range path {
		if i > 0 {
			key += "/"
		}
		key += v
	}
	return key
}

package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Policy is what is judged: who goes first, and where to.
type Policy struct {
	// Name is what it was asked for by: "backfill/topologyAware".
	Name string
	// Queue is one of Queues; Strategy one of Strategies.
	Queue, Strategy string
}

// Queues are the orders in which waiting jobs are started.
func Queues() []string { return []string{fifo, greedy, sjf, backfill, responseRatio} }

const (
	// fifo starts jobs in the order of arrival and lets nobody pass one that waits.
	fifo = "fifo"
	// greedy starts, in the order of arrival, whatever fits.
	greedy = "greedy"
	// sjf starts, in the order of expected run times, whatever fits.
	sjf = "sjf"
	// backfill lets others pass a waiting job as long as that does not delay its reservation.
	backfill = "backfill"
	// responseRatio starts whatever fits, in the order of response ratios, and holds room for who
	// has waited for too long.
	responseRatio = "hrrn"
)

// Strategies are the product's strategies, and the stock scheduler's for comparison.
func Strategies() []string {
	names := []string{leastAllocated, mostAllocated}
	for _, s := range placement.Builtin() {
		names = append(names, s.Name())
	}
	slices.Sort(names)
	return names
}

// ParsePolicy reads "queue" or "queue/strategy".
func ParsePolicy(text, defaultStrategy string) (Policy, error) {
	queue, strategy, both := strings.Cut(text, "/")
	if !both {
		strategy = defaultStrategy
	}
	if !slices.Contains(Queues(), queue) {
		return Policy{}, fmt.Errorf("policy %q: unknown queue %q; expected one of %s", text, queue, strings.Join(Queues(), ", "))
	}
	if !slices.Contains(Strategies(), strategy) {
		return Policy{}, fmt.Errorf("policy %q: unknown strategy %q; expected one of %s", text, strategy, strings.Join(Strategies(), ", "))
	}
	return Policy{Name: queue + "/" + strategy, Queue: queue, Strategy: strategy}, nil
}

// DefaultPolicies are what is recommended, what most clusters have, and what tells apart what the
// queue and what the place is worth.
func DefaultPolicies() []string {
	return []string{"hrrn/topologyAware", "fifo/leastAllocated", "greedy/leastAllocated", "hrrn/leastAllocated", "hrrn/mostAllocated"}
}

// ParsePolicies reads policies, each of which must be there once.
func ParsePolicies(texts []string, defaultStrategy string) ([]Policy, error) {
	var policies []Policy
	for _, text := range texts {
		p, err := ParsePolicy(strings.TrimSpace(text), defaultStrategy)
		if err != nil {
			return nil, err
		}
		if slices.Contains(policies, p) {
			return nil, fmt.Errorf("policy %s is there twice: expected each once", p.Name)
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// chance tells whether the policy decides anything by chance.
func (p Policy) chance() bool { return p.blind() || p.Strategy == placement.Random{}.Name() }

// blind tells whether the policy knows nothing of the network.
func (p Policy) blind() bool { return p.Strategy == leastAllocated || p.Strategy == mostAllocated }

package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Strategy picks among the nodes that fit. To add one, implement it in a file of its own and
// register it (docs/strategies.md).
type Strategy interface {
	// Name is what users write in schedulingStrategy.
	Name() string
	// Score says how good the node is for the next pod of the gang: the highest wins, ties go
	// to the node that comes first in topology order. It must depend on its arguments alone.
	Score(c Candidate) float64
}

// NodePreferrer is a Strategy that would rather have a gang in a domain with certain nodes.
type NodePreferrer interface {
	Strategy
	// Prefers tells whether the node is one of them.
	Prefers(n *cluster.Node) bool
}

// Candidate is a node that fits, as a Strategy sees it.
type Candidate struct {
	// Node is the node as the snapshot has it, before this plan.
	Node *cluster.Node
	// FreeGPUs is the number of its GPUs that neither the snapshot nor this plan has given away.
	FreeGPUs int64
	// GPUs is the number of GPUs one pod takes.
	GPUs int64
	// Placed is how many pods of the gang this plan already put here.
	Placed int
	// Seed is the request's seed.
	Seed uint64
}

// Registry knows the strategies by name.
type Registry struct {
	byName map[string]Strategy
}

// NewRegistry returns a registry of the given strategies. Two of one name are refused.
func NewRegistry(strategies ...Strategy) (*Registry, error) {
	r := &Registry{byName: make(map[string]Strategy, len(strategies))}
	for _, s := range strategies {
		if _, ok := r.byName[s.Name()]; ok {
			return nil, fmt.Errorf("registering strategy %q: there is one of that name already", s.Name())
		}
		r.byName[s.Name()] = s
	}
	return r, nil
}

// Builtin returns the strategies that come with the product. The list is written out here, so
// that reading one line tells what there is.
func Builtin() []Strategy {
	return []Strategy{LeastLoaded{}, Random{}, CostOptimized{}}
}

// Get returns the strategy of that name, or an error that lists the names there are.
func (r *Registry) Get(name string) (Strategy, error) {
	if s, ok := r.byName[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("unknown strategy %q; registered are %s", name, strings.Join(r.Names(), ", "))
}

// Names returns the registered names in alphabetical order.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

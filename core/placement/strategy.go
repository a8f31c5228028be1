package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Strategy picks among the nodes that fit. To add one, implement it in a file of its own and
// register it (docs/strategies.md). What else it wants to have a say in, it says by
// implementing NodePreferrer, Packer, DomainScorer, TermExplainer, Weigher or Seeded.
type Strategy interface {
	// Name is what users write in schedulingStrategy.
	Name() string
	// Score says how good the node is for the next pod of the gang: the highest wins, ties go
	// to the node that comes first in topology order. It must depend on its arguments alone,
	// must not keep them, and must not return NaN.
	Score(c *Candidate) float64
}

// NodePreferrer is a Strategy that would rather have a gang in a domain with certain nodes.
type NodePreferrer interface {
	Strategy
	// Prefers tells whether the node is one of them.
	Prefers(n *cluster.Node) bool
}

// Packer is a Strategy that keeps a gang on as few domains of every level, down to the node,
// as it can. Others keep to what the request asks for and go by their scores within it.
type Packer interface {
	Strategy
	// Packs tells whether it does.
	Packs() bool
}

// DomainScorer is a Strategy that has an opinion on domains that hold the gang equally well.
type DomainScorer interface {
	Strategy
	// ScoreDomain says how good the domain is; the highest wins.
	ScoreDomain(c *DomainCandidate) float64
}

// DomainTermExplainer is a DomainScorer whose scores are made of terms.
type DomainTermExplainer interface {
	DomainScorer
	// DomainTerms returns the terms of ScoreDomain for the same candidate.
	DomainTerms(c *DomainCandidate) []Term
}

// TermExplainer is a Strategy whose scores are made of terms.
type TermExplainer interface {
	Strategy
	// Terms returns the terms of Score for the same candidate.
	Terms(c *Candidate) []Term
}

// Seeded is a Strategy whose scores depend on Candidate.Seed, so that they cannot be kept from
// one request to the next.
type Seeded interface {
	Strategy
	// Seeded tells whether they do.
	Seeded() bool
}

// Weigher is a Strategy that weighs the opinions of a request's Rules into its score
// (Candidate.Opinion). For all others they come before the score.
type Weigher interface {
	Strategy
	// WeighsOpinions tells whether it does.
	WeighsOpinions() bool
}

// Picker is a Strategy that takes a node for a single pod by its number among those that fit,
// whatever they are like.
type Picker interface {
	Strategy
	// Pick returns a number from 0 to count-1; count is how many nodes fit.
	Pick(count int, seed uint64) int
}

// Candidate is a node that fits, as a Strategy sees it.
type Candidate struct {
	// Node is the node as the snapshot has it, before this plan.
	Node *cluster.Node
	// Pod is what the pod needs.
	Pod *Shape
	// Placed is how many pods of the gang this plan already put here.
	Placed int
	// FreeGPUs is the number of its GPUs (units of Pod.GPUResource) that neither the snapshot
	// nor this plan has given away.
	FreeGPUs int64
	// Whole are the single GPUs that nobody uses, of nodes whose inside is known, less those
	// of the pods placed; zero for others.
	Whole gpu.Mask
	// Scoring is never nil.
	Scoring *Scoring
	// Seed is the request's seed.
	Seed uint64
	// Opinion is how good the request's Rules find the machine, 0 to 100, and OpinionWeight
	// what that counts beside Scoring's weights; a weight of 0 is no opinion.
	Opinion, OpinionWeight float64
}

// DomainCandidate is a domain that can hold the gang, as a DomainScorer sees it.
type DomainCandidate struct {
	// Key is the domain's DomainKey.
	Key string
	// Wanted is how many pods are wanted in all, Room how many fit.
	Wanted, Room int
	// Parts is how many domains of the next level the gang would be in, Fewest the number if
	// each of them had as much room as the roomiest has; both 1 where there is no next level.
	Parts, Fewest int
	// GPUs and FreeGPUs are the domain's GPUs in all, and those free before this plan; Taking
	// is how many the plan would take.
	GPUs, FreeGPUs, Taking int64
	// Scoring is never nil.
	Scoring *Scoring
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
	return []Strategy{
		LeastLoaded{}, Random{}, CostOptimized{}, BinPack{}, TopologyAware{}, FragmentationAware{},
	}
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

package packing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// The names by which clusters know GPUs and their models.
const (
	gpuResource  = "nvidia.com/gpu"
	productLabel = "nvidia.com/gpu.product"
)

// product places by the engine that places in a cluster: a plan for each pod, and a transaction
// that commits it.
type product struct {
	txn     *cluster.Txn
	options placement.Options
	// requests are those of each kind of pod.
	requests []placement.Request
	workload cluster.Workload
	arrivals uint64
	seed     uint64
}

func newProduct(strategy string, mix mix, c *Cluster, w *Workload, o *order) (*product, error) {
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		return nil, err
	}
	s, err := c.snapshot(o)
	if err != nil {
		return nil, err
	}
	scoring := placement.DefaultScoring()
	index := s.Resources.Index(gpuResource)
	if mix == traceMix {
		scoring.Mix = placement.WithSupply(w.expected(), s, index)
	}
	p := &product{
		txn:      s.Begin(),
		options:  placement.Options{Strategies: strategies, Scoring: scoring, Cache: &placement.Cache{}},
		requests: make([]placement.Request, len(w.kinds)),
		workload: cluster.Workload{Name: w.Name},
		seed:     o.rest.Uint64(),
	}
	for i := range w.kinds {
		p.requests[i] = placement.Request{
			Name:     w.Name,
			Strategy: strategy,
			Groups:   []placement.Group{{Count: 1, Pod: w.kinds[i].shape(index), Topology: placement.NoTopology()}},
		}
	}
	return p, nil
}

func (p *product) place(k *kind) (spot, bool, error) {
	r := &p.requests[k.id]
	p.arrivals++
	r.Seed = p.seed + p.arrivals
	d, err := placement.Plan(p.txn.Snapshot(), r, p.options)
	if err != nil || !d.Feasible {
		return spot{}, false, err
	}
	if err := p.txn.Place(d.Placements(r, &p.workload)...); err != nil {
		return spot{}, false, fmt.Errorf("committing what %s decided: %w", r.Strategy, err)
	}
	a := &d.Groups[0]
	s := spot{node: int(a.At[0])}
	if a.GPUs != nil {
		s.gpus = a.GPUs[0]
	}
	return s, true, nil
}

// snapshot returns the cluster as the engine sees it. Its nodes are named by their places in the
// order, since names decide ties.
func (c *Cluster) snapshot(o *order) (*cluster.Snapshot, error) {
	resources := cluster.NewResources(gpuResource)
	index := resources.Index(gpuResource)
	digits := len(fmt.Sprint(len(o.nodes)))
	boards := map[int]*gpu.Board{}
	nodes := make([]*cluster.Node, len(o.nodes))
	for position, i := range o.nodes {
		n := &c.nodes[i]
		if boards[n.GPUs] == nil && n.GPUs > 0 {
			board, err := gpu.NewBoard(gpu.Wiring{Count: n.GPUs})
			if err != nil {
				return nil, fmt.Errorf("wiring %s: %w", n.Name, err)
			}
			boards[n.GPUs] = board
		}
		all := make(cluster.Vector, index+1)
		all[cluster.CPU], all[cluster.Memory], all[cluster.Pods], all[index] = n.CPUMilli, n.MemoryMiB<<20, maxPods, int64(n.GPUs)
		nodes[position] = &cluster.Node{Machine: &cluster.Machine{
			Name:        fmt.Sprintf("%0*d-%s", digits, position, n.Name),
			Ready:       true,
			Labels:      map[string]string{productLabel: n.Model},
			GPU:         cluster.GPUFacts{Product: n.Model},
			Board:       boards[n.GPUs],
			Allocatable: all,
		}}
	}
	return cluster.NewSnapshot(1, nil, resources, nodes), nil
}

// shape is what the engine is asked for.
func (k *kind) shape(index int) placement.Shape {
	s := placement.Shape{Resources: make(cluster.Vector, index+1), GPUResource: index, GPUResourceName: gpuResource}
	s.Resources[cluster.CPU], s.Resources[cluster.Memory], s.Resources[cluster.Pods] = k.cpu, k.memory<<20, 1
	if k.shares() {
		s.Milli = k.milli
	} else {
		s.GPUs, s.Resources[index] = int64(k.gpus), int64(k.gpus)
	}
	if k.accepts != nil {
		in := cluster.Requirement{Key: productLabel, Operator: cluster.In, Values: k.models}
		s.Selector.Terms = []cluster.Term{{in}}
	}
	return s
}

// maxTold is how many kinds of pods the engine is told of at most, the commonest. No published
// list has as many; in one in which no two pods are alike, each score would add up them all.
const maxTold = 512

// expected is the workload as the engine is told of it: its kinds, as often as they are in the list.
func (w *Workload) expected() []placement.Expected {
	kinds := slices.Clone(w.kinds)
	if len(kinds) > maxTold {
		slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(b.count, a.count) })
		kinds = kinds[:maxTold]
	}
	var mix []placement.Expected
	for i := range kinds {
		k := &kinds[i]
		e := placement.Expected{
			Resources: cluster.Vector{cluster.CPU: k.cpu, cluster.Memory: k.memory << 20},
			GPUs:      k.gpus,
			Product:   strings.Join(k.models, "|"),
			Weight:    float64(k.count),
		}
		if k.shares() {
			e.GPUs, e.Milli = 0, k.milli
		}
		mix = append(mix, e)
	}
	return mix
}

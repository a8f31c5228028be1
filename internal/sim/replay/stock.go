package replay

import (
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// The scores of kube-scheduler's NodeResourcesFit plugin, by the name of its scoring strategies.
const (
	leastAllocated = "leastAllocated"
	mostAllocated  = "mostAllocated"
)

// stock scores a node as kube-scheduler does with GPUs as the scored resource: whole points of 0
// to 100 for how much of the node would be in use with the pod on it. That it scores GPUs is a
// matter of its configuration: by default it scores CPU and memory, of which traces know nothing.
// Among equals kube-scheduler takes one at random.
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources, selectHost in
// schedule_one.go.)
type stock struct{ most bool }

// Name implements placement.Strategy.
func (s stock) Name() string {
	if s.most {
		return mostAllocated
	}
	return leastAllocated
}

// Score implements placement.Strategy. A random number below one decides among equals.
func (s stock) Score(c *placement.Candidate) float64 {
	all := c.Node.Allocatable.At(c.Pod.GPUResource)
	if all == 0 {
		return placement.Random{}.Score(c)
	}
	points := (c.FreeGPUs - c.Pod.GPUs) * 100 / all
	if s.most {
		points = (all - c.FreeGPUs + c.Pod.GPUs) * 100 / all
	}
	return float64(points) + placement.Random{}.Score(c)
}

// Seeded implements placement.Seeded.
func (stock) Seeded() bool { return true }

// strategies are all that a policy may name.
func strategies() (*placement.Registry, error) {
	return placement.NewRegistry(append(placement.Builtin(), stock{}, stock{most: true})...)
}

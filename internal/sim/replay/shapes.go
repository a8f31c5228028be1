package replay

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Topology says how a gang of several pods asks for its place.
type Topology string

// What gangs may ask for: one leaf.
const (
	PreferLeaf  Topology = "preferred"
	RequireLeaf Topology = "required"
	AnyPlace    Topology = "none"
)

// Topologies are the values of Topology.
func Topologies() []string {
	return []string{string(PreferLeaf), string(RequireLeaf), string(AnyPlace)}
}

// gpuResource is what nodes of the simulator offer GPUs as.
const gpuResource = "nvidia.com/gpu"

// size is what jobs that ask for the same have in common.
type size struct {
	gpus, pods int
	model      string
}

// shapes turns jobs into requests, one a size.
type shapes struct {
	s *cluster.Snapshot
	// gpu is the index of gpuResource.
	gpu int
	// perNode is how many GPUs a pod gets at most where the trace does not tell: those of the
	// most common node.
	perNode int
	// spine and leaf are levels of the topology, -1 where the cluster has none of that name.
	spine, leaf int
	topology    Topology
	groups      map[size]placement.Group
	refused     map[size]string
}

func newShapes(s *cluster.Snapshot, t Topology) *shapes {
	h := &shapes{s: s, spine: level(s, "spine"), leaf: level(s, "leaf"), topology: t, groups: map[size]placement.Group{}, refused: map[size]string{}}
	h.gpu = s.Resources.Index(gpuResource)
	count := map[int64]int{}
	for _, n := range s.Nodes() {
		g := n.Allocatable.At(h.gpu)
		if count[g]++; g > 0 && (h.perNode == 0 || count[g] > count[int64(h.perNode)]) {
			h.perNode = int(g)
		}
	}
	return h
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// total returns how many GPUs there are.
func (h *shapes) total() (gpus int64) {
	for _, n := range h.s.Nodes() {
		gpus += n.Allocatable.At(h.gpu)
	}
	return gpus
}

// level returns the index of a level that some node has a domain of, or -1.
func level(s *cluster.Snapshot, name string) int {
	if i, ok := s.Level(name); ok && len(s.Domains(i)) > 0 {
		return i
	}
	return -1
}

// sizeOf divides a job into equal pods, as few as nodes allow where the trace does not tell.
func (h *shapes) sizeOf(j *trace.Job) size {
	pods := j.Pods
	if pods == 0 {
		pods = max(1, (j.GPUs+h.perNode-1)/h.perNode)
		for j.GPUs%pods != 0 {
			pods++
		}
	}
	return size{gpus: j.GPUs, pods: pods, model: j.Model}
}

// group returns the pods of a job.
func (h *shapes) group(z size) placement.Group {
	if g, ok := h.groups[z]; ok {
		return g
	}
	each := int64(z.gpus / z.pods)
	use := make(cluster.Vector, h.gpu+1)
	use[cluster.Pods], use[h.gpu] = 1, each
	g := placement.Group{
		Count:    z.pods,
		Topology: placement.NoTopology(),
		Pod: placement.Shape{
			Resources: use, GPUResource: h.gpu, GPUResourceName: gpuResource, GPUs: each,
			GPU: cluster.GPUFacts{Product: z.model},
		},
	}
	if z.pods > 1 && h.leaf >= 0 {
		switch h.topology {
		case PreferLeaf:
			g.Topology.Preferred = h.leaf
		case RequireLeaf:
			g.Topology.Required = h.leaf
		}
	}
	h.groups[z] = g
	return g
}

// refuse says why a job could never start; "" if it could.
func (h *shapes) refuse(j trace.Job) string {
	z := h.sizeOf(&j)
	if why, known := h.refused[z]; known {
		return why
	}
	d, err := placement.Plan(h.s, &placement.Request{Name: "a job", Groups: []placement.Group{h.group(z)}, Strategy: placement.BinPack{}.Name()}, placement.Options{})
	why := ""
	switch {
	case err != nil:
		why = fmt.Sprintf("is %d: %v", z.gpus, err)
	case !d.Feasible:
		why = fmt.Sprintf("is %d, as %s with %d GPUs each; the empty cluster has room for %d of them", z.gpus, counted(z.pods, "pod"), z.gpus/z.pods, d.Why.Room)
		if h.group(z).Topology.Required >= 0 {
			why += " in one leaf"
		}
	}
	h.refused[z] = why
	return why
}

package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Nodes makes the cluster of a list of nodes. It has levels above the host if any of them tells
// its leaf or spine; those that do not are outside. The network's numbers are those of the model
// that most GPUs are of. file is named in errors: a problem.Problems.
func Nodes(file string, nodes []trace.Node) (*Cluster, error) {
	if len(nodes) == 0 {
		return nil, trace.Problem(file, "there is no node; expected one a row")
	}
	placed, gpus, models := 0, 0, map[string]int{}
	for _, n := range nodes {
		if n.Leaf != "" || n.Spine != "" {
			placed++
		}
		if n.GPUs > 0 {
			gpus = max(gpus, n.GPUs)
			models[n.Model] += n.GPUs
		}
	}
	b := newBuilder(placed > 0)
	c := &Cluster{Levels: b.levels, Resources: b.resources}
	for _, n := range nodes {
		node, err := b.node(spec{
			Machine: Machine{GPUs: n.GPUs, Model: n.Model}, name: n.Name, spine: n.Spine, leaf: n.Leaf,
			cpu: n.CPUMilli, memory: n.MemoryMiB << 20,
		})
		if err != nil {
			return nil, trace.Problem(file, fmt.Sprintf("node %s: %v", n.Name, err))
		}
		c.Nodes = append(c.Nodes, node)
	}
	if 0 < placed && placed < len(nodes) {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d nodes tell neither spine nor leaf: they are in no domain", len(nodes)-placed, len(nodes)))
	}
	most := Machine{GPUs: max(1, gpus)}
	names := slices.Sorted(maps.Keys(models))
	if len(names) > 0 {
		most.Model = slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(models[a], models[b]) })
	}
	f, notes := most.filled().network()
	c.Fabric, c.Notes = f, append(c.Notes, notes...)
	return c, nil
}

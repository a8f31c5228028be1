package packing

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Cluster is the nodes that are filled.
type Cluster struct {
	// nodes are in the order of their names.
	nodes  []trace.Node
	models map[string]int
	gpus   int
}

// NewCluster takes the nodes of a file. One without a GPU among them is a problem of the file.
func NewCluster(file string, nodes []trace.Node) (*Cluster, error) {
	c := &Cluster{nodes: slices.Clone(nodes), models: map[string]int{}}
	slices.SortFunc(c.nodes, func(a, b trace.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range c.nodes {
		c.gpus += n.GPUs
		if _, known := c.models[n.Model]; !known {
			c.models[n.Model] = len(c.models)
		}
	}
	if c.gpus == 0 {
		return nil, trace.Problem(file, fmt.Sprintf("none of its %d nodes has a GPU; expected at least one to fill", len(nodes)))
	}
	return c, nil
}

// capacity is the GPUs of the cluster in thousandths.
func (c *Cluster) capacity() int64 { return int64(c.gpus) * cluster.Full }

// Workload is a list of pods that fill a cluster.
type Workload struct {
	Name string
	// kinds are the different pods there are, pods the kind of each in the order of their names.
	kinds []kind
	pods  []int32
	// demand is what all of them ask for, in thousandths of a GPU.
	demand int64
}

// kind is what pods that ask for the same have in common.
type kind struct {
	id          int
	cpu, memory int64
	// gpus is the number of GPUs, milli the thousandths of each.
	gpus, milli int
	// spec is how its pods say which GPU models they accept, models and accepts are these by name
	// and by number: "" and nil for any. Pods that say the same in other words are of two kinds.
	spec    string
	models  []string
	accepts []bool
	count   int
}

// NewWorkload takes the pods of a file. Pods without a GPU among them are a problem of the file.
func NewWorkload(name, file string, pods []trace.Pod, c *Cluster) (*Workload, error) {
	w := &Workload{Name: name, pods: make([]int32, len(pods))}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b trace.Pod) int { return cmp.Compare(a.Name, b.Name) })
	type request struct {
		cpu, memory int64
		gpus, milli int
		spec        string
	}
	known := map[request]int{}
	for i, p := range pods {
		q := request{p.CPUMilli, p.MemoryMiB, p.GPUs, p.Milli, p.Spec}
		id, ok := known[q]
		if !ok {
			id = len(w.kinds)
			known[q] = id
			w.kinds = append(w.kinds, kind{id: id, cpu: q.cpu, memory: q.memory, gpus: q.gpus, milli: q.milli, spec: q.spec, models: p.Models, accepts: c.accepts(p.Models)})
		}
		w.kinds[id].count++
		w.pods[i] = int32(id)
		w.demand += w.kinds[id].demand()
	}
	if w.demand == 0 {
		return nil, trace.Problem(file, fmt.Sprintf("none of its %d pods asks for a GPU; expected some to fill the cluster with", len(pods)))
	}
	return w, nil
}

// accepts returns which models are meant, by their number.
func (c *Cluster) accepts(models []string) []bool {
	if len(models) == 0 {
		return nil
	}
	accepts := make([]bool, len(c.models))
	for _, m := range models {
		if i, ok := c.models[m]; ok {
			accepts[i] = true
		}
	}
	return accepts
}

// demand is what a pod asks for in all, in thousandths of a GPU.
func (k *kind) demand() int64 { return int64(k.gpus) * int64(k.milli) }

// shares tells whether a pod takes a part of one GPU.
func (k *kind) shares() bool { return k.gpus == 1 && k.milli < cluster.Full }

// runsOn tells whether a pod may run on GPUs of a model.
func (k *kind) runsOn(model int) bool { return k.accepts == nil || k.accepts[model] }

// WorkloadName returns what a file of pods is called: its name without folder, ending and the
// prefix that the published lists have in common.
func WorkloadName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".csv")
	if short := strings.TrimPrefix(name, "openb_pod_list_"); short != "" {
		return short
	}
	return name
}

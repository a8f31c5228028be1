package kube

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// maxNodeGPUs is the most that package trace reads.
const maxNodeGPUs = 64

// Options say how objects are taken.
type Options struct {
	// Now is when they were read, Since how long ago a job was submitted at most.
	Now   time.Time
	Since time.Duration
	// SpineLabels and LeafLabels say where a node is in the network: the first that it has counts.
	SpineLabels, LeafLabels []string
}

// SpineLabels and LeafLabels are where the product itself looks, unless told otherwise.
func SpineLabels() []string {
	return []string{"gpu.warp.dev/spine", "network.topology.nvidia.com/spine", "fabric.topograph.run/tier-1"}
}

// LeafLabels is the same for leaves; see SpineLabels.
func LeafLabels() []string {
	return []string{"gpu.warp.dev/leaf", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block", "fabric.topograph.run/tier-0"}
}

// translator is what is known while objects are translated.
type translator struct {
	Options
	devices
	found *importing.Found
	// byName and nodes are the nodes, the latter only those that have GPUs.
	byName map[string]*corev1.Node
	nodes  []gpuNode
	fits   map[string][]gpuNode
}

// gpuNode is a node with GPUs.
type gpuNode struct {
	node           *corev1.Node
	product, model string
}

// Translate makes nodes, jobs and pods of what a cluster has.
func Translate(o *Objects, options Options) *importing.Found {
	t := &translator{Options: options, found: &importing.Found{}, byName: map[string]*corev1.Node{}, fits: map[string][]gpuNode{}}
	for _, n := range sorted(o.Nodes, func(n *corev1.Node) string { return n.Name }) {
		t.node(n)
	}
	for _, w := range t.works(o) {
		t.take(w)
	}
	t.pods(o.Pods)
	t.found.Settle()
	return t.found
}

// node translates a node.
func (t *translator) node(n *corev1.Node) {
	t.byName[n.Name] = n
	offers := offered(n)
	gpus, parts := t.count(offers, n)
	name, model := product(n.Labels)
	if gpus > maxNodeGPUs {
		t.found.Changed.Add("nodes with more than 64 GPUs, which is the most that is written")
		gpus = maxNodeGPUs
	}
	if parts {
		t.found.Changed.Add("nodes with GPUs that are cut or shared: written with the whole GPUs")
	}
	if n.Spec.Unschedulable || !ready(n) {
		t.found.Changed.Add("nodes that are cordoned or not ready now: written as if they served")
	}
	path := cluster.PathOf([]cluster.Level{{Name: "spine", Labels: t.SpineLabels}, {Name: "leaf", Labels: t.LeafLabels}}, n.Labels)
	node := trace.Node{Name: n.Name, CPUMilli: cpuMilli(offers), MemoryMiB: memoryMiB(offers), GPUs: int(gpus), Spine: path[0], Leaf: path[1]}
	if gpus > 0 {
		node.Model = model
		t.nodes = append(t.nodes, gpuNode{n, name, model})
		if model == "" {
			t.found.Changed.Add("nodes with GPUs and no label that says which: without a model")
		}
	}
	t.found.Nodes = append(t.found.Nodes, node)
}

// offered is what a node offers to pods: allocatable, and capacity where that says nothing.
func offered(n *corev1.Node) corev1.ResourceList {
	offers := make(corev1.ResourceList, len(n.Status.Capacity))
	for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		for name, q := range list {
			if reasonable(q) {
				offers[name] = q
			}
		}
	}
	return offers
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func cpuMilli(list corev1.ResourceList) int64 { return list.Cpu().MilliValue() }

// memoryMiB rounds down, as is right for what a node has.
func memoryMiB(list corev1.ResourceList) int64 { return list.Memory().Value() >> 20 }

// sorted returns a sorted copy: servers list in an order of their own.
func sorted[T any](list []T, key func(T) string) []T {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return list
}

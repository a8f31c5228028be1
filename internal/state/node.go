package state

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// GPU-feature-discovery labels (github.com/NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery).
const (
	labelProduct  = "nvidia.com/gpu.product"
	labelFamily   = "nvidia.com/gpu.family"
	labelMemory   = "nvidia.com/gpu.memory" // MiB of one GPU
	labelCount    = "nvidia.com/gpu.count"
	labelReplicas = "nvidia.com/gpu.replicas"
	labelSharing  = "nvidia.com/gpu.sharing-strategy"
	resourceGPU   = "nvidia.com/gpu"
)

// translateNode reads a node, growing the table of resources as it meets new ones.
func translateNode(n *corev1.Node, levels []cluster.Level, resources *cluster.Resources) (*cluster.Machine, *cluster.Resources) {
	node := &cluster.Machine{
		Name:     n.Name,
		Ready:    ready(n),
		Cordoned: n.Spec.Unschedulable,
		Labels:   n.Labels,
		GPU: cluster.GPUFacts{
			Product:      n.Labels[labelProduct],
			Architecture: strings.ToLower(n.Labels[labelFamily]),
			MemoryMiB:    number(n.Labels[labelMemory]),
			Replicas:     int(number(n.Labels[labelReplicas])),
			Sharing:      n.Labels[labelSharing],
		},
		Path: cluster.PathOf(levels, n.Labels),
	}
	for _, t := range n.Spec.Taints {
		// Cordoned says it already; PreferNoSchedule keeps nobody away.
		if t.Key == corev1.TaintNodeUnschedulable || t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		node.Taints = append(node.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	node.Allocatable, resources = translateList(allocatable(n), resources)
	return node, resources
}

// allocatable is what the node offers to pods: allocatable, for what is missing there
// capacity, and where neither names NVIDIA GPUs in any form the label that feature discovery
// counted them with. The scheduler that binds still has the last word.
func allocatable(n *corev1.Node) corev1.ResourceList {
	list := make(corev1.ResourceList, len(n.Status.Allocatable)+1)
	for name, q := range n.Status.Capacity {
		list[name] = q
	}
	for name, q := range n.Status.Allocatable {
		list[name] = q
	}
	if !tellsGPUs(list) {
		if count := number(n.Labels[labelCount]); count > 0 {
			list[resourceGPU] = *newQuantity(count)
		}
	}
	return list
}

// tellsGPUs tells whether the node offers NVIDIA GPUs in any form: whole, shared under another
// name, or as MIG instances. Then the label's count is not what a pod can ask for.
func tellsGPUs(list corev1.ResourceList) bool {
	for name := range list {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			return true
		}
	}
	return false
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// number reads a label that should be a whole number; anything else counts as not told.
func number(label string) int64 {
	v, err := strconv.ParseInt(label, 10, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

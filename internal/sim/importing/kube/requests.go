package kube

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// reasonable looks at the size of an amount without reckoning with it, which of 5e9999999999
// takes hours.
func reasonable(q resource.Quantity) bool {
	f := q.AsApproximateFloat64()
	return f >= 0 && f < 1<<50
}

// requested is what a pod of the spec asks of its node. A template may name limits alone, which
// the API server makes requests of its pods. False says that no machine has as much.
func requested(spec *corev1.PodSpec) (corev1.ResourceList, bool) {
	if state.CheckAmounts(spec) != nil {
		return nil, false
	}
	filled := func(containers []corev1.Container) []corev1.Container {
		containers = slices.Clone(containers)
		for i := range containers {
			requests := maps.Clone(containers[i].Resources.Limits)
			if requests == nil {
				requests = corev1.ResourceList{}
			}
			maps.Copy(requests, containers[i].Resources.Requests)
			containers[i].Resources.Requests = requests
		}
		return containers
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: filled(spec.Containers), InitContainers: filled(spec.InitContainers),
		Overhead: spec.Overhead, Resources: spec.Resources,
	}}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), true
}

// fitting returns the GPU nodes that a pod's node selector and required affinity leave it.
func (t *translator) fitting(spec *corev1.PodSpec) []gpuNode {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector}}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity.DeepCopy()}
		pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		if state.PlannedNode(pod) != "" {
			// The node that it was given is not what it asked for.
			pod.Spec.Affinity = nil
		}
	}
	data, err := json.Marshal(pod.Spec)
	if err != nil {
		return t.nodes
	}
	key := string(data)
	fits, known := t.fits[key]
	if !known {
		affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
		for _, n := range t.nodes {
			// What cannot be matched matches nothing, as with the scheduler.
			if ok, err := affinity.Match(n.node); ok && err == nil {
				fits = append(fits, n)
			}
		}
		t.fits[key] = fits
	}
	return fits
}

// models returns the models of the nodes, sorted; nil if they are those of all GPU nodes, and so
// say nothing, or if some have none that is known.
func (t *translator) models(of []gpuNode) []string {
	set, all := map[string]bool{}, map[string]bool{}
	for _, n := range of {
		set[n.model] = true
	}
	for _, n := range t.nodes {
		all[n.model] = true
	}
	if set[""] || len(set) == len(all) {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}

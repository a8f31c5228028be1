package webhook

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// mostInOneMachine is the largest number of GPUs that a server on the market has.
const mostInOneMachine = 16

// pointless says what is legal and will not do what its author may think it does.
func (h *workloads) pointless(w *gpuv1alpha1.GPUWorkload) []string {
	all := append(pointlessGPUs(w), h.pointlessTopology(w)...)
	if m := w.Spec.MinParallelism; m != nil && *m == w.Spec.Parallelism && *m > 0 {
		all = append(all, "spec.minParallelism: it is the same as parallelism, so the gang is not elastic: lower it, or leave it out")
	}
	if t := w.Spec.TTLSecondsAfterFinished; t != nil && *t == 0 {
		all = append(all, "spec.ttlSecondsAfterFinished: with 0 the workload is gone the moment it ends, with its status and its pods' logs: give it an hour (3600)")
	}
	if w.Spec.Template != nil {
		all = append(all, pointlessTemplate(&w.Spec.Template.Spec)...)
	}
	return all
}

func pointlessGPUs(w *gpuv1alpha1.GPUWorkload) []string {
	var all []string
	if w.Spec.GPUCount > mostInOneMachine {
		all = append(all, fmt.Sprintf("spec.gpuCount: it is what one pod gets on one node, and no machine has %d GPUs: for a gang set parallelism", w.Spec.GPUCount))
	}
	g := w.Spec.GPU
	if g == nil {
		return all
	}
	if p := g.TopologyPreference; p != "" && p != gpuv1alpha1.TopologyNone {
		switch {
		case w.Spec.GPUCount <= 1:
			all = append(all, "spec.gpu.topologyPreference: it is about which GPUs of one pod go together, and a pod has one: leave it out")
		case w.Spec.SchedulingStrategy != "topologyAware":
			all = append(all, "spec.gpu.topologyPreference: only schedulingStrategy topologyAware goes by it: choose that one, or leave the preference out")
		}
	}
	if name := state.ResourceName(w); name == "amd.com/gpu" || name == "gpu.intel.com/i915" {
		if g.Product != "" || g.Architecture != "" || g.MinMemory != nil {
			all = append(all, fmt.Sprintf("spec.gpu: product, architecture and minMemory are read from NVIDIA's node labels, which nodes with %s do not have: use template.spec.nodeSelector", name))
		}
	}
	return all
}

func (h *workloads) pointlessTopology(w *gpuv1alpha1.GPUWorkload) []string {
	t := w.Spec.Topology
	if t == nil {
		return nil
	}
	if w.Spec.Parallelism <= 1 {
		return []string{"spec.topology: it is about how close the pods of a gang are, and this workload has one pod: leave it out, or set parallelism"}
	}
	var all []string
	required, isRequired := cluster.FindLevel(h.levels, t.Required)
	preferred, isPreferred := cluster.FindLevel(h.levels, t.Preferred)
	if isRequired && isPreferred && preferred <= required {
		all = append(all, fmt.Sprintf("spec.topology.preferred: one %s is required already, so that preferring %s changes nothing: name a narrower level", t.Required, t.Preferred))
	}
	if t.Slice == nil {
		return all
	}
	if level, ok := cluster.FindLevel(h.levels, t.Slice.Level); ok && isRequired && level <= required {
		all = append(all, fmt.Sprintf("spec.topology.slice: the whole gang is in one %s already, and so is each slice in its %s: name a narrower level", t.Required, t.Slice.Level))
	}
	if m := w.Spec.MinParallelism; m != nil && t.Slice.Size > 0 && *m%t.Slice.Size != 0 {
		all = append(all, fmt.Sprintf("spec.minParallelism: slices of %d are whole or not there, so that fewer than the next multiple of %d never start", t.Slice.Size, t.Slice.Size))
	}
	return all
}

// pointlessTemplate names what of a pod the plan does not see, and what gets in its way.
func pointlessTemplate(spec *corev1.PodSpec) []string {
	var all []string
	if len(spec.TopologySpreadConstraints) > 0 {
		all = append(all, "spec.template.spec.topologySpreadConstraints: the plan does not see them; where they do not hold, pods are taken back and planned anew: use spec.topology")
	}
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0) {
		all = append(all, "spec.template.spec.affinity: required pod affinity is not part of the plan; where it does not hold, pods are taken back and planned anew: use spec.topology or node affinity")
	}
	for _, gate := range spec.SchedulingGates {
		if gate.Name != gpuv1alpha1.SchedulingGate {
			all = append(all, fmt.Sprintf("spec.template.spec.schedulingGates: the pods also wait until somebody removes %q from each; their GPUs are held meanwhile", gate.Name))
		}
	}
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			all = append(all, pointlessContainer(&list[i])...)
		}
	}
	return all
}

func pointlessContainer(c *corev1.Container) []string {
	var all []string
	for _, e := range c.Env {
		switch e.Name {
		case "NVIDIA_VISIBLE_DEVICES":
			all = append(all, fmt.Sprintf("spec.template.spec.containers[%s].env: NVIDIA_VISIBLE_DEVICES is set by the device plugin to the GPUs that the pod was given: leave it out", c.Name))
		case "CUDA_VISIBLE_DEVICES":
			all = append(all, fmt.Sprintf("spec.template.spec.containers[%s].env: CUDA_VISIBLE_DEVICES hides GPUs that the pod holds and pays for, and frees none: ask for fewer with gpuCount", c.Name))
		}
	}
	for _, p := range c.Ports {
		if p.HostPort > 0 {
			all = append(all, fmt.Sprintf("spec.template.spec.containers[%s].ports: the plan does not see host port %d; where it is taken, the pod is taken back and planned anew", c.Name, p.HostPort))
		}
	}
	return all
}

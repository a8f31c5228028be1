package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// namespace is where everything runs.
const namespace = "default"

// unitLabel is, on plain pods, the unit that a pod is of.
const unitLabel = "bench/unit"

// schedulerName is what pods ask for that our scheduler binds.
const schedulerName = "gpu-orchestrator"

// side is one of those that are compared: how its cluster is brought up, and what a user of it
// creates for a unit.
type side struct {
	name string
	// args are for `sandbox up`.
	args []string
	// objects are created in this order, one by one.
	objects func(u unit) []client.Object
}

func allSides() []side {
	return []side{
		{name: "stock", args: []string{"--no-manager"}, objects: func(u unit) []client.Object { return podGroup(u, "") }},
		// There is one manager. On a machine that is busy with everything else it can lose a lease
		// of 6 s, and with it the run.
		{name: "planned", args: []string{"--manager-arg=--leader-elect=false"}, objects: workload},
		{name: "scheduler", args: []string{"--no-manager", "--scheduler=only"}, objects: labelledGang},
		{name: "scheduler-podgroup", args: []string{"--no-manager", "--scheduler=only"}, objects: func(u unit) []client.Object {
			return podGroup(u, schedulerName)
		}},
	}
}

func sideNames() []string {
	var names []string
	for _, s := range allSides() {
		names = append(names, s.name)
	}
	return names
}

func sidesNamed(list string) ([]side, error) {
	var chosen []side
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(allSides(), func(s side) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no side %q: choose of %s", name, strings.Join(sideNames(), ", "))
		}
		chosen = append(chosen, allSides()[i])
	}
	return chosen, nil
}

// pod is the i-th of a unit. All sides run equal pods.
func pod(u unit, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", u.name, i),
			Labels: map[string]string{unitLabel: u.name},
		},
		Spec: podSpec(u),
	}
}

// podSpec takes of CPU and memory the same share of a node as of its GPUs, and less than all.
func podSpec(u unit) corev1.PodSpec {
	gpus := int64(u.gpus)
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "example.com/train",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewQuantity(8*gpus, resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(64<<30*gpus, resource.BinarySI),
				},
				Limits: corev1.ResourceList{gpuv1alpha1.DefaultResourceName: *resource.NewQuantity(gpus, resource.DecimalSI)},
			},
		}},
	}
}

// podGroup is a unit as stock Kubernetes has it: a gang is a PodGroup with pods that name it. It
// has no preferred level.
func podGroup(u unit, scheduler string) []client.Object {
	var objects []client.Object
	if u.gang() {
		group := &schedulingv1alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: u.name},
			Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
				Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(u.pods)},
			}},
		}
		if u.required != "" {
			group.Spec.SchedulingConstraints = &schedulingv1alpha2.PodGroupSchedulingConstraints{
				Topology: []schedulingv1alpha2.TopologyConstraint{{Key: "gpu.warp.dev/" + u.required}},
			}
		}
		objects = append(objects, group)
	}
	for i := range u.pods {
		p := pod(u, i)
		p.Spec.SchedulerName = scheduler
		if u.gang() && u.preferred != "" {
			// Stock Kubernetes has no word for it, and ignores ours.
			p.Annotations = map[string]string{gpuv1alpha1.PreferredLevelAnnotation: u.preferred}
		}
		if u.gang() {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(u.name)}
		}
		objects = append(objects, p)
	}
	return objects
}

// labelledGang is a unit as our scheduler takes it from plain pods: a gang by its labels.
func labelledGang(u unit) []client.Object {
	var objects []client.Object
	for i := range u.pods {
		p := pod(u, i)
		p.Spec.SchedulerName = schedulerName
		if u.gang() {
			p.Labels[gpuv1alpha1.GangLabel] = u.name
			p.Labels[gpuv1alpha1.GangSizeLabel] = fmt.Sprint(u.pods)
			p.Annotations = map[string]string{gpuv1alpha1.RankAnnotation: fmt.Sprint(i)}
			if u.required != "" {
				p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = u.required
			}
			if u.preferred != "" {
				p.Annotations[gpuv1alpha1.PreferredLevelAnnotation] = u.preferred
			}
		}
		objects = append(objects, p)
	}
	return objects
}

// workload is a unit as a GPUWorkload, which the manager plans and the stock scheduler binds.
func workload(u unit) []client.Object {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: u.name},
		Spec: gpuv1alpha1.GPUWorkloadSpec{
			ModelName: "bench", GPUCount: int32(u.gpus), Parallelism: int32(u.pods),
			Template: &corev1.PodTemplateSpec{
				// Pods of Jobs end after seconds in the sandbox unless they are told not to.
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"sandbox.gpu.warp.dev/run-for": "24h"}},
				Spec:       podSpec(u),
			},
		},
	}
	if u.required != "" || u.preferred != "" {
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: u.required, Preferred: u.preferred}
	}
	return []client.Object{w}
}

// unitOf names the unit that a pod is of.
func unitOf(labels map[string]string) string {
	if name := labels[unitLabel]; name != "" {
		return name
	}
	return labels[gpuv1alpha1.WorkloadLabel]
}

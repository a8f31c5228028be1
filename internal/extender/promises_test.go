package extender

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// What a plan promised to pods that do not exist yet is not offered to others, until the workload
// ends or its plan is given up.
func TestPlansOfWorkloadsAreKeptFree(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8)
	p := &promises{state: w.state, defaultImage: "example.com/default"}
	planned := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: 8, Parallelism: 1},
		Status: gpuv1alpha1.GPUWorkloadStatus{
			Phase:     gpuv1alpha1.PhaseScheduling,
			Placement: []gpuv1alpha1.NodePlacement{{Node: "a", Indexes: "0"}},
		},
	}
	offered := func() []string { return *w.filtered(t, w.pod("p", 1), "a", "b").NodeNames }
	p.keep(planned)
	if got := offered(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("with a plan for a: %v", got)
	}
	p.keep(planned) // News that change nothing.
	waiting := planned.DeepCopy()
	waiting.Status.Placement = nil
	p.keep(waiting)
	if got := offered(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("when it is given up: %v", got)
	}
	p.keep(planned)
	ended := planned.DeepCopy()
	ended.Status.Phase = gpuv1alpha1.PhaseSucceeded
	p.keep(ended)
	if got := offered(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("when it has ended: %v", got)
	}
}

// A pod that is bound in the moment in which its gate opened is known with its gate still: the room
// that its plan holds is its own.
func TestPodsGoToTheirOwnPromise(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	(&promises{state: w.state, defaultImage: "example.com/default"}).keep(&gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: 8, Parallelism: 1},
		Status: gpuv1alpha1.GPUWorkloadStatus{
			Phase:     gpuv1alpha1.PhaseScheduling,
			Placement: []gpuv1alpha1.NodePlacement{{Node: "a", Indexes: "0"}},
		},
	})
	gated := w.pod("p", 8, func(p *corev1.Pod) {
		p.Labels[gpuv1alpha1.WorkloadUIDLabel] = "w"
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gpuv1alpha1.SchedulingGate}}
	})
	open := gated.DeepCopy()
	open.Spec.SchedulingGates = nil
	open.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}},
	}}
	key := types.NamespacedName{Namespace: gated.Namespace, Name: gated.Name}
	w.pods[key], w.stale = open, map[types.NamespacedName]*corev1.Pod{key: gated}
	if problem := w.bind(t, gated, "a"); problem != "" {
		t.Error(problem)
	}
}

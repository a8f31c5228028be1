package extender

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

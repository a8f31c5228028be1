package state

import (
	"strings"
	"testing"
	"time"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Whoever asks for the question and puts it to the engine gets the answer that Plan gives: also
// where room is held for others, where nodes are avoided, and where others would have to make way.
func TestQuestionsAreAnsweredAsPlansAre(t *testing.T) {
	for name, edit := range map[string]func(*gpuv1alpha1.GPUWorkload){
		"leaves it alone":   func(*gpuv1alpha1.GPUWorkload) {},
		"ends before":       func(w *gpuv1alpha1.GPUWorkload) { lasts(w, 40*time.Minute) },
		"ends too late":     func(w *gpuv1alpha1.GPUWorkload) { lasts(w, 41*time.Minute) },
		"matters more":      func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityHigh },
		"evicts nobody new": func(w *gpuv1alpha1.GPUWorkload) { w.Spec.PreemptionPolicy = gpuv1alpha1.PreemptLowerPriority },
		"evicts": func(w *gpuv1alpha1.GPUWorkload) {
			w.Spec.PreemptionPolicy, w.Spec.Priority, w.Spec.GPUCount = gpuv1alpha1.PreemptLowerPriority, gpuv1alpha1.PriorityHigh, 8
			w.Spec.Parallelism = 2
		},
		"is the holder": func(w *gpuv1alpha1.GPUWorkload) {
			w.Name, w.UID, w.Spec.Parallelism, w.Spec.GPUCount = "gang", "gang", 2, 8
		},
	} {
		for _, avoids := range []string{"", "a"} {
			t.Run(strings.TrimSpace(name+" "+avoids), func(t *testing.T) {
				s := holding(t)
				w := workload("small", 1, 1)
				edit(w)
				pod := gpuPod("", int64(w.Spec.GPUCount))
				ask := Ask{Now: noon(), Since: noon().Add(-2 * time.Minute)}
				if avoids != "" {
					ask.Avoid = []string{avoids}
				}
				planned, _, err := s.Plan(w, pod, ask)
				if err != nil {
					t.Fatal(err)
				}
				if planned.Feasible {
					// What it has now is its own, and not asked about; what it avoided is not known.
					s.Release(w.UID)
					s = holding(t)
					if avoids != "" {
						return
					}
				}
				snapshot, r, err := s.Question(w, pod, noon())
				if err != nil {
					t.Fatal(err)
				}
				d, err := placement.Plan(snapshot, r, placement.Options{Strategies: s.Strategies()})
				if err != nil || d.Feasible != planned.Feasible || strings.Join(d.Nodes(), " ") != strings.Join(planned.Nodes(), " ") || len(d.Victims) != len(planned.Victims) {
					t.Errorf("Plan: %v, %v, %v; the question: %v, %v, %v (%v)",
						planned.Feasible, planned.Nodes(), planned.Victims, d.Feasible, d.Nodes(), d.Victims, err)
				}
				said := strings.HasPrefix(planned.Why.Sentence, "there is room now, but it is held for ")
				if held := s.Withheld(w, pod, noon(), nil); said != (held != "") || said && held != planned.Why.Sentence {
					t.Errorf("Plan says %q, and %q is withheld", planned.Why.Sentence, held)
				}
			})
		}
	}
}

// What has its places is asked about as if nothing were held: others wait for it, and not the other
// way round.
func TestWhoHasItsPlacesLeavesNoneAlone(t *testing.T) {
	s := holding(t)
	tune := lasts(workload("tune", 1, 8), time.Hour)
	snapshot, _, err := s.Question(tune, gpuPod("", 8), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	gpus := snapshot.Resources.Index("nvidia.com/gpu")
	if free := snapshot.Node("b").Free(gpus); free != 8 {
		t.Errorf("%d GPUs of its own node are free to it", free)
	}
	if snapshot, _, _ = s.Question(tune, gpuPod("", 8), noon()); snapshot.Node("b").Free(gpus) != 0 {
		t.Error("once it waits, its old place is for the gang that waits for it")
	}
}

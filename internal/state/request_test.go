package state

import (
	"testing"

	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// A gang of 4 pods with 2 GPUs each, and 6 free GPUs in all.
func TestElasticGangsShrinkToTheirMinimum(t *testing.T) {
	for least, want := range map[int32]int{4: 0, 3: 3, 2: 3} {
		s := newState(t)
		s.SetNode(gpuNode("a", 6))
		w := workload("w", 4, 2)
		w.Spec.MinParallelism = ptr.To(least)
		if d, _, err := s.Plan(w, gpuPod("", 2), Ask{}); err != nil || d.Size() != want {
			t.Errorf("at least %d asked for: %d pods planned (%v), want %d", least, d.Size(), err, want)
		}
	}
}

func TestNodesThatRefusedAPodAreAvoided(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	s.SetNode(gpuNode("b", 8))
	for avoided, want := range map[string]string{"a": "b", "b": "a"} {
		if _, nodeOf, err := s.Plan(workload("w", 1, 1), gpuPod("", 1), Ask{Avoid: []string{avoided}}); err != nil || nodeOf[0] != want {
			t.Errorf("avoiding %s: planned on %q (%v)", avoided, nodeOf[0], err)
		}
	}
}

func TestTopologyReachesTheEngine(t *testing.T) {
	w := workload("w", 4, 1)
	w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: "leaf", Preferred: "host"}
	r, err := request(w, gpuPod("", 1), testLevels(), cluster.NewResources())
	if got := r.Groups[0].Topology; err != nil || got.Required != 0 || got.Preferred != 1 {
		t.Errorf("the engine is asked for %+v (%v)", got, err)
	}
}

// Strategy random draws anew for a new attempt, and the same for the same one.
func TestSeedIsTheAttempts(t *testing.T) {
	seeds := map[uint64]bool{}
	for _, uid := range []string{"v", "w"} {
		for attempt := range int32(3) {
			for range 2 {
				w := workload(uid, 1, 1)
				w.Status.Attempt = attempt
				r, err := request(w, gpuPod("", 1), testLevels(), cluster.NewResources())
				if err != nil {
					t.Fatal(err)
				}
				seeds[r.Seed] = true
			}
		}
	}
	if len(seeds) != 6 {
		t.Errorf("%d seeds for 6 attempts", len(seeds))
	}
}

package state

import (
	"slices"
	"strings"
	"testing"
	"time"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// fragmentedState has half of each of two nodes in use, of which mover may go elsewhere, and big
// waits for a whole one.
func fragmentedState(t *testing.T, limits Defragmentation, edits ...func(*gpuv1alpha1.GPUWorkload)) (*State, *gpuv1alpha1.GPUWorkload) {
	t.Helper()
	s := reserving(t, 4)
	s.SetDefragmentation(limits, noon())
	occupies(s, "fixed", "b", 4, time.Hour, 0)
	mover := workload("mover", 1, 4)
	mover.Spec.Movable, mover.Spec.Priority = true, gpuv1alpha1.PriorityCritical
	for _, edit := range edits {
		edit(mover)
	}
	s.SetWorkload(mover)
	s.SetPod(gpuPod("mover", 4, memberPod(mover, 2, 0), boundSince("a", 30*time.Minute)))
	big := workload("big", 1, 8)
	if _, ok := asks(s, big, noon(), 2*time.Minute); ok {
		t.Fatal("there is room")
	}
	return s, big
}

func TestMovesThatHelpAreProposed(t *testing.T) {
	s, big := fragmentedState(t, Defragmentation{MaxMoves: 1, Window: time.Minute})
	if key, found := s.Propose(noon()); !found || key.Name != "big" {
		t.Errorf("proposed for %v: %v", key, found)
	}
	if got := s.Proposal("big"); got != "1 move would start it: default/mover (2.0 GPU-hours lost)" {
		t.Errorf("proposed %q", got)
	}
	if _, found := s.Propose(noon().Add(time.Second)); found {
		t.Error("the same is found again at once")
	}
	if d, ok := asks(s, big, noon().Add(time.Hour), time.Hour); ok {
		t.Errorf("placed on %v: moves are proposed only", d.Nodes())
	}
	s.Release("big")
	if got := s.Proposal("big"); got != "" {
		t.Errorf("it does not wait any more, and %q", got)
	}
}

func TestNothingIsProposedThatIsNotAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		limits Defragmentation
		edit   func(*gpuv1alpha1.GPUWorkload)
	}{
		"not movable":          {Defragmentation{MaxMoves: 1}, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Movable = false }},
		"another installation": {Defragmentation{MaxMoves: 1}, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ClassName = "blue" }},
		"no moves":             {Defragmentation{}, func(*gpuv1alpha1.GPUWorkload) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := fragmentedState(t, c.limits, c.edit)
			if _, found := s.Propose(noon()); found || s.Proposal("big") != "" {
				t.Errorf("proposed %q", s.Proposal("big"))
			}
		})
	}
}

// A plan with moves holds its room while the mover is there, the mover finds another place
// meanwhile, and within the window nothing moves again.
func TestMovesAreMadeOncePerWindow(t *testing.T) {
	s, big := fragmentedState(t, Defragmentation{Enabled: true, MaxMoves: 1, Window: 10 * time.Minute})
	s.Propose(noon())
	if _, ok := asks(s, big, noon().Add(9*time.Minute), 11*time.Minute); ok {
		t.Error("moved within the window")
	}
	later := noon().Add(10 * time.Minute)
	d, ok := asks(s, big, later, 12*time.Minute)
	if !ok || d.Nodes()[0] != "a" {
		t.Fatalf("placed on %v: %s", d.Nodes(), d.Why.Sentence)
	}
	want := []gpuv1alpha1.Victim{{Namespace: "default", Name: "mover", UID: "mover", Attempt: 2, Move: true}}
	if got := s.Victims("big"); !slices.Equal(got, want) {
		t.Errorf("has %v make way", got)
	}
	if crowded, _ := s.Crowded("big"); !slices.Equal(crowded, []string{"a"}) {
		t.Errorf("%v are crowded", crowded)
	}
	mover := workload("mover", 1, 4)
	if d, _, _ := s.Plan(mover, gpuPod("", 4), Ask{Attempt: 3, Now: later}); !d.Feasible || d.Nodes()[0] != "b" {
		t.Errorf("the mover goes to %v", d.Nodes())
	}
	s.DropPod("mover")
	if crowded, _ := s.Crowded("big"); len(crowded) > 0 {
		t.Errorf("%v are crowded, and the mover has gone", crowded)
	}
	if s.mayMove("big", later.Add(time.Minute)) {
		t.Error("something may move again")
	}
	if strings.Contains(s.Proposal("big"), WouldStart) {
		t.Error("it runs, and moves are proposed for it")
	}
}

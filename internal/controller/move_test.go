package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func halfNode(w *gpuv1alpha1.GPUWorkload) { w.Spec.GPUCount = 4 }

func movable(w *gpuv1alpha1.GPUWorkload) { halfNode(w); w.Spec.Movable = true }

// fragmented has two halves of two nodes in use, one of them by a workload that may move, and one
// waits for a whole node.
func fragmented(t *testing.T, enabled bool, killAt int, applied bool) *world {
	w := newWorld(t, "a", "b")
	w.moves, w.killAt, w.applied = enabled, killAt, applied
	w.start()
	w.submit("fixed", medium, 1, halfNode)
	w.settle()
	w.submit("mover", high, 1, movable)
	w.settle()
	w.submit("big", low, 1)
	for range 12 {
		w.round()
	}
	w.settle()
	return w
}

func TestMovesAreProposedWhereTheyMayNotBeMade(t *testing.T) {
	w := fragmented(t, false, 0, false)
	w.runs("mover", 0)
	s := w.get("big").Status
	if s.Phase != gpuv1alpha1.PhasePending || !strings.Contains(s.Message, "; 1 move would start it: team-a/mover (") || !w.said("MoveProposed 1 move would start it") {
		t.Errorf("big is %s: %s", s.Phase, s.Message)
	}
}

// The manager dies at each write of a move. Whatever it was doing, the mover ends up elsewhere, in
// its second attempt, and the one that waited in its place.
func TestMoveSurvivesDeathAtAnyWrite(t *testing.T) {
	tell := func(t *testing.T, killAt int, applied bool) int {
		w := fragmented(t, true, killAt, applied)
		w.runs("fixed", 0)
		w.runs("big", 0)
		w.runs("mover", 1)
		s := w.get("mover").Status
		if s.AssignedNode != w.get("fixed").Status.AssignedNode {
			t.Errorf("mover is on %s", s.AssignedNode)
		}
		c := meta.FindStatusCondition(s.Conditions, gpuv1alpha1.ConditionPreempted)
		if c == nil || c.Status != "False" || killAt == 0 && (!w.said("Moved moves to make room for team-a/big; ") || !w.said("Moving has team-a/mover move elsewhere")) {
			t.Errorf("%+v", c)
		}
		return w.writes
	}
	writes := tell(t, 0, false)
	for killAt := 1; killAt <= writes; killAt += stride {
		t.Run(fmt.Sprintf("write %d", killAt), func(t *testing.T) { tell(t, killAt, killAt%2 == 0) })
	}
}

// planMove brings big to the point at which its plan wants mover to move and mover has not looked.
func planMove(t *testing.T) *world {
	w := newWorld(t, "a", "b")
	w.moves = true
	w.start()
	w.submit("fixed", medium, 1, halfNode)
	w.settle()
	w.submit("mover", high, 1, movable)
	w.settle()
	w.submit("big", low, 1)
	for w.look("big"); w.get("big").Status.JobUID == ""; w.look("big") {
		w.process.reserve(w.now)
		w.now = w.now.Add(time.Second)
	}
	return w
}

// A process that has stood by for long knows as little of what was moved last as a new one: nothing
// moves in its first window.
func TestNothingMovesInTheFirstWindowOfANewLeader(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.submit("fixed", medium, 1, halfNode)
	w.settle()
	w.submit("mover", high, 1, movable)
	w.settle()
	w.submit("big", low, 1)
	w.settle()
	w.moves = true
	w.start()
	w.now = w.now.Add(time.Hour)
	leads := w.now
	for w.look("big"); len(w.get("big").Status.Preempting) == 0 && w.now.Before(leads.Add(time.Minute)); w.look("big") {
		w.process.reserve(w.now)
		w.now = w.now.Add(time.Second)
	}
	if after := w.now.Sub(leads); after < 5*time.Second || after > 10*time.Second {
		t.Errorf("it moved %v after the process began to lead, with a window of 5 s", after)
	}
}

// Who may not move any more, or finds no place, stays, and the other waits on.
func TestWhoFindsNoOtherPlaceStays(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"may not move any more": func(w *world) { w.edit("mover", func(m *gpuv1alpha1.GPUWorkload) { m.Spec.Movable = false }) },
		"its place is taken":    func(w *world) { w.submit("late", high, 1, halfNode); w.look("late") },
		"big is gone":           func(w *world) { w.must(w.Delete(t.Context(), w.get("big"))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := planMove(t)
			change(w)
			for range 20 {
				w.round()
			}
			w.runs("mover", 0)
			w.runs("fixed", 0)
		})
	}
}

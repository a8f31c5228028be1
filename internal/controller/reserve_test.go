package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func lasting(d time.Duration) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ExpectedDuration = &metav1.Duration{Duration: d} }
}

// A gang that has waited says what is held for it and until when, and those for which it is held
// back say for whom. A manager that starts anew holds room again.
func TestGangThatWaitsHoldsRoomAndSaysSo(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.submit("tune", medium, 1, lasting(40*time.Minute))
	w.settle()
	w.submit("gang", medium, 2)
	for range 6 {
		w.round()
	}
	planned := meta.FindStatusCondition(w.get("gang").Status.Conditions, gpuv1alpha1.ConditionPlanned)
	if planned == nil || planned.Reason != "Reserved" || !strings.HasPrefix(planned.Message, "reserved: 2 nodes, expected in 40 min (") ||
		!strings.Contains(planned.Message, "after team-a/tune; ") || !w.said("Reserved reserved: 2 nodes") {
		t.Errorf("%+v", planned)
	}
	w.submit("small", medium, 1)
	w.submit("brief", medium, 1, lasting(10*time.Minute))
	w.start()
	w.order = []string{"gang", "tune", "small", "brief"}
	w.settle()
	w.runs("brief", 0)
	if s := w.get("small").Status; s.Phase != gpuv1alpha1.PhasePending {
		t.Errorf("small is %s: %s", s.Phase, s.Message)
	}
	w.must(w.Delete(t.Context(), w.get("tune")))
	w.must(w.Delete(t.Context(), w.get("brief")))
	w.settle()
	w.runs("gang", 0)
}

// Neither while it is suspended nor between two tries does a workload wait for room.
func TestWhatCountsAsWaiting(t *testing.T) {
	long := 2 * time.Hour
	suspend := func(w *world, name string, is bool) {
		w.edit(name, func(x *gpuv1alpha1.GPUWorkload) { x.Spec.Suspend = is })
	}
	for name, c := range map[string]struct {
		// before leads to the moment from which it waits; want is what it has waited by then.
		before func(w *world)
		want   time.Duration
	}{
		"since it was created": {func(w *world) {
			w.submit("lazy", medium, 1)
			w.round()
			w.now = w.now.Add(long)
		}, long + time.Second},
		"suspended since it was created": {func(w *world) {
			w.submit("lazy", medium, 1, func(x *gpuv1alpha1.GPUWorkload) { x.Spec.Suspend = true })
			w.round()
			w.now = w.now.Add(long)
			suspend(w, "lazy", false)
		}, 0},
		"suspended while it waited": {func(w *world) {
			w.submit("lazy", medium, 1)
			w.round()
			suspend(w, "lazy", true)
			w.round()
			w.now = w.now.Add(long)
			suspend(w, "lazy", false)
			w.start() // What it waited before is not made up for by a new process either.
		}, 0},
		"between two tries": {func(w *world) {
			w.submit("lazy", medium, 1)
			w.round()
			lazy := w.get("lazy")
			next := metav1.NewTime(w.now.Add(long))
			lazy.Status.NextRetryTime = &next
			planned := meta.FindStatusCondition(lazy.Status.Conditions, gpuv1alpha1.ConditionPlanned)
			planned.Reason = "Retrying"
			w.must(w.Status().Update(w.t.Context(), lazy))
			w.round()
			w.now = next.Time
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a")
			w.submit("tune", medium, 1)
			w.settle()
			c.before(w)
			at := w.now
			w.round()
			w.round()
			lazy := w.get("lazy")
			if got := at.Sub(waitsSince(lazy)); got != c.want {
				t.Errorf("it has waited for %v, want %v: %s", got, c.want, lazy.Status.Message)
			}
		})
	}
}

// lined is a queue of which it is known who stands in it.
type lined struct {
	queue
	names map[string]bool
}

func (l *lined) AddAfter(r ctrl.Request, _ time.Duration) { l.names[r.Name] = true }

// Whose reservation changed is looked at without any other news, and so are all that wait where that
// leaves room for others.
func TestReservationsWakeWhomTheyConcern(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.submit("tune", medium, 1, lasting(40*time.Minute))
	w.settle()
	w.submit("gang", medium, 2)
	w.look("gang")
	w.now = w.now.Add(5 * time.Second)
	line := &lined{names: map[string]bool{}}
	w.process.waker.queue = line
	w.process.reserve(w.now)
	if !line.names["gang"] {
		t.Error("room is held for the gang, and it is not looked at")
	}
	w.submit("small", medium, 1, lasting(45*time.Minute))
	w.look("small")
	clear(line.names)
	w.process.reserve(w.now)
	if line.names["gang"] || line.names["small"] {
		t.Errorf("nothing changed, and %v are looked at", line.names)
	}
	// Tune has not ended in time: the gang starts later, and who ends before that may pass.
	w.now = w.now.Add(50 * time.Minute)
	w.process.reserve(w.now)
	if !line.names["gang"] || !line.names["small"] {
		t.Errorf("the gang starts later, and only %v are looked at", line.names)
	}
}

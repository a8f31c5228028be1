package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func reserving(t *testing.T, most int) *State {
	t.Helper()
	s := newState(t)
	s.SetReservations(Reservations{Max: most, Patience: time.Minute, MaxWait: time.Hour})
	s.SetNode(gpuNode("a", 8))
	s.SetNode(gpuNode("b", 8))
	return s
}

func lasts(w *gpuv1alpha1.GPUWorkload, d time.Duration) *gpuv1alpha1.GPUWorkload {
	w.Spec.ExpectedDuration = &metav1.Duration{Duration: d}
	return w
}

// occupies has a workload run on the node since a time before noon, with an estimate if d is not 0.
func occupies(s *State, uid, node string, gpus int32, since, d time.Duration) {
	w := workload(uid, 1, gpus)
	if d > 0 {
		lasts(w, d)
	}
	s.SetWorkload(w)
	s.SetPod(gpuPod(uid, int64(gpus), memberPod(w, 0, 0), boundSince(node, since)))
}

// asks plans a workload that has waited for so long at the given time.
func asks(s *State, w *gpuv1alpha1.GPUWorkload, at time.Time, waited time.Duration) (placement.Decision, bool) {
	d, _, err := s.Plan(w, gpuPod("", int64(w.Spec.GPUCount)), Ask{Now: at, Since: at.Add(-waited)})
	return d, err == nil && d.Feasible
}

// holding is a cluster where gang waits for both nodes, of which a is free and b is for 40 minutes
// still in use, and holds them.
func holding(t *testing.T) *State {
	t.Helper()
	s := reserving(t, 4)
	occupies(s, "tune", "b", 8, 20*time.Minute, time.Hour)
	if _, ok := asks(s, workload("gang", 2, 8), noon(), 2*time.Minute); ok {
		t.Fatal("the gang was placed")
	}
	changed, loosened := s.Reserve(noon())
	if len(changed) != 1 || changed[0].Name != "gang" || loosened {
		t.Fatalf("changed %v, loosened %v", changed, loosened)
	}
	return s
}

func TestGangHoldsTheRoomInWhichItCanStart(t *testing.T) {
	s := holding(t)
	const want = "reserved: 2 nodes, expected in 40 min (2026-01-02 12:40 UTC), after default/tune"
	if got := s.Reservation("gang", noon()); got != want {
		t.Errorf("it says %q", got)
	}
	for _, c := range []struct {
		name   string
		edit   func(*gpuv1alpha1.GPUWorkload)
		passes bool
	}{
		{"does not say how long it runs", func(*gpuv1alpha1.GPUWorkload) {}, false},
		{"runs for too long", func(w *gpuv1alpha1.GPUWorkload) { lasts(w, 41*time.Minute) }, false},
		{"ends before", func(w *gpuv1alpha1.GPUWorkload) { lasts(w, 40*time.Minute) }, true},
		{"is stopped before", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ActiveDeadlineSeconds = ptr.To[int64](2400) }, true},
		{"is stopped too late", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ActiveDeadlineSeconds = ptr.To[int64](2401) }, false},
		{"matters more", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityHigh }, true},
		{"matters less", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityLow }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := holding(t)
			small := workload("small", 1, 1)
			c.edit(small)
			d, ok := asks(s, small, noon(), time.Second)
			if ok != c.passes {
				t.Errorf("placed on %v: %s", d.Nodes(), d.Why.Sentence)
			}
			if !ok && !strings.Contains(d.Why.Sentence, "there is room now, but it is held for default/gang (expected to start in 40 min)") {
				t.Error(d.Why.Sentence)
			}
		})
	}
}

func TestHolderStartsInItsRoomAndLetsGo(t *testing.T) {
	s := holding(t)
	s.DropPod("tune")
	other := workload("other", 1, 8)
	if d, ok := asks(s, other, noon(), 0); ok {
		t.Fatalf("other got %v before the gang", d.Nodes())
	}
	if d, ok := asks(s, workload("gang", 2, 8), noon(), 2*time.Minute); !ok {
		t.Fatal(d.Why.Sentence)
	}
	if held := s.Reservation("gang", noon()); held != "" {
		t.Errorf("it runs, and %s", held)
	}
	if !s.Release("gang") {
		t.Error("nothing was released")
	}
	if _, ok := asks(s, other, noon(), 0); !ok {
		t.Error("other got no room of what was given back")
	}
}

// Whoever asks goes on writing to the workload that it asked about, while others decide about those
// that wait.
func TestWhatWaitsIsRememberedAsItWasAsked(t *testing.T) {
	s := reserving(t, 4)
	occupies(s, "tune", "b", 8, 20*time.Minute, time.Hour)
	gang := workload("gang", 2, 8)
	asks(s, gang, noon(), 2*time.Minute)
	written := make(chan struct{})
	go func() {
		defer close(written)
		gang.Name, gang.Spec.Parallelism, gang.Labels = "other", 1, map[string]string{"written": "yes"}
	}()
	changed, _ := s.Reserve(noon())
	<-written
	if len(changed) != 1 || changed[0].Name != "gang" {
		t.Errorf("changed %v", changed)
	}
	if changed, _ := s.Reserve(noon()); len(changed) > 0 {
		t.Errorf("what was written since changed %v", changed)
	}
}

// Whoever is gone, or gives up waiting, holds nothing back any more.
// What is held for those that come after a workload must not keep it from starting: they wait for
// it, and nothing would ever end.
func TestNobodyWaitsForThoseThatComeAfterIt(t *testing.T) {
	s := holding(t)
	at := noon().Add(time.Minute)
	gang := lasts(workload("gang", 2, 8), 20*time.Second)
	s.Release("gang")
	asks(s, gang, at, 3*time.Minute)
	s.Reserve(at)
	long, longer := lasts(workload("long", 1, 8), time.Hour), lasts(workload("longer", 2, 8), 5*time.Hour)
	for _, w := range []*gpuv1alpha1.GPUWorkload{long, longer} {
		if _, ok := asks(s, w, at, 2*time.Minute); ok {
			t.Fatalf("%s was placed", w.Name)
		}
	}
	s.Reserve(at)
	if got := s.Reservation("longer", at); !strings.Contains(got, "default/long") {
		t.Fatalf("it is not a chain: %q", got)
	}
	// The next look at the queue comes a little later than what it waits for has ended.
	s.DropPod("tune")
	late := noon().Add(40*time.Minute + 15*time.Second)
	if d, ok := asks(s, gang, late, 43*time.Minute); !ok {
		t.Fatalf("%s; %s", d.Why.Sentence, s.Reservation("gang", late))
	}
}

func TestReservationsEndWithTheirWorkload(t *testing.T) {
	for name, end := range map[string]func(*State) bool{
		"released": func(s *State) bool { return s.Release("gang") },
		"deleted": func(s *State) (told bool) {
			s.onWorkloadGone(workload("gang", 2, 8), func() { told = true })
			return told
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := holding(t)
			s.SetWorkload(workload("gang", 2, 8))
			if !end(s) {
				t.Error("nobody is told that there is room")
			}
			if d, ok := asks(s, workload("small", 1, 1), noon(), 0); !ok {
				t.Error(d.Why.Sentence)
			}
		})
	}
}

// What fits beside what runs now, and beside the gang later, is in nobody's way.
func TestRoomThatNobodyNeedsIsNotHeld(t *testing.T) {
	s := reserving(t, 4)
	occupies(s, "tune", "b", 4, 0, time.Hour)
	occupies(s, "stays", "a", 6, 0, 0)
	gang := workload("gang", 1, 6)
	asks(s, gang, noon(), 2*time.Minute)
	s.Reserve(noon())
	if got := s.Reservation("gang", noon()); !strings.HasPrefix(got, "reserved: node b, expected in 1 h") {
		t.Fatal(got)
	}
	for i, want := range []bool{true, true, true, true, false} {
		if d, ok := asks(s, workload(fmt.Sprintf("w%d", i), 1, 1), noon(), 0); ok != want {
			t.Errorf("pod %d: placed on %v, %s", i, d.Nodes(), d.Why.Sentence)
		}
	}
}

func TestPatienceAndOverruns(t *testing.T) {
	s := reserving(t, 4)
	occupies(s, "tune", "b", 8, 0, 20*time.Minute)
	gang := workload("gang", 2, 8)
	asks(s, gang, noon(), 59*time.Second)
	if s.Reserve(noon()); s.Reservation("gang", noon()) != "" {
		t.Error("it holds room before it lost its patience")
	}
	s.Reserve(noon().Add(time.Second))
	if s.Reservation("gang", noon()) == "" {
		t.Error("it holds no room although it lost its patience")
	}
	// Tune has not ended in time. It is expected after half as long again, and what ends before
	// that may pass now.
	later := noon().Add(21 * time.Minute)
	half := lasts(workload("half", 1, 8), 10*time.Minute)
	if d, ok := asks(s, half, later, 0); ok {
		t.Errorf("placed on %v", d.Nodes())
	}
	if _, loosened := s.Reserve(later); !loosened {
		t.Error("nobody is told that the gang starts later")
	}
	if d, ok := asks(s, half, later, 0); !ok {
		t.Error(d.Why.Sentence)
	}
}

// flow is small jobs that come without end: whenever one ends, two wait. A gang for the whole
// cluster waits with them. It returns after how many minutes the gang started, -1 if it did not.
func flow(t *testing.T, most int, estimates bool) int {
	s := reserving(t, most)
	gang := workload("gang", 2, 8)
	ends, jobs := map[string]int{}, 0
	for minute := range 400 {
		now := noon().Add(time.Duration(minute) * time.Minute)
		for name, end := range ends {
			if end == minute {
				delete(ends, name)
				s.DropPod(gpuPod(name, 1).UID)
				s.DropWorkload(workload(name, 1, 1))
			}
		}
		if minute > 0 {
			if _, ok := asks(s, gang, now, time.Duration(minute)*time.Minute); ok {
				return minute
			}
		}
		s.Reserve(now)
		for range 16 {
			jobs++
			w := workload(fmt.Sprintf("job-%d", jobs), 1, 1)
			runs := 10 + jobs%23
			if estimates {
				lasts(w, time.Duration(runs)*time.Minute)
			}
			d, ok := asks(s, w, now, 0)
			if !ok {
				s.Release(w.UID)
				break
			}
			s.SetWorkload(w)
			pod := gpuPod(string(w.UID), 1, memberPod(w, 0, 0), bound(d.Nodes()[0]))
			pod.CreationTimestamp = metav1.NewTime(now)
			s.SetPod(pod)
			ends[string(w.UID)] = minute + runs
		}
	}
	return -1
}

// A gang for which small work leaves no room starves where nothing is reserved; with reservations
// it starts when what ran has ended, known or not.
func TestNoGangStarves(t *testing.T) {
	if started := flow(t, 0, true); started >= 0 {
		t.Errorf("without reservations the gang started after %d minutes: the flow leaves room", started)
	}
	if started := flow(t, 4, true); started < 0 || started > 1+33+2 {
		t.Errorf("with estimates it started after %d minutes; the longest job takes 32", started)
	}
	if started := flow(t, 4, false); started < 0 || started > 60+33+2 {
		t.Errorf("without estimates it started after %d minutes; it may be passed for 60, and the longest job takes 32", started)
	}
}

// What runs longer than it said is expected later with every look, each time by too little to tell
// of. Whoever may pass once that adds up is told in time.
func TestStartThatRecedesBitByBitIsToldOf(t *testing.T) {
	s := holding(t)
	s.reservations.limits.MaxWait = 24 * time.Hour
	brief := lasts(workload("brief", 1, 8), 45*time.Minute)
	if d, ok := asks(s, brief, noon(), 0); ok {
		t.Fatalf("placed on %v", d.Nodes())
	}
	// Tune has run for 20 minutes at noon. Half of what it has run is 45 minutes at 13:10.
	for at := noon(); at.Before(noon().Add(80 * time.Minute)); at = at.Add(15 * time.Second) {
		if _, loosened := s.Reserve(at); !loosened {
			continue
		}
		if _, ok := asks(s, brief, at, 0); ok {
			if at.Before(noon().Add(70 * time.Minute)) {
				t.Errorf("it passed at %v", at)
			}
			return
		}
	}
	t.Error("it could pass, and nobody was told")
}

// Those that waited longest for their priority are looked at, and it takes no more however many wait
// behind them: what they ask for is not even worked out.
func TestFewAreLookedAtHoweverManyWait(t *testing.T) {
	work := func(waiting int) float64 {
		s := reserving(t, 1)
		for i := range waiting {
			w := workload(fmt.Sprintf("w-%05d", i), 1, 8)
			if i == waiting-1 {
				w.Spec.Priority = gpuv1alpha1.PriorityHigh
			}
			s.Await(w, gpuPod("", 8), noon().Add(-30*time.Minute+time.Duration(i)*time.Millisecond))
		}
		found := s.candidates(noon())
		var names []string
		for _, j := range found {
			names = append(names, j.workload.Name)
		}
		if want := []string{fmt.Sprintf("w-%05d", waiting-1), "w-00000", "w-00001", "w-00002"}; !slices.Equal(names, want) {
			t.Errorf("of %d that wait %v are looked at", waiting, names)
		}
		return testing.AllocsPerRun(3, func() { s.candidates(noon()) })
	}
	if few, many := work(100), work(4000); many > few+100 {
		t.Errorf("among 100 that wait it takes %g allocations, among 4000 %g", few, many)
	}
}

// Who has waited for MaxWait is passed by nobody, also not by what ends in time or matters more;
// and itself leaves those alone that have waited longer, whatever it matters.
func TestNobodyPassesWhoHasWaitedForMaxWait(t *testing.T) {
	edits := map[string]func(*gpuv1alpha1.GPUWorkload){
		"ends in time": func(w *gpuv1alpha1.GPUWorkload) { lasts(w, time.Minute) },
		"matters more": func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityHigh },
	}
	for name, edit := range edits {
		for _, c := range []struct {
			gang, small time.Duration
			passes      bool
		}{
			{59 * time.Minute, 0, true},
			{time.Hour, 0, false},
			{time.Hour, time.Hour - time.Second, false},
			{2 * time.Hour, 90 * time.Minute, false},
			{90 * time.Minute, 2 * time.Hour, true},
		} {
			t.Run(fmt.Sprintf("%s, %v against %v", name, c.small, c.gang), func(t *testing.T) {
				s := reserving(t, 4)
				occupies(s, "tune", "b", 8, 20*time.Minute, time.Hour)
				asks(s, workload("gang", 2, 8), noon(), c.gang)
				s.Reserve(noon())
				small := workload("small", 1, 1)
				edit(small)
				if d, ok := asks(s, small, noon(), c.small); ok != c.passes {
					t.Errorf("placed on %v: %s", d.Nodes(), d.Why.Sentence)
				}
			})
		}
	}
}

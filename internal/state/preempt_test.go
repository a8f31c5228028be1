package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func boundSince(node string, since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon().Add(-since))}}
	}
}

// runs has a workload of low priority run for so long, with a whole node a pod.
func runs(s *State, uid string, since time.Duration, nodes ...string) *gpuv1alpha1.GPUWorkload {
	w := workload(uid, int32(len(nodes)), 8)
	w.Spec.Priority = gpuv1alpha1.PriorityLow
	s.SetWorkload(w)
	for rank, node := range nodes {
		s.SetPod(gpuPod(uid+node, 8, memberPod(w, 3, int32(rank)), boundSince(node, since)))
	}
	return w
}

func urgent(pods int32) *gpuv1alpha1.GPUWorkload {
	w := workload("urgent", pods, 8)
	w.Spec.Priority, w.Spec.PreemptionPolicy = gpuv1alpha1.PriorityHigh, gpuv1alpha1.PreemptLowerPriority
	return w
}

func threeNodes(t *testing.T) *State {
	t.Helper()
	s := newState(t)
	for _, name := range []string{"a", "b", "c"} {
		s.SetNode(gpuNode(name, 8))
	}
	return s
}

// Of workloads that matter as little, the one goes that loses the fewest GPU-hours, and that is
// worked out anew as time passes.
func TestTheCheapestIsEvicted(t *testing.T) {
	s := threeNodes(t)
	runs(s, "old", 5*time.Hour, "a")
	runs(s, "new", time.Minute, "b")
	runs(s, "older", 9*time.Hour, "c")
	w := urgent(1)
	d, nodeOf, err := s.Plan(w, gpuPod("", 8), Ask{Now: noon()})
	if err != nil || !d.Feasible || nodeOf[0] != "b" {
		t.Fatalf("placed on %v: %v, %s", nodeOf, err, d.Why.Sentence)
	}
	want := []gpuv1alpha1.Victim{{Namespace: "default", Name: "new", UID: "new", Attempt: 3}}
	if got := s.Victims("urgent"); !slices.Equal(got, want) {
		t.Errorf("evicts %v", got)
	}
	if cost := d.Victims[0].Cost; cost < 8.0/60 || cost > 8.1/60 {
		t.Errorf("costs %g GPU-hours, 8 GPUs have run for a minute", cost)
	}
	// A day later new is as old as that; what came since is cheaper.
	s.Release("urgent")
	s.DropPod("oldera")
	s.DropPod("olderc")
	runs(s, "newest", -23*time.Hour, "c")
	if d, _, _ := s.Plan(w, gpuPod("", 8), Ask{Now: noon().Add(24 * time.Hour)}); len(d.Victims) != 1 || d.Victims[0].Workload != "default/newest" {
		t.Errorf("evicts %v", d.Victims)
	}
}

// What a plan waits for is held for it, although the victims are there still: nobody else gets
// that room before them, nor after them.
func TestRoomOfVictimsIsHeld(t *testing.T) {
	s := threeNodes(t)
	victim := runs(s, "victim", time.Hour, "a", "b")
	runs(s, "other", time.Hour, "c")
	if d, _, _ := s.Plan(urgent(2), gpuPod("", 8), Ask{Now: noon()}); !d.Feasible || len(d.Victims) != 1 {
		t.Fatalf("%v: %s", d.Victims, d.Why.Sentence)
	}
	late := workload("late", 1, 1)
	for _, gone := range []string{"", "victima", "victimb"} {
		if gone != "" {
			s.DropPod(gpuPod(gone, 8).UID)
		}
		if d, _, _ := s.Plan(late, gpuPod("", 1), Ask{Now: noon()}); d.Feasible {
			t.Errorf("with %q gone others were placed on %v", gone, d.Nodes())
		}
		crowded, out := s.Crowded("urgent")
		want := map[string]int{"": 2, "victima": 1, "victimb": 0}[gone]
		if len(crowded) != want || len(out) > 0 {
			t.Errorf("with %q gone %v are crowded and %v out of service", gone, crowded, out)
		}
	}
	cordoned := gpuNode("b", 8)
	cordoned.Spec.Unschedulable = true
	s.SetNode(cordoned)
	if _, out := s.Crowded("urgent"); !slices.Equal(out, []string{"b"}) {
		t.Errorf("out of service: %v", out)
	}
	if d, _, _ := s.Plan(victim, gpuPod("", 8), Ask{Attempt: 4, Now: noon()}); d.Feasible {
		t.Errorf("the victim got its place back: %v", d.Nodes())
	}
}

func TestNobodyIsEvictedWhoMayNotBe(t *testing.T) {
	for name, edit := range map[string]func(urgent, victim *gpuv1alpha1.GPUWorkload){
		"not asked for":        func(u, _ *gpuv1alpha1.GPUWorkload) { u.Spec.PreemptionPolicy = gpuv1alpha1.PreemptNever },
		"no policy":            func(u, _ *gpuv1alpha1.GPUWorkload) { u.Spec.PreemptionPolicy = "" },
		"not preemptible":      func(_, v *gpuv1alpha1.GPUWorkload) { v.Spec.Preemptible = ptr.To(false) },
		"equal priority":       func(_, v *gpuv1alpha1.GPUWorkload) { v.Spec.Priority = gpuv1alpha1.PriorityHigh },
		"another installation": func(_, v *gpuv1alpha1.GPUWorkload) { v.Spec.ClassName = "blue" },
	} {
		t.Run(name, func(t *testing.T) {
			s, u := threeNodes(t), urgent(1)
			victim := runs(s, "victim", time.Hour, "a", "b", "c")
			victim.Generation++
			edit(u, victim)
			s.SetWorkload(victim)
			if d, _, _ := s.Plan(u, gpuPod("", 8), Ask{Now: noon()}); d.Feasible || len(s.Victims("urgent")) > 0 {
				t.Errorf("placed on %v: %s", d.Nodes(), d.Why.Sentence)
			}
		})
	}
}

// An elastic gang that runs cannot shrink: all of it goes.
func TestElasticGangsAreEvictedWhole(t *testing.T) {
	s := threeNodes(t)
	victim := runs(s, "victim", time.Hour, "a", "b", "c")
	victim.Spec.MinParallelism, victim.Generation = ptr.To[int32](1), 2
	s.SetWorkload(victim)
	d, _, _ := s.Plan(urgent(1), gpuPod("", 8), Ask{Now: noon()})
	if len(d.Victims) != 1 || !d.Victims[0].Whole || len(d.Victims[0].Evicted) != 3 {
		t.Errorf("%+v", d.Victims)
	}
}

func TestMembersThatAreReplacedEvictNobody(t *testing.T) {
	s := threeNodes(t)
	u := urgent(2)
	s.Confirm(u, gpuPod("", 8), map[int32]string{0: "a", 1: "b"})
	for rank, node := range []string{"a", "b"} {
		s.SetPod(gpuPod(fmt.Sprintf("u%d", rank), 8, memberPod(u, 0, int32(rank)), bound(node)))
	}
	runs(s, "victim", time.Hour, "c")
	s.DropPod("u1")
	s.DropNode("b")
	if d, _, _ := s.Plan(u, gpuPod("", 8), Ask{Ranks: []int32{1}, Kept: []string{"a"}, Now: noon()}); d.Feasible {
		t.Errorf("placed on %v", d.Nodes())
	}
}

// A workload that was deleted and made anew under its name is another one: the pods that hold the
// room are the old one's.
func TestVictimsAreNamedByUID(t *testing.T) {
	s := threeNodes(t)
	runs(s, "old", time.Hour, "a")
	runs(s, "other", time.Hour, "b")
	runs(s, "third", time.Hour, "c")
	again := workload("old", 1, 8)
	again.UID = "again"
	s.SetWorkload(again)
	if d, _, _ := s.Plan(urgent(3), gpuPod("", 8), Ask{Now: noon()}); len(d.Victims) != 3 {
		t.Fatalf("%v: %s", d.Victims, d.Why.Sentence)
	}
	for _, v := range s.Victims("urgent") {
		if v.UID == "again" || v.Name == "old" && v.UID != "old" {
			t.Errorf("evicts %+v", v)
		}
	}
}

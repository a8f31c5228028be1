package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

const (
	low    = gpuv1alpha1.PriorityLow
	medium = gpuv1alpha1.PriorityMedium
	high   = gpuv1alpha1.PriorityHigh
)

// runs checks that a workload runs, and waits that one was evicted and waits.
func (w *world) runs(name string, attempt int32) {
	w.t.Helper()
	s := w.get(name).Status
	if s.Phase != gpuv1alpha1.PhaseRunning || s.Attempt != attempt || s.RetryCount != 0 || len(s.Preempting) > 0 {
		w.t.Errorf("%s is %s in attempt %d, evicting %v: %s", name, s.Phase, s.Attempt, s.Preempting, s.Message)
	}
	if meta.IsStatusConditionTrue(s.Conditions, gpuv1alpha1.ConditionPreempted) {
		w.t.Errorf("%s runs and is told to be preempted", name)
	}
}

func (w *world) wasEvicted(name, by string) {
	w.t.Helper()
	s := w.get(name).Status
	c := meta.FindStatusCondition(s.Conditions, gpuv1alpha1.ConditionPreempted)
	if s.Phase != gpuv1alpha1.PhasePending || s.Attempt != 1 || s.RetryCount != 0 || s.NextRetryTime != nil {
		w.t.Errorf("%s is %s in attempt %d: %s", name, s.Phase, s.Attempt, s.Message)
	}
	if c == nil || c.Status != "True" || !strings.Contains(c.Message, "made way for team-a/"+by+", which has priority high") {
		w.t.Errorf("%s was evicted and says %+v", name, c)
	}
	for _, pod := range w.pods() {
		if pod.Labels[gpuv1alpha1.WorkloadLabel] == name {
			w.t.Errorf("%s has pod %s still", name, pod.Name)
		}
	}
}

// The manager dies at each of its writes in turn, once before the API server has it and once
// after. Whatever it was doing, the next one brings the eviction to the same end.
func TestEvictionSurvivesDeathAtAnyWrite(t *testing.T) {
	tell := func(t *testing.T, killAt int, applied bool) int {
		w := newWorld(t, "a", "b", "c")
		w.killAt, w.applied = killAt, applied
		w.submit("keeps", medium, 1, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Preemptible = ptr.To(false) })
		w.submit("small", low, 2)
		w.settle()
		w.submit("urgent", high, 2, evicting)
		w.settle()
		w.runs("urgent", 0)
		w.runs("keeps", 0)
		w.wasEvicted("small", "urgent")
		// It starts again once there is room.
		w.must(w.Delete(t.Context(), w.get("urgent")))
		w.settle()
		w.runs("small", 1)
		if w.get("urgent") != nil {
			t.Error("urgent was deleted and is there")
		}
		return w.writes
	}
	writes := tell(t, 0, false)
	t.Logf("%d writes", writes)
	for killAt := 1; killAt <= writes; killAt += stride {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, made %v", killAt, applied), func(t *testing.T) { tell(t, killAt, applied) })
		}
	}
}

// Two gangs want the room of one that is larger than both: it goes once.
func TestTwoEvictOneVictim(t *testing.T) {
	tell := func(t *testing.T, killAt int, applied bool) int {
		w := newWorld(t, "a", "b")
		w.killAt, w.applied = killAt, applied
		w.submit("small", low, 2)
		w.settle()
		w.submit("left", high, 1, evicting)
		w.submit("right", high, 1, evicting)
		w.settle()
		w.runs("left", 0)
		w.runs("right", 0)
		if s := w.get("small").Status; s.Attempt != 1 || s.Phase != gpuv1alpha1.PhasePending {
			t.Errorf("%+v", s)
		}
		return w.writes
	}
	writes := tell(t, 0, false)
	for killAt := 1; killAt <= writes; killAt += 2 * stride {
		t.Run(fmt.Sprintf("write %d", killAt), func(t *testing.T) { tell(t, killAt, true) })
	}
}

// Who is evicted may evict who matters even less; it ends with the least.
func TestCascadeEndsWithTheLeastImportant(t *testing.T) {
	tell := func(t *testing.T, killAt int, applied bool) int {
		w := newWorld(t, "a", "b")
		w.killAt, w.applied = killAt, applied
		w.submit("least", low, 1, evicting)
		w.submit("middle", medium, 1, evicting)
		w.settle()
		w.edit("least", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Preemptible = ptr.To(false) })
		w.submit("most", high, 1, evicting)
		for range 8 {
			w.round()
		}
		w.edit("least", func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Preemptible = ptr.To(true) })
		w.settle()
		w.runs("most", 0)
		w.runs("middle", 1)
		if s := w.get("least").Status; s.Attempt != 1 || s.Phase != gpuv1alpha1.PhasePending {
			t.Errorf("%+v", s)
		}
		return w.writes
	}
	writes := tell(t, 0, false)
	for killAt := 1; killAt <= writes; killAt += 2 * stride {
		t.Run(fmt.Sprintf("write %d", killAt), func(t *testing.T) { tell(t, killAt, true) })
	}
}

// planEviction brings urgent to the point at which its plan names small and small has not looked.
func planEviction(t *testing.T) *world {
	w := newWorld(t, "a", "b")
	w.submit("small", low, 2)
	w.settle()
	w.submit("urgent", high, 1, evicting)
	w.look("urgent")
	s := w.get("urgent").Status
	if len(s.Preempting) != 1 || s.Preempting[0].Name != "small" || s.Preempting[0].UID != "uid-small" || s.JobUID == "" && s.JobName == "" {
		t.Fatalf("urgent evicts %+v: %s", s.Preempting, s.Message)
	}
	return w
}

func TestWhoIsGoneEvictsNobody(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"deleted":   func(w *world) { w.must(w.Delete(t.Context(), w.get("urgent"))) },
		"suspended": func(w *world) { w.edit("urgent", func(u *gpuv1alpha1.GPUWorkload) { u.Spec.Suspend = true }) },
		"no longer evicting": func(w *world) {
			w.edit("urgent", func(u *gpuv1alpha1.GPUWorkload) { u.Spec.PreemptionPolicy = gpuv1alpha1.PreemptNever })
		},
		"no longer more important": func(w *world) { w.edit("urgent", func(u *gpuv1alpha1.GPUWorkload) { u.Spec.Priority = low }) },
		"refused": func(w *world) {
			w.edit("small", func(u *gpuv1alpha1.GPUWorkload) { u.Spec.Preemptible = ptr.To(false) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := planEviction(t)
			change(w)
			w.settle()
			w.runs("small", 0)
			if u := w.get("urgent"); u != nil && (len(u.Status.Preempting) > 0 || u.Status.Phase != gpuv1alpha1.PhasePending) {
				t.Errorf("urgent is %s, evicting %v: %s", u.Status.Phase, u.Status.Preempting, u.Status.Message)
			}
		})
	}
}

func TestVictimThatEndsByItselfIsNotEvicted(t *testing.T) {
	w := planEviction(t)
	for _, pod := range w.pods() {
		if pod.Labels[gpuv1alpha1.WorkloadLabel] == "small" {
			pod.Status.Phase = corev1.PodSucceeded
			w.must(w.Status().Update(t.Context(), &pod))
		}
	}
	var job batchv1.Job
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: w.get("small").Status.JobName}, &job))
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	w.must(w.Status().Update(t.Context(), &job))
	w.settle()
	w.runs("urgent", 0)
	if s := w.get("small").Status; s.Phase != gpuv1alpha1.PhaseSucceeded || s.Attempt != 0 {
		t.Errorf("small is %s in attempt %d", s.Phase, s.Attempt)
	}
}

// The API server knows of a Job's end before the caches do. What has done its work is not made to do
// it again, whether it is to be evicted or to move.
func TestWhoHasJustDoneItsWorkIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		prepare   func(t *testing.T) (w *world, victim string)
		condition batchv1.JobConditionType
		stale     bool
	}{
		"evicted, complete": {func(t *testing.T) (*world, string) { w := planEviction(t); w.look("urgent"); return w, "small" }, batchv1.JobComplete, true},
		"evicted, about to": {func(t *testing.T) (*world, string) { w := planEviction(t); w.look("urgent"); return w, "small" }, batchv1.JobSuccessCriteriaMet, false},
		"moved, complete":   {func(t *testing.T) (*world, string) { return planMove(t), "mover" }, batchv1.JobComplete, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, victim := c.prepare(t)
			p := &pass{now: w.now, workload: w.get(victim)}
			p.before = *p.workload.Status.DeepCopy()
			w.must(w.process.read(t.Context(), p))
			var job batchv1.Job
			key := client.ObjectKey{Namespace: "team-a", Name: w.get(victim).Status.JobName}
			w.must(w.Get(t.Context(), key, &job))
			job.Status.Conditions = []batchv1.JobCondition{{Type: c.condition, Status: corev1.ConditionTrue}}
			w.must(w.Status().Update(t.Context(), &job))
			if err := w.process.run(t.Context(), p); errors.Is(err, errStale) != c.stale || !c.stale && err != nil {
				t.Errorf("the pass ends with %v", err)
			}
			if s := w.get(victim).Status; s.Attempt != 0 || len(s.Placement) == 0 {
				t.Errorf("it is %s in attempt %d: %s", s.Phase, s.Attempt, s.Message)
			}
			w.must(w.Get(t.Context(), key, &job))
			if c.stale {
				w.look(victim)
				if s := w.get(victim).Status; s.Phase != gpuv1alpha1.PhaseSucceeded {
					t.Errorf("once it is seen, it is %s: %s", s.Phase, s.Message)
				}
			}
		})
	}
}

// Where one wants it to move, for which there is no place, and another may evict it, it goes.
func TestWhoCannotMoveIsEvictedAllTheSame(t *testing.T) {
	w := planEviction(t)
	w.look("urgent")
	w.edit("small", func(s *gpuv1alpha1.GPUWorkload) { s.Spec.Movable = true })
	w.submit("asks", medium, 1)
	asks := w.get("asks")
	asks.Status = *w.get("urgent").Status.DeepCopy()
	asks.Status.Preempting[0].Move = true
	w.must(w.Status().Update(t.Context(), asks))
	w.order = []string{"small", "urgent"}
	w.settle()
	w.runs("urgent", 0)
	if s := w.get("small").Status; s.Attempt != 1 {
		t.Errorf("small is %s in attempt %d: %s", s.Phase, s.Attempt, s.Message)
	}
}

// What is not ours, matters as much, or may not be evicted stays.
func TestWhoMayNotBeEvictedStays(t *testing.T) {
	for name, occupy := range map[string]func(w *world){
		"equal priority": func(w *world) { w.submit("other", high, 2) },
		"not preemptible": func(w *world) {
			w.submit("other", low, 2, func(o *gpuv1alpha1.GPUWorkload) { o.Spec.Preemptible = ptr.To(false) })
		},
		"foreign": func(w *world) {
			for _, node := range w.nodes {
				pod := &corev1.Pod{}
				pod.Namespace, pod.Name, pod.UID = "team-b", "foreign-"+node, types.UID("foreign-"+node)
				pod.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
					Requests: gpus("nvidia.com/gpu", 8).Limits, Limits: gpus("nvidia.com/gpu", 8).Limits}}}}
				w.must(w.Create(t.Context(), pod))
			}
			w.tell()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "a", "b")
			occupy(w)
			w.settle()
			before := len(w.pods())
			w.submit("urgent", high, 1, evicting)
			w.settle()
			s := w.get("urgent").Status
			if s.Phase != gpuv1alpha1.PhasePending || s.Attempt != 0 || len(s.Preempting) > 0 || len(w.pods()) != before {
				t.Errorf("urgent is %s: %s; %d pods, there were %d", s.Phase, s.Message, len(w.pods()), before)
			}
		})
	}
}

// A victim that does not go in time, or whose node is lost, does not keep the plan for ever.
func TestPlanIsMadeAnewWhereTheWayStaysBlocked(t *testing.T) {
	w := planEviction(t)
	for range 3 {
		w.round()
	}
	if s := w.get("urgent").Status; s.Message != "waiting for 1 pod of team-a/small to end" {
		t.Errorf("while small ends, urgent says %q", s.Message)
	}
	planned := w.get("urgent").Status.AssignedNode
	var node corev1.Node
	w.must(w.Get(t.Context(), client.ObjectKey{Name: planned}, &node))
	node.Spec.Unschedulable = true
	w.must(w.Update(t.Context(), &node))
	w.tell()
	w.settle()
	w.runs("urgent", 1)
	if s := w.get("urgent").Status; s.AssignedNode == planned || !w.said("went out of service before it was free") {
		t.Errorf("runs on %s", s.AssignedNode)
	}
}

func TestBothSidesAreTold(t *testing.T) {
	w := planEviction(t)
	w.settle()
	for _, text := range []string{"Preempting evicts team-a/small, of lower priority than high", "Preempted made way for team-a/urgent, which has priority high"} {
		if !w.said(text) {
			t.Errorf("no event says %q", text)
		}
	}
}

// A list of victims that is out of date evicts nobody a second time.
func TestWhoMadeWayIsNotEvictedAgain(t *testing.T) {
	w := newWorld(t, "a")
	w.submit("small", low, 1)
	w.settle()
	w.submit("urgent", high, 1, evicting)
	w.look("urgent")
	for w.look("small"); len(w.pods()) > 0; w.look("small") {
		w.collect()
		w.tell()
	}
	// Its pod is gone, there is room elsewhere, and urgent has not noticed yet.
	node := &corev1.Node{}
	w.must(w.Get(t.Context(), client.ObjectKey{Name: "a"}, node))
	node.ObjectMeta = metav1.ObjectMeta{Name: "b"}
	w.must(w.Create(t.Context(), node))
	w.nodes = append(w.nodes, "b")
	w.tell()
	w.look("small")
	w.look("small")
	if victims := w.get("urgent").Status.Preempting; len(victims) != 1 {
		t.Fatalf("urgent has noticed already: %v", victims)
	}
	w.settle()
	w.runs("small", 1)
	w.runs("urgent", 0)
}

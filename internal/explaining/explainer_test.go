package explaining

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

func now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// world is a cluster of nodes with 8 GPUs, and what is in it.
type world struct {
	state   *state.State
	objects []client.Object
	decided *decisions.Log
	leads   bool
}

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	levels := []cluster.Level{{Name: "leaf", Labels: []string{gpuv1alpha1.LeafLabel}}, {Name: "host", Labels: []string{"kubernetes.io/hostname"}}}
	w := &world{state: state.New(levels, strategies), decided: decisions.New(decisions.DefaultLimits(), logr.Discard()), leads: true}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		w.state.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, gpuv1alpha1.LeafLabel: "l1"}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{
					"cpu": resource.MustParse("64"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8"),
				},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return w
}

func gang(namespace, name string, pods, gpus int32, edits ...func(*gpuv1alpha1.GPUWorkload)) *gpuv1alpha1.GPUWorkload {
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), Generation: 1},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPUCount: gpus, Parallelism: pods},
	}
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func on(nodes ...string) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) {
		nodeOf := map[int32]string{}
		for rank, node := range nodes {
			nodeOf[int32(rank)] = node
		}
		w.Status.Placement = state.FormatPlacement(nodeOf)
		w.Status.Phase = gpuv1alpha1.PhaseScheduling
	}
}

// put adds a workload; with bound, its pods are on the nodes of its plan since an hour.
func (w *world) put(g *gpuv1alpha1.GPUWorkload, bound bool) *gpuv1alpha1.GPUWorkload {
	w.state.SetWorkload(g)
	w.objects = append(w.objects, g)
	nodeOf, _ := state.ParsePlacement(g.Status.Placement)
	for rank, node := range nodeOf {
		if !bound {
			continue
		}
		start := metav1.NewTime(now().Add(-time.Hour))
		job := state.JobName(g, 0)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: g.Namespace, Name: fmt.Sprintf("%s-%d-x", job, rank), UID: types.UID(fmt.Sprintf("%s-%d", g.UID, rank)),
				Labels:          map[string]string{gpuv1alpha1.WorkloadLabel: g.Name, gpuv1alpha1.WorkloadUIDLabel: string(g.UID), gpuv1alpha1.AttemptLabel: "0"},
				Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(rank)},
				OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(g.Spec.GPUCount), resource.DecimalSI)},
			}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start},
		}
		w.state.SetPod(pod)
		w.objects = append(w.objects, pod)
	}
	return g
}

func (w *world) explainer(t *testing.T) *Explainer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gpuv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return New(Parts{
		Cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).Build(), State: w.state, Decisions: w.decided,
		PodOf: func(g *gpuv1alpha1.GPUWorkload) (*corev1.Pod, error) { return controller.PodOf(g, "image") },
		Clock: clocktesting.NewFakePassiveClock(now()), Leads: func() bool { return w.leads },
	})
}

func (w *world) ask(t *testing.T, name string, ask Ask) *explainv1alpha1.Explanation {
	t.Helper()
	ask.Name = types.NamespacedName{Namespace: "team", Name: name}
	e, err := w.explainer(t).Workload(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func remedy(e *explainv1alpha1.Explanation, kind explain.Kind) *explainv1alpha1.Remedy {
	for i := range e.Remedies {
		if e.Remedies[i].Kind == string(kind) {
			return &e.Remedies[i]
		}
	}
	return &explainv1alpha1.Remedy{}
}

func TestVerdictsOfALife(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*gpuv1alpha1.GPUWorkload)
		verdict string
		reason  explain.Reason
		says    string
		runs    bool
	}{
		"nobody looked yet": {func(*gpuv1alpha1.GPUWorkload) {}, "WAIT", explain.RoomIsThere, "there is room now", false},
		"suspended":         {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true }, "CHANGE", explain.Suspended, "spec.suspend is true", false},
		"no such level": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: "row"}
		}, "BROKEN", explain.InvalidSpec, `no topology level "row"`, false},
		"no such strategy": {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "best" }, "BROKEN", explain.InvalidSpec, "spec.schedulingStrategy", false},
		"refused Job": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Status.Conditions = []metav1.Condition{{Type: gpuv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, ObservedGeneration: 1, Message: "the API server refuses it"}}
		}, "BROKEN", explain.InvalidSpec, "the API server refuses it", false},
		"between retries": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Status.NextRetryTime, w.Status.Message = ptr.To(metav1.NewTime(now().Add(time.Minute))), "it failed"
		}, "WAIT", explain.Retrying, "it failed, in 1m0s", false},
		"behind others": {func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Priority = gpuv1alpha1.PriorityLow }, "WAIT", explain.Outranked, "1 of higher priority", false},
		"ended": {func(w *gpuv1alpha1.GPUWorkload) {
			w.Status.Phase, w.Status.Message = gpuv1alpha1.PhaseSucceeded, "well"
		}, "ENDED", explain.Finished, "well", true},
		"on its way": {func(w *gpuv1alpha1.GPUWorkload) { on("n0")(w); w.Status.Message = "1 of 1" }, "PLACED", explain.Planned, "1 of 1", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.put(gang("team", "w", 1, 8, c.edit), false)
			w.put(gang("team", "other", 1, 1), false)
			e := w.ask(t, "w", Ask{})
			if e.Verdict != c.verdict || e.Reason != string(c.reason) || !strings.Contains(e.Message, c.says) || e.Runs != c.runs {
				t.Errorf("%s, %s (runs: %t): %s", e.Verdict, e.Reason, e.Runs, e.Message)
			}
		})
	}
}

// Room that is held for another is no room, and it is said whose it is, to those who may know.
func TestRoomThatIsHeldForOthersIsNamed(t *testing.T) {
	w := newWorld(t, 2)
	w.state.SetReservations(state.Reservations{Max: 4, Patience: time.Minute, MaxWait: time.Hour})
	w.put(gang("rivals", "tune", 1, 8, on("n0"), func(g *gpuv1alpha1.GPUWorkload) { g.Spec.ExpectedDuration = &metav1.Duration{Duration: 2 * time.Hour} }), true)
	waits := w.put(gang("rivals", "waits", 2, 8), false)
	w.put(gang("team", "w", 1, 1), false)
	pod, err := controller.PodOf(waits, "image")
	if err != nil {
		t.Fatal(err)
	}
	w.state.Await(waits, pod, now().Add(-2*time.Minute))
	if e := w.ask(t, "w", Ask{}); e.Reason != string(explain.RoomIsThere) {
		t.Errorf("nothing is held yet: %s, %s", e.Reason, e.Message)
	}
	w.state.Reserve(now())
	for name, sees := range map[string]func(string) bool{
		"rivals/waits":    nil,
		"rivals/(hidden)": func(namespace string) bool { return namespace == "friends" },
	} {
		e := w.ask(t, "w", Ask{Sees: sees})
		if e.Verdict != "WAIT" || e.Reason != string(explain.Withheld) || !strings.HasPrefix(e.Message, "there is room now, but it is held for "+name+" (") {
			t.Errorf("%s, %s: %s", e.Verdict, e.Reason, e.Message)
		}
	}
}

// A replica that does not lead holds no promises: they are read from the status.
func TestPromisesOfPlansCountOnEveryReplica(t *testing.T) {
	w := newWorld(t, 2)
	w.leads = false
	w.put(gang("team", "planned", 2, 8, on("n0", "n1")), false)
	w.put(gang("team", "w", 1, 8), false)
	e := w.ask(t, "w", Ask{})
	if e.Verdict != "ASK" || e.Misses[0].Room != 0 || e.Misses[0].Holders[0].Name != "team/planned" || e.Misses[0].Holders[0].GPUs != 16 {
		t.Errorf("%s: %+v", e.Verdict, e.Misses)
	}
	if len(e.Notes) == 0 || !strings.Contains(e.Notes[0], "a replica that does not decide") {
		t.Errorf("notes: %q", e.Notes)
	}
	// What is bound holds its room itself, and once.
	w = newWorld(t, 2)
	w.put(gang("team", "planned", 2, 4, on("n0", "n1")), true)
	w.put(gang("team", "w", 2, 4), false)
	if e := w.ask(t, "w", Ask{}); e.Reason != string(explain.RoomIsThere) {
		t.Errorf("%s: %s", e.Reason, e.Message)
	}
}

func TestDeadlinesTellUntilWhen(t *testing.T) {
	w := newWorld(t, 1)
	w.put(gang("team", "runs", 1, 8, on("n0"), func(g *gpuv1alpha1.GPUWorkload) {
		g.Spec.ActiveDeadlineSeconds, g.Status.StartTime = ptr.To(int64(5400)), ptr.To(metav1.NewTime(now().Add(-time.Hour)))
	}), true)
	w.put(gang("team", "w", 1, 8), false)
	e := w.ask(t, "w", Ask{})
	if r := remedy(e, explain.WaitFor); e.Verdict != "WAIT" || r.Starts != "30m0s" || !strings.Contains(r.Commands[0], "--timeout=1860s") {
		t.Errorf("%s: %+v", e.Verdict, r)
	}
	if r := remedy(e, explain.Evict); r.Cost.GPUHoursLost == nil || *r.Cost.GPUHoursLost != 8 || r.Commands[0] != `kubectl -n team patch gpuworkload runs --type=merge -p '{"spec":{"suspend":true}}'` {
		t.Errorf("%+v", r)
	}
}

func TestNamesOfOthersAreHidden(t *testing.T) {
	w := newWorld(t, 1)
	w.put(gang("others", "secret", 1, 4, on("n0")), true)
	w.put(gang("friends", "open", 1, 4, on("n0")), true)
	w.put(gang("team", "w", 1, 8), false)
	e := w.ask(t, "w", Ask{Sees: func(namespace string) bool { return namespace == "friends" }})
	text := fmt.Sprintf("%+v", *e)
	if strings.Contains(text, "secret") || !strings.Contains(text, "others/(hidden)-1") || !strings.Contains(text, "friends/open") {
		t.Error(text)
	}
	// Of what is hidden no command is told, and what can be told is.
	if r := remedy(e, explain.Evict); len(r.Subjects) != 2 || len(r.Commands) != 1 || !strings.Contains(r.Commands[0], "friends") {
		t.Errorf("%+v", r)
	}
}

func TestTryShowsThePlanOfARemedy(t *testing.T) {
	w := newWorld(t, 2)
	w.put(gang("team", "runs", 1, 8, on("n0")), true)
	w.put(gang("team", "w", 2, 8), false)
	e := w.ask(t, "w", Ask{Try: 1})
	if e.Try == nil || e.Try.Number != 1 || len(e.Try.Nodes) == 0 {
		t.Fatalf("%+v", e.Try)
	}
	_, err := w.explainer(t).Workload(t.Context(), Ask{Name: types.NamespacedName{Namespace: "team", Name: "w"}, Try: 50})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a remedy that is not there: %v", err)
	}
}

func TestHistoryAndWhyItIsThere(t *testing.T) {
	w := newWorld(t, 2)
	g := w.put(gang("team", "w", 1, 8, on("n1")), true)
	w.decided.Record(decisions.Decision{Time: now(), Workload: client.ObjectKeyFromObject(g), UID: g.UID, Outcome: decisions.Planned, Sentence: "placed on n1"})
	e := w.ask(t, "w", Ask{})
	if len(e.History) != 1 || e.History[0].Message != "placed on n1" {
		t.Errorf("%+v", e.History)
	}
	if p := e.Placement; p == nil || p.Nodes[0].Node != "n1" || p.Again == nil || *p.Again || len(p.Scores) == 0 || p.Scores[0].Name != "n0" {
		t.Errorf("%+v", p)
	}
}

package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

func TestWhatIsSaidOfAPolicy(t *testing.T) {
	const third = 3
	problem := &policy.Problem{Reason: gpuv1alpha1.PolicyTooCostly, Sentence: "too dear"}
	expressions := func(p *gpuv1alpha1.PlacementPolicy) {
		p.Spec.Filters = []gpuv1alpha1.PlacementFilter{{Name: "f", Expression: "true"}}
	}
	for name, test := range map[string]struct {
		report            policy.Report
		tally             *policy.Tally
		condition, reason string
		status            metav1.ConditionStatus
		says              string
	}{
		"in force":            {policy.Report{}, &policy.Tally{Holds: 1}, "Ready", "InForce", "True", "in force for 1 unfinished workload"},
		"nothing in force":    {policy.Report{Problem: problem}, nil, "Ready", "TooCostly", "False", "too dear; it holds for nobody until that is mended"},
		"an earlier edition":  {policy.Report{Problem: problem, InForce: &gpuv1alpha1.PolicyEdition{Generation: 2, Spec: &runtime.RawExtension{}}}, nil, "Ready", "TooCostly", "False", "too dear; generation 2 stays in force"},
		"exhausted":           {policy.Report{Problem: problem, InForce: &gpuv1alpha1.PolicyEdition{Generation: third}}, nil, "Ready", "TooCostly", "False", "too dear; it stays in force as far as it goes"},
		"no conflict":         {policy.Report{}, &policy.Tally{Holds: 5}, "Conflict", "None", "False", "no other policy"},
		"overruled":           {policy.Report{}, &policy.Tally{Overruled: 2, By: []string{"a", "b"}}, "Conflict", "Overruled", "True", "2 workloads that it selects are placed by a, b"},
		"shadowed":            {policy.Report{Shadow: "all"}, &policy.Tally{Overruled: 2, By: []string{"all"}}, "Conflict", "Shadowed", "True", "all goes before it and selects all"},
		"evaluates":           {policy.Report{}, nil, "Evaluates", "Evaluated", "True", "could be judged"},
		"fails on one node":   {policy.Report{Failures: []policy.Failure{{Expression: "filter f", Nodes: 1, Node: "n", Why: "no such key"}}}, nil, "Evaluates", "Failed", "False", "filter f cannot be evaluated on node n: no such key; filters refuse"},
		"fails on more nodes": {policy.Report{Failures: []policy.Failure{{Expression: "score s", Nodes: 9, Node: "n", Why: strings.Repeat("long", 2000)}}}, nil, "Evaluates", "Failed", "False", "score s cannot be evaluated on 9 nodes, such as n: long"},
	} {
		p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: third}}
		expressions(p)
		describe(p, &test.report, test.tally)
		c := meta.FindStatusCondition(p.Status.Conditions, test.condition)
		if c == nil || c.Reason != test.reason || c.Status != test.status || !strings.Contains(c.Message, test.says) || c.ObservedGeneration != third {
			t.Errorf("%s: got %+v", name, c)
		}
		if c != nil && len(c.Message) > 3000 {
			t.Errorf("%s: a message of %d bytes", name, len(c.Message))
		}
		before := p.Status.DeepCopy()
		if describe(p, &test.report, test.tally); p.Status.Conditions[0].LastTransitionTime != before.Conditions[0].LastTransitionTime {
			t.Errorf("%s: said again, it changes", name)
		}
		p.Spec.Filters = nil
		if describe(p, &test.report, test.tally); meta.FindStatusCondition(p.Status.Conditions, "Evaluates") != nil {
			t.Errorf("%s: a policy without expressions is said to be evaluated", name)
		}
	}
}

// Mere progress of a workload has no policy counted anew.
func TestWhatChangesForWhomPoliciesHold(t *testing.T) {
	is := countsOtherwise()
	w := testWorkload()
	for name, test := range map[string]struct {
		edit func(*gpuv1alpha1.GPUWorkload)
		want bool
	}{
		"runs":     {func(w *gpuv1alpha1.GPUWorkload) { w.Status.Phase = gpuv1alpha1.PhaseRunning }, false},
		"ends":     {func(w *gpuv1alpha1.GPUWorkload) { w.Status.Phase = gpuv1alpha1.PhaseFailed }, true},
		"labelled": {func(w *gpuv1alpha1.GPUWorkload) { w.Labels = map[string]string{"tier": "prod"} }, true},
	} {
		after := w.DeepCopy()
		test.edit(after)
		if got := is.Update(event.UpdateEvent{ObjectOld: w, ObjectNew: after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// reviewed is a PolicyReconciler with its API server, which has these objects.
func reviewed(t *testing.T, objects ...client.Object) (*PolicyReconciler, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := gpuv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&gpuv1alpha1.PlacementPolicy{}).Build()
	book := policy.NewBook(policy.Config{})
	return &PolicyReconciler{parts: PolicyParts{Book: book}, client: c, recorder: events.NewFakeRecorder(100)}, c
}

// All policies are counted and written together, those apart that the book knows in another form.
func TestPoliciesAreReviewedTogether(t *testing.T) {
	made := func(name string, generation int64, priority int32) *gpuv1alpha1.PlacementPolicy {
		p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: generation}}
		p.Spec.Priority = priority
		return p
	}
	work := testWorkload(func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ClassName = "" })
	first, second, newer, foreign := made("first", 1, 2), made("second", 1, 1), made("newer", 2, 0), made("foreign", 1, 9)
	foreign.Spec.ClassName = "other"
	r, c := reviewed(t, first, second, newer, foreign, work)
	for _, p := range []*gpuv1alpha1.PlacementPolicy{first, second, made("newer", 1, 0), foreign} {
		r.parts.Book.Set(p, 1)
	}
	result, err := r.Reconcile(t.Context(), everything())
	if err != nil || result.RequeueAfter != policyLag {
		t.Fatal(result, err)
	}
	status := func(name string) gpuv1alpha1.PlacementPolicyStatus {
		var p gpuv1alpha1.PlacementPolicy
		if err := c.Get(t.Context(), types.NamespacedName{Name: name}, &p); err != nil {
			t.Fatal(err)
		}
		return p.Status
	}
	if s := status("first"); s.Workloads != 1 || s.Overruled != 0 || s.InForce == nil || s.InForce.Generation != 1 {
		t.Errorf("first: %+v", s)
	}
	if s := status("second"); s.Workloads != 0 || s.Overruled != 1 {
		t.Errorf("second: %+v", s)
	}
	for _, name := range []string{"newer", "foreign"} {
		if s := status(name); s.ObservedGeneration != 0 || s.InForce != nil || len(s.Conditions) > 0 {
			t.Errorf("%s: it is said of another generation, or of a policy that is not ours: %+v", name, s)
		}
	}
	r.parts.Book.Set(newer, 1)
	if result, err := r.Reconcile(t.Context(), everything()); err != nil || result.RequeueAfter != 0 {
		t.Fatal(result, err)
	}
	if s := status("newer"); s.ObservedGeneration != 2 || s.Overruled != 1 {
		t.Errorf("newer: %+v", s)
	}
}

// Policies select by labels of namespaces: those of namespaces that come or go have nothing to
// count.
func TestWhichNamespacesHavePoliciesCounted(t *testing.T) {
	is := relabelled()
	before := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "a"}}}
	noted, moved := before.DeepCopy(), before.DeepCopy()
	noted.Annotations = map[string]string{"note": "x"}
	moved.Labels["team"] = "b"
	if is.Create(event.CreateEvent{Object: before}) || is.Delete(event.DeleteEvent{Object: before}) ||
		is.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: noted}) || !is.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: moved}) {
		t.Error("not exactly a namespace that is labelled anew is let through")
	}
}

// What is said of a policy may be in any script: a note of an event is cut between runes, and no
// longer than the API server takes.
func TestNotesAreCutBetweenRunes(t *testing.T) {
	r, _ := reviewed(t)
	recorder := events.NewFakeRecorder(10)
	r.recorder = recorder
	for shift := range 4 {
		message := strings.Repeat("x", shift) + strings.Repeat("液", 500)
		p := &gpuv1alpha1.PlacementPolicy{}
		p.Status.Conditions = []metav1.Condition{{Type: gpuv1alpha1.PolicyReady, Status: metav1.ConditionFalse, Reason: "Bad", Message: message}}
		r.tell(p, &gpuv1alpha1.PlacementPolicyStatus{})
		note := strings.TrimPrefix(<-recorder.Events, "Warning Bad ")
		if !utf8.ValidString(note) || !strings.HasPrefix(message, note) || len(note) > 1024 || len(note) < 1022 {
			t.Errorf("a note of %d bytes: %q", len(note), note)
		}
	}
}

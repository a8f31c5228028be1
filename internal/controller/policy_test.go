package controller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

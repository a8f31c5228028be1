package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

const (
	// policyLag is the pause before a policy is looked at again that the book does not know in
	// its newest form yet: it is told by the same informer.
	policyLag = 100 * time.Millisecond
	// recount gathers changes of workloads before policies are counted for them again.
	recount = 5 * time.Second
	// reevaluate is how often it is looked whether expressions fail on some node.
	reevaluate = time.Minute
	// noteBytes is the longest note that an event takes.
	noteBytes = 1024
)

// PolicyParts are what a PolicyReconciler is made of.
type PolicyParts struct {
	// Class is the class of the installation.
	Class string
	// Book is the policies, kept up to date by somebody else.
	Book *policy.Book
	// Better is called when a policy went out of force by itself, or came into it.
	Better func()
}

// PolicyReconciler writes the status of PlacementPolicies: whether they are in force, why not,
// and for whom. It decides nothing: the Book does, on every replica.
type PolicyReconciler struct {
	parts    PolicyParts
	client   client.Client
	recorder events.EventRecorder
}

// SetupPolicies adds the PlacementPolicy reconciler to a manager.
func SetupPolicies(mgr ctrl.Manager, parts PolicyParts) error {
	r := &PolicyReconciler{parts: parts, client: mgr.GetClient(), recorder: mgr.GetEventRecorder("gpu-orchestrator")}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("placementpolicy").
		// A policy that comes, goes or changes may go before others.
		Watches(&gpuv1alpha1.PlacementPolicy{}, r.all(0), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&gpuv1alpha1.GPUWorkload{}, r.all(recount), builder.WithPredicates(countsOtherwise())).
		Watches(&corev1.Namespace{}, r.all(recount), builder.WithPredicates(relabelled())).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			parts.Book.Told(func(string) {
				enqueue(q, everything(), queueProgress, 0)
				parts.Better()
			})
			return nil
		})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the placementpolicy controller: %w", err)
	}
	return nil
}

// everything is the one request there is: policies are looked at together, as each goes before
// others, and what they hold for is counted once for all.
func everything() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: "policies"}}
}

// all has the policies looked at, after a while. Changes meanwhile are looked at with it.
func (r *PolicyReconciler) all(after time.Duration) handler.EventHandler {
	add := func(q queue) { enqueue(q, everything(), queueStep, after) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { add(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { add(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { add(q) },
	}
}

// countsOtherwise lets through what changes for whom policies hold: workloads that come, go, end,
// or change their labels.
func countsOtherwise() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*gpuv1alpha1.GPUWorkload)
		after, is := e.ObjectNew.(*gpuv1alpha1.GPUWorkload)
		return !ok || !is || before.Status.Phase.Finished() != after.Status.Phase.Finished() || !maps.Equal(before.Labels, after.Labels)
	}}
}

// relabelled lets through namespaces whose labels change: policies select by them. One that comes
// has no workload yet, and one that goes has none any more.
func relabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: predicate.LabelChangedPredicate{}.Update,
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *PolicyReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var all gpuv1alpha1.PlacementPolicyList
	if err := r.client.List(ctx, &all); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing placement policies: %w", err)
	}
	workloads, err := r.workloads(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	tallies := r.parts.Book.Count(workloads)
	var next ctrl.Result
	for i := range all.Items {
		after, failed := r.review(ctx, &all.Items[i], tallies)
		err = errors.Join(err, failed)
		if after > 0 && (next.RequeueAfter == 0 || after < next.RequeueAfter) {
			next.RequeueAfter = after
		}
	}
	return next, err
}

// review writes the status of one policy. It returns the pause before it is to be looked at again,
// 0 for none.
func (r *PolicyReconciler) review(ctx context.Context, p *gpuv1alpha1.PlacementPolicy, tallies map[string]*policy.Tally) (time.Duration, error) {
	if p.Spec.ClassName != r.parts.Class || p.DeletionTimestamp != nil {
		return 0, nil
	}
	report, ok := r.parts.Book.Report(p.Name)
	if !ok || report.Generation != p.Generation {
		return policyLag, nil
	}
	before := p.Status.DeepCopy()
	describe(p, &report, tallies[p.Name])
	if equality.Semantic.DeepEqual(before, &p.Status) {
		return again(p), nil
	}
	// The resourceVersion guards the write: a leader that was paused says nothing about a spec
	// that it has not seen.
	if err := r.client.Status().Update(ctx, p); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return policyLag, nil
		}
		return 0, fmt.Errorf("writing the status of PlacementPolicy %s: %w", p.Name, err)
	}
	r.tell(p, before)
	return again(p), nil
}

// again looks at a policy with expressions once in a while: nodes change, and nobody is told.
func again(p *gpuv1alpha1.PlacementPolicy) time.Duration {
	if len(p.Spec.Filters)+len(p.Spec.Scores) == 0 {
		return 0
	}
	return reevaluate
}

// workloads lists what policies are counted for: the installation's, as long as they are not
// finished.
func (r *PolicyReconciler) workloads(ctx context.Context) ([]policy.Workload, error) {
	var all gpuv1alpha1.GPUWorkloadList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing workloads: %w", err)
	}
	counted := make([]policy.Workload, 0, len(all.Items))
	for i := range all.Items {
		if w := &all.Items[i]; w.Spec.ClassName == r.parts.Class && !w.Status.Phase.Finished() && w.DeletionTimestamp == nil {
			counted = append(counted, state.Facts(w))
		}
	}
	return counted, nil
}

// describe writes what there is to say of the policy into its status.
func describe(p *gpuv1alpha1.PlacementPolicy, report *policy.Report, tally *policy.Tally) {
	if tally == nil {
		tally = &policy.Tally{}
	}
	s := &p.Status
	s.ObservedGeneration = p.Generation
	s.InForce, s.CostPerNode = report.InForce, report.CostPerNode
	s.Workloads, s.Overruled = int32(tally.Holds), int32(tally.Overruled)
	set := func(kind string, status bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: p.Generation}
		if status {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	if report.Problem == nil {
		set(gpuv1alpha1.PolicyReady, true, gpuv1alpha1.PolicyInForce, "in force for "+plural(tally.Holds, "unfinished workload"))
	} else {
		set(gpuv1alpha1.PolicyReady, false, report.Problem.Reason, clip(report.Problem.Sentence+"; "+instead(p, report)))
	}
	switch {
	case report.Shadow != "":
		set(gpuv1alpha1.PolicyConflict, true, "Shadowed", fmt.Sprintf(
			"holds for no workload: %s goes before it and selects all; raise spec.priority above its, or narrow its selectors", report.Shadow))
	case tally.Overruled > 0:
		set(gpuv1alpha1.PolicyConflict, true, "Overruled", fmt.Sprintf(
			"%s that it selects are placed by %s, of higher priority or, with the same, an earlier name", plural(tally.Overruled, "workload"), strings.Join(tally.By, ", ")))
	default:
		set(gpuv1alpha1.PolicyConflict, false, "None", "no other policy goes before it for a workload that it selects")
	}
	switch {
	case len(p.Spec.Filters)+len(p.Spec.Scores) == 0:
		meta.RemoveStatusCondition(&s.Conditions, gpuv1alpha1.PolicyEvaluates)
	case len(report.Failures) > 0:
		var said []string
		for _, f := range report.Failures {
			said = append(said, f.Sentence())
		}
		set(gpuv1alpha1.PolicyEvaluates, false, "Failed", clip(strings.Join(said, "; ")+"; filters refuse such nodes, scores are 50 there"))
	default:
		set(gpuv1alpha1.PolicyEvaluates, true, "Evaluated", "every node that was looked at could be judged")
	}
}

// instead says what decisions go by where the policy as written is not in force.
func instead(p *gpuv1alpha1.PlacementPolicy, report *policy.Report) string {
	switch {
	case report.InForce == nil:
		return "it holds for nobody until that is mended"
	case report.InForce.Generation == p.Generation:
		return "it stays in force as far as it goes"
	}
	return fmt.Sprintf("generation %d stays in force", report.InForce.Generation)
}

// clip bounds a message: a condition takes 32,768 characters, a person a few lines.
func clip(text string) string {
	const most = 2000
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// plural is "1 workload" or "3 workloads".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// tell has events for what became true with the status that was written.
func (r *PolicyReconciler) tell(p *gpuv1alpha1.PlacementPolicy, before *gpuv1alpha1.PlacementPolicyStatus) {
	for _, c := range p.Status.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		note := strings.ToValidUTF8(c.Message[:min(len(c.Message), noteBytes)], "")
		switch bad := c.Type != gpuv1alpha1.PolicyConflict && c.Status == metav1.ConditionFalse || c.Type == gpuv1alpha1.PolicyConflict && c.Status == metav1.ConditionTrue; {
		case bad:
			r.recorder.Eventf(p, nil, "Warning", c.Reason, "Check", "%s", note)
		case c.Type == gpuv1alpha1.PolicyReady:
			r.recorder.Eventf(p, nil, "Normal", c.Reason, "Check", "%s", note)
		}
	}
}

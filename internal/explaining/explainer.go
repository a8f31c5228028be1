package explaining

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/capture"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Parts are what an Explainer is made of.
type Parts struct {
	// Cache reads what the informers know.
	Cache client.Reader
	State *state.State
	// Decisions is the log of this replica.
	Decisions *decisions.Log
	// PodOf returns the pod that a workload is planned with.
	PodOf func(*gpuv1alpha1.GPUWorkload) (*corev1.Pod, error)
	// ClassName picks the workloads that are ours.
	ClassName string
	Clock     clock.PassiveClock
	// Leads tells whether this replica is the one that decides.
	Leads func() bool
}

// Explainer answers. Make one with New.
type Explainer struct{ Parts }

// New returns an Explainer.
func New(parts Parts) *Explainer { return &Explainer{parts} }

// Ask is who asks what.
type Ask struct {
	// Name is what is asked about.
	Name types.NamespacedName
	// Try is the number of the remedy whose plan is to be shown, 0 for none.
	Try int
	// Sees tells whether the asker may know the names of what runs in a namespace. Nil: in all.
	Sees func(namespace string) bool
	// curtain is what Sees leaves of names, within one answer.
	curtain *curtain
}

// Workload explains a GPUWorkload.
func (e *Explainer) Workload(ctx context.Context, ask Ask) (*explainv1alpha1.Explanation, error) {
	var w gpuv1alpha1.GPUWorkload
	if err := e.Cache.Get(ctx, ask.Name, &w); err != nil {
		return nil, fmt.Errorf("reading the workload: %w", err)
	}
	return e.workload(ctx, ask, &w)
}

func (e *Explainer) workload(ctx context.Context, ask Ask, w *gpuv1alpha1.GPUWorkload) (*explainv1alpha1.Explanation, error) {
	ask = ask.drawn()
	answer := e.answer(ask, "gpuworkload")
	answer.Workload = w.Name
	answer.History = e.history(ask)
	if w.Spec.ClassName != e.ClassName {
		answer.Notes = append(answer.Notes, fmt.Sprintf("this installation takes care of class %q, and the workload is of class %q", e.ClassName, w.Spec.ClassName))
	}
	switch {
	case w.Status.Phase.Finished():
		say(answer, explainv1alpha1.VerdictEnded, explain.Finished, w.Status.Message)
		answer.Runs = true
		return answer, nil
	case len(w.Status.Placement) > 0:
		return answer, e.placed(ctx, ask, w, answer)
	}
	pod, err := e.PodOf(w)
	var q *explain.Question
	if err == nil {
		q, err = e.question(ctx, ask, w, pod)
	}
	var invalid *state.InvalidError
	if errors.As(err, &invalid) {
		say(answer, string(explain.Broken), explain.InvalidSpec, invalid.Error())
		return answer, nil
	} else if err != nil {
		return nil, err
	}
	found, err := explain.Explain(q)
	if err != nil {
		say(answer, string(explain.Broken), explain.InvalidSpec, err.Error())
		return answer, nil
	}
	e.fill(answer, &found, &filling{ask: ask, question: q, workload: w})
	if held := e.State.Withheld(w, pod, e.Clock.Now(), ask.Sees); held != "" && !found.Decision.Feasible {
		say(answer, string(explain.Wait), explain.Withheld, held)
	}
	e.overrule(ctx, ask, answer, w)
	return answer, tryRemedy(answer, &found, q.Snapshot, ask.Try)
}

// conditionPreempted is True from when a workload made way for another until it is planned again.
const conditionPreempted = "Preempted"

// overrule says first what keeps a workload from being planned at all, whatever room there is.
func (e *Explainer) overrule(ctx context.Context, ask Ask, answer *explainv1alpha1.Explanation, w *gpuv1alpha1.GPUWorkload) {
	room := answer.Message
	if c := meta.FindStatusCondition(w.Status.Conditions, conditionPreempted); c != nil && c.Status == metav1.ConditionTrue {
		answer.Notes = append(answer.Notes, fmt.Sprintf("it ran until %s: %s", c.LastTransitionTime.UTC().Format(time.RFC3339), ask.curtain.text(c.Message)))
	}
	accepted := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionAccepted)
	now := e.Clock.Now()
	switch {
	case w.Spec.Suspend:
		say(answer, string(explain.Change), explain.Suspended, "it is suspended (spec.suspend is true); were it not: "+room)
	case accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == w.Generation:
		say(answer, string(explain.Broken), explain.InvalidSpec, accepted.Message)
	case w.Status.NextRetryTime != nil && w.Status.NextRetryTime.After(now):
		in := w.Status.NextRetryTime.Sub(now).Round(time.Second)
		say(answer, string(explain.Wait), explain.Retrying, fmt.Sprintf("%s, in %s", w.Status.Message, in))
	case answer.Reason == string(explain.RoomIsThere):
		if ahead := e.ahead(ctx, w); ahead > 0 {
			say(answer, string(explain.Wait), explain.Outranked,
				fmt.Sprintf("there is room for it now, but %d of higher priority wait and are looked at first", ahead))
		} else if w.Status.Message != "" && w.Status.Message != answer.Message {
			answer.Notes = append(answer.Notes, "its status says: "+ask.curtain.text(w.Status.Message))
		}
	}
}

// ahead counts the workloads of higher priority that wait.
func (e *Explainer) ahead(ctx context.Context, w *gpuv1alpha1.GPUWorkload) int {
	var all gpuv1alpha1.GPUWorkloadList
	if err := e.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return 0 // The cache is there, or nothing was answered before this.
	}
	n := 0
	for i := range all.Items {
		o := &all.Items[i]
		if o.Spec.ClassName == w.Spec.ClassName && !o.Spec.Suspend && !o.Status.Phase.Finished() && len(o.Status.Placement) == 0 &&
			state.Priority(o) > state.Priority(w) {
			n++
		}
	}
	return n
}

// Scenario returns the question about a workload as a file.
func (e *Explainer) Scenario(ctx context.Context, ask Ask) (*explainv1alpha1.Scenario, error) {
	var w gpuv1alpha1.GPUWorkload
	if err := e.Cache.Get(ctx, ask.Name, &w); err != nil {
		return nil, fmt.Errorf("reading the workload: %w", err)
	}
	pod, err := e.PodOf(&w)
	if err != nil {
		return nil, apierrors.NewBadRequest("nothing can be asked about it: " + err.Error())
	}
	q, err := e.question(ctx, ask, &w, pod)
	if err != nil {
		return nil, apierrors.NewBadRequest("nothing can be asked about it: " + err.Error())
	}
	text, err := capture.Scenario("a live cluster, warp explain --scenario", q.Snapshot, q.Request)
	if err != nil {
		return nil, err
	}
	return &explainv1alpha1.Scenario{
		TypeMeta:   metav1.TypeMeta{APIVersion: explainv1alpha1.APIVersion, Kind: explainv1alpha1.ScenarioKind},
		ObjectMeta: e.metadata(ask),
		File:       string(text),
	}, nil
}

func (e *Explainer) answer(ask Ask, subject string) *explainv1alpha1.Explanation {
	answer := &explainv1alpha1.Explanation{
		TypeMeta:   metav1.TypeMeta{APIVersion: explainv1alpha1.APIVersion, Kind: explainv1alpha1.ExplanationKind},
		ObjectMeta: e.metadata(ask),
		Subject:    subject,
	}
	if e.Leads != nil && !e.Leads() {
		answer.Notes = append(answer.Notes, "answered by a replica that does not decide: what was decided before is not in its memory")
	}
	return answer
}

func (e *Explainer) metadata(ask Ask) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ask.Name.Namespace, Name: ask.Name.Name, CreationTimestamp: metav1.NewTime(e.Clock.Now())}
}

func say(answer *explainv1alpha1.Explanation, verdict string, reason explain.Reason, message string) {
	answer.Verdict, answer.Reason, answer.Message = verdict, string(reason), message
}

// tryRemedy shows where the workload goes with one of the remedies.
func tryRemedy(answer *explainv1alpha1.Explanation, found *explain.Explanation, s snapshot, number int) error {
	switch {
	case number == 0:
		return nil
	case number < 0 || number > len(answer.Remedies):
		return apierrors.NewBadRequest(fmt.Sprintf("there is no remedy %d to try: there are %d", number, len(answer.Remedies)))
	}
	// The API may refuse what the engine found: those left have kept their places.
	for i := range found.Remedies {
		if r := &found.Remedies[i]; r.Sentence == answer.Remedies[number-1].Message {
			answer.Try = &explainv1alpha1.Trial{Number: number, Message: r.Plan.Why.Sentence, Nodes: ranksOf(s, &r.Plan)}
		}
	}
	return nil
}

// ranksOf says which ranks of a plan go where, the groups of several one after the other.
func ranksOf(s snapshot, d *placement.Decision) []explainv1alpha1.NodeRanks {
	nodeOf := map[int32]string{}
	for i, node := range d.Nodes() {
		nodeOf[int32(i)] = node
	}
	return nodeRanks(s, nodeOf, d.Level)
}

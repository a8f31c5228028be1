package explaining

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Pod explains a pod: by the GPUWorkload that it belongs to, by its gang, or by itself.
func (e *Explainer) Pod(ctx context.Context, ask Ask) (*explainv1alpha1.Explanation, error) {
	ask = ask.drawn()
	var pod corev1.Pod
	if err := e.Cache.Get(ctx, ask.Name, &pod); err != nil {
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	w, err := e.ownerOf(ctx, &pod)
	if err != nil {
		return nil, err
	}
	if w != nil {
		own := ask
		own.Name = client.ObjectKeyFromObject(w)
		answer, err := e.workload(ctx, own, w)
		if err != nil {
			return nil, err
		}
		answer.Subject, answer.Name = "pod", pod.Name
		answer.Notes = append(answer.Notes, sayPod(&pod))
		return answer, nil
	}
	answer := e.answer(ask, "pod")
	switch {
	case state.Finished(&pod):
		say(answer, explainv1alpha1.VerdictEnded, explain.Finished, "the pod has ended: "+string(pod.Status.Phase))
		answer.Runs = true
		return answer, nil
	case pod.Spec.NodeName != "":
		say(answer, explainv1alpha1.VerdictPlaced, explain.Running, fmt.Sprintf("bound to %s by %s", pod.Spec.NodeName, schedulerOf(&pod)))
		answer.Runs = true
		answer.Placement = &explainv1alpha1.Placement{Nodes: []explainv1alpha1.NodeRanks{{Node: pod.Spec.NodeName, Ranks: "0"}}}
		answer.History = e.history(ask)
		return answer, nil
	}
	gang, err := state.GangOf(&pod)
	group := gang.Name
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		group = types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}
	}
	if err == nil && group.Name != "" {
		own := ask
		own.Name = group
		answer, err := e.Gang(ctx, own)
		if err == nil {
			answer.Subject, answer.Name = "pod", pod.Name
			answer.Notes = append(answer.Notes, sayPod(&pod))
		}
		return answer, err
	}
	answer.History = e.history(ask)
	if err != nil {
		return invalid(answer, err)
	}
	return e.plain(ctx, ask, answer, &members{waiting: []*corev1.Pod{&pod}, gang: &gang, count: 1})
}

// ownerOf returns the GPUWorkload that the pod is a member of, nil if it is of none.
func (e *Explainer) ownerOf(ctx context.Context, pod *corev1.Pod) (*gpuv1alpha1.GPUWorkload, error) {
	name := pod.Labels[gpuv1alpha1.WorkloadLabel]
	if name == "" {
		return nil, nil
	}
	var w gpuv1alpha1.GPUWorkload
	err := e.Cache.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &w)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the pod's workload: %w", err)
	case string(w.UID) != pod.Labels[gpuv1alpha1.WorkloadUIDLabel]:
		return nil, nil
	}
	return &w, nil
}

// members are pods of a gang that wait, with the nodes of those that do not.
type members struct {
	// waiting are those that are there, of count that have no node yet.
	waiting []*corev1.Pod
	gang    *state.PodGang
	count   int
	kept    []string
}

// asked is the question about all that wait. Those that are not there yet are taken to be like most
// of those that are.
func (m *members) asked() state.PodsAsked {
	q := state.PodsAsked{Parts: state.PodParts(m.waiting), Kept: m.kept}
	most := 0
	for i, part := range q.Parts {
		if part.Count > q.Parts[most].Count {
			most = i
		}
	}
	q.Parts[most].Count += max(0, m.count-len(m.waiting))
	if m.gang.Min < m.gang.Size && len(q.Parts) == 1 {
		q.Least = max(1, min(m.count, m.gang.Min-len(m.kept)))
	}
	return q
}

// gangPods returns the pods of a gang by their labels, or those of a PodGroup.
func (e *Explainer) gangPods(ctx context.Context, name types.NamespacedName) (found []corev1.Pod, grouped bool, err error) {
	var all corev1.PodList
	if err := e.Cache.List(ctx, &all, client.InNamespace(name.Namespace)); err != nil {
		return nil, false, fmt.Errorf("listing the pods of the gang: %w", err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		group := p.Spec.SchedulingGroup
		inGroup := group != nil && group.PodGroupName != nil && *group.PodGroupName == name.Name
		if inGroup || p.Labels[gpuv1alpha1.GangLabel] == name.Name {
			found, grouped = append(found, *p), grouped || inGroup
		}
	}
	slices.SortFunc(found, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found, grouped, nil
}

// Gang explains pods that say by their labels, or by their PodGroup, that they stand or fall
// together.
func (e *Explainer) Gang(ctx context.Context, ask Ask) (*explainv1alpha1.Explanation, error) {
	ask = ask.drawn()
	pods, grouped, err := e.gangPods(ctx, ask.Name)
	if err != nil {
		return nil, err
	}
	answer := e.answer(ask, "gang")
	answer.History = e.history(ask)
	m, ended := members{}, 0
	for i := range pods {
		pod := &pods[i]
		switch {
		case state.Finished(pod):
			ended++
		case pod.Spec.NodeName != "":
			m.kept = append(m.kept, pod.Spec.NodeName)
		default:
			m.waiting = append(m.waiting, pod)
		}
	}
	if len(pods) == 0 {
		// A GPUWorkload is a gang, too.
		found, err := e.Workload(ctx, ask)
		if apierrors.IsNotFound(err) {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: explainv1alpha1.GroupName, Resource: "gangs"}, ask.Name.Name)
		} else if err != nil {
			return nil, err
		}
		found.Subject = "gang"
		return found, nil
	}
	if len(m.waiting) == 0 {
		verdict, message := explainv1alpha1.VerdictPlaced, fmt.Sprintf("all %d pods that are there are bound", len(m.kept))
		if len(m.kept) == 0 {
			verdict, message = explainv1alpha1.VerdictEnded, fmt.Sprintf("all %d pods have ended", ended)
		}
		say(answer, verdict, explain.Running, message)
		answer.Runs = true
		return answer, nil
	}
	gang, err := state.GangOf(m.waiting[0])
	if err != nil {
		return invalid(answer, err)
	}
	if grouped {
		gang.Name, gang.Size, gang.Min = ask.Name, len(pods), len(pods)
		answer.Notes = append(answer.Notes, "of its PodGroup the pods that are there are known, and not what the PodGroup asks for itself: its smallest size and its level")
	}
	m.gang, m.count = &gang, max(1, gang.Size-len(m.kept)-ended)
	if there := len(pods); there < gang.Size {
		answer.Notes = append(answer.Notes, fmt.Sprintf("%d of the %d pods of the gang are there", there, gang.Size))
	}
	return e.plain(ctx, ask, answer, &m)
}

// plain asks the engine about pods that no GPUWorkload made.
func (e *Explainer) plain(ctx context.Context, ask Ask, answer *explainv1alpha1.Explanation, m *members) (*explainv1alpha1.Explanation, error) {
	first := m.waiting[0]
	r, err := e.State.PodsQuestion(m.gang, m.asked())
	if err != nil {
		return invalid(answer, err)
	}
	q, err := e.complete(ctx, ask, e.State.Snapshot(), &r)
	if err != nil {
		return nil, err
	}
	found, err := explain.Explain(q)
	if err != nil {
		say(answer, string(explain.Broken), explain.InvalidSpec, err.Error())
		return answer, nil
	}
	e.fill(answer, &found, &filling{ask: ask, question: q})
	answer.Notes = append(answer.Notes, sayPod(first))
	if answer.Reason == string(explain.RoomIsThere) {
		say(answer, string(explain.Wait), explain.OtherScheduler, fmt.Sprintf("there is room for it now; it is for %s to bind it", schedulerOf(first)))
	}
	return answer, tryRemedy(answer, &found, q.Snapshot, ask.Try)
}

func invalid(answer *explainv1alpha1.Explanation, err error) (*explainv1alpha1.Explanation, error) {
	var problem *state.InvalidError
	if !errors.As(err, &problem) {
		return nil, err
	}
	say(answer, string(explain.Broken), explain.InvalidSpec, problem.Error())
	return answer, nil
}

func schedulerOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return "scheduler " + corev1.DefaultSchedulerName
	}
	return "scheduler " + pod.Spec.SchedulerName
}

// sayPod says where a pod itself stands.
func sayPod(pod *corev1.Pod) string {
	text := "pod " + pod.Name
	switch {
	case pod.Spec.NodeName != "":
		return text + " is on " + pod.Spec.NodeName
	case len(pod.Spec.SchedulingGates) > 0:
		return text + " is held back by its gate " + pod.Spec.SchedulingGates[0].Name
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s: its scheduler says: %s", pod.Name, strings.TrimSpace(c.Message))
		}
	}
	if planned := state.PlannedNode(pod); planned != "" {
		return text + " is planned on " + planned
	}
	return fmt.Sprintf("%s waits for %s since %s", text, schedulerOf(pod), pod.CreationTimestamp.UTC().Format(metav1.RFC3339Micro))
}

package explaining

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// question is what the controller would ask about the whole workload. For one that waits it leaves
// alone what is held for others; one that has its places has them whatever is held by now.
func (e *Explainer) question(ctx context.Context, ask Ask, w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod) (*explain.Question, error) {
	var now time.Time
	if len(w.Status.Placement) == 0 {
		now = e.Clock.Now()
	}
	s, r, err := e.State.Question(w, pod, now)
	if err != nil {
		return nil, err
	}
	q, err := e.complete(ctx, ask, s, r)
	if err != nil {
		return nil, err
	}
	q.Options.Scoring = e.State.Weights(w)
	return q, nil
}

// complete adds to a question what the snapshot does not say: promises of plans, times, and what
// the asker may not know.
func (e *Explainer) complete(ctx context.Context, ask Ask, s snapshot, r *placement.Request) (*explain.Question, error) {
	known, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	s = e.promised(known, s, r.Name)
	q := &explain.Question{
		Snapshot: s,
		Request:  r,
		Options:  placement.Options{Strategies: e.State.Strategies()},
		Running:  known.running(s, e.Clock.Now()),
		Foreign:  foreign,
	}
	if c := ask.drawn().curtain; c != nil {
		veil(q, c)
	}
	return q, nil
}

// foreign tells whether a name is of something that is not a GPUWorkload: "team/Job/x".
func foreign(name string) bool { return strings.Count(name, "/") != 1 }

// known is what the caches show.
type known struct {
	workloads map[string]*gpuv1alpha1.GPUWorkload
	pods      map[string]*corev1.Pod
	byOwner   map[types.UID][]*corev1.Pod
}

// look reads the caches, without copies: nothing of it is written to.
func (e *Explainer) look(ctx context.Context) (*known, error) {
	var workloads gpuv1alpha1.GPUWorkloadList
	if err := e.Cache.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing workloads: %w", err)
	}
	var pods corev1.PodList
	if err := e.Cache.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	k := &known{
		workloads: make(map[string]*gpuv1alpha1.GPUWorkload, len(workloads.Items)),
		pods:      make(map[string]*corev1.Pod, len(pods.Items)),
		byOwner:   map[types.UID][]*corev1.Pod{},
	}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		k.workloads[w.Namespace+"/"+w.Name] = w
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		k.pods[p.Namespace+"/"+p.Name] = p
		if uid := p.Labels[gpuv1alpha1.WorkloadUIDLabel]; uid != "" {
			k.byOwner[types.UID(uid)] = append(k.byOwner[types.UID(uid)], p)
		}
	}
	return k, nil
}

// running says for how long what is in the snapshot has run, and by when it is stopped where it
// has a deadline. Nobody estimates yet when it ends by itself.
func (k *known) running(s snapshot, now time.Time) map[string]placement.Run {
	runs := map[string]placement.Run{}
	for _, n := range s.Nodes() {
		for _, p := range n.Pods {
			pod := k.pods[p.Name]
			if p.Workload == nil || pod == nil || pod.Status.StartTime == nil {
				continue
			}
			run := runs[p.Workload.Name]
			run.Elapsed = max(run.Elapsed, now.Sub(pod.Status.StartTime.Time))
			if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil {
				run.P90 = max(run.P90, time.Duration(*limit)*time.Second)
			}
			runs[p.Workload.Name] = run
		}
	}
	for name, run := range runs {
		w := k.workloads[name]
		if w == nil || w.Spec.ActiveDeadlineSeconds == nil || w.Status.StartTime == nil {
			continue
		}
		// Retries share one deadline, which counts from the first start.
		left := w.Status.StartTime.Add(time.Duration(*w.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now)
		run.P50, run.P90 = 0, run.Elapsed+max(left, time.Second)
		runs[name] = run
	}
	return runs
}

// promised returns the snapshot with the room that plans in workloads' status promise to members
// whose pods do not hold it yet. On the replica that leads, the state has these promises already.
func (e *Explainer) promised(k *known, s snapshot, except string) snapshot {
	there := map[string]bool{}
	works := map[string]*cluster.Workload{}
	for _, n := range s.Nodes() {
		for _, p := range n.Pods {
			there[p.Name] = true
			if p.Workload != nil {
				works[p.Workload.Name] = p.Workload
			}
		}
	}
	add := map[int][]*cluster.Pod{}
	for name, w := range k.workloads {
		if name == except || w.Spec.ClassName != e.ClassName || w.Status.Phase.Finished() || len(w.Status.Placement) == 0 {
			continue
		}
		missing := k.unsettled(w, there)
		if len(missing) == 0 {
			continue
		}
		pod, err := e.PodOf(w)
		if err != nil {
			continue // Its plan stands by what its spec said before.
		}
		_, r, err := e.State.Question(w, pod, time.Time{})
		if err != nil {
			continue
		}
		work := works[name]
		if work == nil {
			work = &cluster.Workload{Name: name, Priority: state.Priority(w), Level: placement.AnyLevel}
		}
		for rank, node := range missing {
			if i := s.IndexOf(node); i >= 0 {
				add[i] = append(add[i], &cluster.Pod{Name: memberName(w, rank), Workload: work, Use: r.Groups[0].Pod.Resources})
			}
		}
	}
	if len(add) == 0 {
		return s
	}
	var changed []*cluster.Node
	for i, pods := range add {
		changed = append(changed, s.At(i).With(pods...))
	}
	return s.Next(s.Generation, s.Resources, changed)
}

// unsettled returns the nodes of the members of a plan that neither hold their room, nor have
// ended, nor are held for already.
func (k *known) unsettled(w *gpuv1alpha1.GPUWorkload, there map[string]bool) map[int32]string {
	nodeOf, err := state.ParsePlacement(w.Status.Placement)
	if err != nil {
		return nil
	}
	attempt := strconv.Itoa(int(w.Status.Attempt))
	for _, pod := range k.byOwner[w.UID] {
		if rank, ok := state.Rank(pod); ok && pod.Labels[gpuv1alpha1.AttemptLabel] == attempt && (pod.Spec.NodeName != "" || state.Finished(pod)) {
			delete(nodeOf, rank)
		}
	}
	for rank := range nodeOf {
		if there[memberName(w, rank)] {
			delete(nodeOf, rank)
		}
	}
	return nodeOf
}

// memberName is what the state calls the promise to a member.
func memberName(w *gpuv1alpha1.GPUWorkload, rank int32) string {
	return w.Namespace + "/" + state.JobName(w, w.Status.Attempt) + "-" + strconv.Itoa(int(rank))
}

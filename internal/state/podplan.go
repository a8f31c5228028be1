package state

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// PodsAsked is what is asked of PlanPods.
type PodsAsked struct {
	// Parts are the pods to place, those that are alike together.
	Parts []PodPart
	// Least is the fewest pods that will do, 0 for all; only where all pods are alike.
	Least int
	// Kept are the nodes of members that have one.
	Kept []string
	// Avoid are nodes that are left out.
	Avoid []string
	// Preempts allows to take the place of pods of lower priority.
	Preempts bool
	// Spare names what must not be evicted, as victims of an earlier answer are named.
	Spare []string
}

// PodPart is so many pods like the given one.
type PodPart struct {
	Pod   *corev1.Pod
	Count int
}

// PodParts puts pods that are alike together, in the order in which they come.
func PodParts(pods []*corev1.Pod) []PodPart {
	var list []PodPart
	for _, pod := range pods {
		i := slices.IndexFunc(list, func(p PodPart) bool { return Alike(p.Pod, pod) })
		if i < 0 {
			i, list = len(list), append(list, PodPart{Pod: pod})
		}
		list[i].Count++
	}
	return list
}

// Alike tells whether two pods ask the same of their nodes.
func Alike(a, b *corev1.Pod) bool {
	same := equality.Semantic.DeepEqual
	sameSize := func(x, y []corev1.Container) bool {
		return slices.EqualFunc(x, y, func(c, d corev1.Container) bool { return same(c.Resources, d.Resources) })
	}
	return sameSize(a.Spec.Containers, b.Spec.Containers) && sameSize(a.Spec.InitContainers, b.Spec.InitContainers) &&
		same(a.Spec.NodeSelector, b.Spec.NodeSelector) && same(a.Spec.Affinity, b.Spec.Affinity) &&
		same(a.Spec.Tolerations, b.Spec.Tolerations) && same(a.Spec.Overhead, b.Spec.Overhead) && same(a.Spec.Resources, b.Spec.Resources)
}

// PodsQuestion translates pods of a gang, which need not be alike, into a question to the engine.
// It holds nothing and changes nothing.
//
// Errors are *InvalidError where the pods must change.
func (s *State) PodsQuestion(g *PodGang, q PodsAsked) (placement.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.podsQuestion(g, q)
}

// PlanPods answers PodsQuestion in the cluster as it is now. It holds nothing: Assume does.
//
// Errors are *InvalidError where the pods must change.
func (s *State) PlanPods(g *PodGang, q PodsAsked) (placement.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.podsQuestion(g, q)
	if err != nil {
		return placement.Decision{}, err
	}
	d, err := placement.Plan(s.sparing(q.Spare), &r, placement.Options{Strategies: s.strategies, Cache: &s.cache})
	if err != nil {
		return d, &InvalidError{Field: "metadata.annotations", Problem: err.Error()}
	}
	return d, nil
}

// sparing returns the cluster as it is now, in which the named workloads must not be evicted. The
// caller holds the lock.
func (s *State) sparing(names []string) *cluster.Snapshot {
	now := s.current()
	if len(names) == 0 {
		return now
	}
	safe := map[*cluster.Workload]*cluster.Workload{}
	var changed []*cluster.Node
	for _, n := range now.Nodes() {
		var own *cluster.Node
		for i, p := range n.Pods {
			if p.Workload == nil || !slices.Contains(names, p.Workload.Name) {
				continue
			}
			if safe[p.Workload] == nil {
				w := *p.Workload
				w.Protected = true
				safe[p.Workload] = &w
			}
			if own == nil {
				copied := *n
				own, copied.Pods = &copied, slices.Clone(n.Pods)
				changed = append(changed, own)
			}
			pod := *p
			pod.Workload = safe[p.Workload]
			own.Pods[i] = &pod
		}
	}
	s.generation++
	return now.Next(s.generation, s.resources, changed)
}

// podsQuestion is PodsQuestion for callers that hold the lock.
func (s *State) podsQuestion(g *PodGang, q PodsAsked) (placement.Request, error) {
	r, err := s.podQuestion(q.Parts[0].Pod, g, q.Parts[0].Count, q.Least, q.Kept)
	if err != nil {
		return r, err
	}
	r.Avoid, r.Preempts = q.Avoid, q.Preempts
	if len(q.Parts) == 1 {
		return r, nil
	}
	if g.SliceSize > 0 {
		return r, annotation(gpuv1alpha1.SliceAnnotation, "pods of a gang in slices must be alike: have all of them ask for the same")
	}
	for i, part := range q.Parts {
		own, err := s.podQuestion(part.Pod, g, part.Count, 0, q.Kept)
		if err != nil {
			return r, err
		}
		own.Groups[0].Name = strconv.Itoa(i)
		r.Priority = max(r.Priority, own.Priority)
		if i == 0 {
			r.Groups = r.Groups[:0]
		}
		r.Groups = append(r.Groups, own.Groups[0])
	}
	if len(q.Kept) == 0 {
		// Where members stay, the domain that they are in holds each of the others.
		togetherness(&r)
	}
	return r, nil
}

// togetherness moves what each group asks of the topology to all of them together.
func togetherness(r *placement.Request) {
	set := placement.Set{Topology: r.Groups[0].Topology}
	for i := range r.Groups {
		set.Groups = append(set.Groups, i)
		r.Groups[i].Topology = placement.NoTopology()
	}
	r.Sets = []placement.Set{set}
}

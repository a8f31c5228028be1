package state

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Assume counts a pod as held by the node although the API server does not say so yet: a plan
// has promised it the room, or it is being bound. That ends when the pod is seen to be bound,
// wherever that is, when it is gone, or with Forget.
func (s *State) Assume(pod *corev1.Pod, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.assumed[pod.UID] == node {
		return
	}
	s.assumed[pod.UID] = node
	s.setPod(pod)
}

// Forget gives back what was assumed of a pod. It reports whether that freed room. What a pod
// holds that is bound it keeps.
func (s *State) Forget(uid types.UID) (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.assumed[uid]; !ok {
		return false
	}
	delete(s.assumed, uid)
	e, ok := s.pods[uid]
	if !ok {
		return false
	}
	return s.setPod(e.pod)
}

// nodeOf returns the node whose resources the pod holds: the one it is bound to, or the one that
// is assumed. The caller holds the lock.
func (s *State) nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || Finished(pod) {
		delete(s.assumed, pod.UID)
		return holdsNode(pod)
	}
	return s.assumed[pod.UID]
}

// JudgePodsAlone has every pod judged by what it says itself: its own priority decides whether it
// may be evicted, and the gang that it names is what it stands or falls with, whoever made it.
// That is how a scheduler sees pods. It must be called before the first pod is told.
func (s *State) JudgePodsAlone() { s.podsAlone = true }

// PlanPods answers PodQuestion in the cluster as it is now. Avoid names nodes that are left out,
// and preempts allows to take the place of pods of lower priority. It holds nothing: Assume does.
//
// Errors are *InvalidError where the pods must change.
func (s *State) PlanPods(pod *corev1.Pod, g *PodGang, q PodsAsked) (placement.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.podQuestion(pod, g, q.Count, q.Least, q.Kept)
	if err != nil {
		return placement.Decision{}, err
	}
	r.Avoid, r.Preempts = q.Avoid, q.Preempts
	d, err := placement.Plan(s.current(), &r, placement.Options{Strategies: s.strategies, Cache: &s.cache, Brief: q.Brief})
	if err != nil {
		return d, &InvalidError{Field: "metadata.annotations", Problem: err.Error()}
	}
	return d, nil
}

// PodsAsked is what is asked of PlanPods.
type PodsAsked struct {
	// Count pods are wanted, Least is the fewest that will do, 0 for all.
	Count, Least int
	// Kept are the nodes of members that have one.
	Kept []string
	// Avoid are nodes that are left out.
	Avoid []string
	// Preempts allows to take the place of pods of lower priority.
	Preempts bool
	// Brief asks for no reasons.
	Brief bool
}

// Node returns what is known of a node now, nil if nothing is.
func (s *State) Node(name string) *cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current().Node(name)
}

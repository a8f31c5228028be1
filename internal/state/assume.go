package state

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
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

// companyOf says what a pod stands or falls with where it is judged alone: the gang or PodGroup
// that it names. The pods of a GPUWorkload are their manager's to evict.
func companyOf(pod *corev1.Pod, key workKey) workKey {
	name := pod.Namespace + "/Pod/" + pod.Name
	switch {
	case key.uid != "":
		return workKey{name: key.name, spared: true}
	case pod.Spec.SchedulingGroup != nil && pod.Spec.SchedulingGroup.PodGroupName != nil:
		name = pod.Namespace + "/PodGroup/" + *pod.Spec.SchedulingGroup.PodGroupName
	case pod.Labels[gpuv1alpha1.GangLabel] != "":
		name = pod.Namespace + "/Gang/" + pod.Labels[gpuv1alpha1.GangLabel]
	}
	return workKey{name: name}
}

// Node returns what is known of a node now, nil if nothing is.
func (s *State) Node(name string) *cluster.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current().Node(name)
}

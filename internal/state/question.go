package state

import (
	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// Question returns what Plan would ask about the whole workload, and the cluster it would ask:
// without what the workload itself holds. It holds nothing and changes nothing.
//
// Errors are *InvalidError where the workload must change.
func (s *State) Question(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod) (*cluster.Snapshot, *placement.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guide := s.guide(w)
	r, err := s.question(w, pod, &guide)
	if err != nil {
		return nil, nil, err
	}
	now := s.current()
	own, ok := s.works[keyOf(w)]
	if !ok {
		return now, &r, nil
	}
	pods := map[string][]*cluster.Pod{}
	for _, m := range own.members {
		pods[m.node] = append(pods[m.node], m.made)
	}
	var changed []*cluster.Node
	for name, gone := range pods {
		if n := now.Node(name); n != nil {
			changed = append(changed, n.Without(gone...))
		}
	}
	// The generation is nobody else's: the next one of the state may look like it and differ.
	s.generation++
	return now.Next(s.generation, s.resources, changed), &r, nil
}

// question checks the workload and translates it; guide is what its policy asks. The caller holds
// the lock.
func (s *State) question(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, guide *policy.Guide) (placement.Request, error) {
	if _, err := s.strategies.Get(w.Spec.SchedulingStrategy); w.Spec.SchedulingStrategy != "" && err != nil {
		return placement.Request{}, &InvalidError{Field: "spec.schedulingStrategy", Problem: err.Error()}
	}
	if err := CheckAmounts(&pod.Spec); err != nil {
		return placement.Request{}, &InvalidError{Field: "spec.template.spec", Problem: err.Error()}
	}
	r, err := request(guided(w, guide), pod, s.levels, s.resources)
	if err != nil {
		return r, err
	}
	r.Groups[0].Pod.Rules = guide.Rules
	return r, nil
}

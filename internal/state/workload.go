package state

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// SetWorkload takes in a GPUWorkload: what its pods have in common that they do not say
// themselves.
func (s *State) SetWorkload(w *gpuv1alpha1.GPUWorkload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.workFor(keyOf(w))
	// Most news are of the status, which leaves the generation as it is; so do labels, by which
	// policies select.
	if known.told && w.Generation != 0 && w.Generation == known.generation && maps.Equal(w.Labels, known.source.Labels) {
		return
	}
	known.told, known.generation, known.source = true, w.Generation, w
	s.specifyAnew(known)
}

// specifyAnew works out what the workload's pods have in common, from its source and the policy
// that holds for it now.
func (s *State) specifyAnew(known *work) {
	guide := s.says(known.source)
	if s.movable(known.source) {
		guide = s.guide(known.source) // Rules go with pods only where these may be moved by them.
	}
	w := guided(known.source, &guide)
	spec, needs := s.specOf(w), needsOf(w, guide.Rules)
	known.gpus, known.estimate, spec.Cost = gpusOf(w), estimateOf(w), known.spec.Cost
	if *spec == *known.spec {
		spec = known.spec
	}
	if needs.Equal(known.needs) {
		needs = known.needs
	}
	if spec != known.spec || needs != known.needs {
		s.respecify(known, spec, needs)
	}
}

// DropWorkload forgets a GPUWorkload. Pods that it has left behind are its own still, but
// nothing is known of them any more.
func (s *State) DropWorkload(w *gpuv1alpha1.GPUWorkload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(w)
	known, ok := s.works[key]
	if !ok {
		return
	}
	known.told, known.generation, known.source = false, 0, nil
	s.respecify(known, &cluster.Workload{Name: key.name, Level: -1}, nil)
	if len(known.members) == 0 {
		delete(s.works, key)
	}
}

func keyOf(w *gpuv1alpha1.GPUWorkload) workKey {
	return workKey{uid: w.UID, name: w.Namespace + "/" + w.Name}
}

// specOf translates what decisions about the workload's pods go by. What the spec says of levels
// that are not there is refused where the workload is planned, and asks for nothing here.
func (s *State) specOf(w *gpuv1alpha1.GPUWorkload) *cluster.Workload {
	spec := &cluster.Workload{
		Name:        w.Namespace + "/" + w.Name,
		Priority:    Priority(w),
		Preemptible: w.Evictable() && w.Spec.ClassName == s.class,
		Movable:     s.movable(w),
		// An elastic gang that runs does not shrink: it leaves its place whole.
		MinMembers: 0,
		Level:      placement.AnyLevel,
	}
	if t := w.Spec.Topology; t != nil && t.Required != "" {
		if level, ok := cluster.FindLevel(s.levels, t.Required); ok {
			spec.Level = level
		}
	}
	return spec
}

// movable tells whether the workload's pods may be moved, and by us.
func (s *State) movable(w *gpuv1alpha1.GPUWorkload) bool {
	return w.Spec.Movable && w.Spec.ClassName == s.class
}

// needsOf translates what a pod of the workload asks of a node beside amounts. It is read from
// the workload and not from its pods: those ask for the one node that they were planned on.
func needsOf(w *gpuv1alpha1.GPUWorkload, rules cluster.Rules) *cluster.Needs {
	needs := cluster.Needs{GPU: gpuOf(w), Rules: rules}
	if t := w.Spec.Template; t != nil {
		pod := &corev1.Pod{Spec: t.Spec}
		needs.Selector, needs.Tolerations = translateSelector(pod), translateTolerations(pod)
	}
	if needs.Equal(&cluster.Needs{}) {
		return nil
	}
	return &needs
}

// Priority returns the workload's priority as a number: the more important, the higher. The
// steps leave room between them.
func Priority(w *gpuv1alpha1.GPUWorkload) int32 {
	switch w.Spec.Priority {
	case gpuv1alpha1.PriorityCritical:
		return 40
	case gpuv1alpha1.PriorityHigh:
		return 30
	case gpuv1alpha1.PriorityLow:
		return 10
	default:
		return 20
	}
}

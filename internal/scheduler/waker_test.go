package scheduler

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Of two gangs that ask for the same pods, one wants them close together: that there is no room for
// it says nothing of the other.
func TestAGangIsWokenBesideOneThatAsksForMore(t *testing.T) {
	play(t, 8, func(s *stage) {
		block := s.gang("block", 7, 8)
		s.add(block...)
		s.settle()
		unlike := func(name, level string) []*corev1.Pod {
			pods := s.gang(name, 4, 8)
			pods[0] = s.member(name, 0, 4, 4)
			for _, p := range pods {
				p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = level
			}
			return pods
		}
		s.add(unlike("near", "leaf")...)
		s.pass(time.Second)
		s.add(unlike("anywhere", "")...)
		s.settle()
		// There are two free nodes in each leaf then.
		left := map[string]int{"leaf-0": 2, "leaf-1": 2}
		for _, n := range s.nodes {
			if !slices.Contains(s.bound("block"), n.Name) {
				left[n.Labels[gpuv1alpha1.LeafLabel]]--
			}
		}
		for _, p := range block {
			leaf := s.nodes[s.pods[p.UID].Spec.NodeName].Labels[gpuv1alpha1.LeafLabel]
			if left[leaf] > 0 {
				left[leaf]--
				s.remove(s.pods[p.UID])
			}
		}
		s.pass(time.Second)
		if slices.Contains(s.bound("anywhere"), "") || !homeless(s.bound("near")) {
			t.Errorf("on two free nodes in each of two leaves, near is on %v and anywhere on %v", s.bound("near"), s.bound("anywhere"))
		}
	})
}

package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// A pod of a GPUWorkload holds the node that the manager gave it before it is bound. What only looks
// like one holds nothing.
func TestWhatTheManagerPromisedIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   int64
	}{
		"a pod of a GPUWorkload": {change: func(*corev1.Pod) {}, want: 8},
		"without its label":      {change: func(p *corev1.Pod) { p.Labels = nil }},
		"behind a gate":          {change: func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "never"}} }},
		"ending":                 {change: func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"of nobody":              {change: func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"of a ReplicaSet":        {change: func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }},
		"not its controller":     {change: func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 1, func(s *stage) {
				p := s.pod("p", 8)
				p.Labels[gpuv1alpha1.WorkloadUIDLabel] = "w"
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", Controller: ptr.To(true)}}
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n00"}},
					}}},
				}}}
				c.change(p)
				s.tell(p)
				if s.held() != c.want {
					t.Errorf("it holds %d GPUs, want %d", s.held(), c.want)
				}
			})
		})
	}
}

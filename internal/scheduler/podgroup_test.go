package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// A PodGroup that was refused for what it says is tried again when it says something else, and not
// for what is said of it.
func TestAPodGroupThatIsMendedIsTriedAgain(t *testing.T) {
	object := func(least int32, said string) *schedulingv1alpha2.PodGroup {
		g := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pg", UID: "pg"}}
		g.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: least}
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1alpha2.PodGroupScheduled, Message: said}}
		return g
	}
	for name, c := range map[string]struct {
		change func(s *stage, pods []*corev1.Pod)
		gated  bool
	}{
		"another annotation": {change: func(s *stage, pods []*corev1.Pod) {
			mended := pods[0].DeepCopy()
			mended.Annotations[gpuv1alpha1.StrategyAnnotation], mended.ResourceVersion = "binPack", "2"
			s.plugin.changePod(pods[0], mended)
		}},
		"the status of a pod": {gated: true, change: func(s *stage, pods []*corev1.Pod) {
			told := pods[0].DeepCopy()
			told.Status.Message, told.ResourceVersion = "refused", "2"
			s.plugin.changePod(pods[0], told)
		}},
		"a pod goes":                     {change: func(s *stage, pods []*corev1.Pod) { s.lose(pods[1]) }},
		"a pod ends":                     {change: func(s *stage, pods []*corev1.Pod) { s.end(pods[1]) }},
		"another PodGroup spec":          {change: func(s *stage, _ []*corev1.Pod) { s.plugin.onGroup(object(3, ""), object(2, "")) }},
		"the status of the PodGroup":     {gated: true, change: func(s *stage, _ []*corev1.Pod) { s.plugin.onGroup(object(2, ""), object(2, "refused")) }},
		"a PodGroup comes or is no more": {change: func(s *stage, _ []*corev1.Pod) { s.plugin.onGroup(nil, object(2, "")) }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 4, func(s *stage) {
				group, pods := "pg", []*corev1.Pod{}
				for i := range 2 {
					p := s.pod(fmt.Sprintf("p%d", i), 8)
					p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
					p.Annotations[gpuv1alpha1.StrategyAnnotation] = "nosuch"
					s.tell(p)
					pods = append(pods, p)
				}
				if _, _, refusal := s.plugin.planGroup(object(2, ""), pods, nil); refusal == "" {
					t.Fatal("an unknown strategy is not refused")
				}
				if s.plugin.PreEnqueue(t.Context(), pods[0]).IsSuccess() {
					t.Fatal("a pod of a PodGroup that was refused passes")
				}
				c.change(s, pods)
				if status := s.plugin.PreEnqueue(t.Context(), pods[0]); status.IsSuccess() == c.gated {
					t.Errorf("that it is kept out is %v: %s", !c.gated, status.Message())
				}
			})
		})
	}
}

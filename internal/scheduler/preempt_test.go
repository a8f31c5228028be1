package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Who cannot be evicted is not told by name: the condition of a pod is read in other namespaces.
func TestWhoIsProtectedIsNotNamed(t *testing.T) {
	play(t, 1, func(s *stage) {
		secret := s.pod("secret", 8)
		secret.Namespace, secret.Labels["app"] = "others", "secret"
		s.add(secret)
		s.settle()
		err := s.handle.factory.Policy().V1().PodDisruptionBudgets().Informer().GetStore().Add(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "b"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "secret"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		asker := s.pod("asker", 8)
		asker.Spec.Priority = ptr.To[int32](100)
		ask, err := state.GangOf(asker)
		if err != nil {
			t.Fatal(err)
		}
		_, gone, why := s.plugin.findVictims(&ask, askedAlone(asker), 100)
		if len(gone) != 0 || !strings.Contains(why, "1 of lower priority") || strings.Contains(why, "secret") || strings.Contains(why, "others") {
			t.Errorf("%d victims, and %q", len(gone), why)
		}
	})
}

func TestABudgetProtectsWhatItSelects(t *testing.T) {
	play(t, 1, func(s *stage) {
		pod := s.pod("p", 8)
		pod.Labels["app"] = "a"
		for name, c := range map[string]struct {
			selector *metav1.LabelSelector
			protects bool
		}{
			"its label":   {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, protects: true},
			"other label": {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}},
			"all":         {selector: &metav1.LabelSelector{}, protects: true},
			"none":        {},
		} {
			list := budgets{newBudget(&policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: c.selector},
			})}
			if list.take([]*corev1.Pod{pod}) == c.protects {
				t.Errorf("that a budget for %s protects the pod is %v", name, !c.protects)
			}
		}
	})
}

// Between the engine's count and the deletion a pod may be replaced by another of its name.
func TestAVictimIsThePodThatHoldsThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"as it was":                   {change: func(*corev1.Pod) {}, want: 1},
		"on another node":             {change: func(p *corev1.Pod) { p.Spec.NodeName, p.UID = "n01", "other" }},
		"of a higher priority":        {change: func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](200) }},
		"of the same priority":        {change: func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](100) }},
		"ending":                      {change: func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"made anew and not on a node": {change: func(p *corev1.Pod) { p.Spec.NodeName, p.UID = "", "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 1, func(s *stage) {
				low := s.pod("low", 8)
				s.add(low)
				s.settle()
				asker := s.pod("asker", 8)
				asker.Spec.Priority = ptr.To[int32](100)
				ask, err := state.GangOf(asker)
				if err != nil {
					t.Fatal(err)
				}
				now := s.pods[low.UID].DeepCopy()
				c.change(now)
				if err := s.handle.factory.Core().V1().Pods().Informer().GetStore().Update(now); err != nil {
					t.Fatal(err)
				}
				_, gone, why := s.plugin.findVictims(&ask, askedAlone(asker), 100)
				if len(gone) != c.want {
					t.Errorf("%d victims, want %d: %s", len(gone), c.want, why)
				}
			})
		})
	}
}

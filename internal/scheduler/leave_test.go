package scheduler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// end gives a pod a deletionTimestamp: a finalizer, as Jobs have, keeps it there.
func (s *stage) end(p *corev1.Pod) *corev1.Pod {
	ending := p.DeepCopy()
	now := metav1.Now()
	ending.DeletionTimestamp, ending.ResourceVersion = &now, p.ResourceVersion+"e"
	ending.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	s.pods[ending.UID] = ending
	s.plugin.onPod(ending)
	synctest.Wait()
	return ending
}

// homeless tells whether none of the nodes is one.
func homeless(nodes []string) bool {
	return !slices.ContainsFunc(nodes, func(n string) bool { return n != "" })
}

func TestAMemberThatEndsThroughAFinalizerTakesItsGangBack(t *testing.T) {
	play(t, 8, func(s *stage) {
		pods := s.gang("g", 3, 8)
		s.stalled = func(p *corev1.Pod) bool { return p.Name == "g-2" }
		s.add(pods...)
		s.settle()
		if len(s.handle.waiting) != 2 {
			t.Fatalf("%d members wait for the last, want 2", len(s.handle.waiting))
		}
		ending := s.end(pods[1])
		s.stalled = func(*corev1.Pod) bool { return false }
		s.settle()
		if !homeless(s.bound("g")) || s.held() != 0 {
			t.Errorf("while a member ends the gang is on %v and holds %d GPUs", s.bound("g"), s.held())
		}
		s.remove(ending)
		s.add(s.member("g", 1, 3, 8))
		s.pass(time.Second)
		if slices.Contains(s.bound("g"), "") {
			t.Errorf("with another in its place the gang is on %v", s.bound("g"))
		}
	})
}

// Those that join a gang do not wait for one that went meanwhile.
func TestMembersThatJoinDoNotWaitForOneThatIsGone(t *testing.T) {
	play(t, 8, func(s *stage) {
		pods := s.gang("g", 4, 8)
		s.add(pods...)
		s.settle()
		s.remove(s.pods[pods[2].UID])
		s.remove(s.pods[pods[3].UID])
		a, b := s.member("g", 2, 4, 8), s.member("g", 3, 4, 8)
		s.stalled = func(*corev1.Pod) bool { return true }
		s.add(a, b)
		s.stalled = func(p *corev1.Pod) bool { return p.Name == "g-3" }
		s.settle()
		s.remove(b)
		s.pass(time.Second)
		if s.pods[a.UID].Spec.NodeName == "" {
			t.Errorf("the gang is on %v", s.bound("g"))
		}
	})
}

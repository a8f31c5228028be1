package scheduler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// end gives a pod a deletionTimestamp: a finalizer, as Jobs have, keeps it there.
func (s *stage) end(p *corev1.Pod) *corev1.Pod {
	ending := p.DeepCopy()
	now := metav1.Now()
	ending.DeletionTimestamp, ending.ResourceVersion = &now, p.ResourceVersion+"e"
	ending.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	s.tell(ending)
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

// pop takes a pod out of the queue, as if its cycle began.
func (s *stage) pop(p *corev1.Pod) *corev1.Pod {
	s.handle.mu.Lock()
	defer s.handle.mu.Unlock()
	delete(s.handle.queue, p.UID)
	return p
}

// A pod that is deleted between its turn in the queue and its cycle is no member any more.
func TestAMemberThatIsDeletedInItsCycleIsForgotten(t *testing.T) {
	for name, deleted := range map[string]func(*stage, *corev1.Pod){
		"gone":   func(s *stage, p *corev1.Pod) { s.lose(p) },
		"ending": func(s *stage, p *corev1.Pod) { s.end(p) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 8, func(s *stage) {
				pods := s.gang("g", 2, 8)
				s.stalled = func(*corev1.Pod) bool { return true }
				s.add(pods...)
				s.settle()
				popped := s.pop(pods[0])
				deleted(s, popped)
				s.cycle(popped)
				s.pop(popped)
				s.lose(popped)
				s.stalled = func(*corev1.Pod) bool { return false }
				s.add(s.member("g", 0, 2, 8))
				s.pass(time.Second)
				if slices.Contains(s.bound("g"), "") {
					t.Errorf("the gang is on %v and was told %v", s.bound("g"), s.said)
				}
			})
		})
	}
}

func TestAPodAloneThatIsDeletedInItsCycleIsForgotten(t *testing.T) {
	play(t, 1, func(s *stage) {
		first := s.pod("first", 8)
		s.add(first)
		s.settle()
		s.stalled = func(p *corev1.Pod) bool { return p.Name == "second" }
		second := s.pod("second", 8)
		s.add(second)
		s.settle()
		popped := s.pop(second)
		s.lose(popped)
		s.cycle(popped)
		s.pop(popped)
		s.pass(time.Second)
		next := s.pod("next", 8)
		s.add(next)
		s.settle()
		s.remove(s.pods[first.UID])
		s.pass(time.Second)
		if s.pods[next.UID].Spec.NodeName == "" {
			t.Errorf("the node is free, and the next pod was told %q", s.said["next"])
		}
	})
}

// What got in by itself goes with the next look at who waits.
func TestWhoIsNotThereIsSweptAway(t *testing.T) {
	play(t, 1, func(s *stage) {
		member, single, grouped := s.member("g", 0, 2, 8), s.pod("single", 8), s.pod("grouped", 8)
		name := "pg"
		grouped.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
		for _, p := range []*corev1.Pod{member, grouped} {
			s.plugin.onPod(p)
		}
		s.plugin.mu.Lock()
		s.plugin.alone[single.UID] = &alone{pod: single, refused: true}
		s.plugin.mu.Unlock()
		s.pass(2 * tick)
		s.plugin.mu.Lock()
		defer s.plugin.mu.Unlock()
		if n := len(s.plugin.roster.gangs) + len(s.plugin.roster.of) + len(s.plugin.alone) + len(s.plugin.groups); n != 0 {
			t.Errorf("%d entries are left of pods that nobody has", n)
		}
	})
}

// The members of a plan are sent for also where the cycle that it was made in comes to nothing: its
// own pod is one too many, or another plugin fails.
func TestAPlanOfACycleThatFailsIsCarriedOut(t *testing.T) {
	for name, c := range map[string]struct{ in, come int }{
		"one too many":         {in: 3, come: 2},
		"another plugin fails": {in: 0, come: 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 2, func(s *stage) {
				pods := s.gang("g", 4, 8)
				for _, p := range pods {
					p.Annotations[gpuv1alpha1.GangMinSizeAnnotation] = "2"
				}
				s.stalled = func(*corev1.Pod) bool { return true }
				s.add(pods...)
				s.settle()
				popped := s.pop(pods[c.in])
				_, _ = s.plugin.PreFilter(t.Context(), framework.NewCycleState(), popped, nil)
				s.handle.park(popped)
				s.stalled = func(p *corev1.Pod) bool { return p.UID == popped.UID }
				s.settle()
				come := len(s.handle.waiting)
				for _, n := range s.bound("g") {
					if n != "" {
						come++
					}
				}
				if come != c.come {
					t.Errorf("%d members came for their node, want %d", come, c.come)
				}
				s.stalled = func(*corev1.Pod) bool { return false }
				s.pass(2 * s.plugin.args.PermitTimeout.Duration)
				if got := s.bound("g"); got[0] == "" || got[1] == "" {
					t.Errorf("the gang is on %v", got)
				}
			})
		})
	}
}

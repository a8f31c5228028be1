package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func TestAGangIsBoundWholeAndInOrder(t *testing.T) {
	play(t, 8, func(s *stage) {
		pods := s.gang("g", 4, 8)
		for _, p := range pods {
			p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "leaf"
		}
		// They come in any order, and wait for the last.
		s.add(pods[2], pods[0], pods[3])
		s.settle()
		if s.held() != 0 {
			t.Errorf("%d GPUs are held for a gang that lacks a pod", s.held())
		}
		s.add(pods[1])
		s.settle()
		if got := s.bound("g"); !slices.Equal(got, []string{"n00", "n01", "n02", "n03"}) {
			t.Errorf("the ranks are on %v", got)
		}
	})
}

func TestAGangOfUnequalPods(t *testing.T) {
	play(t, 8, func(s *stage) {
		pods := s.gang("g", 5, 8)
		pods[0] = s.member("g", 0, 5, 0)
		pods[0].Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: pods[1].Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]}
		for _, p := range pods {
			p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "leaf"
		}
		s.add(pods...)
		s.settle()
		got := s.bound("g")
		if slices.Contains(got, "") || s.held() != 32 {
			t.Errorf("the ranks are on %v and hold %d GPUs", got, s.held())
		}
	})
}

func TestAGangWithoutRoomCostsOneRefusal(t *testing.T) {
	play(t, 4, func(s *stage) {
		s.add(s.gang("big", 6, 8)...)
		s.settle()
		beside := s.gang("beside", 2, 8)
		s.add(beside...)
		s.settle()
		if slices.Contains(s.bound("beside"), "") {
			t.Errorf("a gang beside it is on %v", s.bound("beside"))
		}
		// News that cannot help.
		s.addNode("n04", "leaf-1")
		s.pass(time.Minute)
		if len(s.refused) != 1 || s.refused["big-0"] != 1 {
			t.Errorf("refused were %v", s.refused)
		}
		// News that does.
		s.addNode("n05", "leaf-1")
		for _, p := range beside {
			s.remove(s.pods[p.UID])
		}
		s.pass(time.Second)
		if slices.Contains(s.bound("big"), "") {
			t.Errorf("with room, the gang is on %v", s.bound("big"))
		}
	})
}

func TestRoomForOneWakesOne(t *testing.T) {
	play(t, 1, func(s *stage) {
		first := s.pod("first", 8)
		s.add(first)
		s.settle()
		for i := range 20 {
			s.add(s.pod(fmt.Sprintf("p%02d", i), 8))
		}
		s.settle()
		clear(s.refused)
		s.remove(s.pods[first.UID])
		s.pass(time.Second)
		if s.held() != 8 || len(s.refused) > 0 {
			t.Errorf("%d GPUs are held; refused again were %v", s.held(), s.refused)
		}
	})
}

func TestPermitTimeoutGivesEverythingBack(t *testing.T) {
	play(t, 4, func(s *stage) {
		s.stalled = func(p *corev1.Pod) bool { return p.Name == "g-3" }
		s.add(s.gang("g", 4, 8)...)
		s.settle()
		if s.held() != 32 || len(s.handle.waiting) != 3 {
			t.Fatalf("%d GPUs are held, %d members wait", s.held(), len(s.handle.waiting))
		}
		// As soon as it has given up, the gang plans again, and holds again.
		s.pass(s.plugin.args.PermitTimeout.Duration - time.Second)
		gone := s.pods[s.handle.anyWaiting().UID]
		s.remove(gone)
		s.settle()
		if s.held() != 0 || len(s.handle.waiting) != 0 {
			t.Errorf("with a pod gone, %d GPUs are held and %d members wait", s.held(), len(s.handle.waiting))
		}
		s.add(s.member("g", rank(gone), 4, 8))
		s.settle()
		s.pass(s.plugin.args.PermitTimeout.Duration + time.Second)
		if slices.ContainsFunc(s.bound("g"), func(n string) bool { return n != "" }) {
			t.Errorf("members are bound without the others: %v", s.bound("g"))
		}
		s.stalled = func(*corev1.Pod) bool { return false }
		s.pass(2 * s.plugin.args.PermitTimeout.Duration)
		if slices.Contains(s.bound("g"), "") {
			t.Errorf("the gang is on %v", s.bound("g"))
		}
	})
}

// anyWaiting returns a pod that waits in Permit.
func (h *fakeHandle) anyWaiting() *corev1.Pod {
	for _, w := range h.waiting {
		return w.pod
	}
	return nil
}

func TestANodeThatRefusesIsAvoided(t *testing.T) {
	play(t, 4, func(s *stage) {
		s.refuses = func(p *corev1.Pod, node string) bool { return node == "n01" }
		s.add(s.gang("g", 3, 8)...)
		s.pass(time.Minute)
		if got := s.bound("g"); !slices.Equal(got, []string{"n00", "n02", "n03"}) {
			t.Errorf("the ranks are on %v", got)
		}
	})
}

// What one member needs, as a volume, is on one node of many, where the others can go as well.
func TestAMemberThatFitsOneNodeOfManyFindsIt(t *testing.T) {
	play(t, 80, func(s *stage) {
		s.refuses = func(p *corev1.Pod, node string) bool { return p.Name == "g-0" && node != "n79" }
		s.add(s.gang("g", 2, 8)...)
		for range 100 {
			s.pass(5 * time.Second)
		}
		if got := s.bound("g"); got[0] != "n79" || got[1] == "" {
			t.Errorf("the ranks are on %v", got)
		}
	})
}

// Nodes that all refused a gang are asked again after a while.
func TestNodesThatRefusedAreAskedAgain(t *testing.T) {
	play(t, 3, func(s *stage) {
		s.refuses = func(*corev1.Pod, string) bool { return true }
		s.add(s.gang("g", 2, 8)...)
		for range 12 {
			s.pass(5 * time.Second)
		}
		if s.held() != 0 || s.refused["g-0"]+s.refused["g-1"] == 0 {
			t.Errorf("refused anywhere, it holds %d GPUs and was told %v", s.held(), s.said)
		}
		s.refuses = func(*corev1.Pod, string) bool { return false }
		for range 3 {
			s.pass(s.plugin.args.AvoidNodeFor.Duration / 2)
		}
		if slices.Contains(s.bound("g"), "") {
			t.Errorf("the ranks are on %v", s.bound("g"))
		}
	})
}

func TestABindingThatFailsIsMadeAgain(t *testing.T) {
	play(t, 4, func(s *stage) {
		failed := false
		s.bindFails = func(p *corev1.Pod) bool {
			once := !failed && p.Name == "g-1"
			failed = failed || once
			return once
		}
		s.add(s.gang("g", 4, 8)...)
		s.pass(10 * time.Second)
		if slices.Contains(s.bound("g"), "") || s.held() != 32 {
			t.Errorf("the gang is on %v and holds %d GPUs", s.bound("g"), s.held())
		}
	})
}

func TestAnElasticGangGoesWithWhatThereIs(t *testing.T) {
	play(t, 3, func(s *stage) {
		pods := s.gang("g", 5, 8)
		for _, p := range pods {
			p.Annotations[gpuv1alpha1.GangMinSizeAnnotation] = "2"
		}
		s.add(pods...)
		s.pass(10 * time.Second)
		if n := len(slices.DeleteFunc(s.bound("g"), func(n string) bool { return n == "" })); n != 3 {
			t.Errorf("%d pods are bound where 3 nodes are", n)
		}
		s.addNode("n03", "leaf-0")
		s.pass(10 * time.Second)
		if n := len(slices.DeleteFunc(s.bound("g"), func(n string) bool { return n == "" })); n != 4 {
			t.Errorf("%d pods are bound where 4 nodes are", n)
		}
	})
}

func TestGangsSayWhatIsWrong(t *testing.T) {
	play(t, 4, func(s *stage) {
		short := s.gang("short", 3, 1)
		s.add(short[:2]...)
		quarrel := s.gang("quarrel", 2, 1)
		quarrel[1].Labels[gpuv1alpha1.GangSizeLabel] = "3"
		s.add(quarrel...)
		s.pass(10 * time.Second)
		for name, want := range map[string]string{
			"short-0": "waiting for 1 of 3 pods", "short-1": "waiting for 1 of 3 pods",
			"quarrel-0": "contradicts itself", "quarrel-1": "contradicts itself",
		} {
			if !strings.Contains(s.said[name], want) || s.refused[name] != 1 {
				t.Errorf("%s was told %d times: %q", name, s.refused[name], s.said[name])
			}
		}
		mended := quarrel[1].DeepCopy()
		mended.Labels[gpuv1alpha1.GangSizeLabel], mended.ResourceVersion = "2", "2"
		s.handle.queue[mended.UID].pod = mended
		s.tell(mended)
		s.add(short[2])
		s.pass(time.Second)
		if slices.Contains(s.bound("short"), "") || slices.Contains(s.bound("quarrel"), "") {
			t.Errorf("mended, they are on %v and %v", s.bound("short"), s.bound("quarrel"))
		}
	})
}

// A pod of a high priority must not have others evict in its name.
func TestPodsOfAGangAreOfOnePriority(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"priority": {
			change: func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](100) },
			want:   "gang g contradicts itself: the priority of pod g-0 is 100 and of pod g-1 it is 0",
		},
		"preemptionPolicy": {
			change: func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) },
			want:   "gang g contradicts itself: preemptionPolicy of pod g-0 is Never and of pod g-1 it is PreemptLowerPriority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 4, func(s *stage) {
				pods := s.gang("g", 2, 8)
				c.change(pods[0])
				s.add(pods...)
				s.pass(10 * time.Second)
				if !homeless(s.bound("g")) || !strings.Contains(s.said["g-0"], c.want) || !strings.Contains(s.said["g-1"], c.want) {
					t.Errorf("the gang is on %v and was told %q", s.bound("g"), s.said)
				}
			})
		})
	}
}

func TestTheQueueKeepsGangsTogether(t *testing.T) {
	play(t, 1, func(s *stage) {
		now := time.Now()
		a, b := s.gang("a", 2, 1), s.gang("b", 2, 1)
		alone, important := s.pod("alone", 1), s.pod("important", 1)
		high := int32(1000)
		important.Spec.Priority = &high
		for _, p := range append(slices.Clone(a), b...) {
			s.plugin.roster.note(p, now)
		}
		var list []*queued
		for i, p := range []*corev1.Pod{b[1], a[1], b[0], alone, a[0], important} {
			list = append(list, &queued{pod: p, since: now.Add(time.Duration(i) * time.Second)})
		}
		slices.SortFunc(list, func(x, y *queued) int {
			switch {
			case s.plugin.Less(info(x), info(y)):
				return -1
			case s.plugin.Less(info(y), info(x)):
				return 1
			}
			return 0
		})
		var names []string
		for _, q := range list {
			names = append(names, q.pod.Name)
		}
		if got, want := strings.Join(names, " "), "important a-0 a-1 b-0 b-1 alone"; got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	})
}

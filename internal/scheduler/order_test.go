package scheduler

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// disorder returns what is wrong with the order of three pods: a queue needs a strict weak order.
func disorder(less func(a, b *queued) bool, a, b, c *queued) error {
	same := func(x, y *queued) bool { return !less(x, y) && !less(y, x) }
	switch {
	case less(a, a):
		return fmt.Errorf("%s is before itself", a.pod.Name)
	case less(a, b) && less(b, a):
		return fmt.Errorf("%s and %s are before each other", a.pod.Name, b.pod.Name)
	case less(a, b) && less(b, c) && !less(a, c):
		return fmt.Errorf("%s is before %s, that is before %s, and the first not before the last", a.pod.Name, b.pod.Name, c.pod.Name)
	case same(a, b) && same(b, c) && !same(a, c):
		return fmt.Errorf("%s is beside %s, that is beside %s, and the first not beside the last", a.pod.Name, b.pod.Name, c.pod.Name)
	}
	return nil
}

// line returns pods of two gangs and by themselves, some of which are equally old.
func line(t *rapid.T, s *stage) []*queued {
	start, list := time.Now(), []*queued{}
	for i := range 6 {
		p := s.pod(fmt.Sprintf("p%d", i), 1)
		if gang := rapid.IntRange(0, 2).Draw(t, "gang"); gang > 0 {
			p = s.member(fmt.Sprintf("g%d", gang), i, 6, 1)
		}
		made := start.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second)
		p.CreationTimestamp = metav1.NewTime(made)
		p.Spec.Priority = ptr.To(int32(rapid.IntRange(0, 1).Draw(t, "priority")))
		s.plugin.roster.note(p, start)
		list = append(list, &queued{pod: p, since: made})
	}
	return list
}

// disorderly returns what is wrong with the order of any three of the pods.
func disorderly(less func(a, b *queued) bool, list []*queued) error {
	for _, a := range list {
		for _, b := range list {
			for _, c := range list {
				if err := disorder(less, a, b, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func TestTheQueueHasAnOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newStage(t.Context(), t)
		less := func(a, b *queued) bool { return s.plugin.Less(info(a), info(b)) }
		if err := disorderly(less, line(r, s)); err != nil {
			r.Fatal(err)
		}
	})
}

// The property can fail: where pods by themselves are beside gangs of their age, which are one
// before the other, there is no order.
func TestAnOrderThatLeavesGangsBesidePodsIsNone(t *testing.T) {
	s := newStage(t.Context(), t)
	list := []*queued{{pod: s.member("a", 0, 1, 1)}, {pod: s.pod("alone", 1)}, {pod: s.member("b", 0, 1, 1)}}
	broken := func(a, b *queued) bool {
		x, gangX := gangKey(a.pod)
		y, gangY := gangKey(b.pod)
		return gangX && gangY && x.String() < y.String()
	}
	if disorderly(broken, list) == nil {
		t.Error("nothing is wrong with it")
	}
}

func TestAGangIsAsOldAsItsFirstPodWhicheverIsToldFirst(t *testing.T) {
	play(t, 1, func(s *stage) {
		pods := s.gang("g", 2, 8)
		pods[0].CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		s.tell(pods[1])
		s.tell(pods[0])
		if got := s.plugin.roster.of[pods[0].UID].since; !got.Equal(pods[0].CreationTimestamp.Time) {
			t.Errorf("it is there since %v, its first pod was made at %v", got, pods[0].CreationTimestamp)
		}
	})
}

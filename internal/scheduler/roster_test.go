package scheduler

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// memory returns what is wrong with what a gang remembers of its members.
func memory(g *gang) error {
	var at [bound + 1]int
	var head, lead *member
	for _, m := range g.members {
		at[m.phase]++
		if head == nil || byRank(m, head) < 0 {
			head = m
		}
		if m.phase == idle && (lead == nil || byRank(m, lead) < 0) {
			lead = m
		}
	}
	if at != g.at {
		return fmt.Errorf("it counts %v in each phase, there are %v", g.at, at)
	}
	if got := g.eldest(); got != head {
		return fmt.Errorf("its first member is %s, it says %s", head.pod.Name, got.pod.Name)
	}
	if got := g.leader(); got != lead {
		return fmt.Errorf("its leader is %+v, it says %+v", lead, got)
	}
	_, problem := g.ask()
	if wrong := g.contradiction(head) != nil || len(g.members) > head.ask.Size; wrong != (problem != nil) {
		return fmt.Errorf("that its members contradict each other is %v, and its own answer is %t", wrong, problem != nil)
	}
	return nil
}

// change takes in a pod that is new, gone, on its way or says something else than before.
func change(t *rapid.T, r *roster) *gang {
	uid := types.UID(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "pod")))
	key := types.NamespacedName{Name: "g"}
	g, now := r.gangs[key], time.Unix(0, 0)
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		r.drop(uid, now)
	case 1:
		if g != nil && g.members[uid] != nil {

			g.to(g.members[uid], phase(rapid.IntRange(int(idle), int(released)).Draw(t, "phase")))
		}
	default:
		r.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: string(uid), UID: uid, ResourceVersion: fmt.Sprint(rapid.IntRange(0, 1000000).Draw(t, "version")),
			Labels:      map[string]string{gpuv1alpha1.GangLabel: "g", gpuv1alpha1.GangSizeLabel: rapid.SampledFrom([]string{"4", "4", "4", "5", "x"}).Draw(t, "size")},
			Annotations: map[string]string{gpuv1alpha1.RankAnnotation: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "rank"))},
		}}, now)
	}
	return r.gangs[key]
}

func TestAGangRemembersItsMembersAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRoster()
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			if g := change(t, &r); g != nil {
				if err := memory(g); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The property can fail: a member that changes its phase behind the gang's back is counted wrong.
func TestAGangThatIsNotToldRemembersWrong(t *testing.T) {
	r := newRoster()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Labels: map[string]string{gpuv1alpha1.GangLabel: "g", gpuv1alpha1.GangSizeLabel: "1"}}}
	g := r.note(pod, time.Unix(0, 0))
	if err := memory(g); err != nil {
		t.Fatal(err)
	}
	g.members["a"].phase = planned
	if memory(g) == nil {
		t.Error("nothing is wrong with a gang that counts a planned member as idle")
	}
}

// BenchmarkGatheringAGang is the pods of a gang coming one by one, and the queue asking about each
// of them, before and after the last is there.
func BenchmarkGatheringAGang(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				ctx, cancel := context.WithCancel(b.Context())
				s := newStage(ctx, b)
				pods := s.gang("g", size, 8)
				for _, p := range pods {
					if err := s.handle.factory.Core().V1().Pods().Informer().GetStore().Add(p); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				for _, p := range pods {
					s.plugin.onPod(p)
					s.plugin.PreEnqueue(ctx, p)
				}
				for _, p := range pods {
					s.plugin.PreEnqueue(ctx, p)
				}
				cancel()
			}
		})
	}
}

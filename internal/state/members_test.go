package state

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func inGang(name, size string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{gpuv1alpha1.GangLabel: name, gpuv1alpha1.GangSizeLabel: size}
	}
}

func TestMembersOfAGang(t *testing.T) {
	s := newState(t)
	gang := types.NamespacedName{Namespace: "default", Name: "g"}
	seen := func() (all []string) {
		for _, m := range s.Members(gang) {
			line := m.Pod + "@" + m.Node
			if m.Leaving {
				line += " leaving"
			}
			all = append(all, line)
		}
		return all
	}
	check := func(what string, want ...string) {
		t.Helper()
		if got := seen(); !slices.Equal(got, want) {
			t.Errorf("%s: members are %q, want %q", what, got, want)
		}
	}
	check("nothing yet")
	for _, pod := range []*corev1.Pod{
		gpuPod("b", 1, inGang("g", "3")),
		gpuPod("a", 1, inGang("g", "3"), bound("n1")),
		gpuPod("other", 1, inGang("h", "3")),
		gpuPod("broken", 1, inGang("g", "many")),
		gpuPod("ended", 1, inGang("g", "3"), bound("n1"), phase(corev1.PodFailed)),
	} {
		s.SetPod(pod)
	}
	check("two of three", "a@n1", "b@")
	s.SetPod(gpuPod("b", 1, inGang("g", "3"), bound("n2")))
	check("the second is bound", "a@n1", "b@n2")
	if h, ok := s.Holding("b"); !ok || h.Node != "n2" || h.Gang != gang || h.Ours {
		t.Errorf("b holds %+v", h)
	}
	if h, ok := s.Holding("other"); ok {
		t.Errorf("a pod that waits holds %+v", h)
	}
	leaving := gpuPod("a", 1, inGang("g", "3"), bound("n1"))
	leaving.DeletionTimestamp = &metav1.Time{}
	s.SetPod(leaving)
	check("the first is being deleted", "a@n1 leaving", "b@n2")
	s.DropPod("a")
	s.SetPod(gpuPod("b", 1, inGang("h", "3"), bound("n2")))
	check("one is gone, the other changed its mind")
	s.DropPod("b")
	s.DropPod("other")
	if len(s.gangs) > 0 || len(s.gangOf) > 0 {
		t.Errorf("left over: %v %v", s.gangs, s.gangOf)
	}
}

func TestRankOf(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                int
	}{
		"nothing":        {want: -1},
		"the annotation": {annotations: map[string]string{"gpu.warp.dev/rank": "3", "batch.kubernetes.io/job-completion-index": "9"}, want: 3},
		"a Job":          {annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "4"}, want: 4},
		"a StatefulSet":  {labels: map[string]string{"apps.kubernetes.io/pod-index": "5"}, want: 5},
		"no number":      {annotations: map[string]string{"gpu.warp.dev/rank": "first"}, want: -1},
		"below zero":     {annotations: map[string]string{"gpu.warp.dev/rank": "-2"}, want: -1},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations}}
		if got := RankOf(pod); got != c.want {
			t.Errorf("%s: rank %d, want %d", name, got, c.want)
		}
	}
}

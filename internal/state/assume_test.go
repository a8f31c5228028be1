package state

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// gpusHeld returns what the node is counted to hold.
func gpusHeld(s *State, node string) int64 {
	return s.Node(node).Used.At(s.Snapshot().Resources.Index("nvidia.com/gpu"))
}

func TestAssumedPodsHoldTheirNodeUntilTheyAreBoundOrForgotten(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	s.SetNode(gpuNode("b", 8))
	s.Assume(gpuPod("p", 4), "a")
	// News of the pod that is older than what was promised.
	s.SetPod(gpuPod("p", 4))
	if got := gpusHeld(s, "a"); got != 4 {
		t.Errorf("an assumed pod holds %d GPUs", got)
	}
	s.Assume(gpuPod("p", 4), "b")
	if a, b := gpusHeld(s, "a"), gpusHeld(s, "b"); a != 0 || b != 4 {
		t.Errorf("assumed elsewhere, it holds %d and %d GPUs", a, b)
	}
	s.SetPod(gpuPod("p", 4, bound("a")))
	if a, b := gpusHeld(s, "a"), gpusHeld(s, "b"); a != 4 || b != 0 {
		t.Errorf("bound to another node than assumed, it holds %d and %d GPUs", a, b)
	}
	if s.Forget("p") || gpusHeld(s, "a") != 4 {
		t.Error("what a bound pod holds was forgotten")
	}
	s.Assume(gpuPod("q", 2), "b")
	if !s.Forget("q") || s.Forget("q") || gpusHeld(s, "b") != 0 {
		t.Error("an assumed pod cannot be forgotten")
	}
	s.Assume(gpuPod("r", 2), "b")
	if !s.DropPod("r") || s.Forget("r") || gpusHeld(s, "b") != 0 {
		t.Error("an assumed pod that is gone still holds its node")
	}
}

func ofGang(name string, priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{gpuv1alpha1.GangLabel: name}
		p.Spec.Priority = &priority
	}
}

func TestUnequalPodsArePlannedTogether(t *testing.T) {
	s := newState(t)
	for i, name := range []string{"a", "b", "c"} {
		n := gpuNode(name, 8)
		if i == 0 {
			n.Labels["gpu.warp.dev/leaf"] = "leaf-0"
		}
		s.SetNode(n)
	}
	ask := PodGang{Size: 3, Min: 3, Required: "leaf"}
	q := PodsAsked{Parts: []PodPart{{Pod: gpuPod("leader", 1), Count: 1}, {Pod: gpuPod("worker", 7), Count: 2}}}
	d, err := s.PlanPods(&ask, q)
	if err != nil || !d.Feasible {
		t.Fatalf("%v, %v", d.Why.Sentence, err)
	}
	if slices.Contains(d.Nodes(), "a") || len(d.Groups) != 2 {
		t.Errorf("they are on %v, which is not one leaf", d.Nodes())
	}
	q.Kept = []string{"a"}
	if d, err = s.PlanPods(&ask, q); err != nil || d.Feasible {
		t.Errorf("beside a member on a they are on %v: %v", d.Nodes(), err)
	}
}

func TestPodsJudgedAloneAreEvictedByPriorityAndInGangs(t *testing.T) {
	s := newState(t)
	s.JudgePodsAlone()
	for _, name := range []string{"a", "b", "c"} {
		s.SetNode(gpuNode(name, 8))
	}
	s.SetPod(gpuPod("low-0", 8, bound("a"), ofGang("low", 1)))
	s.SetPod(gpuPod("low-1", 8, bound("b"), ofGang("low", 1)))
	s.SetPod(gpuPod("alone", 8, bound("c"), func(p *corev1.Pod) { p.Spec.Priority = new(int32) }))
	ask := PodGang{Size: 1, Min: 1}
	pod := gpuPod("high", 8, ofGang("", 10))
	q := PodsAsked{Parts: []PodPart{{Pod: pod, Count: 1}}, Preempts: true}
	d, err := s.PlanPods(&ask, q)
	if err != nil || !d.Feasible || len(d.Victims) != 1 || d.Victims[0].Workload != "default/Pod/alone" {
		t.Fatalf("the victims are %+v: %v", d.Victims, err)
	}
	q.Spare = []string{"default/Pod/alone"}
	d, err = s.PlanPods(&ask, q)
	if err != nil || len(d.Victims) != 1 || d.Victims[0].Workload != "default/Gang/low" || len(d.Victims[0].Evicted) != 2 {
		t.Errorf("spared the cheapest, the victims are %+v: %v", d.Victims, err)
	}
	q.Preempts = false
	if d, err = s.PlanPods(&ask, q); err != nil || d.Feasible {
		t.Errorf("without leave to evict: %v, %v", d.Feasible, err)
	}
}

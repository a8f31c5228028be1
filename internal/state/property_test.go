package state

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// planner is what the property below is about, so that broken variants can be put in its place.
type planner interface {
	Plan(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, ask Ask) (nodeOf map[int32]string)
	SetPod(pod *corev1.Pod) bool
	DropPod(uid types.UID) bool
}

type whole struct{ *State }

func (s whole) Plan(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, ask Ask) map[int32]string {
	_, nodeOf, _ := s.State.Plan(w, pod, ask)
	return nodeOf
}

// gangOnItsWay is a planned workload and how far each of its pods is.
type gangOnItsWay struct {
	w      *gpuv1alpha1.GPUWorkload
	nodeOf map[int32]string
	stage  map[int32]int // 0 no pod, 1 gated, 2 planned, 3 bound, 4 ended
}

// checkNeverOversold plans, binds and ends gangs in a drawn order and says when a node has
// more GPUs planned and bound than it has, judged by what was promised and not by the state.
func checkNeverOversold(t *rapid.T, s planner, gpus map[string]int64) string {
	var gangs []*gangOnItsWay
	for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
		if len(gangs) == 0 || rapid.Bool().Draw(t, "submit") {
			w := workload(fmt.Sprintf("w%d", i), rapid.Int32Range(1, 4).Draw(t, "pods"), rapid.Int32Range(1, 5).Draw(t, "gpus"))
			if nodeOf := s.Plan(w, gpuPod("", int64(w.Spec.GPUCount)), Ask{}); nodeOf != nil {
				gangs = append(gangs, &gangOnItsWay{w: w, nodeOf: nodeOf, stage: map[int32]int{}})
			}
		} else {
			g := rapid.SampledFrom(gangs).Draw(t, "gang")
			advance(t, s, g)
		}
		if problem := oversold(gangs, gpus); problem != "" {
			return problem
		}
	}
	return ""
}

// advance tells the state that one pod of the gang is a step further.
func advance(t *rapid.T, s planner, g *gangOnItsWay) {
	rank := rapid.Int32Range(0, int32(len(g.nodeOf)-1)).Draw(t, "rank")
	node := g.nodeOf[rank]
	uid := fmt.Sprintf("%s-%d", g.w.UID, rank)
	edits := []func(*corev1.Pod){memberPod(g.w, 0, rank)}
	g.stage[rank] = min(g.stage[rank]+1, 4)
	switch g.stage[rank] {
	case 1:
		edits = append(edits, gated)
	case 2:
		edits = append(edits, pinned(node))
	case 3:
		edits = append(edits, pinned(node), bound(node))
	case 4:
		edits = append(edits, pinned(node), bound(node), phase(corev1.PodSucceeded))
	}
	s.SetPod(gpuPod(uid, int64(g.w.Spec.GPUCount), edits...))
	if g.stage[rank] == 4 && rapid.Bool().Draw(t, "deleted") {
		s.DropPod(types.UID(uid))
	}
}

func oversold(gangs []*gangOnItsWay, gpus map[string]int64) string {
	promised := map[string]int64{}
	for _, g := range gangs {
		for rank, node := range g.nodeOf {
			if g.stage[rank] < 4 {
				promised[node] += int64(g.w.Spec.GPUCount)
			}
		}
	}
	for node, n := range promised {
		if n > gpus[node] {
			return fmt.Sprintf("%d GPUs are planned or bound on %s, it has %d", n, node, gpus[node])
		}
	}
	return ""
}

func drawnState(t *rapid.T, tb testing.TB) (*State, map[string]int64) {
	s := newState(tb)
	gpus := map[string]int64{}
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		gpus[name] = rapid.Int64Range(0, 8).Draw(t, "GPUs")
		s.SetNode(gpuNode(name, gpus[name]))
	}
	return s, gpus
}

func TestNeverMoreGPUsPlannedThanANodeHas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, gpus := drawnState(rt, t)
		if problem := checkNeverOversold(rt, whole{s}, gpus); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// forgetful gives the room of a plan back at once, as a planner without holds would.
type forgetful struct{ whole }

func (f forgetful) Plan(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, ask Ask) map[int32]string {
	nodeOf := f.whole.Plan(w, pod, ask)
	f.Release(w.UID)
	return nodeOf
}

// hasty ends a promise when the first pod of the gang is seen, before it is bound.
type hasty struct{ whole }

func (h hasty) SetPod(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		h.Release(types.UID(pod.Labels[gpuv1alpha1.WorkloadUIDLabel]))
	}
	return h.whole.SetPod(pod)
}

// blind does not see pods at all.
type blind struct{ whole }

func (b blind) SetPod(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		b.Release(types.UID(pod.Labels[gpuv1alpha1.WorkloadUIDLabel]))
		return false
	}
	return b.whole.SetPod(pod)
}

// The property above must be able to fail: each of these mistakes is found.
func TestOversoldPropertyFindsMistakes(t *testing.T) {
	for name, wrap := range map[string]func(*State) planner{
		"plans are not held":           func(s *State) planner { return forgetful{whole{s}} },
		"planned pods are not counted": func(s *State) planner { return hasty{whole{s}} },
		"bound pods are not counted":   func(s *State) planner { return blind{whole{s}} },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(rt *rapid.T) {
				s, gpus := drawnState(rt, t)
				found = checkNeverOversold(rt, wrap(s), gpus) != "" || found
			})
			if !found {
				t.Error("the property holds for a broken state")
			}
		})
	}
}

// Tolerations mean what they mean to the scheduler that binds.
func TestTolerationsAgreeWithKubernetes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SampledFrom([]string{"a", "b"})
		value := rapid.SampledFrom([]string{"", "x"})
		effect := rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute})
		taint := corev1.Taint{Key: key.Draw(rt, "taint"), Value: value.Draw(rt, "value"), Effect: effect.Draw(rt, "effect")}
		toleration := corev1.Toleration{
			Key:      rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key"),
			Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}).Draw(rt, "operator"),
			Value:    value.Draw(rt, "tolerated value"),
			Effect:   rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}).Draw(rt, "tolerated effect"),
		}
		if toleration.Key == "" && toleration.Operator != corev1.TolerationOpExists {
			rt.Skip("the API server refuses an empty key without Exists")
		}
		if toleration.Operator == corev1.TolerationOpExists {
			toleration.Value = ""
		}
		n := gpuNode("n", 8)
		n.Spec.Taints = []corev1.Taint{taint}
		pod := gpuPod("p", 1)
		pod.Spec.Tolerations = []corev1.Toleration{toleration}
		node, _ := translateNode(n, testLevels(), cluster.NewResources())
		w := workload("w", 1, 1)
		w.ObjectMeta = metav1.ObjectMeta{Name: "w"}
		_, kept := node.Untolerated(shape(w, pod, cluster.NewResources()).Tolerations)
		if want := !toleration.ToleratesTaint(klog.Background(), &taint, false); kept != want {
			rt.Fatalf("kept out: we say %v, Kubernetes says %v: %v on %v", kept, want, toleration, taint)
		}
	})
}

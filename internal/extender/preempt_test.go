package extender

import (
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// preempted asks with victims by node and returns the nodes that stay.
func (w *world) preempted(t testing.TB, pod *corev1.Pod, victims map[string][]string) []string {
	t.Helper()
	args := extenderv1.ExtenderPreemptionArgs{Pod: pod, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for node, names := range victims {
		meta := &extenderv1.MetaVictims{NumPDBViolations: 1}
		for _, name := range names {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: "uid-" + name})
		}
		args.NodeNameToMetaVictims[node] = meta
	}
	var r extenderv1.ExtenderPreemptionResult
	if code, text := w.post(t, verbPreempt, args, &r); code != 200 {
		t.Fatalf("preempt for %s: %d %s", pod.Name, code, text)
	}
	for node, v := range r.NodeNameToMetaVictims {
		if len(v.Pods) != len(victims[node]) || v.NumPDBViolations != 1 {
			t.Errorf("the victims of %s are %v", node, v)
		}
	}
	return slices.Sorted(maps.Keys(r.NodeNameToMetaVictims))
}

// ofWorkload makes the pod a member of a GPUWorkload.
func ofWorkload(name string) func(*corev1.Pod) {
	w := &gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "w"}}
	return func(p *corev1.Pod) {
		p.Labels[gpuv1alpha1.WorkloadLabel], p.Labels[gpuv1alpha1.WorkloadUIDLabel], p.Labels[gpuv1alpha1.AttemptLabel] = name, "w", "0"
		p.Annotations[batchv1.JobCompletionIndexAnnotation] = "0"
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: state.JobName(w, 0), Controller: ptr.To(true)}}
	}
}

func TestPreemptionKeepsWhatIsWorthIt(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8).node("l1", "c", 8).node("l1", "d", 8).node("l1", "e", 8)
	w.pod("plain", 8, on("a"))
	w.pod("half", 4, on("b"))
	w.pod("other-half", 4, on("b"))
	w.pod("trained", 8, on("c"), ofWorkload("mine"))
	w.pod("g-0", 8, on("d"), gang("g", 2))
	w.pod("g-1", 8, on("e"), gang("g", 2))
	got := w.preempted(t, w.pod("p", 8), map[string][]string{
		"a": {"plain"},
		"b": {"half"},    // half a node is no use to it
		"c": {"trained"}, // a GPUWorkload that did not agree
		"d": {"g-0"},     // its gang would hold e for nothing
		"e": {"gone"},    // nobody knows it
		"x": {"plain"},   // an unknown node
	})
	if !slices.Equal(got, []string{"a"}) {
		t.Errorf("kept %v", got)
	}
	if got := w.preempted(t, w.pod("q", 8), map[string][]string{"b": {"half", "other-half"}}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of the whole node: %v", got)
	}
}

// Evicting for one pod of a gang helps only where the rest finds room, too.
func TestPreemptionForAGangThatStillDoesNotFit(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8).node("l2", "c", 8).node("l2", "d", 8)
	w.pod("x", 8, on("a"))
	w.pod("y", 8, on("c"))
	w.pod("z", 8, on("d"))
	got := w.preempted(t, w.pod("g-0", 8, gang("g", 2), inOneLeaf), map[string][]string{"a": {"x"}, "c": {"y"}})
	if !slices.Equal(got, []string{"a"}) {
		t.Errorf("kept %v", got)
	}
	// An elastic gang can lose what it has above its least.
	w.pod("e-0", 8, on("b"), gang("e", 2), says(gpuv1alpha1.GangMinSizeAnnotation, "1"))
	w.pod("z", 0)
	w.state.DropPod("uid-z")
	w.pod("e-1", 8, on("d"), gang("e", 2), says(gpuv1alpha1.GangMinSizeAnnotation, "1"))
	if got := w.preempted(t, w.pod("p", 8), map[string][]string{"b": {"e-0"}}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of an elastic gang: %v", got)
	}
}

func TestPreemptionForAPodThatMustChange(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	w.pod("x", 8, on("a"))
	if got := w.preempted(t, w.pod("p", 8, says(gpuv1alpha1.StrategyAnnotation, "best")), map[string][]string{"a": {"x"}}); len(got) != 0 {
		t.Errorf("kept %v", got)
	}
}

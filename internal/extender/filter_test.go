package extender

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func (w *world) filtered(t testing.TB, pod *corev1.Pod, names ...string) extenderv1.ExtenderFilterResult {
	t.Helper()
	var r extenderv1.ExtenderFilterResult
	if code, text := w.post(t, verbFilter, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &r); code != 200 {
		t.Fatalf("filter of %s: %d %s", pod.Name, code, text)
	}
	return r
}

func TestFilterSaysOfEveryNodeWhyNot(t *testing.T) {
	w := newWorld(t).node("l1", "free", 8).node("l1", "full", 8).node("l1", "small", 2).
		node("l1", "cordoned", 8, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	w.pod("other", 8, on("full"))
	r := w.filtered(t, w.pod("p", 4), "free", "full", "small", "cordoned", "elsewhere")
	if !slices.Equal(*r.NodeNames, []string{"free"}) || r.Nodes != nil || r.Error != "" {
		t.Errorf("kept %v, error %q", *r.NodeNames, r.Error)
	}
	// Only what pods take can be mended by evicting them.
	if len(r.FailedNodes) != 1 || r.FailedNodes["full"] != "have too few free GPUs" {
		t.Errorf("failed: %v", r.FailedNodes)
	}
	for node, want := range map[string]string{
		"small": "too small even when empty", "cordoned": "are cordoned", "elsewhere": "are not known to the extender yet",
	} {
		if r.FailedAndUnresolvableNodes[node] != want {
			t.Errorf("%s: %q, want %q", node, r.FailedAndUnresolvableNodes[node], want)
		}
	}
}

// Nodes come back as they were sent, with fields that this program does not know.
func TestFilterTakesFullNodes(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 1)
	pod := w.pod("p", 4)
	var r struct {
		Nodes                      struct{ Items []map[string]any }
		NodeNames                  *[]string
		FailedAndUnresolvableNodes map[string]string
	}
	code, text := w.post(t, verbFilter, map[string]any{"Pod": pod, "Nodes": map[string]any{
		"metadata": map[string]any{},
		"items": []any{
			map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"newerThanUs": 1}},
			map[string]any{"metadata": map[string]any{"name": "b"}},
		},
	}}, &r)
	if code != 200 || len(r.Nodes.Items) != 1 || r.NodeNames != nil || r.FailedAndUnresolvableNodes["b"] == "" {
		t.Fatalf("%d %s", code, text)
	}
	if spec, ok := r.Nodes.Items[0]["spec"].(map[string]any); !ok || spec["newerThanUs"] != 1.0 {
		t.Errorf("came back as %v", r.Nodes.Items[0])
	}
}

func TestPodsWithoutGPUsPass(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	r := w.filtered(t, w.pod("p", 0, gang("g", 2)), "a", "unknown")
	if !slices.Equal(*r.NodeNames, []string{"a", "unknown"}) {
		t.Errorf("kept %v", *r.NodeNames)
	}
}

func TestPlannedPodsPassToTheirNode(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8)
	pod := w.pod("p", 8, func(p *corev1.Pod) {
		p.Labels[gpuv1alpha1.WorkloadUIDLabel] = "w"
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}},
			}}},
		}}}
	})
	// Its room is held for it: nobody else finds any there.
	w.state.SetWorkload(&gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "w"}})
	if r := w.filtered(t, pod, "a", "b"); !slices.Equal(*r.NodeNames, []string{"b"}) {
		t.Errorf("kept %v", *r.NodeNames)
	}
	if scores := w.engine.prioritize(pod, []string{"a", "b"}); !slices.Equal(scores, []int64{0, 10}) {
		t.Errorf("scores %v", scores)
	}
	if err := w.engine.reserve(pod, "a"); err == nil || !strings.Contains(err.Error(), "planned on node b") {
		t.Errorf("bound elsewhere: %v", err)
	}
}

func TestBestNodeAloneHasTheHighestScore(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8).node("l1", "c", 8).node("l1", "d", 8).node("l1", "full", 8)
	w.pod("x", 2, on("b"))
	w.pod("y", 6, on("c"))
	w.pod("z", 8, on("full"))
	names := []string{"full", "d", "c", "b", "a", "unknown"}
	for strategy, want := range map[string][]int64{
		"leastLoaded": {0, 9, 7, 8, 10, 0}, // a and d are equal: the first in topology order
		"binPack":     {0, 8, 10, 9, 8, 0},
	} {
		got := w.engine.prioritize(w.pod("p", 2, says(gpuv1alpha1.StrategyAnnotation, strategy)), names)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", strategy, got, want)
		}
	}
}

// Four nodes a leaf; a gang of three whole nodes is offered one leaf alone, that of its members once
// there are some, and none once the rest of it does not fit there any more.
func TestGangIsSteeredIntoOneLeaf(t *testing.T) {
	w := newWorld(t)
	var all []string
	for _, leaf := range []string{"l1", "l2", "l3"} {
		for _, n := range []string{"a", "b", "c", "d"} {
			w.node(leaf, leaf+n, 8)
			all = append(all, leaf+n)
		}
	}
	w.pod("x1", 8, on("l1a"))
	w.pod("x2", 8, on("l1b")) // l1 has two nodes left,
	w.pod("x3", 8, on("l3a")) // l3 three: it fits exactly.
	ask := func(name string) *corev1.Pod { return w.pod(name, 8, gang("g", 3), inOneLeaf) }
	first := w.filtered(t, ask("g-0"), all...)
	if !slices.Equal(*first.NodeNames, []string{"l3b", "l3c", "l3d"}) {
		t.Fatalf("the first is offered %v", *first.NodeNames)
	}
	if why := first.FailedNodes["l2a"]; why != "are outside of leaf l3, where gang ns/g goes" {
		t.Errorf("l2a: %q", why)
	}
	w.pod("g-0", 8, gang("g", 3), inOneLeaf, on("l2a")) // It went elsewhere: the others follow.
	second := w.filtered(t, ask("g-1"), all...)
	if !slices.Equal(*second.NodeNames, []string{"l2b", "l2c", "l2d"}) {
		t.Errorf("the second is offered %v", *second.NodeNames)
	}
	if why := second.FailedAndUnresolvableNodes["l3b"]; why == "" {
		t.Error("evicting pods of another leaf is said to help")
	}
	w.pod("y1", 8, on("l2b"))
	w.pod("y2", 8, on("l2c"))
	third := w.filtered(t, ask("g-1"), all...)
	if len(*third.NodeNames) != 0 || !strings.Contains(third.FailedNodes["l2d"], "rest of gang ns/g") {
		t.Errorf("without room for the rest: %v, %v", *third.NodeNames, third.FailedNodes)
	}
}

// kube-scheduler names no node of the leaf that the engine likes best: something that we do not see
// keeps the pod out there.
func TestGangGoesWhereKubeSchedulerLetsIt(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8).node("l1", "b", 8).node("l2", "c", 8).node("l2", "d", 8).node("l2", "e", 8)
	pod := w.pod("g-0", 8, gang("g", 2), inOneLeaf)
	if r := w.filtered(t, pod, "a", "b", "c", "d", "e"); !slices.Equal(*r.NodeNames, []string{"a", "b"}) {
		t.Fatalf("of all it is offered %v", *r.NodeNames)
	}
	if r := w.filtered(t, pod, "c", "d"); !slices.Equal(*r.NodeNames, []string{"c", "d"}) {
		t.Errorf("of the others it is offered %v", *r.NodeNames)
	}
	// A single name is a question about a node that kube-scheduler has chosen already.
	if r := w.filtered(t, pod, "c"); len(*r.NodeNames) != 0 {
		t.Errorf("of the nominated one it is offered %v", *r.NodeNames)
	}
}

func TestSlicesFollowTheirMates(t *testing.T) {
	w := newWorld(t)
	var all []string
	for _, leaf := range []string{"l1", "l2", "l3"} {
		for _, n := range []string{"a", "b"} {
			w.node(leaf, leaf+n, 8)
			all = append(all, leaf+n)
		}
	}
	member := func(rank string, edits ...func(*corev1.Pod)) *corev1.Pod {
		return w.pod("g-"+rank, 8, append(edits, gang("g", 4), says(gpuv1alpha1.SliceAnnotation, "2/leaf"), says(gpuv1alpha1.RankAnnotation, rank))...)
	}
	member("0", on("l2a"))
	if r := w.filtered(t, member("1"), all...); !slices.Equal(*r.NodeNames, []string{"l2b"}) {
		t.Errorf("the mate of rank 0 is offered %v", *r.NodeNames)
	}
	if r := w.filtered(t, member("2"), all...); !slices.Equal(*r.NodeNames, []string{"l1a", "l1b"}) {
		t.Errorf("the other slice is offered %v", *r.NodeNames)
	}
	r := w.filtered(t, w.pod("g-x", 8, gang("g", 4), says(gpuv1alpha1.SliceAnnotation, "2/leaf")), all...)
	if why := r.FailedAndUnresolvableNodes["l1a"]; !strings.Contains(why, gpuv1alpha1.RankAnnotation) {
		t.Errorf("without a rank: %q", why)
	}
}

func TestContradictingGangsAreRefusedForGood(t *testing.T) {
	for name, c := range map[string]struct {
		edits []func(*corev1.Pod)
		want  string
	}{
		"a size without a name": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Labels[gpuv1alpha1.GangSizeLabel] = "2" }}, "name the gang"},
		"no number":             {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Labels[gpuv1alpha1.GangLabel], p.Labels[gpuv1alpha1.GangSizeLabel] = "g", "two" }}, "whole number"},
		"another size":          {[]func(*corev1.Pod){gang("g", 3)}, "on pod first of the same gang ns/g"},
		"another level":         {[]func(*corev1.Pod){gang("g", 2), inOneLeaf}, `is "leaf" here and "" on pod first`},
		"an unknown level":      {[]func(*corev1.Pod){says(gpuv1alpha1.RequiredLevelAnnotation, "row")}, "this installation knows spine, leaf, host"},
		"an unknown strategy":   {[]func(*corev1.Pod){says(gpuv1alpha1.StrategyAnnotation, "best")}, "registered are"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).node("l1", "a", 8)
			w.pod("first", 1, gang("g", 2))
			r := w.filtered(t, w.pod("p", 1, c.edits...), "a")
			if why := r.FailedAndUnresolvableNodes["a"]; !strings.Contains(why, c.want) {
				t.Errorf("got %q, want %q", why, c.want)
			}
			// Nobody else is disturbed.
			if r := w.filtered(t, w.pod("q", 1), "a"); len(*r.NodeNames) != 1 {
				t.Errorf("another pod is offered %v", *r.NodeNames)
			}
		})
	}
}

func TestGangWithOnePodTooMany(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	w.pod("g-0", 1, gang("g", 2), on("a"))
	gone := w.pod("g-1", 1, gang("g", 2), on("a"))
	r := w.filtered(t, w.pod("g-2", 1, gang("g", 2)), "a")
	if why := r.FailedAndUnresolvableNodes["a"]; !strings.Contains(why, "one too many") {
		t.Errorf("got %q", why)
	}
	// One that is leaving makes room for the one that replaces it.
	gone = gone.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{}
	w.state.SetPod(gone)
	if r := w.filtered(t, w.pod("g-2", 1, gang("g", 2)), "a"); len(*r.NodeNames) != 1 {
		t.Errorf("the one that replaces it is offered %v", *r.NodeNames)
	}
}

package state

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func drawKey(t *rapid.T) string { return rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key") }

func drawValue(t *rapid.T) string {
	return rapid.SampledFrom([]string{"1", "2", "10", "x", ""}).Draw(t, "value")
}

// drawLabelled draws a node of which affinity can say something.
func drawLabelled(t *rapid.T) *corev1.Node {
	n := gpuNode("n1", 8)
	for _, k := range []string{"k1", "k2"} {
		if rapid.Bool().Draw(t, "has "+k) {
			n.Labels[k] = drawValue(t)
		}
	}
	return n
}

// drawTerm draws a term of node affinity, of which now and then Kubernetes can make no sense.
func drawTerm(t *rapid.T) corev1.NodeSelectorTerm {
	term := corev1.NodeSelectorTerm{}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		e := corev1.NodeSelectorRequirement{
			Key:      drawKey(t),
			Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}).Draw(t, "operator"),
		}
		switch e.Operator {
		case "In", "NotIn":
			e.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "x"}), 1, 2).Draw(t, "values")
		case "Gt", "Lt":
			e.Values = []string{rapid.SampledFrom([]string{"1", "5"}).Draw(t, "bound")}
		}
		term.MatchExpressions = append(term.MatchExpressions, e)
	}
	if rapid.Bool().Draw(t, "field") {
		term.MatchFields = []corev1.NodeSelectorRequirement{{
			Key:      "metadata.name",
			Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn"}).Draw(t, "field operator"),
			Values:   []string{rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "name")},
		}}
	}
	return term
}

// Selectors mean what they mean to the scheduler that binds.
func TestSelectorsAgreeWithKubernetes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, pod := drawLabelled(rt), gpuPod("p", 1)
		if rapid.Bool().Draw(rt, "selector") {
			pod.Spec.NodeSelector = map[string]string{drawKey(rt): drawValue(rt)}
		}
		selector := &corev1.NodeSelector{}
		for range rapid.IntRange(0, 2).Draw(rt, "terms") {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, drawTerm(rt))
		}
		if len(selector.NodeSelectorTerms) > 0 {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
		}
		want, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n)
		if err != nil {
			rt.Skip("Kubernetes cannot read it:", err)
		}
		node, _ := translateNode(n, testLevels(), cluster.NewResources())
		if got := translateSelector(pod).Matches(node); got != want {
			rt.Fatalf("we say %v, Kubernetes says %v: %v %v on %v", got, want, pod.Spec.NodeSelector, selector, n.Labels)
		}
	})
}

// Preferred affinity weighs what it weighs to the scheduler of Kubernetes.
func TestLikesAgreeWithKubernetes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, pod := drawLabelled(rt), gpuPod("p", 1)
		var terms []corev1.PreferredSchedulingTerm
		for range rapid.IntRange(0, 3).Draw(rt, "terms") {
			terms = append(terms, corev1.PreferredSchedulingTerm{
				Weight: rapid.Int32Range(1, 100).Draw(rt, "weight"), Preference: drawTerm(rt),
			})
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		preferred, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
		if err != nil {
			rt.Skip("Kubernetes cannot read it:", err)
		}
		node, _ := translateNode(n, testLevels(), cluster.NewResources())
		got := int64(0)
		for _, like := range translateLikes(pod) {
			if like.Term.Matches(node) {
				got += int64(like.Weight)
			}
		}
		if want := preferred.Score(n); got != want {
			rt.Fatalf("we say %d, Kubernetes says %d: %v on %v", got, want, terms, n.Labels)
		}
	})
}

// Where both have room, a pod goes to the node that it likes better.
func TestPodsGoWhereTheyLikeIt(t *testing.T) {
	likes := func(node string, weight int32) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}
	}
	for want, terms := range map[string][]corev1.PreferredSchedulingTerm{
		"a": {likes("a", 60), likes("b", 40)},
		"b": {likes("a", 30), likes("b", 40)},
	} {
		s := newState(t)
		s.SetNode(gpuNode("a", 8))
		s.SetNode(gpuNode("b", 8))
		pod := gpuPod("", 1, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		})
		if _, nodeOf, err := s.Plan(workload("w", 1, 1), pod, Ask{}); err != nil || nodeOf[0] != want {
			t.Errorf("planned on %q (%v), want %q", nodeOf[0], err, want)
		}
	}
}

func TestTopologyPreferenceReachesTheEngine(t *testing.T) {
	for said, want := range map[gpuv1alpha1.TopologyPreference]placement.Preference{
		"":                         placement.AnyGPUs,
		gpuv1alpha1.TopologyNone:   placement.AnyGPUs,
		gpuv1alpha1.TopologyNVLink: placement.PreferNVLink,
		gpuv1alpha1.TopologyNUMA:   placement.PreferNUMA,
		gpuv1alpha1.TopologyPCIe:   placement.PreferPCIe,
	} {
		w := workload("w", 1, 2)
		w.Spec.GPU = &gpuv1alpha1.GPURequirements{TopologyPreference: said}
		r, err := request(w, gpuPod("", 2), testLevels(), cluster.NewResources())
		if err != nil || r.Groups[0].Pod.Prefer != want {
			t.Errorf("%q: the engine is asked for %q (%v), want %q", said, r.Groups[0].Pod.Prefer, err, want)
		}
	}
}

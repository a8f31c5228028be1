package extender

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// fact is a node or a pod of a cluster that replicas are told of.
type fact func(*world)

// drawnFacts draws a cluster, and a pod to ask about.
func drawnFacts(t *rapid.T) (facts []fact, names []string, ask func(*world) *corev1.Pod) {
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		name, leaf, gpus := fmt.Sprintf("n%d", i), fmt.Sprintf("l%d", rapid.IntRange(0, 2).Draw(t, "leaf")), rapid.Int64Range(0, 8).Draw(t, "gpus")
		names = append(names, name)
		facts = append(facts, func(w *world) { w.node(leaf, name, gpus) })
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		node, gpus, member := rapid.SampledFrom(names).Draw(t, "node"), rapid.Int64Range(0, 3).Draw(t, "holds"), rapid.Bool().Draw(t, "member")
		facts = append(facts, func(w *world) {
			edits := []func(*corev1.Pod){on(node)}
			if member {
				edits = append(edits, gang("g", 6), inOneLeaf)
			}
			w.pod(fmt.Sprintf("p%d", i), gpus, edits...)
		})
	}
	gpus, member := rapid.Int64Range(1, 4).Draw(t, "asks"), rapid.Bool().Draw(t, "asks as a member")
	strategy := rapid.SampledFrom([]string{"leastLoaded", "random", "binPack", "topologyAware"}).Draw(t, "strategy")
	return facts, names, func(w *world) *corev1.Pod {
		edits := []func(*corev1.Pod){says(gpuv1alpha1.StrategyAnnotation, strategy)}
		if member {
			edits = append(edits, gang("g", 6), inOneLeaf)
		}
		return w.pod("asked", gpus, edits...)
	}
}

// disagreement tells two replicas of a cluster, the second in another order and with a question
// between, leaving out some; it returns where their answers differ.
func disagreement(t *rapid.T, tb testing.TB, leaveOut int) string {
	facts, names, ask := drawnFacts(t)
	one, other := newWorld(tb), newWorld(tb)
	for _, tell := range facts {
		tell(one)
	}
	for i, tell := range rapid.Permutation(facts).Draw(t, "order") {
		if i < leaveOut {
			continue
		}
		tell(other)
		if i%2 == 0 {
			pod := other.pod("asked before", 1)
			other.engine.filter(pod, names)
			other.engine.prioritize(pod, names)
		}
	}
	other.state.DropPod("uid-asked before")
	a, b := ask(one), ask(other)
	if x, y := one.engine.filter(a, names), other.engine.filter(b, names); !slices.Equal(x, y) {
		return fmt.Sprintf("one replica says %v, the other %v", x, y)
	}
	if x, y := one.engine.prioritize(a, names), other.engine.prioritize(b, names); !slices.Equal(x, y) {
		return fmt.Sprintf("one replica scores %v, the other %v", x, y)
	}
	return ""
}

// Replicas that know the same answer the same, in whatever order they heard of it and whatever they
// were asked before.
func TestReplicasAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if problem := disagreement(r, t, 0); problem != "" {
			r.Fatal(problem)
		}
	})
}

// One that missed something is found.
func TestReplicaPropertyFindsMistakes(t *testing.T) {
	found := false
	for seed := 0; seed < 300 && !found; seed++ {
		rapid.Custom(func(r *rapid.T) bool {
			found = disagreement(r, t, 1) != ""
			return true
		}).Example(seed)
	}
	if !found {
		t.Error("replicas agree although one missed something")
	}
}

package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
	"github.com/reyisjones/gpu-orchestrator/internal/policy/expression"
)

// guidedState is a state that follows a book.
func guidedState(t testing.TB) (*State, *policy.Book) {
	t.Helper()
	s := newState(t)
	compiler, err := expression.NewCompiler(testLevels(), policy.DefaultBudget())
	if err != nil {
		t.Fatal(err)
	}
	b := policy.NewBook(policy.Config{Levels: testLevels(), Strategies: s.Strategies(), Compiler: compiler, Budget: policy.DefaultBudget()})
	s.Follow(b)
	return s, b
}

func placementPolicy(name string, generation int64, edits ...func(*gpuv1alpha1.PlacementPolicySpec)) *gpuv1alpha1.PlacementPolicy {
	p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: generation}}
	for _, e := range edits {
		e(&p.Spec)
	}
	return p
}

func defaults(strategy, required, preferred string) func(*gpuv1alpha1.PlacementPolicySpec) {
	return func(s *gpuv1alpha1.PlacementPolicySpec) {
		s.Defaults = &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: strategy, Topology: &gpuv1alpha1.DefaultTopology{Required: required, Preferred: preferred}}
	}
}

func filter(name, expression, message string) func(*gpuv1alpha1.PlacementPolicySpec) {
	return func(s *gpuv1alpha1.PlacementPolicySpec) {
		s.Filters = append(s.Filters, gpuv1alpha1.PlacementFilter{Name: name, Expression: expression, Message: message})
	}
}

func asked(t *testing.T, s *State, w *gpuv1alpha1.GPUWorkload) *placement.Request {
	t.Helper()
	_, r, err := s.Question(w, gpuPod("", int64(w.Spec.GPUCount)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPoliciesSayWhatWorkloadsDoNot(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	b.Set(placementPolicy("p", 1, defaults("binPack", "leaf", "host")), 1)
	const leaf, host = 0, 1
	for name, test := range map[string]struct {
		edit     func(*gpuv1alpha1.GPUWorkloadSpec)
		strategy string
		topology placement.Topology
		slices   int
	}{
		"says nothing":     {func(*gpuv1alpha1.GPUWorkloadSpec) {}, "binPack", placement.Topology{Required: leaf, Preferred: host}, 0},
		"says nothing new": {func(s *gpuv1alpha1.GPUWorkloadSpec) { s.Topology = &gpuv1alpha1.TopologyRequirements{} }, "binPack", placement.Topology{Required: leaf, Preferred: host}, 0},
		"names both": {func(s *gpuv1alpha1.GPUWorkloadSpec) {
			s.SchedulingStrategy, s.Topology = "random", &gpuv1alpha1.TopologyRequirements{Preferred: "leaf"}
		}, "random", placement.Topology{Required: placement.AnyLevel, Preferred: leaf}, 0},
		"names a slice only": {func(s *gpuv1alpha1.GPUWorkloadSpec) {
			s.Parallelism, s.Topology = 4, &gpuv1alpha1.TopologyRequirements{Slice: &gpuv1alpha1.TopologySlice{Size: 2, Level: "host"}}
		}, "binPack", placement.Topology{Required: leaf, Preferred: host}, 1},
	} {
		w := workload("w", 1, 1)
		test.edit(&w.Spec)
		before, topology := w.Spec, w.Spec.Topology.DeepCopy()
		r := asked(t, s, w)
		if r.Strategy != test.strategy || r.Groups[0].Topology != test.topology || len(r.Groups[0].Slices) != test.slices {
			t.Errorf("%s: asked %s %+v %v", name, r.Strategy, r.Groups[0].Topology, r.Groups[0].Slices)
		}
		if !equality.Semantic.DeepEqual(before, w.Spec) || !equality.Semantic.DeepEqual(topology, w.Spec.Topology) {
			t.Errorf("%s: the workload was written to", name)
		}
		if got := s.Strategy(w); got != test.strategy {
			t.Errorf("%s: strategy %s, want %s", name, got, test.strategy)
		}
	}
	b.Drop("p")
	if r := asked(t, s, workload("w", 1, 1)); r.Strategy != "leastLoaded" || r.Groups[0].Topology != placement.NoTopology() {
		t.Errorf("without a policy: %+v", r)
	}
}

// A slice that is wider than what the policy requires is in one domain anyway.
func TestDefaultLevelInsideASlice(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	b.Set(placementPolicy("p", 1, defaults("", "host", "")), 1)
	w := workload("w", 4, 1)
	w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Slice: &gpuv1alpha1.TopologySlice{Size: 2, Level: "leaf"}}
	if d, _, err := s.Plan(w, gpuPod("", 1), Ask{}); err != nil || !d.Feasible {
		t.Errorf("%v, %s", err, d.Why.Sentence)
	}
}

func TestFiltersKeepPlansOff(t *testing.T) {
	s, b := guidedState(t)
	for i := range 4 {
		n := gpuNode(fmt.Sprintf("n%d", i), 8)
		if i == 3 {
			n.Labels["cooling"] = "liquid"
		}
		s.SetNode(n)
	}
	b.Set(placementPolicy("cool", 1, filter("liquid", `node.labels[?'cooling'].orValue('') == 'liquid'`, "only liquid-cooled nodes")), 4)
	_, nodeOf, err := s.Plan(workload("w", 2, 4), gpuPod("", 4), Ask{})
	if err != nil || nodeOf[0] != "n3" || nodeOf[1] != "n3" {
		t.Fatalf("placed on %v, %v", nodeOf, err)
	}
	d, _, err := s.Plan(workload("more", 1, 1), gpuPod("", 1), Ask{})
	if err != nil || d.Feasible {
		t.Fatalf("placed although the only node let in is full: %v", err)
	}
	if want := "3 refused by policy cool, filter liquid: only liquid-cooled nodes, 1 has too few free GPUs"; !strings.Contains(d.Why.Sentence, want) {
		t.Errorf("got %q, want %q in it", d.Why.Sentence, want)
	}
	// The node is relabelled: what was remembered of it is not true any more.
	n := gpuNode("n0", 8)
	n.Labels["cooling"] = "liquid"
	if !s.SetNode(n) {
		t.Error("a label that a policy reads is told as no news")
	}
	if _, nodeOf, _ := s.Plan(workload("more", 1, 1), gpuPod("", 1), Ask{}); nodeOf[0] != "n0" {
		t.Errorf("placed on %v, want n0", nodeOf)
	}
	// And the policy changes.
	b.Set(placementPolicy("cool", 2, filter("air", `!has(node.labels.cooling)`, "")), 4)
	if _, nodeOf, _ := s.Plan(workload("air", 1, 8), gpuPod("", 8), Ask{}); nodeOf[0] != "n1" {
		t.Errorf("placed on %v, want n1", nodeOf)
	}
}

// The engine knows weights by their address.
func TestWeightsReachTheEngine(t *testing.T) {
	s, b := guidedState(t)
	w := workload("w", 1, 1)
	if s.Weights(w) != nil {
		t.Error("weights without a policy")
	}
	b.Set(placementPolicy("p", 1, func(s *gpuv1alpha1.PlacementPolicySpec) {
		s.Weights = &gpuv1alpha1.ScoreWeights{Node: &gpuv1alpha1.NodeScoreWeights{Resources: ptr.To[int32](80)}}
	}), 1)
	first := s.Weights(w)
	if first == nil || first.Node.Resources != 80 || s.Weights(w) != first {
		t.Errorf("got %+v", first)
	}
}

// BenchmarkPlanUnderAPolicy is a plan of one pod on 1,024 nodes whose policy has a filter and a
// score, and its end. Expressions are evaluated where machines changed: never, or one a plan.
func BenchmarkPlanUnderAPolicy(b *testing.B) {
	for name, has := range map[string]struct{ policy, churn bool }{
		"policy=false/machines-change=false": {false, false}, "policy=true/machines-change=false": {true, false},
		"policy=false/machines-change=true": {false, true}, "policy=true/machines-change=true": {true, true},
	} {
		b.Run(name, func(b *testing.B) {
			s, book := guidedState(b)
			for i := range eventNodes {
				s.SetNode(eventNode(i))
			}
			if !has.policy {
				book = policy.NewBook(policy.Config{Class: "another"}) // Takes in nothing.
			}
			book.Set(placementPolicy("p", 1, filter("f", `node.labels[?'pool'].orValue('') != 'gold'`, "m"), func(s *gpuv1alpha1.PlacementPolicySpec) {
				s.Scores = []gpuv1alpha1.PlacementScore{{Name: "s", Expression: `node.gpu.memoryMiB >= 80000 ? 100 : 10`, Weight: 10}}
			}), eventNodes)
			w, pod := workload("w", 1, 1), gpuPod("", 1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if has.churn {
					n := eventNode(i % eventNodes)
					n.Labels["turn"] = fmt.Sprint(i)
					s.SetNode(n)
				}
				if d, _, err := s.Plan(w, pod, Ask{}); err != nil || !d.Feasible {
					b.Fatal(err, d.Why.Sentence)
				}
				s.Release(w.UID)
			}
		})
	}
}

// Pods that are moved to make room for others go where their own policy lets them.
func TestPodsKeepToTheirPolicyWhenMoved(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	w := workload("w", 1, 2)
	w.Spec.Movable = true
	s.SetWorkload(w)
	s.SetPod(gpuPod("p", 2, memberPod(w, 0, 0), bound("n")))
	shown := func() *cluster.Pod { return s.Snapshot().Node("n").Pods[0] }
	if shown().Needs != nil || shown().Workload.Level != placement.AnyLevel {
		t.Errorf("without a policy: %+v, level %d", shown().Needs, shown().Workload.Level)
	}
	b.Set(placementPolicy("p", 1, filter("f", `node.name == 'other'`, "m"), defaults("", "leaf", "")), 1)
	s.reguide()
	if shown().Needs == nil || shown().Workload.Level != 0 {
		t.Fatalf("with a policy: %+v, level %d", shown().Needs, shown().Workload.Level)
	}
	snapshot := s.Snapshot()
	if j := shown().Needs.Rules.Judge(snapshot.Node("n").Machine, snapshot.Resources); !strings.Contains(j.Refusal, "policy p, filter f: m") {
		t.Errorf("got %+v", j)
	}
	before := shown()
	if s.reguide(); s.Snapshot() != snapshot || shown() != before {
		t.Error("a policy that did not change makes a new snapshot")
	}
	b.Drop("p")
	if s.reguide(); shown().Needs != nil {
		t.Errorf("after the policy: %+v", shown().Needs)
	}
}

// Rules remember what they said of every machine: workloads whose pods stay where they are do not
// keep them.
func TestPodsThatStayKeepNoRules(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	b.Set(placementPolicy("p", 1, filter("f", `workload.name != node.name`, "m"), defaults("", "leaf", "")), 1)
	w := workload("w", 1, 2)
	s.SetWorkload(w)
	s.SetPod(gpuPod("p", 2, memberPod(w, 0, 0), bound("n")))
	p := s.Snapshot().Node("n").Pods[0]
	if p.Needs != nil && p.Needs.Rules != nil || p.Workload.Level != 0 {
		t.Errorf("%+v, level %d", p.Needs, p.Workload.Level)
	}
}

// Policies may be told of before the nodes: what they cost is judged by those that come.
func TestNodesThatComeMakePoliciesTooCostly(t *testing.T) {
	s, b := guidedState(t)
	costly := placementPolicy("p", 1, filter("f", `node.taints.all(t, t.key != 'x' && t.value != 'y')`, "m"))
	b.Set(costly, s.size())
	r, _ := b.Report("p")
	if r.CostPerNode == 0 || r.InForce == nil {
		t.Fatalf("%+v", r)
	}
	news := 0
	for i := range int(policy.DefaultBudget().PerDecision)/int(r.CostPerNode) + 1 {
		if r, _ := b.Report("p"); r.InForce == nil {
			t.Fatalf("too costly for %d nodes", i)
		}
		s.onNode(gpuNode(fmt.Sprint("n", i), 8), func() { news++ })
	}
	if r, _ := b.Report("p"); r.InForce != nil || r.Problem == nil || news <= s.size() {
		t.Errorf("on %d nodes %+v is in force, told %d times", s.size(), r.InForce, news)
	}
}

// A policy that goes out of force by itself takes its rules off the pods that run under it.
func TestPodsLeaveAPolicyThatFell(t *testing.T) {
	s := newState(t)
	budget := policy.Budget{PerNode: 1000, PerDecision: 1000}
	compiler, err := expression.NewCompiler(testLevels(), budget)
	if err != nil {
		t.Fatal(err)
	}
	b := policy.NewBook(policy.Config{Levels: testLevels(), Strategies: s.Strategies(), Compiler: compiler, Budget: budget})
	s.Follow(b)
	s.SetNode(gpuNode("n", 8))
	w := workload("w", 1, 2)
	w.Spec.Movable = true
	s.SetWorkload(w)
	s.SetPod(gpuPod("p", 2, memberPod(w, 0, 0), bound("n")))
	b.Set(placementPolicy("p", 1), 1)
	b.Set(placementPolicy("p", 2, defaults("", "leaf", ""), filter("f", `node.taints.all(t, t.key != 'x')`, "m")), 1)
	s.reguide()
	shown := func() *cluster.Pod { return s.Snapshot().Node("n").Pods[0] }
	if r, _ := b.Report("p"); shown().Needs == nil || shown().Workload.Level != 0 {
		t.Fatalf("%+v, level %d, %+v", shown().Needs, shown().Workload.Level, r.Problem)
	}
	rules := shown().Needs.Rules
	for i := 0; s.policies.Says(&policy.Workload{}).Required != ""; i++ {
		n := gpuNode(fmt.Sprint("large", i), 8)
		for j := range 16 {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: fmt.Sprint("k", j), Effect: corev1.TaintEffectNoSchedule})
		}
		s.SetNode(n)
		snapshot := s.Snapshot()
		rules.Judge(snapshot.Node(n.Name).Machine, snapshot.Resources)
	}
	if p := shown(); p.Needs != nil || p.Workload.Level != placement.AnyLevel {
		t.Errorf("%+v, level %d", p.Needs, p.Workload.Level)
	}
}

// A namespace that is labelled anew concerns the workloads in it, and nobody else.
func TestNamespacesConcernTheirWorkloads(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	b.SetNamespace("default", map[string]string{"team": "a"})
	b.Set(placementPolicy("p", 1, defaults("", "leaf", ""), func(spec *gpuv1alpha1.PlacementPolicySpec) {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	}), 1)
	w := workload("w", 1, 2)
	s.SetWorkload(w)
	s.SetPod(gpuPod("p", 2, memberPod(w, 0, 0), bound("n")))
	level := func() int { return s.Snapshot().Node("n").Pods[0].Workload.Level }
	if b.SetNamespace("new", map[string]string{"team": "a"}); s.reguideIn("new") || level() != 0 {
		t.Errorf("a namespace without workloads is said to have some; level %d", level())
	}
	if !b.SetNamespace("default", map[string]string{"team": "b"}) || !s.reguideIn("default") || level() != placement.AnyLevel {
		t.Errorf("after the policy ceased to select the namespace: level %d", level())
	}
}

// Weights of a policy decide where room is held and where moves make it, as they decide where there
// is room already.
func TestWeightsDecideWhereThoseGoThatWait(t *testing.T) {
	cores := func(n string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(n) }
	}
	// Of a more is in use, most of all its cores.
	build := func(t *testing.T, weighed bool) *State {
		s, b := guidedState(t)
		s.SetReservations(Reservations{Max: 4, Patience: time.Minute, MaxWait: time.Hour})
		s.SetDefragmentation(Defragmentation{Enabled: true, MaxMoves: 1}, noon())
		s.SetNode(gpuNode("a", 8))
		s.SetNode(gpuNode("b", 8))
		s.SetPod(gpuPod("stays-a", 4, bound("a"), cores("60")))
		s.SetPod(gpuPod("stays-b", 2, bound("b"), cores("16")))
		if weighed {
			b.Set(placementPolicy("balance", 1, func(s *gpuv1alpha1.PlacementPolicySpec) {
				s.Weights = &gpuv1alpha1.ScoreWeights{Node: &gpuv1alpha1.NodeScoreWeights{Topology: ptr.To[int32](0), Resources: ptr.To[int32](0), Balance: ptr.To[int32](100)}}
			}), 2)
		}
		return s
	}
	waits := func() *gpuv1alpha1.GPUWorkload {
		w := workload("waits", 1, 4)
		w.Spec.SchedulingStrategy = "topologyAware"
		return w
	}
	for name, place := range map[string]func(*testing.T, *State) string{
		"free room": func(_ *testing.T, s *State) string {
			d, _ := asks(s, waits(), noon(), 0)
			return strings.Join(d.Nodes(), " ")
		},
		"reserved": func(t *testing.T, s *State) string {
			occupies(s, "first", "a", 4, 0, time.Hour)
			occupies(s, "second", "b", 6, 0, time.Hour)
			asks(s, waits(), noon(), 2*time.Minute)
			s.Reserve(noon())
			node, _, _ := strings.Cut(strings.TrimPrefix(s.Reservation("waits", noon()), "reserved: node "), ",")
			return node
		},
		"moves": func(t *testing.T, s *State) string {
			mover := workload("mover", 2, 4)
			mover.Spec.Movable = true
			s.SetWorkload(mover)
			for rank, node := range []string{"a", "b"} {
				s.SetPod(gpuPod("mover-"+node, 4, memberPod(mover, 0, int32(rank)), boundSince(node, time.Hour)))
			}
			s.moves.proposals["waits"] = proposal{at: noon(), movers: map[string]bool{"default/mover": true}}
			d, _ := asks(s, waits(), noon(), 2*time.Minute)
			return strings.Join(d.Nodes(), " ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := place(t, build(t, false)); got != "a" {
				t.Errorf("by default it goes to %q", got)
			}
			if got := place(t, build(t, true)); got != "b" {
				t.Errorf("with a policy that asks for balance it goes to %q", got)
			}
		})
	}
}

// Policies select by labels, which leave a workload's generation as it is.
func TestWorkloadsThatAreRelabelledChangeTheirPolicy(t *testing.T) {
	s, b := guidedState(t)
	s.SetNode(gpuNode("n", 8))
	b.Set(placementPolicy("p", 1, defaults("", "leaf", ""), func(spec *gpuv1alpha1.PlacementPolicySpec) {
		spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	}), 1)
	w := workload("w", 1, 2)
	w.Generation = 1
	s.SetWorkload(w)
	s.SetPod(gpuPod("p", 2, memberPod(w, 0, 0), bound("n")))
	level := func() int { return s.Snapshot().Node("n").Pods[0].Workload.Level }
	if level() != placement.AnyLevel {
		t.Errorf("unlabelled: level %d", level())
	}
	labelled := w.DeepCopy()
	labelled.Labels = map[string]string{"tier": "prod"}
	if s.SetWorkload(labelled); level() != 0 {
		t.Errorf("labelled: level %d", level())
	}
	if s.SetWorkload(w); level() != placement.AnyLevel {
		t.Errorf("unlabelled again: level %d", level())
	}
}

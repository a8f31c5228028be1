package policy

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// stub compiles expressions of the form "cost=…": it stands for a language.
type stub struct{}

func (stub) Compile(_ string, spec *gpuv1alpha1.PlacementPolicySpec) (Ruleset, error) {
	r := &stubRules{}
	for _, f := range spec.Filters {
		switch f.Expression {
		case "bad":
			return nil, &Problem{Reason: gpuv1alpha1.PolicyInvalidExpression, Sentence: "filters[" + f.Name + "] is bad"}
		case "dear":
			r.cost += 3000
		default:
			r.cost++
		}
	}
	return r, nil
}

type stubRules struct {
	cost   uint64
	tell   func()
	begun  []Workload
	failed []Failure
}

func (r *stubRules) CostPerNode() uint64   { return r.cost }
func (r *stubRules) Exhausted(tell func()) { r.tell = tell }
func (r *stubRules) Failures() []Failure   { return r.failed }
func (r *stubRules) Begin(w *Workload, _ int) cluster.Rules {
	r.begun = append(r.begun, *w)
	return &boundRules{of: r}
}

type boundRules struct{ of *stubRules }

func (*boundRules) Judge(*cluster.Machine, *cluster.Resources) cluster.Judgement {
	return cluster.Judgement{}
}
func (*boundRules) Weight() float64 { return 0 }

func newBook(t testing.TB) *Book {
	t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	return NewBook(Config{
		Levels:     []cluster.Level{{Name: "leaf", Labels: []string{"example.com/leaf"}}},
		Strategies: strategies,
		Compiler:   stub{},
		Budget:     DefaultBudget(),
	})
}

type edit = func(*gpuv1alpha1.PlacementPolicy)

// written is a policy of the given generation.
func written(name string, generation int64, edits ...edit) *gpuv1alpha1.PlacementPolicy {
	p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: generation}}
	for _, e := range edits {
		e(p)
	}
	return p
}

func priority(n int32) edit {
	return func(p *gpuv1alpha1.PlacementPolicy) { p.Spec.Priority = n }
}

func strategy(name string) edit {
	return func(p *gpuv1alpha1.PlacementPolicy) {
		p.Spec.Defaults = &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: name}
	}
}

func filters(expressions ...string) edit {
	return func(p *gpuv1alpha1.PlacementPolicy) {
		for _, e := range expressions {
			p.Spec.Filters = append(p.Spec.Filters, gpuv1alpha1.PlacementFilter{Name: e, Expression: e})
		}
	}
}

func forTeam(team string) edit {
	return func(p *gpuv1alpha1.PlacementPolicy) {
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
}

func forTier(tier string) edit {
	return func(p *gpuv1alpha1.PlacementPolicy) {
		p.Spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}
	}
}

func report(t *testing.T, b *Book, name string) Report {
	t.Helper()
	r, ok := b.Report(name)
	if !ok {
		t.Fatalf("policy %s is not known", name)
	}
	return r
}

func TestWhichPolicyHolds(t *testing.T) {
	b := newBook(t)
	b.SetNamespace("a", map[string]string{"team": "a"})
	for _, p := range []*gpuv1alpha1.PlacementPolicy{
		written("default", 1, priority(-10)),
		written("team-a", 1, priority(5), forTeam("a")),
		written("team-a-prod", 1, priority(5), forTeam("a"), forTier("prod")),
		written("prod", 1, priority(9), forTier("prod")),
		written("named", 1, priority(20), func(p *gpuv1alpha1.PlacementPolicy) {
			p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"special"}},
			}}
		}),
	} {
		if !b.Set(p, 10) {
			t.Errorf("%s changes nothing", p.Name)
		}
	}
	prod := map[string]string{"tier": "prod"}
	for _, test := range []struct {
		w    Workload
		want string
	}{
		{Workload{Namespace: "b", Name: "w"}, "default"},
		{Workload{Namespace: "a", Name: "w"}, "team-a"},
		{Workload{Namespace: "a", Name: "w", Labels: prod}, "prod"},
		{Workload{Namespace: "b", Name: "w", Labels: prod}, "prod"},
		{Workload{Namespace: "special", Name: "w", Labels: prod}, "named"},
	} {
		if got := b.For(&test.w, 10).Policy; got != test.want {
			t.Errorf("%+v: %s holds, want %s", test.w, got, test.want)
		}
	}
	b.Drop("prod")
	w := Workload{Namespace: "a", Name: "w", Labels: prod}
	if got := b.For(&w, 10).Policy; got != "team-a" {
		t.Errorf("of equal priority: %s holds, want team-a, the first by name", got)
	}
	if b.SetNamespace("a", map[string]string{"team": "a"}) || !b.SetNamespace("a", map[string]string{"team": "b"}) {
		t.Error("whether the labels of a namespace matter is told wrong")
	}
	if got := b.For(&w, 10).Policy; got != "default" {
		t.Errorf("after the namespace changed: %s holds, want default", got)
	}
	for _, name := range []string{"default", "team-a", "team-a-prod", "named"} {
		b.Drop(name)
	}
	if got := b.For(&w, 10); got != (Guide{}) {
		t.Errorf("without policies: %+v", got)
	}
}

func TestWhatAPolicyAsks(t *testing.T) {
	b := newBook(t)
	b.Set(written("p", 1, func(p *gpuv1alpha1.PlacementPolicy) {
		p.Spec.Defaults = &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: "binPack", Topology: &gpuv1alpha1.DefaultTopology{Required: "leaf", Preferred: "example.com/leaf"}}
		p.Spec.Weights = &gpuv1alpha1.ScoreWeights{Node: &gpuv1alpha1.NodeScoreWeights{Topology: ptr.To[int32](7)}, Domain: &gpuv1alpha1.DomainScoreWeights{History: ptr.To[int32](0)}}
	}, filters("a")), 10)
	w := Workload{Namespace: "a", Name: "w"}
	g := b.For(&w, 10)
	if g.Strategy != "binPack" || g.Required != "leaf" || g.Preferred != "example.com/leaf" {
		t.Errorf("got %+v", g)
	}
	if got, want := g.Scoring.Node, (placement.NodeWeights{Topology: 7, Resources: 35, Balance: 25}); got != want {
		t.Errorf("node weights %+v, want %+v", got, want)
	}
	if got, want := g.Scoring.Domain, (placement.DomainWeights{Availability: 40, Alignment: 30, Utilization: 20}); got != want {
		t.Errorf("domain weights %+v, want %+v", got, want)
	}
	rules := g.Rules.(*boundRules).of
	if len(rules.begun) != 1 || rules.begun[0].Strategy != "binPack" || w.Strategy != "" {
		t.Errorf("expressions are told %+v", rules.begun)
	}
}

// Engines know weights by their address: only a change of the spec may change it.
func TestWeightsKeepTheirAddress(t *testing.T) {
	b := newBook(t)
	weights := func(n int32) edit {
		return func(p *gpuv1alpha1.PlacementPolicy) {
			p.Spec.Weights = &gpuv1alpha1.ScoreWeights{Node: &gpuv1alpha1.NodeScoreWeights{Topology: ptr.To(n)}}
		}
	}
	w := Workload{Namespace: "a", Name: "w"}
	b.Set(written("p", 1, weights(1)), 10)
	first := b.For(&w, 10).Scoring
	b.Set(written("other", 1, priority(-1)), 10)
	b.SetNamespace("a", map[string]string{"x": "y"})
	if b.Set(written("p", 1, weights(1), func(p *gpuv1alpha1.PlacementPolicy) { p.Status.Workloads = 3 }), 20) {
		t.Error("news of the status change something")
	}
	if b.For(&w, 10).Scoring != first {
		t.Error("the address changed although the weights did not")
	}
	if !b.Set(written("p", 2, weights(2)), 10) || b.For(&w, 10).Scoring == first {
		t.Error("new weights have the old address")
	}
}

func TestLastGoodEditionStaysInForce(t *testing.T) {
	b := newBook(t)
	w := Workload{Namespace: "a", Name: "w"}
	if b.Set(written("p", 1, filters("bad"), strategy("random")), 10) {
		t.Error("a policy that was never good changes something")
	}
	if r := report(t, b, "p"); r.InForce != nil || r.Problem == nil || r.Problem.Sentence != "filters[bad] is bad" {
		t.Errorf("got %+v", r)
	}
	if got := b.For(&w, 10).Policy; got != "" {
		t.Errorf("%s holds", got)
	}
	b.Set(written("p", 2, strategy("binPack")), 10)
	if r := report(t, b, "p"); r.Problem != nil || r.InForce.Generation != 2 || r.InForce.Spec != nil {
		t.Errorf("got %+v", r)
	}
	for generation, broken := range map[int64]edit{3: filters("bad"), 4: filters("dear", "dear"), 5: strategy("fastest")} {
		if b.Set(written("p", generation, broken), 10_000) {
			t.Errorf("generation %d, which is bad, changes something", generation)
		}
		r := report(t, b, "p")
		if r.Generation != generation || r.Problem == nil || r.InForce == nil || r.InForce.Generation != 2 {
			t.Errorf("got %+v", r)
		}
		if !strings.Contains(string(r.InForce.Spec.Raw), "binPack") {
			t.Errorf("the edition in force is told as %s", r.InForce.Spec.Raw)
		}
		if got := b.For(&w, 10).Strategy; got != "binPack" {
			t.Errorf("decisions go by %q", got)
		}
	}
	// Another policy of the same name inherits nothing.
	b.Set(written("p", 1, filters("bad"), func(p *gpuv1alpha1.PlacementPolicy) { p.UID = "another" }), 10)
	if r := report(t, b, "p"); r.InForce != nil {
		t.Errorf("a new policy goes by the edition of an old one: %+v", r.InForce)
	}
}

// A process that starts again finds the last good edition in the status.
func TestLastGoodEditionOutlivesTheProcess(t *testing.T) {
	raw := func(spec gpuv1alpha1.PlacementPolicySpec) edit {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return func(p *gpuv1alpha1.PlacementPolicy) {
			p.Status.InForce = &gpuv1alpha1.PolicyEdition{Generation: 4}
			if err := json.Unmarshal([]byte(`{"generation":4,"spec":`+string(text)+`}`), p.Status.InForce); err != nil {
				t.Fatal(err)
			}
		}
	}
	good := written("p", 4, strategy("binPack")).Spec
	b := newBook(t)
	if !b.Set(written("p", 5, filters("bad"), raw(good)), 10) {
		t.Error("an edition that was in force changes nothing")
	}
	w := Workload{Namespace: "a", Name: "w"}
	if g := b.For(&w, 10); g.Strategy != "binPack" || report(t, b, "p").InForce.Generation != 4 {
		t.Errorf("got %+v, %+v", g, report(t, b, "p"))
	}
	// One that is not good here, because the installation changed, is nobody's.
	b = newBook(t)
	b.Set(written("p", 5, filters("bad"), raw(written("p", 4, strategy("gone")).Spec)), 10)
	if r := report(t, b, "p"); r.InForce != nil {
		t.Errorf("got %+v", r.InForce)
	}
}

func TestProblems(t *testing.T) {
	b := newBook(t)
	topology := func(required, preferred string) edit {
		return func(p *gpuv1alpha1.PlacementPolicy) {
			p.Spec.Defaults = &gpuv1alpha1.PlacementDefaults{Topology: &gpuv1alpha1.DefaultTopology{Required: required, Preferred: preferred}}
		}
	}
	for name, test := range map[string]struct {
		edit         edit
		nodes        int
		reason, says string
	}{
		"strategy":  {strategy("fastest"), 10, "UnknownStrategy", `spec.defaults.schedulingStrategy: unknown strategy "fastest"; registered are binPack`},
		"required":  {topology("row", ""), 10, "UnknownLevel", `spec.defaults.topology.required: there is no topology level "row"; this installation knows leaf`},
		"preferred": {topology("leaf", "row"), 10, "UnknownLevel", `spec.defaults.topology.preferred: there is no topology level "row"`},
		"selector": {func(p *gpuv1alpha1.PlacementPolicy) {
			p.Spec.WorkloadSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}}
		}, 10, "InvalidSelector", `spec.workloadSelector cannot be read: "Is" is not a valid label selector operator`},
		"expression": {filters("bad"), 10, "InvalidExpression", "filters[bad] is bad"},
		"large":      {filters("dear"), 10_000, "TooCostly", "up to 3000 units on one node; on the 10000 nodes of this cluster at most 400 are given, as a decision is given 4000000"},
	} {
		b.Set(written(name, 1, test.edit), test.nodes)
		if r := report(t, b, name); r.Problem == nil || r.Problem.Reason != test.reason || !strings.Contains(r.Problem.Sentence, test.says) {
			t.Errorf("%s: got %+v, want %s: %s", name, r.Problem, test.reason, test.says)
		}
	}
	if b.Set(written("large", 2, filters("dear"), priority(1)), 1000); report(t, b, "large").Problem != nil {
		t.Errorf("on 1000 nodes: %v", report(t, b, "large").Problem)
	}
	// A cluster that grew takes nothing out of force when the process starts again.
	fresh := newBook(t)
	fresh.Set(written("large", 2, filters("dear"), func(p *gpuv1alpha1.PlacementPolicy) {
		p.Status.InForce = &gpuv1alpha1.PolicyEdition{Generation: 2}
	}), 10_000)
	if r := report(t, fresh, "large"); r.Problem != nil || r.CostPerNode != 3000 {
		t.Errorf("after a restart: %+v", r)
	}
}

// Policies may be told of before the nodes: what they cost is judged once these are known, and
// again when there are fewer. One that was in force stays, however the cluster grows.
func TestCostIsJudgedByTheNodesThereAre(t *testing.T) {
	b := newBook(t)
	var told []string
	b.Told(func(name string) { told = append(told, name) })
	w := Workload{Namespace: "a", Name: "w"}
	refused := written("p", 2, filters("dear"), strategy("random"), func(p *gpuv1alpha1.PlacementPolicy) {
		p.Status.InForce = &gpuv1alpha1.PolicyEdition{Generation: 1, Spec: &runtime.RawExtension{Raw: []byte(`{"defaults":{"schedulingStrategy":"binPack"}}`)}}
	})
	b.Set(refused, 0)
	if b.Resize(1000) || b.For(&w, 1000).Strategy != "random" || report(t, b, "p").Problem != nil {
		t.Error("a policy that costs what it may is refused")
	}
	if !b.Resize(10_000) || b.For(&w, 10_000).Strategy != "binPack" {
		t.Error("a policy that was refused is in force because nobody had told of the nodes")
	}
	if r := report(t, b, "p"); r.Problem == nil || r.Problem.Reason != "TooCostly" || !strings.Contains(r.Problem.Sentence, "on the 10000 nodes") || r.InForce.Generation != 1 {
		t.Errorf("got %+v, in force %+v", r.Problem, r.InForce)
	}
	if b.Set(refused, 10_000) || b.Resize(10_000) || b.Resize(9_000) {
		t.Error("nothing changed")
	}
	if !b.Resize(1000) || b.For(&w, 1000).Strategy != "random" || report(t, b, "p").Problem != nil {
		t.Error("a policy that is not too costly any more is not judged again")
	}
	if strings.Join(told, " ") != "p p" {
		t.Errorf("told %v", told)
	}
	inForce := refused.DeepCopy()
	inForce.Status.InForce = &gpuv1alpha1.PolicyEdition{Generation: 2}
	if b.Set(inForce, 1000) || b.Resize(10_000) || b.For(&w, 10_000).Strategy != "random" {
		t.Error("a cluster that grows takes a policy out of force")
	}
}

// An edition that proves too dear goes out of force by itself, and somebody is told.
func TestExhaustedEditions(t *testing.T) {
	b := newBook(t)
	w := Workload{Namespace: "a", Name: "w"}
	var told []string
	b.Told(func(name string) { told = append(told, name) })
	exhaust := func() { b.For(&w, 10).Rules.(*boundRules).of.tell() }

	b.Set(written("p", 1, filters("a"), strategy("random")), 10)
	exhaust()
	if r := report(t, b, "p"); r.Problem == nil || r.Problem.Reason != "TooCostly" || r.InForce == nil || r.InForce.Generation != 1 ||
		!strings.Contains(r.Problem.Sentence, "nodes that it has not judged are refused") {
		t.Errorf("without one before: %+v %+v", r.Problem, r.InForce)
	}
	b.Set(written("p", 2, filters("b"), strategy("binPack")), 10)
	b.Set(written("p", 3, filters("c"), strategy("costOptimized")), 10)
	dear := b.For(&w, 10).Rules.(*boundRules).of
	dear.tell()
	r := report(t, b, "p")
	if r.Problem == nil || r.InForce.Generation != 2 || b.For(&w, 10).Strategy != "binPack" || r.InForce.Spec == nil {
		t.Errorf("with one before: %+v %+v", r.Problem, r.InForce)
	}
	dear.tell() // Too late: it is not in force.
	if b.For(&w, 10).Strategy != "binPack" || strings.Join(told, " ") != "p p" {
		t.Errorf("told %v", told)
	}
	if b.Set(written("p", 3, filters("c"), strategy("costOptimized")), 10) || report(t, b, "p").Problem == nil {
		t.Error("news of the status put it back in force")
	}
}

// The status of a policy that is in force as written tells of no edition before it.
func TestTheOwnEditionIsNotTheOneBefore(t *testing.T) {
	b := newBook(t)
	w := Workload{Namespace: "a", Name: "w"}
	b.Set(written("p", 2, filters("a"), strategy("random"), func(p *gpuv1alpha1.PlacementPolicy) {
		p.Status.InForce = &gpuv1alpha1.PolicyEdition{Generation: 2, Spec: &runtime.RawExtension{Raw: []byte(`{"defaults":{"schedulingStrategy":"binPack"}}`)}}
	}), 10)
	b.For(&w, 10).Rules.(*boundRules).of.tell()
	if r := report(t, b, "p"); r.Problem == nil || !strings.Contains(r.Problem.Sentence, "nodes that it has not judged are refused") || b.For(&w, 10).Strategy != "random" {
		t.Errorf("%+v, strategy %s", r.Problem, b.For(&w, 10).Strategy)
	}
}

// during does something while expressions are compiled.
type during struct{ do func() }

func (d *during) Compile(name string, spec *gpuv1alpha1.PlacementPolicySpec) (Ruleset, error) {
	if d.do != nil {
		d.do()
	}
	return stub{}.Compile(name, spec)
}

// An edition that goes out of force while the next one is made ready does not come back with it.
func TestExhaustedWhileTheNextIsMadeReady(t *testing.T) {
	b := newBook(t)
	compiler := &during{}
	b.config.Compiler = compiler
	w := Workload{Namespace: "a", Name: "w"}
	b.Set(written("p", 1, filters("a"), strategy("random")), 10)
	b.Set(written("p", 2, filters("b"), strategy("binPack")), 10)
	dear := b.For(&w, 10).Rules.(*boundRules).of
	compiler.do = func() {
		done := make(chan struct{})
		go func() { // A decision on another goroutine: the race detector looks on.
			defer close(done)
			dear.tell()
		}()
		<-done
	}
	b.Set(written("p", 3, filters("bad"), strategy("costOptimized")), 10)
	if r := report(t, b, "p"); r.InForce == nil || r.InForce.Generation != 1 || b.For(&w, 10).Strategy != "random" {
		t.Errorf("in force is %+v", r.InForce)
	}
}

// A policy may go out of force at any time.
func TestExhaustingAndSettingAtOnce(t *testing.T) {
	b := newBook(t)
	w := Workload{Namespace: "a", Name: "w"}
	b.Set(written("p", 1, filters("a")), 10)
	var wg sync.WaitGroup
	for generation := range int64(100) {
		wg.Go(b.For(&w, 10).Rules.(*boundRules).of.tell)
		b.Set(written("p", generation+2, filters("bad")), 10)
		b.Set(written("p", generation+2, filters("a", "b"), priority(int32(generation))), 10)
	}
	wg.Wait()
	if b.For(&w, 10).Policy != "p" {
		t.Error("p holds no more")
	}
}

func TestClasses(t *testing.T) {
	b := newBook(t)
	other := func(p *gpuv1alpha1.PlacementPolicy) { p.Spec.ClassName = "other" }
	known := func() bool { _, is := b.Report("p"); return is }
	if b.Set(written("p", 1, other), 10) || known() {
		t.Error("a policy of another class is kept")
	}
	b.Set(written("p", 2), 10)
	if !b.Set(written("p", 3, other), 10) || known() {
		t.Error("a policy that left the class is kept")
	}
}

func TestConflictsAreTold(t *testing.T) {
	b := newBook(t)
	b.SetNamespace("a", map[string]string{"team": "a"})
	b.Set(written("all", 1, priority(1)), 10)
	b.Set(written("second", 1), 10)
	b.Set(written("team", 1, priority(2), forTeam("a")), 10)
	if got := report(t, b, "second").Shadow; got != "all" {
		t.Errorf("second is shadowed by %q", got)
	}
	if report(t, b, "all").Shadow != "" || report(t, b, "team").Shadow != "" {
		t.Error("the others are shadowed")
	}
	tallies := b.Count([]Workload{{Namespace: "a", Name: "1"}, {Namespace: "a", Name: "2"}, {Namespace: "b", Name: "3"}})
	for name, want := range map[string]Tally{
		"team":   {Holds: 2},
		"all":    {Holds: 1, Overruled: 2, By: []string{"team"}},
		"second": {Overruled: 3, By: []string{"team", "all"}},
	} {
		got := tallies[name]
		if got.Holds != want.Holds || got.Overruled != want.Overruled || strings.Join(got.By, " ") != strings.Join(want.By, " ") {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

package expression

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

func testLevels() []cluster.Level {
	return []cluster.Level{{Name: "spine", Labels: []string{"spine"}}, {Name: "leaf", Labels: []string{"leaf"}}}
}

func compilerWith(t testing.TB, budget policy.Budget) *Compiler {
	t.Helper()
	c, err := NewCompiler(testLevels(), budget)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func spec(filters, scores []string) *gpuv1alpha1.PlacementPolicySpec {
	s := &gpuv1alpha1.PlacementPolicySpec{}
	for i, f := range filters {
		s.Filters = append(s.Filters, gpuv1alpha1.PlacementFilter{Name: fmt.Sprintf("f%d", i), Expression: f, Message: fmt.Sprintf("message %d", i)})
	}
	for i, f := range scores {
		s.Scores = append(s.Scores, gpuv1alpha1.PlacementScore{Name: fmt.Sprintf("s%d", i), Expression: f, Weight: int32(10 * (i + 1))})
	}
	return s
}

func rulesOf(t testing.TB, filters, scores []string) policy.Ruleset {
	t.Helper()
	set, err := compilerWith(t, policy.DefaultBudget()).Compile("gold", spec(filters, scores))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func testResources() *cluster.Resources { return cluster.NewResources("nvidia.com/gpu") }

// h100 is a machine of which everything is told.
func h100() *cluster.Machine {
	labels := map[string]string{"spine": "s1", "leaf": "l7", "pool": "gold", "example.com/cooling": "liquid"}
	return &cluster.Machine{
		Name: "node-1", Ready: true, Labels: labels,
		Taints:      []cluster.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: cluster.NoSchedule}},
		GPU:         cluster.GPUFacts{Product: "NVIDIA-H100-80GB-HBM3", Architecture: "hopper", MemoryMiB: 81559, Replicas: 1, Sharing: "none"},
		Allocatable: cluster.Vector{64000, 1 << 40, 110, 8},
		Path:        cluster.PathOf(testLevels(), labels),
	}
}

func llama() *policy.Workload {
	return &policy.Workload{
		Namespace: "team-a", Name: "llama", Labels: map[string]string{"tier": "prod"},
		GPUCount: 8, Parallelism: 4, Priority: "high", Strategy: "binPack", Resource: "nvidia.com/gpu", Model: "llama2-70b",
	}
}

// Every fact that docs/policies.md names can be read, as what it says.
func TestFacts(t *testing.T) {
	for _, expression := range []string{
		`node.name == 'node-1'`,
		`node.labels['pool'] == 'gold'`,
		`node.labels.pool == 'gold'`,
		`has(node.labels.pool) && !has(node.labels.other)`,
		`node.labels[?'example.com/cooling'].orValue('air') == 'liquid'`,
		`node.labels[?'missing'].orValue('air') == 'air'`,
		`'pool' in node.labels`,
		`node.labels.exists(k, k.startsWith('example.com/'))`,
		`node.taints.exists(t, t.key == 'nvidia.com/gpu' && t.value == 'present' && t.effect == 'NoSchedule')`,
		`node.allocatable['nvidia.com/gpu'] == 8 && node.allocatable['cpu'] == 64000 && node.allocatable['memory'] == 1099511627776`,
		`node.topology['leaf'] == 'l7' && node.topology['spine'] == 's1'`,
		`node.gpu.product.contains('H100') && node.gpu.architecture == 'hopper' && node.gpu.memoryMiB >= 80000`,
		`node.gpu.replicas == 1 && node.gpu.sharing == 'none'`,
		`node.ready && !node.cordoned`,
		`node.name.matches('^node-[0-9]+$')`,
		`workload.namespace == 'team-a' && workload.name == 'llama' && workload.labels.tier == 'prod'`,
		`workload.gpuCount * workload.parallelism == 32`,
		`workload.priority in ['high', 'critical'] && workload.strategy == 'binPack'`,
		`workload.resource == 'nvidia.com/gpu' && workload.model == 'llama2-70b'`,
		`quantity('80Gi').isGreaterThan(quantity('40Gi'))`,
	} {
		t.Run(expression, func(t *testing.T) {
			set := rulesOf(t, []string{expression}, nil)
			if j := set.Begin(llama(), 1).Judge(h100(), testResources()); j.Refusal != "" {
				t.Error(j.Refusal)
			}
		})
	}
}

func TestRefusalsCarryTheMessage(t *testing.T) {
	set := rulesOf(t, []string{`true`, `node.gpu.architecture == 'blackwell'`, `false`}, []string{`100`})
	j := set.Begin(llama(), 1).Judge(h100(), testResources())
	if want := "policy gold, filter f1: message 1"; j.Refusal != want {
		t.Errorf("got %q, want %q", j.Refusal, want)
	}
	plain := spec([]string{"node.name\n  == 'x'"}, nil)
	plain.Filters[0].Message = ""
	bare, err := compilerWith(t, policy.DefaultBudget()).Compile("gold", plain)
	if err != nil {
		t.Fatal(err)
	}
	j = bare.Begin(llama(), 1).Judge(h100(), testResources())
	if want := "policy gold, filter f0: node.name == 'x'"; j.Refusal != want {
		t.Errorf("without a message: got %q, want %q", j.Refusal, want)
	}
}

func TestScores(t *testing.T) {
	for _, test := range []struct {
		scores []string
		want   float64
	}{
		{[]string{`100`}, 100},
		{[]string{`30`, `60`}, 50}, // weights 10 and 20
		{[]string{`12.5`}, 12.5},
		{[]string{`500`}, 100},
		{[]string{`-3`}, 0},
		{[]string{`node.allocatable['nvidia.com/gpu'] * 10`}, 80},
		{[]string{`node.gpu.architecture == 'hopper' ? 90 : 10`}, 90},
		{[]string{`0.0 / 0.0`}, neutral},
		{[]string{`1.0 / 0.0`}, 100},
		{[]string{`int(node.labels['missing'])`}, neutral},
		{[]string{`1 / 0`, `80`}, (50*10 + 80*20) / 30.0},
	} {
		set := rulesOf(t, nil, test.scores)
		rules := set.Begin(llama(), 1)
		if got := rules.Judge(h100(), testResources()); got.Score != test.want || got.Refusal != "" {
			t.Errorf("%v: got %+v, want %v", test.scores, got, test.want)
		}
		if want := 10 * float64(len(test.scores)*(len(test.scores)+1)/2); rules.Weight() != want {
			t.Errorf("%v: weight %v, want %v", test.scores, rules.Weight(), want)
		}
	}
}

// What cannot be evaluated on one node keeps pods off that node and off no other, and is told.
func TestErrorsOnOneNode(t *testing.T) {
	set := rulesOf(t, []string{`node.labels['rack'] != 'r1'`}, []string{`int(node.labels['speed'])`})
	rules := set.Begin(llama(), 3)
	bare, r1, good := h100(), h100(), h100()
	bare.Name, r1.Name, good.Name = "bare", "r1", "good"
	r1.Labels = map[string]string{"rack": "r1"}
	good.Labels = map[string]string{"rack": "r2"}
	for m, want := range map[*cluster.Machine]string{
		bare: "policy gold, whose filter f0 cannot be evaluated there: no such key: rack",
		r1:   "policy gold, filter f0: message 0",
		good: "",
	} {
		if got := rules.Judge(m, testResources()); got.Refusal != want {
			t.Errorf("%s: got %q, want %q", m.Name, got.Refusal, want)
		}
	}
	got := fmt.Sprint(set.Failures())
	if want := "[{filter f0 1 bare no such key: rack} {score s0 1 good no such key: speed}]"; got != want {
		t.Errorf("failures: got %s, want %s", got, want)
	}
	mended := *bare
	mended.Labels = good.Labels
	rules.Judge(&mended, testResources())
	if all := set.Failures(); len(all) != 1 || all[0].Nodes != 2 {
		t.Errorf("after the label came: %v", all)
	}
}

func TestRefusedExpressions(t *testing.T) {
	for _, test := range []struct {
		filters, scores []string
		reason, says    string
	}{
		{[]string{`node.`}, nil, "InvalidExpression", "filters[f0].expression, line 1, column 6: Syntax error"},
		{[]string{`node.lables['x'] == 'y'`}, nil, "InvalidExpression", "filters[f0].expression, line 1, column 5: undefined field 'lables' (node has allocatable, cordoned, gpu, labels, name, ready, taints, topology; workload has "},
		{[]string{`pod.name == 'x'`}, nil, "InvalidExpression", "undeclared reference to 'pod'"},
		{[]string{`node.gpu.memoryMiB == 'large'`}, nil, "InvalidExpression", "found no matching overload for '_==_'"},
		{[]string{`node.name`}, nil, "InvalidExpression", "filters[f0].expression is a text, and must be true or false"},
		{[]string{`1`}, nil, "InvalidExpression", "filters[f0].expression is a whole number, and must be true or false"},
		{[]string{`dyn(true)`}, nil, "InvalidExpression", "of a type that is only known when it is evaluated"},
		{nil, []string{`true`}, "InvalidExpression", "scores[s0].expression is true or false, and must be a whole number or a number with a fraction"},
		{nil, []string{`node.labels`}, "InvalidExpression", "of type map(string, string)"},
		{[]string{`true`, `node.name.matches('(')`}, nil, "InvalidExpression", "filters[f1].expression, line 1"},
		{[]string{`node.labels.all(a, node.labels.all(b, node.labels.all(c, a + b != c)))`}, nil, "TooCostly", "the expressions may cost up to "},
		{[]string{strings.Repeat(`!`, 2000) + `true`}, nil, "InvalidExpression", "filters[f0].expression"},
		{[]string{strings.Repeat(`(`, 1000) + `true` + strings.Repeat(`)`, 1000)}, nil, "InvalidExpression", "filters[f0].expression"},
	} {
		_, err := compilerWith(t, policy.DefaultBudget()).Compile("gold", spec(test.filters, test.scores))
		var problem *policy.Problem
		if !errors.As(err, &problem) {
			if len(test.filters) == 1 && strings.HasPrefix(test.filters[0], "!!") && err == nil {
				continue // A long chain of nots is legal, if silly.
			}
			t.Errorf("%.60v %v: %v", test.filters, test.scores, err)
			continue
		}
		if problem.Reason != test.reason || !strings.Contains(problem.Sentence, test.says) {
			t.Errorf("%.60v %v: got %s: %s\nwant %s: %s", test.filters, test.scores, problem.Reason, problem.Sentence, test.reason, test.says)
		}
		if strings.ContainsAny(problem.Sentence, "\n\t") {
			t.Errorf("more than a line: %q", problem.Sentence)
		}
	}
}

// Workloads share what was judged unless an expression reads something in which they differ.
func TestWorkloadsShareRules(t *testing.T) {
	other := llama()
	other.Name, other.GPUCount = "mixtral", 2
	for _, test := range []struct {
		expression string
		shared     bool
	}{
		{`node.ready`, true},
		{`workload.namespace == 'team-a'`, true},
		{`workload.labels.tier == 'prod'`, true},
		{`workload.gpuCount <= node.allocatable['nvidia.com/gpu']`, false},
		{`has(workload.labels.tier) && workload.name != 'x'`, false},
		{`[workload].size() == 1`, false},
		{`[1].exists(i, workload.gpuCount == 8)`, false},
	} {
		set := rulesOf(t, []string{test.expression}, nil)
		a, b := set.Begin(llama(), 1), set.Begin(other, 1)
		if (a == b) != test.shared || a != set.Begin(llama(), 1) {
			t.Errorf("%s: shared %v, want %v", test.expression, a == b, test.shared)
		}
	}
}

// Kinds of workload that are not asked for any more are forgotten.
func TestKindsAreBounded(t *testing.T) {
	set := rulesOf(t, []string{`workload.name != node.name`}, nil)
	w := llama()
	for i := range 40 {
		w.Name = fmt.Sprint("w", i)
		set.Begin(w, mostJudgings/16)
	}
	if n := len(set.(*Set).byFacts); n > 16 {
		t.Errorf("%d kinds are remembered", n)
	}
	r, ok := set.Begin(w, 1).(*Rules)
	if !ok {
		t.Fatal("no Rules")
	}
	for i := range 200 {
		m := h100()
		m.Name = fmt.Sprint("gone-", i)
		r.Judge(m, testResources())
	}
	if set.Begin(w, 10); len(r.known) > 0 {
		t.Errorf("%d machines are remembered of a cluster of 10", len(r.known))
	}
}

package expression

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// labelled is a machine with so many labels.
func labelled(name string, labels int) *cluster.Machine {
	m := h100()
	m.Name, m.Labels = name, map[string]string{}
	for i := range labels {
		m.Labels[fmt.Sprintf("feature.node.example.com/cpu-%03d", i)] = "true"
	}
	return m
}

// The estimate is an upper bound of what evaluation costs, on machines as large as it takes them
// to be.
func TestEstimatesAreUpperBounds(t *testing.T) {
	budget := policy.Budget{PerNode: 1 << 40, PerDecision: 1 << 40}
	c := compilerWith(t, budget)
	large := labelled("node", mostLabels)
	for i := range mostTaints {
		large.Taints = append(large.Taints, cluster.Taint{Key: fmt.Sprint("key-", i), Value: "value", Effect: cluster.NoSchedule})
	}
	for _, e := range []string{
		`node.labels['pool'] == 'gold'`,
		`node.labels[?'pool'].orValue('') != 'gold'`,
		`!node.labels.exists(k, k.startsWith('other.example.com/'))`,
		`node.labels.all(k, node.labels[k] == 'true')`,
		`node.labels.all(k, k.matches('^[a-z0-9./-]+$'))`,
		`node.taints.all(t, t.key != 'x' && t.value != 'y' && t.effect != 'z')`,
		`node.allocatable['nvidia.com/gpu'] >= workload.gpuCount`,
		`node.gpu.product.contains('H100') || true`,
		`node.name.startsWith('node') && workload.name.size() > 0`,
		`node.topology[?'leaf'].orValue('') != workload.labels.tier`,
		`node.ready`,
	} {
		set, err := c.Compile("gold", spec([]string{e}, nil))
		if err != nil {
			t.Fatal(err)
		}
		rules := set.Begin(llama(), 1).(*Rules)
		if j := rules.Judge(large, testResources()); strings.Contains(j.Refusal, "cost") {
			t.Errorf("%s: %s", e, j.Refusal)
		}
		if rules.spent > set.CostPerNode() {
			t.Errorf("%s cost %d, estimated at %d", e, rules.spent, set.CostPerNode())
		}
		t.Logf("%s: %d of at most %d units", e, rules.spent, set.CostPerNode())
	}
}

// scan costs in proportion to the labels of a node.
const scan = `node.labels.all(k, k != 'x')`

// A node that is larger than any is taken to be costs no more than one node is given: it is
// refused, and said to be.
func TestOneNodeIsBounded(t *testing.T) {
	c := compilerWith(t, policy.Budget{PerNode: 6000, PerDecision: 1 << 30})
	set, err := c.Compile("gold", spec([]string{scan}, nil))
	if err != nil {
		t.Fatal(err)
	}
	rules := set.Begin(llama(), 2).(*Rules)
	if j := rules.Judge(labelled("small", 30), testResources()); j.Refusal != "" {
		t.Error(j.Refusal)
	}
	j := rules.Judge(labelled("huge", 5000), testResources())
	if !strings.Contains(j.Refusal, "filter f0 cannot be evaluated there") || !strings.Contains(j.Refusal, "cost") {
		t.Errorf("got %q", j.Refusal)
	}
	if rules.spent > 8000 {
		t.Errorf("it cost %d units to find that out", rules.spent)
	}
}

// Expressions that one node could each be given are refused together.
func TestExpressionsShareWhatANodeIsGiven(t *testing.T) {
	const perNode = 20_000
	c := compilerWith(t, policy.Budget{PerNode: perNode, PerDecision: 1 << 30})
	judge := func(m *cluster.Machine, filters ...string) (string, uint64) {
		set, err := c.Compile("gold", spec(filters, nil))
		if err != nil {
			t.Fatal(err)
		}
		rules := set.Begin(llama(), 1).(*Rules)
		return rules.Judge(m, testResources()).Refusal, rules.spent
	}
	labels := mostLabels
	for {
		refusal, spent := judge(labelled("n", labels), scan)
		if refusal != "" {
			t.Fatal(refusal)
		}
		if spent > perNode/2 {
			break
		}
		labels += mostLabels / 4
	}
	if refusal, spent := judge(labelled("n", labels), scan, scan); !strings.Contains(refusal, "filter f1 cannot be evaluated there") {
		t.Errorf("refusal %q after %d units", refusal, spent)
	}
}

// A decision that has used up its budget refuses the nodes that are left, says so once, and has
// cost no more than the budget and one node.
func TestDecisionsAreBounded(t *testing.T) {
	const budget = 20_000
	c := compilerWith(t, policy.Budget{PerNode: 6000, PerDecision: budget})
	set, err := c.Compile("gold", spec([]string{scan}, []string{`100`}))
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	set.Exhausted(func() { told++ })
	rules := set.Begin(llama(), 1000).(*Rules)
	let, refused := 0, 0
	for i := range 1000 {
		j := rules.Judge(labelled(fmt.Sprint("n", i), 30), testResources())
		switch {
		case j.Refusal == "":
			let++
		case strings.Contains(j.Refusal, "policy gold, whose expressions cost more than the 20000 units that a decision is given"):
			refused++
		}
	}
	if let == 0 || refused == 0 || let+refused != 1000 {
		t.Errorf("%d nodes let in, %d refused for want of budget", let, refused)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if rules.spent > budget+6000 {
		t.Errorf("%d units spent", rules.spent)
	}
	scores, err := c.Compile("gold", spec(nil, []string{`node.labels.all(k, k != 'x') ? 100 : 0`}))
	if err != nil {
		t.Fatal(err)
	}
	rules = scores.Begin(llama(), 1000).(*Rules)
	last := cluster.Judgement{}
	for i := range 1000 {
		last = rules.Judge(labelled(fmt.Sprint("n", i), 30), testResources())
	}
	if last.Refusal != "" || last.Score != neutral {
		t.Errorf("scores alone refuse nobody and are neutral: %+v", last)
	}
}

// What is judged already costs nothing: decisions after the first are not bounded by the nodes.
func TestJudgementsAreKept(t *testing.T) {
	c := compilerWith(t, policy.Budget{PerNode: 6000, PerDecision: 20_000})
	set, err := c.Compile("gold", spec([]string{scan}, nil))
	if err != nil {
		t.Fatal(err)
	}
	// One by one within the budget, all at once beyond it.
	machines := make([]*cluster.Machine, 50)
	for i := range machines {
		machines[i] = labelled(fmt.Sprint("n", i), 200)
	}
	spent := uint64(0)
	for i := range machines {
		rules := set.Begin(llama(), len(machines)).(*Rules)
		for _, m := range machines[:i+1] {
			if j := rules.Judge(m, testResources()); j.Refusal != "" {
				t.Fatalf("after %d units: %s", spent, j.Refusal)
			}
		}
		spent += rules.spent
	}
	if spent < 20_000 {
		t.Errorf("only %d units in all: the test shows nothing", spent)
	}
}

// However many kinds of workload there are, and whoever holds their rules still, no more
// judgements are remembered than there is room for; and rules that were forgotten judge as before.
func TestJudgementsAreBounded(t *testing.T) {
	const nodes = mostJudgings / fewestKinds // Room for fewestKinds.
	c := compilerWith(t, policy.Budget{PerNode: 6000, PerDecision: 20_000})
	set, err := c.Compile("gold", spec([]string{`workload.name != node.name`}, nil))
	if err != nil {
		t.Fatal(err)
	}
	held := make([]*Rules, 3*fewestKinds)
	machines := []*cluster.Machine{labelled("w0", 0), labelled("other", 0)}
	judge := func(i int) {
		t.Helper()
		for _, m := range machines {
			if refused := held[i].Judge(m, testResources()).Refusal != ""; refused != (fmt.Sprint("w", i) == m.Name) {
				t.Errorf("the rules of w%d refuse %s: %t", i, m.Name, refused)
			}
		}
		remembered := 0
		for _, r := range held {
			if r != nil {
				remembered += len(r.known)
			}
		}
		if most := fewestKinds * len(machines); remembered > most {
			t.Fatalf("%d judgements are remembered, %d at most should be", remembered, most)
		}
	}
	for i := range held {
		w := llama()
		w.Name = fmt.Sprint("w", i)
		held[i] = set.Begin(w, nodes).(*Rules)
		judge(i)
	}
	for i := range held {
		judge(i)
	}
	w := llama()
	w.Name = "w0" // Its rules were forgotten, and others take their place.
	if again := set.Begin(w, nodes).(*Rules); again == held[0] {
		t.Error("nothing was forgotten: the test shows nothing")
	}
	judge(0)
}

// BenchmarkJudge evaluates two filters and a score on one machine, and looks them up.
func BenchmarkJudge(b *testing.B) {
	set := rulesOf(b, []string{`node.labels[?'pool'].orValue('') == 'gold'`, `node.gpu.memoryMiB >= 80000`}, []string{`node.gpu.architecture == 'hopper' ? 100 : 20`})
	machines := [2]*cluster.Machine{h100(), h100()}
	resources := testResources()
	b.Run("machine=changed", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			set.Begin(llama(), 1).Judge(machines[i%2], resources)
		}
	})
	b.Run("machine=same", func(b *testing.B) {
		rules := set.Begin(llama(), 1)
		b.ReportAllocs()
		for b.Loop() {
			rules.Judge(machines[0], resources)
		}
	})
}

// BenchmarkUnits is how long the dearest expressions take per million units of cost.
func BenchmarkUnits(b *testing.B) {
	c := compilerWith(b, policy.Budget{PerNode: 1 << 40, PerDecision: 1 << 40})
	for name, e := range map[string]string{
		"labels":   scan,
		"nested":   `node.labels.all(a, node.labels.all(b, a != b || true))`,
		"patterns": `node.labels.all(k, k.matches('^[a-z0-9./-]+$'))`,
	} {
		b.Run(name, func(b *testing.B) {
			set, err := c.Compile("gold", spec([]string{e}, nil))
			if err != nil {
				b.Fatal(err)
			}
			machines := [2]*cluster.Machine{labelled("n", 100), labelled("n", 100)}
			units := uint64(0)
			for i := 0; b.Loop(); i++ {
				rules := set.Begin(llama(), 1).(*Rules)
				rules.Judge(machines[i%2], testResources())
				units += rules.spent
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())*1e6/float64(units), "ms/Munits")
		})
	}
}

package expression

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// twin is an expression with the same in Go, which shares no code with it. The second result
// says that it cannot be evaluated.
type twin struct {
	expression string
	passes     func(m *cluster.Machine, w *policy.Workload) (yes, failed bool)
}

func twins() []twin {
	return []twin{
		{`node.labels[?'pool'].orValue('') == 'gold'`, func(m *cluster.Machine, _ *policy.Workload) (bool, bool) {
			return m.Labels["pool"] == "gold", false
		}},
		{`node.labels['pool'] != 'gold'`, func(m *cluster.Machine, _ *policy.Workload) (bool, bool) {
			value, ok := m.Labels["pool"]
			return value != "gold", !ok
		}},
		{`node.gpu.memoryMiB >= 40000 * workload.gpuCount`, func(m *cluster.Machine, w *policy.Workload) (bool, bool) {
			return m.GPU.MemoryMiB >= 40000*w.GPUCount, false
		}},
		{`!node.taints.exists(t, t.key == 'retiring')`, func(m *cluster.Machine, _ *policy.Workload) (bool, bool) {
			return !slices.ContainsFunc(m.Taints, func(t cluster.Taint) bool { return t.Key == "retiring" }), false
		}},
		{`workload.namespace == 'a' || node.topology['leaf'] == 'l1'`, func(m *cluster.Machine, w *policy.Workload) (bool, bool) {
			if w.Namespace == "a" {
				return true, false
			}
			return m.Path[1] == "l1", m.Path[1] == ""
		}},
		{`node.allocatable['nvidia.com/gpu'] >= 4`, func(m *cluster.Machine, _ *policy.Workload) (bool, bool) {
			return m.Allocatable.At(3) >= 4, m.Allocatable.At(3) == 0
		}},
	}
}

func drawMachine(t *rapid.T, name string) *cluster.Machine {
	labels := map[string]string{}
	for _, values := range [][]string{{"pool", "gold", "silver", ""}, {"leaf", "l1", "l2", ""}} {
		if value := rapid.SampledFrom(values[1:]).Draw(t, values[0]); value != "" {
			labels[values[0]] = value
		}
	}
	m := &cluster.Machine{
		Name: name, Ready: true, Labels: labels, Path: cluster.PathOf(testLevels(), labels),
		GPU:         cluster.GPUFacts{MemoryMiB: rapid.SampledFrom([]int64{0, 40000, 80000}).Draw(t, "memory")},
		Allocatable: cluster.Vector{64000, 1 << 40, 110, rapid.SampledFrom([]int64{0, 2, 8}).Draw(t, "gpus")},
	}
	if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
		m.Taints = []cluster.Taint{{Key: "retiring", Effect: "PreferNoSchedule"}}
	}
	return m
}

// judge says of a machine whether it lets pods in, and how good it is. Broken variants of one
// are put in the place of Rules below.
type judge func(r cluster.Rules, m *cluster.Machine) cluster.Judgement

func asTheyAre(r cluster.Rules, m *cluster.Machine) cluster.Judgement {
	return r.Judge(m, testResources())
}

// misjudged evaluates drawn filters over machines that come and change, and says where what
// they let in is not what their twins let in.
func misjudged(t *rapid.T, c *Compiler, ask judge) string {
	var chosen []twin
	var expressions []string
	for _, tw := range twins() {
		if rapid.Bool().Draw(t, tw.expression) {
			chosen = append(chosen, tw)
			expressions = append(expressions, tw.expression)
		}
	}
	set, err := c.Compile("drawn", spec(expressions, []string{`node.gpu.memoryMiB / 800`}))
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]*cluster.Machine{}
	for range rapid.IntRange(1, 15).Draw(t, "steps") {
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "machine"))
		if machines[name] == nil || rapid.Bool().Draw(t, "changes") {
			machines[name] = drawMachine(t, name)
		}
		w := &policy.Workload{
			Name: "w", Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
			GPUCount: rapid.Int64Range(1, 2).Draw(t, "GPUs"),
		}
		rules := set.Begin(w, len(machines))
		for _, name := range slices.Sorted(maps.Keys(machines)) {
			m := machines[name]
			want := !slices.ContainsFunc(chosen, func(tw twin) bool {
				yes, failed := tw.passes(m, w)
				return failed || !yes
			})
			got := ask(rules, m)
			if (got.Refusal == "") != want {
				return fmt.Sprintf("%v on %+v for %+v: %q, want let in %v", expressions, m, w, got.Refusal, want)
			}
			if score := float64(m.GPU.MemoryMiB / 800); want && got.Score != score {
				return fmt.Sprintf("score %v on %+v, want %v", got.Score, m, score)
			}
		}
	}
	return ""
}

func TestFiltersAreTheirTwins(t *testing.T) {
	c := compilerWith(t, policy.DefaultBudget())
	rapid.Check(t, func(rt *rapid.T) {
		if problem := misjudged(rt, c, asTheyAre); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// The property above must be able to fail: each of these mistakes is found.
func TestFilterPropertyFindsMistakes(t *testing.T) {
	c := compilerWith(t, policy.DefaultBudget())
	for name, broken := range map[string]func() judge{
		"a machine that changed is not judged again": func() judge {
			first := map[string]*cluster.Machine{}
			return func(r cluster.Rules, m *cluster.Machine) cluster.Judgement {
				if first[m.Name] == nil {
					first[m.Name] = m
				}
				return asTheyAre(r, first[m.Name])
			}
		},
		"workloads that differ share what was judged": func() judge {
			var one cluster.Rules
			return func(r cluster.Rules, m *cluster.Machine) cluster.Judgement {
				if one == nil || one.(*Rules).set != r.(*Rules).set {
					one = r
				}
				return asTheyAre(one, m)
			}
		},
		"what cannot be evaluated is let in": func() judge {
			return func(r cluster.Rules, m *cluster.Machine) cluster.Judgement {
				j := asTheyAre(r, m)
				if known := r.(*Rules).known[m.Name]; len(known.failed) > 0 {
					j.Refusal = ""
				}
				return j
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(rt *rapid.T) { found = misjudged(rt, c, broken()) != "" || found })
			if !found {
				t.Error("the property holds for broken rules")
			}
		})
	}
}

// planner is Plan, or a broken variant of it.
type planner func(*cluster.Snapshot, *placement.Request, placement.Options) (placement.Decision, error)

// decidesOtherwise changes a cluster again and again, and says where decisions that remember,
// views of shapes as well as judgements of machines, are not those of an engine and rules that
// remember nothing.
func decidesOtherwise(t *rapid.T, c *Compiler, remembering planner) string {
	filters := rapid.SampledFrom([][]string{nil, {twins()[1].expression}, {twins()[2].expression, twins()[3].expression}, {twins()[4].expression}}).Draw(t, "filters")
	scores := rapid.SampledFrom([][]string{nil, {`node.labels.pool == 'gold' ? 90 : 20`}, {`node.gpu.memoryMiB / 800`, `workload.gpuCount * 30`}}).Draw(t, "scores")
	fresh := func() policy.Ruleset {
		set, err := c.Compile("drawn", spec(filters, scores))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	kept := fresh()
	var nodes []*cluster.Node
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		nodes = append(nodes, &cluster.Node{Machine: drawMachine(t, fmt.Sprintf("n%d", i)), Used: make(cluster.Vector, 4)})
	}
	now := cluster.NewSnapshot(1, testLevels(), testResources(), nodes)
	cache := &placement.Cache{}
	for range rapid.IntRange(1, 8).Draw(t, "turns") {
		i := rapid.IntRange(0, now.Len()-1).Draw(t, "node")
		n := *now.At(i)
		if rapid.Bool().Draw(t, "machine changes") {
			m := drawMachine(t, n.Name)
			m.Path, n.Machine = n.Path, m
		} else {
			n.Used = cluster.Vector{0, 0, 1, rapid.Int64Range(0, n.Allocatable.At(3)).Draw(t, "used")}
		}
		now = now.Next(now.Generation+1, now.Resources, []*cluster.Node{&n})
		w := &policy.Workload{Name: "w", Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), GPUCount: rapid.Int64Range(1, 2).Draw(t, "GPUs")}
		ask := func(rules cluster.Rules) *placement.Request {
			return &placement.Request{Name: "a/w", Strategy: rapid.SampledFrom([]string{"leastLoaded", "topologyAware"}).Draw(t, "strategy"), Groups: []placement.Group{{
				Count: rapid.IntRange(1, 3).Draw(t, "pods"), Topology: placement.NoTopology(),
				Pod: placement.Shape{Resources: cluster.Vector{1, 1, 1, w.GPUCount}, GPUResource: 3, GPUResourceName: "nvidia.com/gpu", GPUs: w.GPUCount, Rules: rules},
			}}}
		}
		r := ask(kept.Begin(w, now.Len()))
		got, err := remembering(now, r, placement.Options{Cache: cache, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		r.Groups[0].Pod.Rules = fresh().Begin(w, now.Len())
		want, err := placement.Plan(now, r, placement.Options{Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("with a memory %+v, without one %+v", got, want)
		}
	}
	return ""
}

func TestMemoryNeverChangesADecision(t *testing.T) {
	c := compilerWith(t, policy.DefaultBudget())
	rapid.Check(t, func(rt *rapid.T) {
		if problem := decidesOtherwise(rt, c, placement.Plan); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// The property above must be able to fail.
func TestMemoryPropertyFindsMistakes(t *testing.T) {
	c := compilerWith(t, policy.DefaultBudget())
	for name, broken := range map[string]planner{
		"rules are not part of the question": func(s *cluster.Snapshot, r *placement.Request, o placement.Options) (placement.Decision, error) {
			bare := *r
			bare.Groups = slices.Clone(r.Groups)
			bare.Groups[0].Pod.Rules = nil
			return placement.Plan(s, &bare, o)
		},
		"judgements outlive the machine": func(s *cluster.Snapshot, r *placement.Request, o placement.Options) (placement.Decision, error) {
			rules := r.Groups[0].Pod.Rules.(*Rules)
			for _, n := range s.Nodes() {
				if known := rules.known[n.Name]; known != nil {
					known.machine = n.Machine
				}
			}
			return placement.Plan(s, r, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(rt *rapid.T) { found = decidesOtherwise(rt, c, broken) != "" || found })
			if !found {
				t.Error("the property holds for a broken memory")
			}
		})
	}
}

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// zoneRules refuse machines of one zone and like some leaves better than others. They read what
// drawn machines may change.
type zoneRules struct {
	refused string
	weight  float64
	likes   string
}

func (z zoneRules) Judge(m *cluster.Machine, resources *cluster.Resources) cluster.Judgement {
	j := cluster.Judgement{Score: 10 * float64(m.Allocatable.At(resources.Index("cpu"))%7)}
	if m.Labels["leaf"] == z.likes {
		j.Score += 40
	}
	if z.refused != "" && m.Labels["zone"] == z.refused {
		j.Refusal = "policy drawn: zone " + z.refused + " is closed"
	}
	return j
}

func (z zoneRules) Weight() float64 { return z.weight }

func drawRules(t *rapid.T) zoneRules {
	return zoneRules{
		refused: oneOf(t, "refused zone", "b", "", "a"),
		weight:  oneOf(t, "weight of scores", 0.0, 30, 1000),
		likes:   oneOf(t, "liked leaf", "l1", "l2"),
	}
}

// inZone puts a node in a zone.
func inZone(zone string) func(*cluster.Node) {
	return func(n *cluster.Node) { n.Labels["zone"] = zone }
}

func TestRulesKeepPodsOff(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s", leaf: "l1", gpus: 8, used: 6, edit: inZone("a")},
		nodeSpec{name: "b1", spine: "s", leaf: "l1", gpus: 8, edit: inZone("b")},
		nodeSpec{name: "b2", spine: "s", leaf: "l1", gpus: 8, edit: inZone("b")},
	)
	rules := zoneRules{refused: "b"}
	d := plan(t, s, ask(1, 2, group(func(g *Group) { g.Pod.Rules = rules })))
	if !d.Feasible || d.Groups[0].Nodes[0] != "a1" {
		t.Fatalf("placed %v: %s", d.Nodes(), d.Why.Sentence)
	}
	d = plan(t, s, ask(1, 4, group(func(g *Group) { g.Pod.Rules = rules })))
	want := "of 3 nodes 2 refused by policy drawn: zone b is closed, 1 has too few free GPUs"
	if d.Feasible || !strings.Contains(d.Why.Sentence, want) {
		t.Errorf("got %q, want %q in it", d.Why.Sentence, want)
	}
	if d.Why.Removed[ByPolicy] != 2 || !slices.Equal(d.Why.Refusals, []Refusal{{Why: "policy drawn: zone b is closed", Nodes: 2}}) {
		t.Errorf("counted %d, %+v", d.Why.Removed[ByPolicy], d.Why.Refusals)
	}
	if d.Why.Suitable != 1 || d.Why.MostFreeNode != "a1" {
		t.Errorf("%d suitable, the most free is %s", d.Why.Suitable, d.Why.MostFreeNode)
	}
}

// What Rules refuse even when nothing runs is told as never, and broken GPUs change nothing of it.
func TestRulesThatRefuseAll(t *testing.T) {
	s := world(nodeSpec{name: "b1", spine: "s", leaf: "l1", gpus: 8, edit: func(n *cluster.Node) {
		inZone("b")(n)
		n.Board = dgx(t)
		n.Broken = 1
	}})
	d := plan(t, s, ask(1, 1, group(func(g *Group) { g.Pod.Rules = zoneRules{refused: "b"} })))
	if d.Feasible || !d.Why.Never || !strings.Contains(d.Why.Sentence, "no node suits") {
		t.Errorf("never: %v, %q", d.Why.Never, d.Why.Sentence)
	}
}

// Strategies that do not weigh opinions are told them first: the strategy decides between nodes
// that Rules find equally good, and a workload's own preferred affinity comes before both.
func TestOpinionsComeBeforeStrategies(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s", leaf: "l1", gpus: 8, used: 6},
		nodeSpec{name: "a2", spine: "s", leaf: "l1", gpus: 8, used: 4},
		nodeSpec{name: "a3", spine: "s", leaf: "l2", gpus: 8, edit: inZone("c")},
	)
	rules := zoneRules{weight: 10, likes: "l1"}
	if got := plan(t, s, ask(1, 2, group(func(g *Group) { g.Pod.Rules = rules }))).Nodes(); got[0] != "a2" {
		t.Errorf("placed on %v, want a2: the liked leaf, and there the most free GPUs", got)
	}
	liked := ask(1, 2, group(func(g *Group) {
		g.Pod.Rules = rules
		g.Pod.Likes = []Like{{Term: cluster.Term{{Key: "zone", Operator: cluster.In, Values: []string{"c"}}}, Weight: 1}}
	}))
	if got := plan(t, s, liked).Nodes(); got[0] != "a3" {
		t.Errorf("placed on %v, want a3, which the workload likes", got)
	}
	random := ask(1, 2, group(func(g *Group) { g.Pod.Rules = rules }), func(r *Request) { r.Strategy = "random" })
	for seed := range uint64(20) {
		random.Seed = seed
		if got := plan(t, s, random).Nodes(); got[0] == "a3" {
			t.Fatalf("seed %d: placed on %v, in the leaf that is not liked", seed, got)
		}
	}
}

// TopologyAware weighs them: one more term of the mean.
func TestOpinionsAreATermOfTopologyAware(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s", leaf: "l1", gpus: 8},
		nodeSpec{name: "a2", spine: "s", leaf: "l2", gpus: 8, used: 6},
	)
	on := func(weight float64) Decision {
		r := ask(1, 2, group(func(g *Group) { g.Pod.Rules = zoneRules{weight: weight, likes: "l1"} }))
		r.Strategy = "topologyAware"
		d, err := Plan(s, r, Options{Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	light, heavy := on(1), on(1000)
	if light.Nodes()[0] != "a2" || heavy.Nodes()[0] != "a1" {
		t.Errorf("with weight 1 on %v, with 1000 on %v; want a2, the better fit, and a1, the liked leaf", light.Nodes(), heavy.Nodes())
	}
	terms := heavy.Why.Chosen.Terms
	if len(terms) != 5 || terms[4].Name != "policy" || terms[4].Weight != 1000 || terms[4].Value != heavy.Why.Chosen.Opinion {
		t.Errorf("terms %+v, opinion %v", terms, heavy.Why.Chosen.Opinion)
	}
	if d := plan(t, s, ask(1, 2)); d.Feasible && on(0).Why.Chosen.Terms[3].Name != "hint" {
		t.Error("rules without scores add a term")
	}
}

// The same shape under other Rules is another question.
func TestRulesAreRemembered(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s", leaf: "l1", gpus: 8, edit: inZone("a")},
		nodeSpec{name: "b1", spine: "s", leaf: "l1", gpus: 8, edit: inZone("b")},
	)
	o := Options{Cache: &Cache{}}
	for _, zone := range []string{"a", "b", "a", ""} {
		r := ask(1, 1)
		want := "a1"
		if zone != "" {
			r.Groups[0].Pod.Rules = zoneRules{refused: zone}
		}
		if zone == "a" {
			want = "b1"
		}
		if d, err := Plan(s, r, o); err != nil || d.Nodes()[0] != want {
			t.Fatalf("refusing zone %q: on %v, want %s (%v)", zone, d.Nodes(), want, err)
		}
	}
}

// BenchmarkPlanUnderRules is BenchmarkPlanSingle for pods whose policy has filters and scores.
// allocs/op must be the same.
func BenchmarkPlanUnderRules(b *testing.B) {
	for _, strategy := range []string{"leastLoaded", "topologyAware"} {
		for _, rules := range []cluster.Rules{nil, zoneRules{refused: "b", weight: 30, likes: "leaf-0000"}} {
			b.Run(fmt.Sprintf("strategy=%s/rules=%v", strategy, rules != nil), func(b *testing.B) {
				empty := benchWorld(b, 1024, none)
				o := Options{Strategies: registry(b), Cache: &Cache{}}
				r := ask(1, 1, func(r *Request) { r.Strategy = strategy })
				r.Groups[0].Pod.Rules = rules
				work := &cluster.Workload{Name: "w"}
				txn, room := empty.Begin(), 8*1024
				b.ReportAllocs()
				for b.Loop() {
					if room == 0 {
						b.StopTimer()
						txn, room = empty.Begin(), 8*1024
						b.StartTimer()
					}
					d, err := Plan(txn.Snapshot(), r, o)
					if err != nil || !d.Feasible {
						b.Fatal(err, d.Why.Sentence)
					}
					if err := txn.Place(d.Placements(r, work)...); err != nil {
						b.Fatal(err)
					}
					room--
				}
			})
		}
	}
}

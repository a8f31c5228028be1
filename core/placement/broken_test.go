package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// asking is a planner that edits the groups of the request first.
func asking(edit func(*Group)) planFunc {
	return func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
		copied := *r
		copied.Groups = slices.Clone(r.Groups)
		for i := range copied.Groups {
			g := &copied.Groups[i]
			g.Pod.Resources = slices.Clone(g.Pod.Resources)
			edit(g)
		}
		return Plan(s, &copied, o)
	}
}

// seeing is a planner that sees other nodes than there are.
func seeing(edit func(*cluster.Node)) planFunc {
	return func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
		var nodes []*cluster.Node
		for _, n := range s.Nodes() {
			copied, machine := *n, *n.Machine
			copied.Machine = &machine
			edit(&copied)
			nodes = append(nodes, &copied)
		}
		return Plan(s.Next(s.Generation+1, s.Resources, nodes), r, o)
	}
}

// saying is a planner that edits the decision.
func saying(edit func(*Decision)) planFunc {
	return func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
		d, err := Plan(s, r, o)
		edit(&d)
		return d, err
	}
}

func brokenPlanners() map[string]planFunc {
	return map[string]planFunc{
		"ignores the required level": asking(func(g *Group) { g.Topology.Required = AnyLevel }),
		"ignores slices":             asking(func(g *Group) { g.Slices = nil }),
		"ignores inner slices":       asking(func(g *Group) { g.Slices = g.Slices[:min(1, len(g.Slices))] }),
		"ignores limits":             asking(func(g *Group) { g.Limits = nil }),
		"ignores the minimum":        asking(func(g *Group) { g.MinCount = 1 }),
		"never elastic":              asking(func(g *Group) { g.MinCount = 0 }),
		"ignores included GPUs":      asking(func(g *Group) { g.Pod.Include = 0 }),
		"asks for less CPU":          asking(func(g *Group) { g.Pod.Resources[cluster.CPU] /= 2 }),
		"tolerates everything":       asking(func(g *Group) { g.Pod.Tolerations = []cluster.Toleration{{Exists: true}} }),
		"ignores the selector":       asking(func(g *Group) { g.Pod.Selector.Labels = nil }),
		"rounds shares down":         asking(func(g *Group) { g.Pod.Milli -= g.Pod.Milli / 5 }),
		"ignores sets": func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			copied := *r
			copied.Sets = nil
			return Plan(s, &copied, o)
		},
		"ignores what to avoid": func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			copied := *r
			copied.Avoid = nil
			return Plan(s, &copied, o)
		},
		"sees no use":               seeing(func(n *cluster.Node) { n.Used = nil }),
		"sees no broken GPUs":       seeing(func(n *cluster.Node) { n.Broken = 0 }),
		"sees no taken GPUs":        seeing(func(n *cluster.Node) { n.Taken = 0 }),
		"sees no shares":            seeing(func(n *cluster.Node) { n.Shares = nil }),
		"sees no instances":         seeing(func(n *cluster.Node) { n.Instances = nil }),
		"sees all instances used":   seeing(func(n *cluster.Node) { useAll(n) }),
		"sees nodes out of service": seeing(func(n *cluster.Node) { n.Ready = true }),
		"gives a GPU to two": saying(func(d *Decision) {
			for i := range d.Groups {
				for k := range d.Groups[i].GPUs {
					d.Groups[i].GPUs[k] = d.Groups[i].GPUs[0]
				}
			}
		}),
		"forgets a pod": saying(func(d *Decision) {
			for i := range d.Groups {
				a := &d.Groups[i]
				a.Nodes, a.At = a.Nodes[1:], a.At[1:]
			}
		}),
		"shuffles ranks": saying(func(d *Decision) {
			for i := range d.Groups {
				if a := &d.Groups[i]; len(a.At) > 2 && a.GPUs == nil && a.Instances == nil {
					last := len(a.At) - 1
					a.Nodes[0], a.Nodes[last], a.At[0], a.At[last] = a.Nodes[last], a.Nodes[0], a.At[last], a.At[0]
				}
			}
		}),
		"gives up too early": func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			if s.Len() > 4 {
				return Decision{}, nil
			}
			return Plan(s, r, o)
		},
	}
}

func useAll(n *cluster.Node) {
	n.Instances = slices.Clone(n.Instances)
	for i := range n.Instances {
		n.Instances[i].Used = true
	}
}

// The properties must be able to fail: each of these mistakes is found.
func TestPropertiesFindMistakes(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 6, 2, 6)
	k.devices = true
	for name, broken := range brokenPlanners() {
		t.Run(name, func(t *testing.T) {
			found := false
			until(t, 1000, &found, func(t *rapid.T) {
				s := k.world(t)
				r := k.request(t, s)
				if chance(t, 4, "limited") {
					drawLimits(t, s, &r.Groups[0])
				}
				found = judged(s, r, broken, o, tally{}) != ""
			})
			if !found {
				t.Error("the property holds for a broken planner")
			}
		})
	}
}

// A plan that is wrong only in its devices is found by the judge, whatever brute force says.
func TestJudgeFindsDevicesGivenTwice(t *testing.T) {
	k := newKit(t, 1, 1, 1)
	n := &cluster.Node{Machine: &cluster.Machine{
		Name: "a", Ready: true, Path: []string{"s", "l", "a"}, Board: k.boards[4], Geometry: k.geometry,
		Allocatable: cluster.Vector{8, 1 << 40, 110, 4},
	}}
	s := cluster.NewSnapshot(1, testLevels(), drawnResources(), []*cluster.Node{n})
	r := &Request{Strategy: "leastLoaded", Groups: []Group{{Count: 2, Topology: NoTopology(), Pod: Shape{
		GPUResource: -1, Resources: cluster.Vector{1, 1, 1}, MIG: []string{"1g.10gb"},
	}}}}
	d := plan(t, s, r)
	if problem := wrong(s, r, &d); problem != "" {
		t.Fatal(problem)
	}
	d.Groups[0].Instances[1] = d.Groups[0].Instances[0]
	if wrong(s, r, &d) == "" {
		t.Error("one instance for two pods is let pass")
	}
	r.Groups[0].Pod.MIG, r.Groups[0].Pod.Milli = nil, 600
	if d = plan(t, s, r); wrong(s, r, &d) != "" {
		t.Fatal(wrong(s, r, &d))
	}
	d.Groups[0].GPUs[1] = d.Groups[0].GPUs[0]
	if wrong(s, r, &d) == "" {
		t.Errorf("1200/1000 of GPU %v are let pass", gpu.Mask(1))
	}
}

package placement

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// story is a cluster over time, with every snapshot that there was.
type story struct {
	k    *kit
	now  *cluster.Snapshot
	past []*cluster.Snapshot
	came int
}

// happens changes the cluster, or goes back to how it was.
func (h *story) happens(t *rapid.T) {
	h.past = append(h.past, h.now)
	s := h.now
	switch oneOf(t, "what", "load", "load", "load", "machines", "pods", "back", "back", "uplinks", "comes", "goes", "resources") {
	case "load":
		h.change(t, func(n *cluster.Node) { h.k.load(t, n) })
	case "machines":
		h.change(t, func(n *cluster.Node) {
			m := h.k.machine(t, n.Name)
			m.Path = n.Path // What does not move may change otherwise.
			n.Machine = m
			h.k.load(t, n)
		})
	case "pods":
		w := &cluster.Workload{Name: "w", Mbps: 5}
		h.change(t, func(n *cluster.Node) {
			*n = *n.With(&cluster.Pod{Workload: w, Use: cluster.Vector{1, 1, 1}})
		})
	case "back":
		h.now = h.past[between(t, 0, len(h.past)-1, "to")]
	case "uplinks":
		h.now = drawUplinks(t, s)
	case "comes":
		h.came++
		h.now = cluster.NewSnapshot(s.Generation+1, s.Levels, s.Resources, append(nodesOf(s), h.k.node(t, fmt.Sprintf("new%d", h.came))))
	case "goes":
		nodes := nodesOf(s)
		i := between(t, 0, len(nodes)-1, "gone")
		h.now = cluster.NewSnapshot(s.Generation+1, s.Levels, s.Resources, slices.Delete(nodes, i, i+1))
		if len(nodes) == 1 {
			h.now = s
		}
	case "resources":
		h.now = s.Next(s.Generation+1, s.Resources.With(fmt.Sprintf("example.com/r%d", s.Resources.Len())), nil)
	}
}

// change edits copies of some nodes.
func (h *story) change(t *rapid.T, edit func(*cluster.Node)) {
	var changed []*cluster.Node
	for _, n := range h.now.Nodes() {
		if chance(t, 3, "changes") {
			own := *n
			edit(&own)
			changed = append(changed, &own)
		}
	}
	h.now = h.now.Next(h.now.Generation+1, h.now.Resources, changed)
}

func nodesOf(s *cluster.Snapshot) []*cluster.Node {
	var nodes []*cluster.Node
	for _, n := range s.Nodes() {
		nodes = append(nodes, n)
	}
	return nodes
}

// differs tells a story and asks at every turn with a memory and without; it returns where the
// answers are not the same.
func differs(t *rapid.T, k *kit, remembers planFunc, o Options) string {
	h := &story{k: k, now: k.world(t)}
	scorings := []*Scoring{nil, DefaultScoring(), {Node: NodeWeights{Resources: 1}, Hint: map[string]float64{"n1": 90}}}
	var asked []*Request
	o.Cache = &Cache{}
	for range between(t, 1, 10, "turns") {
		h.happens(t)
		for range between(t, 1, 3, "questions") {
			if len(asked) == 0 || chance(t, 2, "new") {
				r := k.request(t, h.now)
				if chance(t, 4, "bandwidth") && len(r.Groups[0].Slices) == 0 {
					drawMbps(t, r)
				}
				if chance(t, 6, "limited") {
					drawLimits(t, h.now, &r.Groups[0])
				}
				asked = append(asked, r)
			}
			r := asked[between(t, 0, len(asked)-1, "question")]
			o.Scoring, o.Explain = scorings[between(t, 0, len(scorings)-1, "scoring")], rapid.Bool().Draw(t, "explain")
			fresh := o
			fresh.Cache = nil
			want, err := Plan(h.now, r, fresh)
			got, again := remembers(h.now, r, o)
			if !reflect.DeepEqual(want, got) || fmt.Sprint(err) != fmt.Sprint(again) {
				return fmt.Sprintf("without a memory %+v %v, with one %+v %v%s", want, err, got, again, show(h.now, r))
			}
			if chance(t, 4, "reuses the request") {
				scribble(r)
			}
		}
	}
	return ""
}

// scribble changes what a caller may change of a request once it is answered.
func scribble(r *Request) {
	q := &r.Groups[0].Pod
	q.Resources[cluster.CPU]++
	if q.Selector.Labels != nil {
		q.Selector.Labels["zone"] = "b"
	}
	if len(q.MIG) > 0 {
		q.MIG[0] = "2g.20gb"
	}
}

func TestMemoryNeverChangesAnAnswer(t *testing.T) {
	// A long search would ask the same questions only more often.
	o := Options{Strategies: registry(t), Budget: 300}
	k := newKit(t, 8, 3, 8)
	k.devices = true
	if raced {
		k.groups = 2 // A third costs as much as the other two.
	}
	cases(t, 2000, func(t *rapid.T) {
		if problem := differs(t, k, Plan, o); problem != "" {
			t.Fatal(problem)
		}
	})
}

// Also where the snapshot has several chunks, and more nodes than fit in one.
func TestMemoryOfLargerClusters(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 8, 1, 8)
	cases(t, 300, func(t *rapid.T) {
		k.nodes = between(t, 60, 150, "most nodes")
		if problem := differs(t, k, Plan, o); problem != "" {
			t.Fatal(problem)
		}
	})
}

// forgetting is a planner with a memory that is tampered with before every question.
func forgetting(tamper func(v *view, s *cluster.Snapshot)) planFunc {
	return caught(func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
		for c := o.Cache; c != nil; c = c.trial {
			for _, v := range c.views {
				if v.at != nil && v.at.SameFrame(s) && v.at.Resources == s.Resources {
					tamper(v, s)
				}
			}
		}
		return Plan(s, r, o)
	})
}

// caught is a planner with a memory that is tampered with, of which a panic is an answer, too.
func caught(plan planFunc) planFunc {
	return func(s *cluster.Snapshot, r *Request, o Options) (d Decision, err error) {
		defer func() {
			if problem := recover(); problem != nil {
				err = fmt.Errorf("panic: %v", problem)
			}
		}()
		return plan(s, r, o)
	}
}

func TestForgettingIsFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 8, 2, 8)
	k.devices = true
	// What matters to single pods only is drawn of them only: else it takes long to be found.
	single := newKit(t, 8, 1, 1)
	single.devices = true
	for name, broken := range map[string]planFunc{
		"nodes that changed": forgetting(func(v *view, s *cluster.Snapshot) { v.at = s }),
		"machines that changed": forgetting(func(v *view, s *cluster.Snapshot) {
			kinds := slices.Clone(v.kinds)
			v.sync(s)
			for i := range kinds {
				v.kinds[i] = kinds[i]
				v.take(s, i, s.At(i))
			}
		}),
		"opinions of machines that changed": forgetting(func(v *view, s *cluster.Snapshot) {
			was := slices.Clone(v.opinions)
			v.sync(s)
			copy(v.opinions, was)
			v.rankings = nil
		}),
		"whose rules they were": caught(func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			for _, v := range o.Cache.views {
				v.need.Rules = r.Groups[0].Pod.Rules
			}
			return Plan(s, r, o)
		}),
		"rankings": forgetting(func(v *view, s *cluster.Snapshot) {
			was := v.rankings
			v.rankings = nil
			v.sync(s)
			v.rankings = was
		}),
		"the census": forgetting(func(v *view, s *cluster.Snapshot) {
			was := v.counted
			v.counted = nil
			v.sync(s)
			v.counted = was
		}),
		"which shape it was": caught(func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			for _, v := range o.Cache.views {
				v.hash, v.need.Shape = hashShape(&r.Groups[0].Pod), *cloneShape(&r.Groups[0].Pod)
			}
			return Plan(s, r, o)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			k, found := k, false
			if name == "rankings" || name == "the census" || name == "opinions of machines that changed" {
				k = single
			}
			until(t, 1000, &found, func(t *rapid.T) {
				found = differs(t, k, broken, o) != ""
			})
			if !found {
				t.Error("the property holds for a memory that forgets")
			}
		})
	}
}

package placement

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// request draws a request of up to so many groups, with sets if there are several.
func (k *kit) request(t *rapid.T, s *cluster.Snapshot) *Request {
	r := &Request{Name: "test/drawn", Seed: rapid.Uint64Range(0, 99).Draw(t, "seed")}
	builtin := Builtin()
	r.Strategy = builtin[between(t, 0, len(builtin)-1, "strategy")].Name()
	left := k.pods
	for i := range between(t, 1, k.groups, "groups") {
		if left > 0 {
			r.Groups = append(r.Groups, k.group(t, fmt.Sprintf("g%d", i), min(left, 6)))
			left -= r.Groups[i].Count
		}
	}
	if n := len(r.Groups); n > 1 {
		k.sets(t, r, n)
	}
	if chance(t, 10, "avoid") {
		r.Avoid = []string{s.At(between(t, 0, s.Len()-1, "avoided")).Name, "gone"}
	}
	return r
}

// sets draws none, one, or two of which one holds the other.
func (k *kit) sets(t *rapid.T, r *Request, n int) {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	first := between(t, 0, n-2, "first of the set")
	switch between(t, 0, 3, "sets") {
	case 1:
		r.Sets = []Set{{Groups: all, Topology: drawTopology(t)}}
	case 2:
		r.Sets = []Set{{Groups: all[first : first+2], Topology: drawTopology(t)}}
	case 3:
		r.Sets = []Set{{Groups: all[first : first+2], Topology: drawTopology(t)}, {Groups: all, Topology: drawTopology(t)}}
	}
}

func drawTopology(t *rapid.T) Topology {
	top := NoTopology()
	if rapid.Bool().Draw(t, "requires") {
		top.Required = between(t, spine, host, "required")
	}
	if chance(t, 3, "prefers") {
		top.Preferred = between(t, spine, host, "preferred")
	}
	return top
}

func (k *kit) group(t *rapid.T, name string, most int) Group {
	g := Group{Name: name, Count: between(t, 1, most, "count"), Pod: k.shape(t), Topology: drawTopology(t)}
	if chance(t, 3, "elastic") {
		g.MinCount = between(t, 1, g.Count, "least")
	}
	if chance(t, 3, "sliced") {
		g.Slices = drawSlices(t, &g)
	}
	return g
}

// drawSlices draws one layer or two; their sizes need not divide the count.
func drawSlices(t *rapid.T, g *Group) []Slice {
	first := Slice{Level: between(t, max(spine, g.Topology.Required), host, "slice level"), Size: between(t, 1, 4, "slice")}
	if first.Level == host || first.Size%2 > 0 || !rapid.Bool().Draw(t, "nested") {
		return []Slice{first}
	}
	inner := Slice{Level: between(t, first.Level+1, host, "inner level"), Size: first.Size / oneOf(t, "of", 1, 2)}
	return []Slice{first, inner}
}

// drawLimits draws caps by node for one of the groups.
func drawLimits(t *rapid.T, s *cluster.Snapshot, g *Group) {
	g.Limits = map[string]int{}
	for _, n := range s.Nodes() {
		if rapid.Bool().Draw(t, "named") {
			g.Limits[n.Name] = between(t, 0, 3, "limit")
		}
	}
}

// drawKept draws members that stay: on nodes of one domain of the required level, as they were
// placed by the same rule.
func drawKept(t *rapid.T, s *cluster.Snapshot, g *Group, most int) {
	var home *cluster.Node
	for range between(t, 1, most, "kept") {
		n := s.At(between(t, 0, s.Len()-1, "kept on"))
		if home == nil {
			home = n
		}
		if level := g.Topology.Required; level < 0 || key(n, level) != "" && key(n, level) == key(home, level) {
			g.Kept = append(g.Kept, n.Name)
		}
	}
}

package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// question is a scenario's request as the engine takes it.
type question struct {
	*world
	snapshot *cluster.Snapshot
	strategy string
	// parts are the groups that something is asked for; groups without are left out.
	parts []part
}

// part is a group of the scenario with what is to be placed of it.
type part struct {
	*Group
	// count is how many pods are wanted, least how few will do: 0 if none have to be placed.
	count, least int
	// kept are the nodes of the members that stay, limits the most by node.
	kept   []string
	limits map[string]int
	// lost are the members that are replaced.
	lost []string
}

// asking is a request with the parts that its groups are, in their order.
type asking struct {
	request *placement.Request
	parts   []part
}

// request asks for the parts whose index is not in without.
func (q *question) request(without []int) *asking {
	r := &placement.Request{
		Name:     q.Request.Name,
		Strategy: q.strategy,
		Priority: q.Request.Priority,
		Preempts: q.Request.Preemption == "lowerPriority" && q.Defragment == nil,
	}
	var asked []part
	for i, p := range q.parts {
		if !slices.Contains(without, i) {
			asked = append(asked, p)
			r.Groups = append(r.Groups, q.group(&p))
		}
	}
	index := func(name string) int {
		return slices.IndexFunc(asked, func(p part) bool { return p.Name == name })
	}
	for _, set := range q.sets() {
		var members []int
		for _, name := range set.Groups {
			if i := index(name); i >= 0 {
				members = append(members, i)
			}
		}
		if len(members) == 0 {
			continue
		}
		r.Sets = append(r.Sets, placement.Set{Groups: members, Topology: q.topology(set.Required, set.Preferred)})
		q.lean(r, set, members)
	}
	return &asking{request: r, parts: asked}
}

// lean makes the groups of a set keep near the members of its groups that are not asked about:
// the engine knows those only as what stays beside a group. Where slices count what stays,
// strangers would be counted, too, so another group of the set is taken if there is one.
func (q *question) lean(r *placement.Request, set Set, members []int) {
	var others []string
	for _, name := range set.Groups {
		if !slices.ContainsFunc(members, func(i int) bool { return r.Groups[i].Name == name }) {
			others = append(others, q.staying(name)...)
		}
	}
	if len(others) == 0 {
		return
	}
	at := members[0]
	for _, i := range members {
		if len(r.Groups[i].Slices) == 0 {
			at = i
			break
		}
	}
	g := &r.Groups[at]
	g.Kept = append(slices.Clone(g.Kept), others...)
	if g.Topology.Required == placement.AnyLevel {
		g.Topology = q.topology(set.Required, set.Preferred)
	}
}

// sets are those that the scenario lists, and those of groups that are together.
func (q *question) sets() []Set {
	sets := slices.Clone(q.Request.Sets)
	byName := map[string]int{}
	for _, g := range q.Request.Groups {
		if g.Together == "" {
			continue
		}
		i, known := byName[g.Together]
		if !known {
			i = len(sets)
			byName[g.Together] = i
			sets = append(sets, Set{})
		}
		sets[i].Groups = append(sets[i].Groups, g.Name)
		if g.Topology.Required != "" {
			sets[i].Required = g.Topology.Required
		}
		if g.Topology.Preferred != "" {
			sets[i].Preferred = g.Topology.Preferred
		}
	}
	return slices.DeleteFunc(sets, func(s Set) bool { return s.Required == "" && s.Preferred == "" })
}

func (q *question) topology(required, preferred string) placement.Topology {
	// AnyLevel is what Index returns for a level that is not there, which "" is not.
	return placement.Topology{Required: slices.Index(q.Levels, required), Preferred: slices.Index(q.Levels, preferred)}
}

func (q *question) group(p *part) placement.Group {
	g := placement.Group{
		Name:         p.Name,
		Count:        p.count,
		MinCount:     max(1, p.least),
		Pod:          q.shape(p.Group),
		Topology:     q.topology(p.Topology.Required, p.Topology.Preferred),
		Mbps:         p.BandwidthMbps,
		Kept:         p.kept,
		KeptInSlices: len(p.kept) > 0,
		Limits:       p.limits,
	}
	if p.Together != "" {
		g.Topology = placement.NoTopology()
	}
	for _, s := range p.Slice {
		g.Slices = append(g.Slices, placement.Slice{Level: slices.Index(q.Levels, s.Level), Size: s.Size})
	}
	return g
}

func (q *question) shape(g *Group) placement.Shape {
	shape := placement.Shape{
		Resources:       q.podVector(g.Requests),
		GPUResourceName: gpuResourceOf(g),
		GPU: cluster.GPUFacts{
			Product: g.GPU.Product, Architecture: strings.ToLower(g.GPU.Architecture), MemoryMiB: g.GPU.MinMemoryMiB,
		},
		Milli:       g.GPUMilli,
		MIG:         g.MIG,
		Include:     gpu.MaskOf(g.GPUsInclude...),
		Prefer:      placement.Preference(g.Prefer),
		Selector:    selector(g),
		Tolerations: tolerations(g),
		Rules:       q.rules,
	}
	shape.GPUResource = q.resources.Index(shape.GPUResourceName)
	shape.GPUs = g.Requests[shape.GPUResourceName]
	for _, name := range slices.Sorted(maps.Keys(g.Requests)) {
		if g.Requests[name] > 0 && name != shape.GPUResourceName && q.resources.Index(name) < 0 {
			shape.Missing = name
			break
		}
	}
	for _, t := range g.Affinity.Preferred {
		shape.Likes = append(shape.Likes, placement.Like{Term: term(t.Preference), Weight: t.Weight})
	}
	return shape
}

// gpuResourceOf returns the name of what counts as a GPU for the group's pods.
func gpuResourceOf(g *Group) string {
	if g.Requests[gpuResource] > 0 {
		return gpuResource
	}
	for _, name := range slices.Sorted(maps.Keys(g.Requests)) {
		if g.Requests[name] > 0 && countsGPUs(name) {
			return name
		}
	}
	return gpuResource
}

// countsGPUs tells whether a resource counts GPUs, or parts of them, of some vendor.
func countsGPUs(name string) bool {
	vendor, what, _ := strings.Cut(name, "/")
	return what == "gpu" || what == "gpu.shared" || strings.HasPrefix(what, "mig-") || strings.HasPrefix(vendor, "gpu.")
}

func selector(g *Group) cluster.Selector {
	s := cluster.Selector{Labels: g.NodeSelector}
	if g.Affinity.Required != nil {
		for _, t := range g.Affinity.Required.Terms {
			s.Terms = append(s.Terms, term(t))
		}
	}
	return s
}

func term(t SelectorTerm) cluster.Term {
	var all cluster.Term
	for _, r := range t.Expressions {
		all = append(all, cluster.Requirement{Key: r.Key, Operator: cluster.Operator(r.Operator), Values: r.Values})
	}
	for _, r := range t.Fields {
		all = append(all, cluster.Requirement{Key: r.Key, Operator: cluster.Operator(r.Operator), Values: r.Values, Field: true})
	}
	return all
}

func tolerations(g *Group) []cluster.Toleration {
	var all []cluster.Toleration
	for _, t := range g.Tolerations {
		all = append(all, cluster.Toleration{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect), Exists: t.Operator == "Exists"})
	}
	return all
}

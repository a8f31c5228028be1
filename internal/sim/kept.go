package sim

import (
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// ask works out what is to be placed of each group, beside what stays of it.
func (w *world) ask(strategy string) *question {
	q := &question{world: w, snapshot: w.snapshot, strategy: strategy}
	switch {
	case len(w.Request.Replaces) > 0:
		q.replace()
	default:
		q.continuing(w.previousHolds())
	}
	return q
}

// replace asks for the lost members alone.
func (q *question) replace() {
	for i := range q.Request.Groups {
		g := &q.Request.Groups[i]
		var lost []string
		for k := range q.Running {
			if r := &q.Running[k]; r.lost(q.Scenario) && q.groupOf(r) == g.Name {
				lost = append(lost, r.Name)
			}
		}
		if n := len(lost); n > 0 {
			q.parts = append(q.parts, part{Group: g, count: n, least: n, lost: lost, kept: q.staying(g.Name)})
		}
	}
}

// groupOf returns the group of the request that a member belongs to.
func (q *question) groupOf(r *Running) string {
	if r.Group == "" {
		return q.Request.Groups[0].Name
	}
	return r.Group
}

// staying returns the nodes of the members of a group that stay where they are.
func (q *question) staying(group string) []string {
	var nodes []string
	if len(q.Request.Replaces) > 0 {
		for k := range q.Running {
			if r := &q.Running[k]; r.member(q.Scenario) && r.holds(q.Scenario) && q.groupOf(r) == group {
				nodes = append(nodes, r.Node)
			}
		}
		return nodes
	}
	for i := range q.Request.Groups {
		if g := &q.Request.Groups[i]; g.Name == group && q.keepsAll(g) {
			for _, node := range slices.Sorted(maps.Keys(g.Previous)) {
				nodes = append(nodes, slices.Repeat([]string{node}, g.Previous[node])...)
			}
		}
	}
	return nodes
}

// previousHolds tells whether the nodes of all previous pods are still there: members that lost
// others are placed afresh with them.
func (w *world) previousHolds() bool {
	for _, g := range w.Request.Groups {
		for node := range g.Previous {
			if w.snapshot.IndexOf(node) < 0 {
				return false
			}
		}
	}
	return true
}

// keepsAll tells whether the group keeps all of its previous pods.
func (w *world) keepsAll(g *Group) bool {
	return len(g.Previous) > 0 && g.previousCount() <= g.Count && w.previousHolds()
}

func (g *Group) previousCount() int {
	sum := 0
	for _, n := range g.Previous {
		sum += n
	}
	return sum
}

// least returns the smallest size of the group that is still useful.
func (g *Group) least() int {
	if g.MinCount != nil {
		return *g.MinCount
	}
	return g.Count
}

// continuing asks for the groups beside what they have already: a group that grows keeps it,
// one that shrinks keeps a part of it.
func (q *question) continuing(holds bool) {
	held := map[string]*cluster.Node{}
	for i := range q.Request.Groups {
		g := &q.Request.Groups[i]
		p := part{Group: g, count: g.Count, least: g.least()}
		switch had := g.previousCount(); {
		case had == 0 || !holds:
		case had > g.Count:
			p.limits = g.Previous
		default:
			p.kept = q.staying(g.Name)
			p.count -= had
			p.least = max(0, p.least-had)
			for _, name := range p.kept {
				if held[name] == nil {
					held[name] = q.snapshot.Node(name)
				}
				held[name] = held[name].With(q.member(held[name], g))
			}
		}
		if p.count > 0 {
			q.parts = append(q.parts, p)
		}
	}
	if len(held) == 0 {
		return
	}
	var changed []*cluster.Node
	for _, name := range slices.Sorted(maps.Keys(held)) {
		changed = append(changed, held[name])
	}
	q.snapshot = q.snapshot.Next(q.snapshot.Generation+1, q.resources, changed)
}

// withShrinking is the cluster with the previous pods of the groups that shrink. The engine is
// asked without them, as it has to find out which of them stay.
func (q *question) withShrinking() *cluster.Snapshot {
	held := map[string]*cluster.Node{}
	for _, p := range q.parts {
		for name, n := range p.limits {
			for range n {
				if held[name] == nil {
					held[name] = q.snapshot.Node(name)
				}
				held[name] = held[name].With(q.member(held[name], p.Group))
			}
		}
	}
	var changed []*cluster.Node
	for _, name := range slices.Sorted(maps.Keys(held)) {
		changed = append(changed, held[name])
	}
	return q.snapshot.Next(q.snapshot.Generation, q.resources, changed)
}

// member is a previous pod of the group on its node. Nobody said which devices it has, only that
// it has some: the best ones are held for it, so that none are given out twice.
func (q *question) member(n *cluster.Node, g *Group) *cluster.Pod {
	p := &cluster.Pod{Workload: q.own(), Group: g.Name, Use: q.podVector(g.Requests)}
	if n.Board == nil {
		return p
	}
	switch {
	case g.Requests[gpuResource] > 0:
		p.GPUs, _ = n.Board.Best(n.WholeGPUs(), int(g.Requests[gpuResource]), gpu.MaskOf(g.GPUsInclude...))
	case g.GPUMilli > 0:
		fullest := -1
		for i := range n.Board.Count() {
			if free := n.FreeShare(i); free >= g.GPUMilli && (fullest < 0 || free < n.FreeShare(fullest)) {
				fullest = i
			}
		}
		p.GPUs, p.Milli = gpu.MaskOf(fullest), g.GPUMilli
	case len(g.MIG) > 0 && n.Geometry != nil:
		p.Instances, _, _ = n.Geometry.Place(n.Instances, n.PartitionGPUs(), g.MIG)
	}
	return p
}

// own is the workload that the request is about, as far as it runs.
func (w *world) own() *cluster.Workload {
	name := w.Request.Name
	own := w.workloads[name]
	if own == nil {
		own = &cluster.Workload{Name: name, Priority: w.Request.Priority}
		for i := range w.Request.Groups {
			own.Mbps = max(own.Mbps, w.Request.Groups[i].BandwidthMbps)
		}
		w.workloads[name] = own
	}
	return own
}

package sim

import (
	"maps"
	"slices"
)

// allExpected checks that what is expected can be compared with an answer at all.
func (c *checker) allExpected() {
	e := c.Expect
	if e == nil {
		return
	}
	p := path{"expect"}
	if e.Invalid && e.Feasible != nil && *e.Feasible {
		c.bad(p.with("feasible"), "is true beside invalid; expected false: what contradicts itself cannot be met")
	}
	for _, group := range slices.Sorted(maps.Keys(e.Placement)) {
		c.isGroup(p.with("placement", group), group)
		for _, node := range slices.Sorted(maps.Keys(e.Placement[group])) {
			c.isNode(p.with("placement", group, node), node)
			c.atLeast(p.with("placement", group, node), int64(e.Placement[group][node]), 0)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(e.Domains)) {
		c.isGroup(p.with("domains", group), group)
	}
	for i, node := range e.Nodes {
		c.isNode(p.with("nodes", i), node)
	}
	for _, node := range slices.Sorted(maps.Keys(e.GPUs)) {
		c.isNode(p.with("gpus", node), node)
	}
	for i, w := range e.Victims {
		if !slices.ContainsFunc(c.Running, func(r Running) bool { return r.workload() == w }) {
			c.bad(p.with("victims", i), "%q is no workload under running; expected one of them", w)
		}
	}
	for i, m := range e.MIG {
		if m.Node != "" {
			c.isNode(p.with("mig", i, "node"), m.Node)
		}
	}
}

func (c *checker) isGroup(p path, name string) {
	if !slices.ContainsFunc(c.Request.Groups, func(g Group) bool { return g.Name == name }) {
		c.bad(p, "is no group of the request; expected one of them")
	}
}

func (c *checker) isNode(p path, name string) {
	if c.nodes[name] == nil {
		c.bad(p, "is not there; expected the name of one of the nodes")
	}
}

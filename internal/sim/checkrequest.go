package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// maxCount bounds the pods of one group: as many as the largest clusters run.
const maxCount = 1 << 20

// maxInstances bounds the MIG instances of one pod.
const maxInstances = 64

// mostInAll bounds what a group asks for in all, with room to add up a few of them in 63 bits.
const mostInAll = 1 << 58

func (c *checker) request() {
	r, p := &c.Request, path{"request"}
	if r.Name == "" {
		c.bad(p.with("name"), "is missing; expected the name of the workload")
	}
	c.oneOf(p.with("preemption"), r.Preemption, "", "never", "lowerPriority")
	if r.Strategy != "" {
		c.oneOf(p.with("strategy"), r.Strategy, strategies()...)
	}
	if len(r.Groups) == 0 {
		c.bad(p.with("groups"), "is empty; expected at least one group of pods")
	}
	names := map[string]bool{}
	for i := range r.Groups {
		g := &r.Groups[i]
		at := p.with("groups", i)
		c.named(at.with("name"), g.Name, "group", names)
		c.group(at, g)
	}
	c.together(p.with("groups"))
	c.sets(p.with("sets"))
	c.replaces(p.with("replaces"))
	c.runtime(p.with("runtime"), r.Runtime)
}

func (c *checker) group(p path, g *Group) {
	c.counts(p, g)
	for _, name := range slices.Sorted(maps.Keys(g.Requests)) {
		if amount := g.Requests[name]; g.Count > 0 && amount > mostInAll/int64(g.Count) {
			c.bad(p.with("requests", name), "is %s for each of %s; expected up to %s", show(name, amount), counted(g.Count, "pod"), show(name, mostInAll/int64(g.Count)))
		}
	}
	c.devices(p, g)
	c.selection(p, g)
	c.topology(p.with("topology"), g.Topology.Required, g.Topology.Preferred)
	c.slices(p.with("slice"), g)
	c.atLeast(p.with("bandwidthMbps"), g.BandwidthMbps, 0)
	for _, node := range slices.Sorted(maps.Keys(g.Previous)) {
		c.atLeast(p.with("previous", node), int64(g.Previous[node]), 1)
	}
}

func (c *checker) counts(p path, g *Group) {
	switch {
	case !c.src.has(p.with("count")):
		c.bad(p.with("count"), "is missing; expected how many pods there are to be, at least 1")
	case g.Count < 1:
		c.bad(p.with("count"), "is %d; expected how many pods there are to be, at least 1", g.Count)
	case g.Count > maxCount:
		c.bad(p.with("count"), "is %d; expected up to %d", g.Count, maxCount)
	case g.MinCount != nil && *g.MinCount < 1:
		c.bad(p.with("minCount"), "is %d; expected at least 1", *g.MinCount)
	case g.MinCount != nil && *g.MinCount > g.Count:
		c.bad(p.with("minCount"), "is %d, but count is %d; expected no more than count", *g.MinCount, g.Count)
	}
}

// devices checks what a pod asks of GPUs.
func (c *checker) devices(p path, g *Group) {
	c.milli(p.with("gpuMilli"), g.GPUMilli)
	c.oneOf(p.with("prefer"), g.Prefer, "", "nvlink", "numa", "pcie")
	c.atLeast(p.with("gpu", "minMemoryMiB"), g.GPU.MinMemoryMiB, 0)
	whole := g.Requests[gpuResource]
	for k, profile := range g.MIG {
		switch {
		case profile == "":
			c.bad(p.with("mig", k), "is empty; expected a MIG profile such as 1g.10gb")
		case k < maxInstances && !slices.Contains(g.MIG[:k], profile) && !c.isProfile(profile):
			c.bad(p.with("mig", k), "%q is a profile of no GPU that is known, nor among the migProfiles of a node; expected one such as 1g.10gb", profile)
		}
	}
	if len(g.MIG) > maxInstances {
		c.bad(p.with("mig"), "has %d instances; expected up to %d", len(g.MIG), maxInstances)
	}
	if whole > 0 && g.GPUMilli > 0 {
		c.bad(p.with("gpuMilli"), "stands beside %s in requests; expected one of the two", counted(int(whole), "whole GPU"))
	}
	if len(g.MIG) > 0 && (whole > 0 || g.GPUMilli > 0) {
		c.bad(p.with("mig"), "stands beside whole GPUs or a share of one; expected one of them")
	}
	include := c.indexes(p.with("gpusInclude"), g.GPUsInclude, maxGPUs)
	switch {
	case len(include) > 0 && whole == 0:
		c.bad(p.with("gpusInclude"), "names GPUs, but the pod asks for none; expected %s in requests", gpuResource)
	case int64(len(include)) > whole:
		c.bad(p.with("gpusInclude"), "names %s, but the pod asks for %d; expected no more", counted(len(include), "GPU"), whole)
	}
}

// selection checks what narrows the nodes.
func (c *checker) selection(p path, g *Group) {
	c.tolerations(p.with("tolerations"), g.Tolerations)
	c.affinity(p.with("affinity"), &g.Affinity)
}

func (c *checker) tolerations(p path, all []Toleration) {
	for i, t := range all {
		at := p.with(i)
		c.oneOf(at.with("operator"), t.Operator, "", "Equal", "Exists")
		c.oneOf(at.with("effect"), t.Effect, "", "NoSchedule", "PreferNoSchedule", "NoExecute")
		switch {
		case t.Key == "" && t.Operator != "Exists":
			c.bad(at, "has no key; expected one, or the operator Exists, which then tolerates everything")
		case t.Operator == "Exists" && t.Value != "":
			c.bad(at.with("value"), "is %q beside the operator Exists; expected none", t.Value)
		}
	}
}

func (c *checker) affinity(p path, a *Affinity) {
	if r := a.Required; r != nil {
		at := p.with("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(r.Terms) == 0 {
			c.bad(at, "is empty; expected at least one term")
		}
		for i, t := range r.Terms {
			c.term(at.with(i), t)
		}
	}
	for i, t := range a.Preferred {
		at := p.with("preferredDuringSchedulingIgnoredDuringExecution", i)
		if t.Weight < 1 || t.Weight > 100 {
			c.bad(at.with("weight"), "is %d; expected 1 to 100", t.Weight)
		}
		c.term(at.with("preference"), t.Preference)
	}
}

func (c *checker) term(p path, t SelectorTerm) {
	for i, r := range t.Expressions {
		c.requirement(p.with("matchExpressions", i), r, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
	}
	for i, r := range t.Fields {
		c.oneOf(p.with("matchFields", i, "key"), r.Key, "metadata.name")
		c.requirement(p.with("matchFields", i), r, "In", "NotIn")
	}
}

func (c *checker) requirement(p path, r Requirement, operators ...string) {
	if r.Key == "" {
		c.bad(p.with("key"), "is missing; expected the key of a label")
	}
	if !c.oneOf(p.with("operator"), r.Operator, operators...) {
		return
	}
	switch r.Operator {
	case "In", "NotIn":
		if len(r.Values) == 0 {
			c.bad(p.with("values"), "is empty; expected at least one value for %s", r.Operator)
		}
	case "Exists", "DoesNotExist":
		if len(r.Values) > 0 {
			c.bad(p.with("values"), "has %s; expected none for %s", counted(len(r.Values), "value"), r.Operator)
		}
	case "Gt", "Lt":
		if len(r.Values) != 1 {
			c.bad(p.with("values"), "has %s; expected one for %s", counted(len(r.Values), "value"), r.Operator)
		} else if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			c.bad(p.with("values", 0), "is %q; expected a whole number in quotes for %s", r.Values[0], r.Operator)
		}
	}
}

// slices checks slices: from the outermost on, each inside the one before.
func (c *checker) slices(p path, g *Group) {
	outside, size := -1, 0
	if i := slices.Index(c.Levels, g.Topology.Required); i >= 0 {
		outside = i
	}
	for i, s := range g.Slice {
		at := p
		if len(g.Slice) > 1 {
			at = p.with(i)
		}
		l := -1
		if s.Level == "" {
			c.bad(at.with("level"), "is missing; expected the level of which one domain holds a slice")
		} else {
			l = c.level(at.with("level"), s.Level)
		}
		switch {
		case s.Size == 0 && !c.src.has(at.with("size")):
			c.bad(at.with("size"), "is missing; expected how many pods share one domain of %s", s.Level)
		case s.Size < 1:
			c.bad(at.with("size"), "is %d; expected at least 1", s.Size)
		case size > 0 && (s.Size > size || size%s.Size != 0):
			c.bad(at.with("size"), "is %d inside slices of %d; expected a size that divides them", s.Size, size)
		}
		switch {
		case l < 0:
		case i == 0 && l < outside:
			c.bad(at.with("level"), "%s is wider than the required level, %s; expected that level or one inside it", s.Level, c.Levels[outside])
		case i > 0 && l <= outside:
			c.bad(at.with("level"), "%s is not inside the level of the slices around it, %s; expected a narrower one", s.Level, c.Levels[outside])
		}
		outside, size = max(outside, l), s.Size
	}
}

// together checks that groups of one set do not ask for different things.
func (c *checker) together(p path) {
	type asked struct{ level, group string }
	required, preferred := map[string]asked{}, map[string]asked{}
	for i, g := range c.Request.Groups {
		if g.Together == "" {
			continue
		}
		for _, t := range []struct {
			field, level string
			seen         map[string]asked
		}{{"required", g.Topology.Required, required}, {"preferred", g.Topology.Preferred, preferred}} {
			if t.level == "" {
				continue
			}
			if first, ok := t.seen[g.Together]; ok && first.level != t.level {
				c.bad(p.with(i, "topology", t.field), "is %s, but group %s, which keeps together with it, has %s; expected the same", t.level, first.group, first.level)
				continue
			}
			t.seen[g.Together] = asked{t.level, g.Name}
		}
		if g.Topology.Required == "" || g.Topology.Preferred == "" { // both of one group were compared
			c.inward(p.with(i, "topology"), required[g.Together].level, preferred[g.Together].level)
		}
	}
}

// sets checks that of two sets one holds the other, or they have no group in common.
func (c *checker) sets(p path) {
	type set struct {
		name    string
		members map[string]bool
	}
	var all []set
	byTogether := map[string]map[string]bool{}
	for _, g := range c.Request.Groups {
		if g.Together != "" {
			if byTogether[g.Together] == nil {
				byTogether[g.Together] = map[string]bool{}
			}
			byTogether[g.Together][g.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byTogether)) {
		all = append(all, set{"the groups that are together as " + name, byTogether[name]})
	}
	for i, s := range c.Request.Sets {
		at := p.with(i)
		c.topology(at, s.Required, s.Preferred)
		if s.Required == "" && s.Preferred == "" {
			c.bad(at, "asks for no level; expected required, preferred or both")
		}
		if len(s.Groups) == 0 {
			c.bad(at.with("groups"), "is empty; expected names of groups")
		}
		members := map[string]bool{}
		for k, name := range s.Groups {
			switch {
			case !slices.ContainsFunc(c.Request.Groups, func(g Group) bool { return g.Name == name }):
				c.bad(at.with("groups", k), "%q is no group of the request; expected one of them", name)
			case members[name]:
				c.bad(at.with("groups", k), "%q is there twice; expected each once", name)
			}
			members[name] = true
		}
		for _, other := range all {
			if !nested(members, other.members) {
				c.bad(at.with("groups"), "shares some groups with %s, but neither holds the other; expected sets inside each other or apart", other.name)
				break
			}
		}
		all = append(all, set{fmt.Sprintf("sets[%d]", i), members})
	}
}

// nested tells whether one of the two holds the other, or they have nothing in common.
func nested(a, b map[string]bool) bool {
	common := 0
	for name := range a {
		if b[name] {
			common++
		}
	}
	return common == 0 || common == len(a) || common == len(b)
}

func (c *checker) replaces(p path) {
	seen := map[string]bool{}
	for i, name := range c.Request.Replaces {
		k := slices.IndexFunc(c.Running, func(r Running) bool { return r.Name == name })
		switch {
		case k < 0:
			c.bad(p.with(i), "%q is no pod under running; expected the name of one that is lost", name)
		case !c.Running[k].member(c.Scenario):
			c.bad(p.with(i), "%q is a pod of workload %s; expected one of %s, which the request is about", name, c.Running[k].workload(), c.Request.Name)
		case seen[name]:
			c.bad(p.with(i), "%q is there twice; expected each once", name)
		}
		seen[name] = true
	}
	if len(c.Request.Replaces) == 0 {
		return
	}
	for i, g := range c.Request.Groups {
		if len(g.Previous) > 0 {
			c.bad(path{"request", "groups", i, "previous"}, "stands beside replaces; expected one of the two")
		}
	}
}

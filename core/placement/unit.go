package placement

import (
	"cmp"
	"slices"
)

// unit is what is placed together: a set of groups with what is inside it, or one group. The
// units of a request form a tree, whose root is the whole request.
type unit struct {
	topology Topology
	// group is the index of the unit's only group, -1 for a set.
	group int
	// groups are the indexes of all groups inside; parts are the units directly inside.
	groups []int
	parts  []*unit
}

// units returns the root of the request's tree of units. The sets are known to be inside one
// another or apart. What is hardest to place comes first.
func (p *planner) units() *unit {
	r := p.request
	root := &unit{topology: NoTopology(), group: -1}
	sets := slices.Clone(r.Sets)
	slices.SortStableFunc(sets, func(a, b Set) int { return cmp.Compare(len(b.Groups), len(a.Groups)) })
	for i := range r.Groups {
		root.groups = append(root.groups, i)
	}
	for _, set := range sets {
		home := root.innermost(set.Groups[0], len(set.Groups))
		home.parts = append(home.parts, &unit{topology: set.Topology, group: -1, groups: set.Groups})
	}
	for i := range r.Groups {
		home := root.innermost(i, 1)
		home.parts = append(home.parts, &unit{topology: r.Groups[i].Topology, group: i, groups: []int{i}})
	}
	p.sortUnits(root)
	return root
}

// innermost returns the smallest set of at least size groups that holds the group.
func (u *unit) innermost(group, size int) *unit {
	for _, part := range u.parts {
		if part.group < 0 && len(part.groups) >= size && slices.Contains(part.groups, group) {
			return part.innermost(group, size)
		}
	}
	return u
}

// sortUnits puts sets before single groups, and larger pods before smaller ones: what fits in
// few places is placed while there are many.
func (p *planner) sortUnits(u *unit) {
	for _, part := range u.parts {
		p.sortUnits(part)
	}
	slices.SortStableFunc(u.parts, func(a, b *unit) int {
		if c := cmp.Compare(b.strictness(), a.strictness()); c != 0 {
			return c
		}
		return cmp.Compare(p.weight(b), p.weight(a))
	})
}

// strictness ranks what a unit insists on: a narrower required level leaves fewer places.
func (u *unit) strictness() int { return u.topology.Required }

// weight is the demand of the unit's largest pod, and for equal pods of all of them.
func (p *planner) weight(u *unit) float64 {
	most, sum := 0.0, 0.0
	for _, i := range u.groups {
		g := &p.request.Groups[i]
		w := newNeed(&g.Pod, p.s.Resources)
		most = max(most, w.weigh(p.largest))
		sum += w.weigh(p.largest) * float64(g.Count)
	}
	return most*maxCount + sum
}

// reverse turns the order of the parts of every unit round.
func (u *unit) reverse() {
	slices.Reverse(u.parts)
	for _, part := range u.parts {
		part.reverse()
	}
}

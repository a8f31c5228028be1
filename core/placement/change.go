package placement

import (
	"slices"
	"strconv"
	"strings"
)

// changeBudget bounds the search for each edit that is tried of a request of several groups;
// halvings bounds how often a number is halved to find the largest that works.
const (
	changeBudget = 300
	halvings     = 8
)

// changes tries edits of the request, of one group or set at a time, and returns those with
// which all of it would be met now. The groups are those that stand in the way; room is how
// many pods of the only one fit, 0 where that is not known.
func (p *planner) changes(groups []int, room int) []Change {
	if p.quick || p.unchanged {
		return nil
	}
	var found []Change
	for i := range p.request.Sets {
		names := p.groupNames(&unit{groups: p.request.Sets[i].Groups})
		found = append(found, p.widen("sets.required", strings.Join(names, "+"), func(r *Request) *Topology { return &r.Sets[i].Topology })...)
	}
	for _, i := range groups {
		g := &p.request.Groups[i]
		found = append(found, p.widen("topology.required", p.sayGroup(i), func(r *Request) *Topology { return &r.Groups[i].Topology })...)
		if len(g.Slices) > 0 && p.works(func(r *Request) { r.Groups[i].Slices = nil }) {
			found = append(found, Change{Group: p.sayGroup(i), Field: "slices", To: "none"})
		}
		if g.Mbps > 0 {
			found = append(found, p.number(i, "bandwidth", g.Mbps-1, func(r *Request, n int64) { r.Groups[i].Mbps = n })...)
		}
		most := int64(g.least()) - 1
		if room > 0 {
			most = min(most, int64(room))
		}
		found = append(found, p.number(i, "count", most, func(r *Request, n int64) {
			r.Groups[i].Count, r.Groups[i].MinCount = int(n), 0
		})...)
		if g.Pod.GPUs > 1 {
			found = append(found, p.number(i, "gpus", g.Pod.GPUs-1, func(r *Request, n int64) { setGPUs(&r.Groups[i], n) })...)
		}
	}
	return found
}

// sayGroup names a group in a Change: not at all where there is one only.
func (p *planner) sayGroup(i int) string {
	if len(p.request.Groups) == 1 {
		return ""
	}
	return p.request.Groups[i].Name
}

func (p *planner) indexOf(group string) int {
	return max(0, slices.IndexFunc(p.request.Groups, func(g Group) bool { return g.Name == group }))
}

// widen tries wider levels in place of a required one, the narrowest first.
func (p *planner) widen(field, group string, of func(*Request) *Topology) []Change {
	for level := of(p.request).Required - 1; level >= AnyLevel; level-- {
		if p.works(func(r *Request) { of(r).Required = level }) {
			return []Change{{Group: group, Field: field, To: levelName(p.s, level)}}
		}
	}
	return nil
}

// number finds, by halving, a large number up to most that works in the place of a larger one.
// It is the largest where less is always easier.
func (p *planner) number(group int, field string, most int64, set func(*Request, int64)) []Change {
	works := func(n int64) bool { return p.works(func(r *Request) { set(r, n) }) }
	if most < 1 {
		return nil
	}
	best := int64(0)
	for low, high, n := int64(1), most, 0; low <= high && n < halvings; n++ {
		at := high - (high-low)/2
		if n == 0 {
			at = high // Often it is known already what fits.
		}
		if works(at) {
			best, low = at, at+1
		} else {
			high = at - 1
		}
	}
	if best == 0 && !works(1) {
		return nil
	}
	return []Change{{Group: p.sayGroup(group), Field: field, To: strconv.FormatInt(max(best, 1), 10)}}
}

// works tells whether the edited request would be met now.
func (p *planner) works(edit func(*Request)) bool {
	edited, own := *p.request, *p
	edited.Groups = slices.Clone(p.request.Groups)
	edited.Sets = slices.Clone(p.request.Sets)
	edit(&edited)
	if check(p.s, &edited) != nil {
		return false
	}
	own.request, own.quick, own.anySize, own.cache = &edited, true, true, p.trialCache()
	own.options.Explain, own.options.Budget = false, changeBudget
	return own.plan().Feasible
}

func setGPUs(group *Group, gpus int64) {
	group.Pod.GPUs = gpus
	group.Pod.Resources = group.Pod.Resources.Clone()
	if i := group.Pod.GPUResource; i >= 0 && i < len(group.Pod.Resources) {
		group.Pod.Resources[i] = gpus
	}
}

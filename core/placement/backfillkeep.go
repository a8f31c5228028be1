package placement

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// sameNodes is the planner for a plan's nodes, with as many pods on each; nil if the plan is not
// one for the request any more. Which GPUs they get is left open: it is the device plugin that
// hands them out, and what was to be free may not be.
func (p *planner) sameNodes(plan *Decision) *planner {
	r := *p.request
	if len(plan.Groups) != len(r.Groups) {
		return nil
	}
	r.Groups = make([]Group, len(plan.Groups))
	for i := range plan.Groups {
		g, nodes := p.request.Groups[i], plan.Groups[i].Nodes
		if len(nodes) < g.leastWhole() || len(nodes) > g.Count || plan.Groups[i].Name != g.Name {
			return nil
		}
		limits := make(map[string]int, len(nodes))
		for _, name := range nodes {
			if p.s.IndexOf(name) < 0 {
				return nil
			}
			limits[name]++
			if allowed, limited := g.Limits[name]; g.Limits != nil && (!limited || allowed < limits[name]) {
				return nil
			}
		}
		g.Count, g.MinCount, g.Limits = len(nodes), 0, limits
		r.Groups[i] = g
	}
	same, err := newPlanner(p.s, &r, p.options)
	if err != nil {
		return nil
	}
	return same
}

// stand is the hold of a job that nobody may pass, on the nodes that it has; nil if it has none
// or they cannot serve it. Whoever was not in its way is taken to stay. If that leaves no room,
// because somebody before it in the order started there, whatever runs there is waited for.
func (l *line) stand(j *waiting) *tenant {
	if j.had == nil {
		return nil
	}
	needs := map[string]bool{}
	for _, name := range j.had.Needs {
		needs[name] = true
	}
	for _, stays := range []func(*tenant) bool{
		func(t *tenant) bool { return !needs[t.name] },
		func(t *tenant) bool { return t.hold != nil && !needs[t.name] },
	} {
		var changed []*cluster.Node
		seen := map[string]bool{}
		for _, name := range j.had.Plan.Nodes() {
			if !seen[name] {
				seen[name] = true
				changed = append(changed, l.node(l.now.IndexOf(name), stays))
			}
		}
		own := *j.same
		own.s = l.now.Next(l.now.Generation+1, l.now.Resources, changed)
		if d := own.plan(); d.Feasible {
			h := l.holdAt(j.p, j.Runtime, beyond, d)
			l.wait(h, j.had.Needs)
			return h
		}
	}
	return nil
}

// wait says why a job neither starts nor holds room.
func (f *filler) wait(j *waiting) {
	name := j.Request.Name
	if j.p.quick {
		f.out.Waits = append(f.out.Waits, Wait{Name: name})
		return
	}
	var why string
	switch e := j.p.asker(); {
	case e.fits(f.line.now):
		why = fmt.Sprintf("there is room for %s now, but it is held for %s", name, f.line.holders())
	case f.slots == 0:
		why = fmt.Sprintf("there is no room for %s now, and others hold room before it: %s", name, f.line.holders())
	case !e.fits(f.line.empty()) && !e.vague:
		why = fmt.Sprintf("there would be no room for %s even if nothing else ran", name)
	default:
		why = fmt.Sprintf("there is no room for %s now, and no estimate tells when there will be", name)
	}
	f.out.Waits = append(f.out.Waits, Wait{Name: name, Why: why})
}

// empty returns the cluster without what runs, which stays the same whatever starts.
func (l *line) empty() *cluster.Snapshot {
	if l.bare != nil {
		return l.bare
	}
	var changed []*cluster.Node
	for i, here := range l.at {
		if len(here) > 0 {
			changed = append(changed, l.node(i, func(*tenant) bool { return false }))
		}
	}
	l.bare = l.now.Next(l.now.Generation+1, l.now.Resources, changed)
	return l.bare
}

// holders names those that hold room, with when they start.
func (l *line) holders() string {
	names := make([]string, len(l.holds))
	for i, h := range l.holds {
		names[i] = fmt.Sprintf("%s (starts in %s)", h.name, Span(h.start))
	}
	return someOf(names)
}

// passes says whose held room a job uses that starts now.
func (l *line) passes(t *tenant) string {
	for _, h := range l.holds {
		if h.blocks || h.start < t.latest {
			continue
		}
		for i := range h.pods {
			if t.pods[i] != nil {
				return fmt.Sprintf("; it ends before %s is to start there in %s", h.name, Span(h.start))
			}
		}
	}
	return ""
}

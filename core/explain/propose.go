package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// waits asks the engine when the request could start if nothing is done.
func (e *explainer) waits() ([]Remedy, error) {
	hold, ok, err := placement.Reserve(e.Snapshot, e.Request, e.Running, e.Options)
	if err != nil || !ok || hold.Start == 0 {
		return nil, err
	}
	needs := map[string]bool{}
	for _, name := range hold.Needs {
		needs[name] = true
	}
	r := Remedy{Kind: WaitFor, Subjects: hold.Needs, Cost: Cost{LostKnown: true}}
	r.Leave = e.podsOf(func(w *cluster.Workload) bool { return needs[w.Name] })
	what := fmt.Sprintf("wait until %s %s ended", someOf(hold.Needs), has(len(hold.Needs)))
	switch {
	case !hold.Sure:
		r.Sentence = what + "; no estimate tells when that is"
	case hold.Latest == placement.Never || hold.Latest <= hold.Start:
		r.Start = Start{Known: true, In: hold.Start, Latest: hold.Start}
		r.Sentence = fmt.Sprintf("%s, in %s", what, placement.Span(hold.Start))
	default:
		r.Start = Start{Known: true, In: hold.Start, Latest: hold.Latest}
		r.Sentence = fmt.Sprintf("%s, in %s (%s if they take long)", what, placement.Span(hold.Start), placement.Span(hold.Latest))
	}
	return []Remedy{r}, nil
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// podsOf returns the pods of some workloads, with where they are.
func (e *explainer) podsOf(wanted func(*cluster.Workload) bool) []cluster.Placement {
	var found []cluster.Placement
	for i, n := range e.Snapshot.Nodes() {
		for _, p := range n.Pods {
			if p.Workload != nil && wanted(p.Workload) {
				found = append(found, cluster.Placement{Node: i, Pod: p})
			}
		}
	}
	return found
}

// edits are the changes that the engine found while it refused.
func (e *explainer) edits() ([]Remedy, error) {
	var found []Remedy
	for _, c := range e.refused.Why.Changes {
		r := Remedy{Kind: Edit, Change: &c, Start: Start{Known: true}, Cost: Cost{LostKnown: true}}
		edited, err := c.Apply(e.Snapshot, e.Request)
		if err != nil {
			return nil, err
		}
		r.Cost.GPUs = gpusOf(e.Request) - gpusOf(edited)
		r.Sentence, r.Cost.Levels, r.Cost.Mbps = e.sayEdit(c)
		found = append(found, r)
	}
	return found, nil
}

func gpusOf(r *placement.Request) int64 {
	sum := int64(0)
	for i := range r.Groups {
		sum += int64(r.Groups[i].Count) * r.Groups[i].Pod.GPUs
	}
	return sum
}

// sayEdit words an edit, and tells how many levels wider it is and how much bandwidth it gives up.
func (e *explainer) sayEdit(c placement.Change) (text string, levels int, mbps int64) {
	n, _ := strconv.ParseInt(c.To, 10, 64)
	g := e.group
	of := ""
	if c.Group != "" {
		of = " for " + c.Group
		for i := range e.Request.Groups {
			if e.Request.Groups[i].Name == c.Group {
				g = &e.Request.Groups[i]
			}
		}
	}
	switch c.Field {
	case "topology.required", "sets.required":
		to := placement.AnyLevel
		if c.To != "none" {
			to, _ = e.Snapshot.Level(c.To)
		}
		levels = max(1, g.Topology.Required-to)
		if c.To == "none" {
			return "require no level" + of, levels, 0
		}
		return fmt.Sprintf("require one %s instead of one %s%s", c.To, e.levelName(g.Topology.Required), of), levels, 0
	case "slices":
		return "ask for no slices" + of, 1, 0
	case "bandwidth":
		return fmt.Sprintf("ask for %d Mbit/s a pod instead of %d%s", n, g.Mbps, of), 0, g.Mbps - n
	case "count":
		return fmt.Sprintf("ask for %s instead of %d%s", plural(int(n), "pod"), g.Count, of), 0, 0
	}
	return fmt.Sprintf("ask for %s a pod instead of %d%s", plural(int(n), "GPU"), g.Pod.GPUs, of), 0, 0
}

func (e *explainer) levelName(level int) string {
	if level < 0 {
		return "level"
	}
	return e.Snapshot.Levels[level].Name
}

// mends looks for the fewest nodes out of service that would give the room: first among those
// that only their operator keeps out.
func (e *explainer) mends() ([]Remedy, error) {
	for _, may := range []func(*cluster.Node) bool{
		func(n *cluster.Node) bool { return n.Ready && n.Cordoned && n.Broken == 0 },
		func(n *cluster.Node) bool { return !n.Ready || n.Cordoned || n.Broken != 0 },
	} {
		var out []string
		for i, n := range e.Snapshot.Nodes() {
			if may(n) && e.rooms[i].Fits < e.rooms[i].FitsEmpty {
				out = append(out, n.Name)
			}
		}
		needed, err := e.fewest(out)
		if err != nil {
			return nil, err
		}
		if len(needed) == 0 {
			continue
		}
		verb := "uncordon "
		for _, name := range needed {
			if n := e.Snapshot.Node(name); !n.Ready || n.Broken != 0 {
				verb = "bring back into service "
			}
		}
		return []Remedy{{
			Kind: Mend, Mend: needed, Subjects: needed, Sentence: verb + someOf(needed),
			Start: Start{Known: verb == "uncordon "}, Cost: Cost{Nodes: len(needed), LostKnown: true},
		}}, nil
	}
	return nil, nil
}

// fewest shrinks a set of nodes with which the request fits until none can be left out; nil where
// all of them are not enough.
func (e *explainer) fewest(nodes []string) ([]string, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	plan := func(nodes []string) (placement.Decision, error) {
		r := Remedy{Mend: nodes}
		_, err := e.try(&r)
		return r.Plan, err
	}
	d, err := plan(nodes)
	if err != nil || !d.Feasible {
		return nil, err
	}
	// The plan uses few of them, as a rule; those are where to start.
	used := map[string]bool{}
	for _, name := range d.Nodes() {
		used[name] = true
	}
	few := slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return !used[name] })
	if d, err = plan(few); err != nil {
		return nil, err
	} else if !d.Feasible {
		few = nodes
	}
	for i := len(few) - 1; i >= 0 && len(few) > 1; i-- {
		without := slices.Delete(slices.Clone(few), i, i+1)
		if d, err = plan(without); err != nil {
			return nil, err
		} else if d.Feasible {
			few = without
		}
	}
	return few, nil
}

// mostMoves bounds how many workloads a person is asked to move.
const mostMoves = 16

// moves looks for workloads that can be elsewhere: those that may be moved, or else those whose
// owners could be asked.
func (e *explainer) moves() ([]Remedy, error) {
	may := func(w *cluster.Workload) bool { return w.Movable && !w.Protected }
	known := func(w *cluster.Workload) bool { return e.Foreign == nil || !e.Foreign(w.Name) }
	for _, permit := range []func(*cluster.Workload) bool{may, known} {
		l := e.liberal(permit, func(w *cluster.Workload) { w.Movable, w.Protected = true, false })
		if l.count == 0 {
			continue
		}
		m, err := placement.Defragment(l.s, e.Request, placement.MoveOptions{Options: e.Options, MaxMoves: mostMoves})
		if err != nil {
			return nil, err
		}
		if !m.Feasible || len(m.Moves) == 0 {
			continue
		}
		r := Remedy{Kind: Move, Start: Start{Known: true}, Moves: m.Moves}
		var pods []cluster.Placement
		var parts []string
		for i := range r.Moves {
			one := &r.Moves[i]
			r.Subjects = append(r.Subjects, one.Workload)
			r.Cost.Moved += len(one.Pods)
			var to []string
			for k := range one.Pods {
				p := &one.Pods[k]
				p.Before.Pod = l.original(p.Before.Pod)
				after := *p.After.Pod
				after.Workload = p.Before.Pod.Workload
				p.After.Pod = &after
				pods = append(pods, p.Before)
				if !slices.Contains(to, p.To) {
					to = append(to, p.To)
				}
			}
			parts = append(parts, fmt.Sprintf("%s to %s", one.Workload, someOf(to)))
		}
		r.Cost.Lost, r.Cost.LostKnown = e.lost(pods)
		r.Sentence = "move " + someOf(parts)
		return []Remedy{r}, nil
	}
	return nil, nil
}

// preempts asks the engine whom the request may evict by its own rules, where it does not ask for
// that by itself.
func (e *explainer) preempts() ([]Remedy, error) {
	if e.Request.Preempts {
		return nil, nil // That was tried: nobody, or not enough.
	}
	asked := *e.Request
	asked.Preempts = true
	d, err := placement.Plan(e.Snapshot, &asked, e.Options)
	if err != nil || !d.Feasible || len(d.Victims) == 0 {
		return nil, err
	}
	r := e.leaving(&d, func(p *cluster.Pod) *cluster.Pod { return p })
	r.Kind, r.Sentence = Preempt, "let it evict "+r.Sentence
	return []Remedy{r}, nil
}

// asks looks for the workloads whose leaving would make room: idle ones first, then those of lower
// priority, then any.
func (e *explainer) asks() ([]Remedy, error) {
	idle := func(w *cluster.Workload) bool { return e.Idle[w.Name] > 0 }
	lower := func(w *cluster.Workload) bool { return w.Priority < e.Request.Priority }
	anyone := func(*cluster.Workload) bool { return true }
	var found []Remedy
	for tier, permit := range []func(*cluster.Workload) bool{idle, lower, anyone} {
		if tier == 2 && len(found) > 0 {
			break
		}
		r, err := e.ask(permit)
		if err != nil {
			return nil, err
		}
		if r == nil || len(found) > 0 && slices.Equal(found[0].Subjects, r.Subjects) {
			continue
		}
		found = append(found, *r)
	}
	return found, nil
}

// ask looks for the cheapest set among those that permit names; nil if all of them are not enough.
func (e *explainer) ask(permit func(*cluster.Workload) bool) (*Remedy, error) {
	l := e.liberal(permit, func(w *cluster.Workload) {
		// A whole workload leaves, or none: nobody can be asked for a part of a gang.
		w.Preemptible, w.Protected, w.Budget, w.MinMembers = true, false, "", 0
		w.Priority = min(w.Priority, math.MaxInt32-1)
	})
	if l.count == 0 {
		return nil, nil
	}
	asked := *e.Request
	asked.Preempts, asked.Priority = true, math.MaxInt32
	d, err := placement.Plan(l.only(), &asked, e.Options)
	if err != nil || !d.Feasible || len(d.Victims) == 0 {
		return nil, err
	}
	r := e.leaving(&d, l.original)
	r.Kind, r.Sentence = Evict, fmt.Sprintf("ask %s to make way", r.Sentence)
	return &r, nil
}

// leaving is a remedy of the victims of a plan, whose names are its sentence.
func (e *explainer) leaving(d *placement.Decision, original func(*cluster.Pod) *cluster.Pod) Remedy {
	r := Remedy{Start: Start{Known: true}}
	var names []string
	for _, v := range d.Victims {
		r.Subjects = append(r.Subjects, v.Workload)
		names = append(names, e.sayHolder(original(v.Evicted[0].Pod).Workload))
		r.Cost.Evicted += len(v.Evicted)
		for _, at := range v.Evicted {
			r.Leave = append(r.Leave, cluster.Placement{Node: at.Node, Pod: original(at.Pod)})
		}
	}
	r.Cost.Lost, r.Cost.LostKnown = e.lost(r.Leave)
	r.Sentence = someOf(names)
	return r
}

// sayHolder names a workload with what gives it a reason to leave, or to stay.
func (e *explainer) sayHolder(w *cluster.Workload) string {
	var facts []string
	if idle := e.Idle[w.Name]; idle > 0 {
		facts = append(facts, "idle for "+placement.Span(idle))
	}
	switch {
	case w.Priority < e.Request.Priority:
		facts = append(facts, fmt.Sprintf("priority %d, below %d", w.Priority, e.Request.Priority))
	case w.Priority > e.Request.Priority:
		facts = append(facts, fmt.Sprintf("priority %d, above %d", w.Priority, e.Request.Priority))
	default:
		facts = append(facts, "of the same priority")
	}
	switch {
	case w.Protected:
		facts = append(facts, "protected for now")
	case w.Preemptible:
		facts = append(facts, "preemptible")
	}
	return fmt.Sprintf("%s (%s)", w.Name, strings.Join(facts, ", "))
}

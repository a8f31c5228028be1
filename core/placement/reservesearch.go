package placement

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// reserve finds the first moment at which the request fits, as a hold that is not laid yet; nil
// if there is none. Where no estimate tells of one, a hold of unknown start is found if unsure
// allows it.
func (l *line) reserve(p *planner, runs Estimate, unsure bool) *tenant {
	if start, at, ok := l.earliest(p, runs.late(), beyond); ok {
		return l.holdAt(p, runs, start, l.decide(p, at))
	}
	if !unsure {
		return nil
	}
	return l.reserveUnsure(p, runs)
}

// earliest returns the first moment, before a given one, from which on the request fits for as
// long as it runs, and the cluster as it finds it.
//
// Room comes where something ends, and where the start of a hold is past. Between the moments
// at which a hold comes into the time that the request runs, or leaves it, room only grows, so
// that it is enough to look at the last moment of such a stretch, and then by halves for the
// first.
func (l *line) earliest(p *planner, length, before time.Duration) (time.Duration, *cluster.Snapshot, bool) {
	e := p.asker()
	fits := func(t time.Duration) *cluster.Snapshot {
		if s := l.profile(t, after(t, length)); e.fits(s) {
			return s
		}
		return nil
	}
	for _, stretch := range l.stretches(length, before) {
		best := fits(stretch[len(stretch)-1])
		if best == nil {
			continue
		}
		low, high := 0, len(stretch)-1
		for low < high {
			middle := (low + high) / 2
			if s := fits(stretch[middle]); s != nil {
				best, high = s, middle
			} else {
				low = middle + 1
			}
		}
		return stretch[low], best, true
	}
	return 0, nil, false
}

// asker asks whether the request fits, without planning it.
func (p *planner) asker() *eviction {
	e := &eviction{p: p}
	if len(p.request.Groups) == 1 && len(p.request.Sets) == 0 {
		least := p.request.Groups[0]
		least.Count, least.MinCount = least.leastWhole(), 0
		e.group = &least
	}
	return e
}

func after(t, length time.Duration) time.Duration {
	if t >= beyond || length >= beyond-t {
		return Never
	}
	return t + length
}

// stretches returns the moments before a given one at which room may come, those between which
// it only grows together.
func (l *line) stretches(length, before time.Duration) [][]time.Duration {
	moments := []time.Duration{0}
	cuts := []time.Duration{}
	for _, t := range l.running {
		moments = append(moments, t.end)
	}
	for _, h := range l.holds {
		moments = append(moments, h.start, h.end)
		cuts = append(cuts, h.start, h.end)
		if !h.blocks && length < h.start {
			cuts = append(cuts, h.start-length+1)
		}
	}
	slices.Sort(moments)
	slices.Sort(cuts)
	var found [][]time.Duration
	last := -1
	for _, m := range slices.Compact(moments) {
		if m >= before {
			break
		}
		at, exact := slices.BinarySearch(cuts, m)
		for exact && at < len(cuts) && cuts[at] == m {
			at++
		}
		if at != last {
			found = append(found, nil)
			last = at
		}
		found[len(found)-1] = append(found[len(found)-1], m)
	}
	return found
}

// decide plans the request in a cluster in which it fits. Among domains that take as much of it
// it prefers the one that holds back least.
func (l *line) decide(p *planner, at *cluster.Snapshot) Decision {
	own := *p
	own.s = at
	d := own.plan()
	if !d.Feasible || len(p.request.Groups) > 1 || len(p.request.Sets) > 0 {
		return d
	}
	group := &p.request.Groups[0]
	if group.Topology.Required < 0 || group.Mbps > 0 || len(group.Kept) > 0 {
		return d
	}
	now := slices.Clone(p.gang(l.now, group).room.fits)
	idle := func(takes []take) (n int) {
		for _, t := range takes {
			n += min(t.count, int(now[t.node]))
		}
		return n
	}
	size := d.Size()
	var chosen []take
	for i, node := range d.Groups[0].At {
		if i == 0 || node != d.Groups[0].At[i-1] {
			chosen = append(chosen, take{node: int(node)})
		}
		chosen[len(chosen)-1].count++
	}
	least := idle(chosen)
	g := own.gang(at, group)
	g.restrict(p.request.Avoid)
	for _, domain := range g.candidates(at.Whole(), group.Topology.Required) {
		if least == 0 {
			break
		}
		if g.sizeIn(domain) < size {
			continue
		}
		if c, takes, ok := g.place(domain); ok && c.size >= size && idle(takes) < least {
			least = idle(takes)
			d = own.decide(g, c, takes)
		}
	}
	return d
}

// reserveUnsure finds the domain that needs the fewest workloads to end of which nobody knows
// when they will; of these the ones that have run for the shortest: what has run for long goes
// on for long. Everything else has ended by then.
func (l *line) reserveUnsure(p *planner, runs Estimate) *tenant {
	at := l.profile(beyond, Never)
	own := *p
	own.s = at
	e := own.asker()
	e.at = map[int][]*prey{}
	gone := map[int][]*cluster.Pod{}
	for _, t := range l.running {
		if !t.there(beyond) {
			continue
		}
		v := &prey{Workload: &cluster.Workload{Name: t.name, Cost: t.elapsed.Hours()}}
		for _, i := range t.nodes() {
			for _, pod := range t.pods[i] {
				v.pods = append(v.pods, cluster.Placement{Node: i, Pod: pod})
			}
			e.at[i] = append(e.at[i], v)
			gone[i] = append(gone[i], t.pods[i]...)
		}
		v.size = len(v.pods)
		e.all = append(e.all, v)
	}
	changed := make([]*cluster.Node, 0, len(gone))
	for i, pods := range gone {
		changed = append(changed, at.At(i).Without(pods...))
	}
	without := at.Next(at.Generation+1, at.Resources, changed)
	if !e.fits(without) {
		return nil
	}
	best := e.search(without)
	if best == nil {
		return nil
	}
	return l.holdAt(p, runs, beyond, l.decide(p, best.s))
}

// holdAt makes a hold of a plan; nil if it is none.
func (l *line) holdAt(p *planner, runs Estimate, start time.Duration, d Decision) *tenant {
	if !d.Feasible {
		return nil
	}
	h := &tenant{
		name:   p.request.Name,
		start:  start,
		runs:   runs,
		hold:   &Reservation{Name: p.request.Name, Level: d.Level, Domain: d.Domain, Plan: d},
		pods:   podsOf(d.Placements(p.request, workloadOf(p.request))),
		blocks: start == beyond,
		end:    after(start, runs.likely()),
	}
	l.wait(h, nil)
	return h
}

// workloadOf is the request's workload, as far as room is concerned.
func workloadOf(r *Request) *cluster.Workload {
	w := &cluster.Workload{Name: r.Name, Priority: r.Priority}
	for i := range r.Groups {
		w.Mbps = max(w.Mbps, r.Groups[i].Mbps)
	}
	return w
}

// wait finds what the hold waits for, and when that is expected to have ended. Those it was
// known to wait for are taken to be in its way before others are.
func (l *line) wait(h *tenant, known []string) {
	needs := l.inTheWay(h, known)
	h.needs = make(map[string]bool, len(needs))
	r := h.hold
	r.Needs = nil
	last, latest := time.Duration(0), time.Duration(0)
	for _, t := range needs {
		h.needs[t.name] = true
		r.Needs = append(r.Needs, t.name)
		last, latest = max(last, t.end), max(latest, t.latest)
	}
	if h.blocks {
		h.start = min(last, beyond)
		h.end = after(h.start, h.runs.likely())
	}
	r.Start, r.Latest, r.Sure = h.start, max(latest, h.start), true
	if h.start >= beyond {
		r.Start, r.Latest, r.Sure = Never, Never, false
	}
	h.latest = after(r.Latest, h.runs.late())
	r.Firm = h.blocks
	r.Why = r.Words(r.Level)
}

// inTheWay returns the tenants that leave no room for the hold: all others fit beside it. The
// later one ends the rather it is found to fit, so that those are left that are waited for
// shortest; but those already known to be in the way come last. Of other holds those count that
// start before it; for one that blocks, which is laid in order, all that are laid.
func (l *line) inTheWay(h *tenant, known []string) []*tenant {
	seen := map[*tenant]bool{}
	var there []*tenant
	changed := make([]*cluster.Node, 0, len(h.pods))
	for i, pods := range h.pods {
		changed = append(changed, l.node(i, func(*tenant) bool { return false }).With(pods...))
		for _, t := range l.at[i] {
			if !seen[t] && (t.hold == nil || h.blocks || t.start < h.start) {
				seen[t] = true
				there = append(there, t)
			}
		}
	}
	slices.SortFunc(there, func(a, b *tenant) int {
		known := cmp.Compare(index(slices.Contains(known, a.name)), index(slices.Contains(known, b.name)))
		return cmp.Or(known, cmp.Compare(b.end, a.end), strings.Compare(a.name, b.name))
	})
	txn := l.now.Next(l.now.Generation+1, l.now.Resources, changed).Begin()
	var found []*tenant
	for _, t := range there {
		if !besides(txn, h, t) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *tenant) int {
		return cmp.Or(cmp.Compare(a.end, b.end), strings.Compare(a.name, b.name))
	})
	return found
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// besides puts the tenant back on the nodes of the hold, if it fits there.
func besides(txn *cluster.Txn, h, t *tenant) bool {
	var pods []cluster.Placement
	for i := range h.pods {
		for _, pod := range t.pods[i] {
			if clash(txn.Snapshot().At(i), pod.Instances) {
				return false
			}
			pods = append(pods, cluster.Placement{Node: i, Pod: pod})
		}
	}
	return txn.Place(pods...) == nil
}

// clash tells whether the instances need room on the node that others have.
func clash(n *cluster.Node, instances []gpu.Instance) bool {
	for _, x := range instances {
		if n.Taken.Has(x.GPU) || slices.ContainsFunc(n.Instances, func(y gpu.Instance) bool { return y.Used && overlap(x, y) }) {
			return true
		}
	}
	return false
}

func overlap(a, b gpu.Instance) bool {
	return a.GPU == b.GPU && a.Start < b.Start+b.Size && b.Start < a.Start+a.Size
}

// nodes returns the positions of the tenant's nodes in order.
func (t *tenant) nodes() []int {
	at := make([]int, 0, len(t.pods))
	for i := range t.pods {
		at = append(at, i)
	}
	slices.Sort(at)
	return at
}

package placement

import (
	"cmp"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// search returns the best set of victims it finds, nil if none keeps to the budgets.
//
// It puts workloads back in several orders: node by node, those first that give the least room
// for what they cost; and one by one, the dearest first. Then it tries to do better by
// evicting one more workload and putting back what is not needed any more.
func (e *eviction) search(without *cluster.Snapshot) *outcome {
	slices.SortFunc(e.all, dearer)
	var best *outcome
	consider := func(o *outcome) {
		if o.within(e.p.options.Budgets) && (best == nil || o.compare(best) < 0) {
			best = o
		}
	}
	for _, d := range e.domains(without, maxDomains) {
		consider(e.putBack(without, e.byNode(without, d)))
	}
	limit := e.checks + improveChecks
	if len(e.all) <= improveChecks/4 {
		consider(e.putBack(without, nil))
		e.improve(&best, consider, limit)
	}
	return best
}

// improveChecks is how many questions may go into a better set of victims than the first one.
const improveChecks = 4000

// maxDomains is of how many domains it is worked out in full what room there would cost.
const maxDomains = 3

// batch is what is put back together.
type batch []*prey

// domains returns up to most domains of the required level that could hold the request if
// everything were evicted, the cheapest by estimate first. For several groups it is the whole cluster.
func (e *eviction) domains(without *cluster.Snapshot, most int) []cluster.Domain {
	whole := []cluster.Domain{without.Whole()}
	if e.group == nil || e.group.Topology.Required < 0 {
		return whole
	}
	own := *e.p
	own.cache = e.p.trialCache()
	g := own.gang(without, e.group)
	g.restrict(e.p.request.Avoid)
	type estimate struct {
		d    cluster.Domain
		cost [2]float64
	}
	var found []estimate
	for _, d := range g.candidates(without.Whole(), e.group.Topology.Required) {
		if g.holdsKept(d) && g.holds(d, g.layer(d), int64(e.group.Count)) {
			found = append(found, estimate{d, e.estimate(g, d)})
		}
	}
	slices.SortStableFunc(found, func(a, b estimate) int { return slices.Compare(a.cost[:], b.cost[:]) })
	domains := make([]cluster.Domain, 0, most)
	for _, f := range found[:min(len(found), most)] {
		domains = append(domains, f.d)
	}
	if len(domains) == 0 {
		return whole
	}
	return domains
}

// estimate returns the highest priority and the number of workloads that making room in d
// costs, if nodes are emptied one by one, the cheapest first.
func (e *eviction) estimate(g *gang, d cluster.Domain) [2]float64 {
	nodes := e.price(g, d)
	var cost [2]float64
	need := int64(e.group.Count)
	for _, n := range nodes {
		if need <= 0 {
			break
		}
		need -= n.room
		cost[0] = max(cost[0], n.priority)
		cost[1] += n.workloads
	}
	return cost
}

// priced is what emptying a node costs.
type priced struct {
	node int
	// room is how many pods fit on the node once it is emptied.
	room int64
	// priority is the highest of a workload there; workloads counts those there, each by the
	// part of it that is on the node; cost is theirs in GPU-hours.
	priority, workloads, cost float64
	// lack is how many GPUs have to be freed for one pod.
	lack int64
}

// price returns the nodes of d that have room once emptied, the cheapest for what they give
// first. G is planned over the snapshot without anything that may be evicted.
func (e *eviction) price(g *gang, d cluster.Domain) []priced {
	var nodes []priced
	for i := d.First; i < d.End; i++ {
		if g.room.fits[i] == 0 {
			continue
		}
		n := priced{node: i, room: int64(g.room.fits[i])}
		for k, v := range e.at[i] {
			here := 0
			for _, at := range v.pods {
				if at.Node == i {
					here++
				}
			}
			part := float64(here) / float64(v.size)
			if k == 0 || float64(v.rank) > n.priority {
				n.priority = float64(v.rank)
			}
			n.workloads += part
			n.cost += v.cost() * part
		}
		if len(e.at[i]) == 0 {
			n.priority = -1 << 32 // Nothing is lost there.
		}
		if e.lacking {
			n.lack = max(0, g.view.need.GPUs-e.p.s.At(i).Free(g.view.need.GPUResource))
		}
		nodes = append(nodes, n)
	}
	slices.SortStableFunc(nodes, func(a, b priced) int {
		return cmp.Or(
			cmp.Compare(a.lack, b.lack),
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(a.workloads/float64(a.room), b.workloads/float64(b.room)),
			cmp.Compare(a.cost/float64(a.room), b.cost/float64(b.room)),
		)
	})
	return nodes
}

// byNode returns what to put back in which order so that the room is made in d: first all
// that is elsewhere, then node by node, the dearest first.
func (e *eviction) byNode(without *cluster.Snapshot, d cluster.Domain) []batch {
	if e.group == nil {
		return nil
	}
	own := *e.p
	own.cache = e.p.trialCache()
	g := own.gang(without, e.group)
	g.restrict(e.p.request.Avoid)
	nodes := e.price(g, d)
	inside := make(map[*prey]bool, len(e.all))
	for _, n := range nodes {
		for _, v := range e.at[n.node] {
			inside[v] = true
		}
	}
	batches := make([]batch, 1, len(nodes)+1)
	for _, v := range e.all {
		if !inside[v] {
			batches[0] = append(batches[0], v)
		}
	}
	for _, n := range slices.Backward(nodes) {
		batches = append(batches, e.at[n.node])
	}
	return batches
}

// putBack returns the victims that are left after as much as can be was put back: the batches
// first, each whole or not at all, then every workload by itself, in the order of e.all, and of
// workloads that can shrink as many pods as can be.
func (e *eviction) putBack(without *cluster.Snapshot, batches []batch) *outcome {
	back := make(map[*prey]bool, len(e.all))
	s := without
	skip := func(s *cluster.Snapshot, _ batch) *cluster.Snapshot { return s }
	if len(batches) > 0 {
		// The first is by far the largest and fits: it must not be part of every half.
		s = e.putAll(s, batches[:1], back, skip)
		s = e.putAll(s, batches[1:], back, skip)
	}
	o := &outcome{kept: map[*prey]map[*cluster.Pod]bool{}}
	singles := make([]batch, len(e.all))
	for i := range e.all {
		singles[i] = e.all[i : i+1]
	}
	o.s = e.putAll(s, singles, back, func(s *cluster.Snapshot, one batch) *cluster.Snapshot {
		next, kept := e.shrink(s, one[0])
		o.gone = append(o.gone, one[0])
		if kept != nil {
			o.kept[one[0]] = kept
		}
		return next
	})
	return o
}

// putAll puts back batches in their order, each whole or not at all, and calls fail with those
// that cannot be. For moves, where nearly everything stays, it asks about many at once and halves
// them where the answer is no: what fits together fits one after the other.
func (e *eviction) putAll(
	s *cluster.Snapshot, batches []batch, back map[*prey]bool, fail func(*cluster.Snapshot, batch) *cluster.Snapshot,
) *cluster.Snapshot {
	// Of several groups each question is a search: there, halving asks far fewer.
	if !e.splits && e.group != nil && len(batches) > 1 {
		for i := range batches {
			s = e.putAll(s, batches[i:i+1], back, fail)
		}
		return s
	}
	var pods []cluster.Placement
	var added []*prey
	for _, b := range batches {
		for _, v := range b {
			if !back[v] {
				back[v] = true
				added = append(added, v)
				pods = append(pods, v.pods...)
			}
		}
	}
	if len(added) == 0 {
		return s
	}
	if next := putPods(s, pods); e.fits(next) {
		return next
	}
	for _, v := range added {
		delete(back, v)
	}
	if len(batches) == 1 {
		return fail(s, batches[0])
	}
	half := len(batches) / 2
	return e.putAll(e.putAll(s, batches[:half], back, fail), batches[half:], back, fail)
}

// shrink puts back as many pods of a workload as can be, if it can go on with them.
func (e *eviction) shrink(s *cluster.Snapshot, v *prey) (*cluster.Snapshot, map[*cluster.Pod]bool) {
	least := v.MinMembers
	if e.splits && v.Mbps == 0 {
		least = 1 // With bandwidth, what is torn apart would load other uplinks.
	}
	if least <= 0 || least >= v.size {
		return s, nil
	}
	best, most := s, map[*cluster.Pod]bool(nil)
	for _, order := range [2][]cluster.Placement{v.pods, reversed(v.pods)} {
		next, kept := s, map[*cluster.Pod]bool{}
		for k := range order {
			if trial := putPods(next, order[k:k+1]); e.fits(trial) {
				next = trial
				kept[order[k].Pod] = true
			}
		}
		if len(kept) > len(most) {
			best, most = next, kept
		}
	}
	if len(most) < least {
		return s, nil
	}
	return best, most
}

func reversed(pods []cluster.Placement) []cluster.Placement {
	other := slices.Clone(pods)
	slices.Reverse(other)
	return other
}

// improve evicts one more workload and puts back what is not needed any more, as long as that
// gives a better set of victims.
func (e *eviction) improve(best **outcome, consider func(*outcome), limit int) {
	for improved := true; improved && *best != nil; {
		improved = false
		from := *best
		for _, extra := range slices.Backward(e.all) {
			if e.checks > limit {
				return
			}
			if slices.Contains(from.gone, extra) || float64(extra.rank) > from.measure()[0] {
				continue
			}
			consider(e.swap(from, extra))
			if *best != from {
				improved = true
				break
			}
		}
	}
}

// swap returns the outcome of evicting one more workload, and then only what is needed.
func (e *eviction) swap(from *outcome, extra *prey) *outcome {
	s := dropPods(from.s, extra.pods)
	o := &outcome{kept: map[*prey]map[*cluster.Pod]bool{}}
	gone := slices.Clone(from.gone)
	slices.SortStableFunc(gone, dearer)
	for _, v := range append(gone, extra) {
		missing := slices.DeleteFunc(slices.Clone(v.pods), func(at cluster.Placement) bool { return from.kept[v][at.Pod] })
		if next := putPods(s, missing); e.fits(next) {
			s = next
			continue
		}
		// What stayed of it goes, too, to see anew how much of it can.
		stayed := slices.DeleteFunc(slices.Clone(v.pods), func(at cluster.Placement) bool { return !from.kept[v][at.Pod] })
		var kept map[*cluster.Pod]bool
		s, kept = e.shrink(dropPods(s, stayed), v)
		o.gone = append(o.gone, v)
		if kept != nil {
			o.kept[v] = kept
		}
	}
	o.s = s
	return o
}

func putPods(s *cluster.Snapshot, pods []cluster.Placement) *cluster.Snapshot {
	return changePods(s, pods, (*cluster.Node).With)
}

func dropPods(s *cluster.Snapshot, pods []cluster.Placement) *cluster.Snapshot {
	return changePods(s, pods, (*cluster.Node).Without)
}

// changePods returns the snapshot after a change of pods on their nodes.
func changePods(s *cluster.Snapshot, pods []cluster.Placement, change func(*cluster.Node, ...*cluster.Pod) *cluster.Node) *cluster.Snapshot {
	if len(pods) == 1 {
		n := change(s.At(pods[0].Node), pods[0].Pod)
		return s.Next(s.Generation+1, s.Resources, []*cluster.Node{n})
	}
	by := make(map[int][]*cluster.Pod, len(pods))
	for _, p := range pods {
		by[p.Node] = append(by[p.Node], p.Pod)
	}
	nodes := make([]*cluster.Node, 0, len(by))
	for i, ps := range by {
		nodes = append(nodes, change(s.At(i), ps...))
	}
	return s.Next(s.Generation+1, s.Resources, nodes)
}

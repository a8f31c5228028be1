package extender

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// preempt tells which nodes of those that kube-scheduler would evict pods from are worth it: given
// the victims by node it returns the nodes that stay. It adds neither nodes nor victims.
func (e *engine) preempt(pod *corev1.Pod, victims map[string][]types.UID) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := planned(pod)
	var q *question
	if own == "" && wantsGPU(pod) {
		var err error
		if q, err = e.ask(pod); err != nil {
			return nil // Whatever is evicted, the pod itself has to change.
		}
	}
	var kept []string
	for node, uids := range victims {
		holdings, ok := e.holdings(node, uids)
		switch {
		case !ok, own != "" && node != own, !e.spared(uids, holdings):
		case q != nil && !e.helps(q, node, holdings):
		default:
			kept = append(kept, node)
		}
	}
	slices.Sort(kept)
	return kept
}

// holdings returns what the victims hold; false if one of them is not known to be on the node: then
// nobody can tell what its eviction is good for.
func (e *engine) holdings(node string, uids []types.UID) ([]state.Holding, bool) {
	all := make([]state.Holding, len(uids))
	for i, uid := range uids {
		h, ok := e.state.Holding(uid)
		if !ok || h.Node != node {
			return nil, false
		}
		all[i] = h
	}
	return all, true
}

// spared tells whether nobody loses more than may be taken: GPUWorkloads nothing, as pods are told
// apart by priorities that say nothing of theirs, and one pod less is one gang less; gangs of plain pods so few that they can go on, or all at once. A gang that
// lost one pod too many would hold its other GPUs for nothing.
func (e *engine) spared(uids []types.UID, holdings []state.Holding) bool {
	gangs := make(map[types.NamespacedName][]types.UID)
	for i := range holdings {
		h := &holdings[i]
		if h.Ours {
			return false
		}
		if h.Gang.Name != "" {
			gangs[h.Gang] = append(gangs[h.Gang], uids[i])
		}
	}
	for gang, lost := range gangs {
		left, least := 0, 0
		for _, m := range e.state.Members(gang) {
			least = max(least, m.Gang.Min)
			if m.Node != "" && !m.Leaving && !slices.Contains(lost, m.UID) {
				left++
			}
		}
		if left > 0 && left < least {
			return false
		}
	}
	return true
}

// helps tells whether the pod fits on the node once the victims are gone, and the rest of its gang
// beside it.
func (e *engine) helps(q *question, node string, victims []state.Holding) bool {
	n := q.snapshot.Node(node)
	if n == nil {
		return false
	}
	freed := n.Without()
	for i := range victims {
		freed.Used = freed.Used.Sub(victims[i].Use)
	}
	after := q.snapshot.Next(q.snapshot.Generation, q.snapshot.Resources, []*cluster.Node{freed})
	_, ok := e.settles(q, after, after.IndexOf(node))
	return ok
}

// settles tells whether the pod fits on the node at a position of the snapshot and the rest of its
// gang fits beside it, and if not, why.
func (e *engine) settles(q *question, s *cluster.Snapshot, at int) (why string, ok bool) {
	standings, err := placement.Standings(s, &q.request, e.options())
	switch {
	case err != nil:
		return err.Error(), false
	case standings[at].Reason != placement.Fits:
		return "nodes like it " + standings[at].Reason.Words(&q.group().Pod), false
	case !q.gang.IsGang():
		return "", true
	}
	node := s.At(at)
	rest := q.request
	group := *q.group()
	rest.Groups = []placement.Group{group}
	g := &rest.Groups[0]
	for _, name := range group.Kept {
		if other := s.IndexOf(name); q.level >= 0 && other >= 0 && s.DomainOf(q.level, other) != s.DomainOf(q.level, at) {
			return "other pods of gang " + q.gang.Name.String() + " are in another " + s.Levels[q.level].Name, false
		}
	}
	g.Count, g.MinCount = group.Count-1, group.MinCount-1
	if g.Count == 0 || g.MinCount == 0 {
		return "", true
	}
	g.Kept = append(slices.Clone(group.Kept), node.Name)
	if len(g.Slices) > 0 {
		// Of the pod's own slice alone: one fewer than a gang is no number of slices.
		slice := g.Slices[0]
		g.Count, g.MinCount, g.Slices = slice.Size-1, slice.Size-1, nil
		g.Topology.Required = slice.Level
		if g.Count == 0 {
			return "", true
		}
	}
	taken := node.With(&cluster.Pod{Workload: &cluster.Workload{Name: q.request.Name, Level: placement.AnyLevel}, Use: group.Pod.Resources})
	after := s.Next(s.Generation, s.Resources, []*cluster.Node{taken})
	d, err := placement.Plan(after, &rest, e.options())
	switch {
	case err != nil:
		return err.Error(), false
	case !d.Feasible:
		return "the rest of gang " + q.gang.Name.String() + " does not fit beside it: " + d.Why.Sentence, false
	}
	return "", true
}

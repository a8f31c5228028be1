package extender

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Where a node is for the next pod of a gang, the best first.
const (
	inPlan = iota
	near
	inside
	anywhere
)

// rank is how good a node is beside others.
type rank struct {
	index, class, at int
	score            float64
}

// prioritize scores the nodes from 0 to 10, one score each. The node that the engine would take
// has 10 and no other has; below it each step down in the engine's order is one point less, until
// nothing is left to tell by: kube-scheduler has eleven scores and the engine any number.
func (e *engine) prioritize(pod *corev1.Pod, names []string) []int64 {
	scores := make([]int64, len(names))
	if node := planned(pod); node != "" {
		for i, name := range names {
			if name == node {
				scores[i] = extenderv1.MaxExtenderPriority
			}
		}
		return scores
	}
	if !wantsGPU(pod) {
		return scores
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q, err := e.ask(pod)
	if err != nil {
		return scores
	}
	standings, err := placement.Standings(q.snapshot, &q.request, e.options())
	if err != nil {
		return scores
	}
	classOf := func(int) int { return anywhere }
	if q.gang.IsGang() {
		offer := e.offer(q, names)
		if offer.refusal != "" {
			return scores
		}
		classOf = offer.class
	}
	ranks := make([]rank, 0, len(names))
	for i, name := range names {
		if at := q.snapshot.IndexOf(name); at >= 0 && standings[at].Reason == placement.Fits {
			ranks = append(ranks, rank{index: i, class: classOf(at), at: at, score: standings[at].Score})
		}
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at))
	})
	next := extenderv1.MaxExtenderPriority
	for i, r := range ranks {
		if i == 1 || i > 1 && (r.class != ranks[i-1].class || r.score != ranks[i-1].score) {
			next = max(next-1, extenderv1.MinExtenderPriority)
		}
		scores[r.index] = next
	}
	return scores
}

// class tells where the node at a position is for the gang.
func (o *offer) class(at int) int {
	switch {
	case slices.Contains(o.plan, int32(at)):
		return inPlan
	case o.near.Holds(at):
		return near
	case o.domain.Holds(at):
		return inside
	}
	return anywhere
}

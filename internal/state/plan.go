package state

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Ask says which part of a workload is to be planned.
type Ask struct {
	// Attempt is the attempt that the plan is for.
	Attempt int32
	// Ranks are the members to place; nil is the whole gang.
	Ranks []int32
	// Kept are the nodes of members that stay; if InSlice, those of the slice that the ranks
	// belong to, which must join them there.
	Kept    []string
	InSlice bool
	// Avoid are nodes that refused a pod of this workload a short while ago.
	Avoid []string
	// Now is the time: what would be lost with a workload that is evicted grows with it, and
	// reservations come nearer. Since is from when on the workload waits; the zero
	// time if it asks without waiting.
	Now, Since time.Time
}

// narrow changes the group to what is asked of members that are replaced.
func (a *Ask) narrow(g *placement.Group) {
	g.Kept = a.Kept
	if a.Ranks == nil {
		return
	}
	g.Count, g.MinCount = len(a.Ranks), 0
	if len(g.Slices) == 0 {
		return
	}
	slice := g.Slices[len(g.Slices)-1]
	g.Slices = nil
	if a.InSlice {
		g.Topology.Required = max(g.Topology.Required, slice.Level)
		return
	}
	// The whole slice is replaced: it must be in one domain, wherever that is.
	g.Slices = []placement.Slice{{Level: slice.Level, Size: len(a.Ranks)}}
}

// Plan decides where the pods of the workload go and, if there is room, holds it for them, in
// one step: no other plan sees the same room free. The hold ends by itself, member by member,
// when pods are seen to hold their own, or with Release. The result maps ranks to nodes.
//
// Where the plan evicts others, the room is held beside what they still hold, so that nobody
// else gets it once they have made way. Members that are replaced evict nobody, and wait for no
// reservation of others.
//
// Errors are *InvalidError where the workload must change.
func (s *State) Plan(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, ask Ask) (placement.Decision, map[int32]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guide := s.guide(w)
	r, err := s.question(w, pod, &guide)
	if err != nil {
		return placement.Decision{}, nil, err
	}
	use := podUse(pod, s.resources)
	r.Avoid = ask.Avoid
	ask.narrow(&r.Groups[0])
	s.release(w.UID, ask.Ranks)
	var held uint64
	if ask.Ranks == nil {
		held = s.before(w, &ask)
	}
	r.Preempts = r.Preempts && ask.Ranks == nil
	d, err := s.decide(&r, guide.Scoring, held, ask.Now)
	if err != nil {
		return d, nil, &InvalidError{Field: "spec", Problem: err.Error()}
	}
	var movers []gpuv1alpha1.Victim
	if !d.Feasible && ask.Ranks == nil && !d.Why.Never {
		after, victims, ok := s.makeRoom(w, &r, &guide, held, ask.Now)
		if !ok {
			s.await(w, pod, &ask)
			return d, nil, nil
		}
		d, movers = after, victims
	}
	if !d.Feasible {
		return d, nil, nil
	}
	if ask.Ranks == nil {
		s.leave(w.UID)
	}
	nodeOf := make(map[int32]string, d.Size())
	for i, node := range d.Nodes() {
		rank := int32(i)
		if ask.Ranks != nil {
			rank = ask.Ranks[i]
		}
		nodeOf[rank] = node
	}
	victims := append(s.victims(&d), movers...)
	s.hold(w, ask.Attempt, use, nodeOf)
	s.holds[w.UID].victims = victims
	return d, nodeOf, nil
}

// Confirm makes what is held for a workload agree with the plan in its status, which is the
// truth: a plan made by an earlier process, or one whose write was thought to have failed, is
// held from here on. Members whose pods were bound or have ended need no promise.
func (s *State) Confirm(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, nodeOf map[int32]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.holds[w.UID]; ok && h.attempt == w.Status.Attempt && maps.Equal(h.planned, nodeOf) {
		return
	}
	members := maps.Clone(nodeOf)
	for _, p := range s.pods {
		if p.settled && p.member.workload == w.UID && p.member.attempt == w.Status.Attempt {
			delete(members, p.member.rank)
		}
	}
	s.release(w.UID, nil)
	s.hold(w, w.Status.Attempt, podUse(pod, s.resources), members)
	s.holds[w.UID].planned = maps.Clone(nodeOf)
}

// Promised returns the node that is held for a member whose pod does not hold it yet.
func (s *State) Promised(uid types.UID, attempt, rank int32) (node string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, held := s.holds[uid]
	if !held || h.attempt != attempt {
		return "", false
	}
	promised, ok := h.members[rank]
	if !ok {
		return "", false
	}
	return promised.node, true
}

// Release gives back what plans of the workload still hold and what is reserved for it. Pods keep
// what they hold.
// It reports whether anything was held.
func (s *State) Release(uid types.UID) (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.holds[uid]
	freed = ok && len(h.members) > 0
	s.release(uid, nil)
	return s.leave(uid) || freed
}

// ReleaseRanks gives back what is held for the given members only.
func (s *State) ReleaseRanks(uid types.UID, ranks []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(uid, ranks)
}

func (s *State) hold(w *gpuv1alpha1.GPUWorkload, attempt int32, pod cluster.Vector, nodeOf map[int32]string) {
	h, ok := s.holds[w.UID]
	if !ok || h.attempt != attempt {
		s.release(w.UID, nil)
		h = &hold{
			attempt: attempt,
			pod:     pod,
			members: make(map[int32]*held, len(nodeOf)),
			planned: make(map[int32]string, len(nodeOf)),
		}
		s.holds[w.UID] = h
	}
	h.job = types.NamespacedName{Namespace: w.Namespace, Name: JobName(w, attempt)}
	work := s.workFor(keyOf(w))
	prefix := h.job.Namespace + "/" + h.job.Name + "-"
	for rank, node := range nodeOf {
		s.give(h.members[rank])
		promised := &held{node: node, use: h.pod, name: prefix + strconv.Itoa(int(rank)), work: work, attempt: attempt}
		h.members[rank], h.planned[rank] = promised, node
		s.take(promised)
	}
}

// release gives back what is held for the given ranks, or for all of them if ranks is nil.
func (s *State) release(uid types.UID, ranks []int32) {
	h, ok := s.holds[uid]
	if !ok {
		return
	}
	if ranks == nil {
		ranks = slices.Collect(maps.Keys(h.members))
		delete(s.holds, uid)
	}
	for _, rank := range ranks {
		if promised, ok := h.members[rank]; ok {
			s.give(promised)
			delete(h.members, rank)
		}
	}
}

// settle ends the hold of one member: its pod is bound and holds its own room, or has ended.
func (s *State) settle(m member) {
	h, ok := s.holds[m.workload]
	if !ok || h.attempt != m.attempt || h.job != m.job {
		return
	}
	if promised, ok := h.members[m.rank]; ok {
		s.give(promised)
		delete(h.members, m.rank)
	}
}

package state

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// Defragmentation is how workloads that may move make room for those that wait.
type Defragmentation struct {
	// Enabled has moves carried out; otherwise they are proposed and no more.
	Enabled bool
	// MaxMoves is the most workloads that move for one that waits; 0 proposes nothing.
	MaxMoves int
	// Window is the time between two moves, and from the moment that the process leads to the first.
	Window time.Duration
}

// proposeEvery is for how long a proposal, or that there is none, is taken to hold.
const proposeEvery = time.Minute

// SetDefragmentation must be called before anything is planned. Now is the time: a process that
// starts anew does not know what moved before.
func (s *State) SetDefragmentation(d Defragmentation, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = moves{limits: d, last: now, proposals: make(map[types.UID]proposal)}
}

// Lead says that this process decides from now on. What an earlier one moved it does not know: the
// first window begins now, however long it has stood by.
func (s *State) Lead(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves.last = now
}

// moves is what is known of moves that would help.
type moves struct {
	limits Defragmentation
	// last is when a plan with moves was made.
	last      time.Time
	proposals map[types.UID]proposal
}

// WouldStart is in every sentence that proposes moves.
const WouldStart = " would start it: "

// proposal is what would make room for a workload: the movers, by name, and a sentence; neither if
// nothing would.
type proposal struct {
	at       time.Time
	movers   map[string]bool
	sentence string
}

// Proposal returns the sentence that says which moves would start a workload, "" if none is known.
func (s *State) Proposal(uid types.UID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moves.proposals[uid].sentence
}

// Propose looks for moves that make room for one of those that have waited longest, another one
// with each call, and returns it if the answer changed. A search can take most of a second: it is
// made without the lock. It must not be called twice at the same time.
func (s *State) Propose(now time.Time) (changed types.NamespacedName, found bool) {
	s.mu.Lock()
	j, world := s.nextToPropose(now)
	options := placement.MoveOptions{Options: placement.Options{Strategies: s.strategies}, MaxMoves: s.moves.limits.MaxMoves}
	s.mu.Unlock()
	if j == nil {
		return types.NamespacedName{}, false
	}
	options.Scoring = j.scoring
	answer, err := placement.Defragment(world, &j.request, options)
	next := proposal{at: now}
	if err == nil && answer.Feasible && len(answer.Moves) > 0 {
		next.movers, next.sentence = moversOf(&answer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := j.workload.UID
	if _, waits := s.reservations.queue[uid]; !waits {
		return types.NamespacedName{}, false
	}
	before := s.moves.proposals[uid]
	s.moves.proposals[uid] = next
	key := types.NamespacedName{Namespace: j.workload.Namespace, Name: j.workload.Name}
	return key, before.sentence != next.sentence || s.mayMove(uid, now)
}

// nextToPropose picks the workload that was not asked about for the longest, and the cluster to ask:
// with all that is reserved for others in use. Nil if nothing may move or nobody is due.
func (s *State) nextToPropose(now time.Time) (*job, *cluster.Snapshot) {
	movable := false
	for _, w := range s.works {
		movable = movable || w.spec.Movable && w.bound > 0
	}
	if !movable || s.moves.limits.MaxMoves == 0 {
		clear(s.moves.proposals)
		return nil, nil
	}
	var next *job
	for _, j := range s.candidates(now) {
		at := s.moves.proposals[j.workload.UID].at
		if now.Sub(at) >= proposeEvery && (next == nil || at.Before(s.moves.proposals[next.workload.UID].at)) {
			next = j
		}
	}
	if next == nil {
		return nil, nil
	}
	s.reckon(now)
	held := s.before(next.workload, &Ask{Now: now, Since: next.since})
	return next, s.besides(held, true)
}

func moversOf(answer *placement.Moves) (movers map[string]bool, sentence string) {
	movers = make(map[string]bool, len(answer.Moves))
	names := make([]string, 0, len(answer.Moves))
	for i := range answer.Moves {
		m := &answer.Moves[i]
		movers[m.Workload] = true
		names = append(names, fmt.Sprintf("%s (%.1f GPU-hours lost)", m.Workload, m.Cost))
	}
	count := fmt.Sprintf("%d moves", len(names))
	if len(names) == 1 {
		count = "1 move"
	}
	return movers, count + WouldStart + some(names)
}

// mayMove tells whether the moves proposed for a workload may be made now.
func (s *State) mayMove(uid types.UID, now time.Time) bool {
	return s.moves.limits.Enabled && len(s.moves.proposals[uid].movers) > 0 && now.Sub(s.moves.last) >= s.moves.limits.Window
}

// makeRoom plans a workload as if those that are proposed to move for it were gone. They go once
// they have another place, which each finds by itself: the room that this plan takes is not free
// for them. It is false if no moves are known or may be made, or they do not help any more.
func (s *State) makeRoom(w *gpuv1alpha1.GPUWorkload, r *placement.Request, guide *policy.Guide, held uint64, now time.Time) (placement.Decision, []gpuv1alpha1.Victim, bool) {
	if !s.mayMove(w.UID, now) {
		return placement.Decision{}, nil, false
	}
	world := s.besides(held, true)
	movers := s.moves.proposals[w.UID].movers
	gone := make(map[string][]*cluster.Pod)
	var victims []gpuv1alpha1.Victim
	for _, other := range s.works {
		if !other.told || !movers[other.key.name] {
			continue
		}
		if !other.spec.Movable || other.bound < len(other.members) {
			return placement.Decision{}, nil, false
		}
		for _, m := range other.members {
			gone[m.node] = append(gone[m.node], m.made)
		}
		v := other.victim()
		v.Move = true
		victims = append(victims, v)
	}
	var changed []*cluster.Node
	for name, pods := range gone {
		if n := world.Node(name); n != nil {
			changed = append(changed, n.Without(pods...))
		}
	}
	s.generation++
	calm := *r
	calm.Preempts = false
	d, err := placement.Plan(world.Next(s.generation, s.resources, changed), &calm, placement.Options{Strategies: s.strategies, Scoring: guide.Scoring})
	if err != nil || !d.Feasible || len(victims) != len(movers) {
		return placement.Decision{}, nil, false
	}
	delete(s.moves.proposals, w.UID)
	s.moves.last = now
	return d, victims, true
}

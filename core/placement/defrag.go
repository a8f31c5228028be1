package placement

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// MoveOptions is what Defragment depends on beside the cluster and the request.
type MoveOptions struct {
	Options
	// MaxMoves is the most workloads that may move; 0 sets no limit.
	MaxMoves int
	// Moved names the workloads that moved a short while ago. They stay where they are, so that
	// nothing moves twice in a window.
	Moved []string
}

// Moves is the answer of Defragment: what has to move, in which order, to make room.
type Moves struct {
	// Feasible tells whether Moves makes room; it is empty if there is room already. An answer
	// that is neither Feasible nor Undecided is a proof, which rests on Certificate.
	Feasible, Undecided bool
	// Moves are made one after the other. Each finds its targets free once the ones before are
	// made and its own pods are stopped.
	Moves []Move
	// Plan is where the request goes once all moves are made, or why there is no room now.
	Plan Decision
	// LowerBound is a number of workloads that no way to make room can do with fewer than; 0
	// where it was not needed.
	LowerBound  int
	Certificate *Certificate
	// Sentence says it all to a person.
	Sentence string
}

// Move is one workload that changes its place.
type Move struct {
	Workload string
	// Pods are those that start anew elsewhere, or on other devices of their node. Pods of the
	// workload that are not named stay.
	Pods []PodMove
	// Cost is what is lost in GPU-hours: the workload's Cost, or the moved pods' part of it where
	// those that stay go on meanwhile.
	Cost float64
}

// PodMove is one pod of a Move, with what it holds before and after.
type PodMove struct {
	Pod, From, To string
	Before, After cluster.Placement
}

// Cost returns what all moves lose, in GPU-hours.
func (m *Moves) Cost() float64 {
	sum := 0.0
	for i := range m.Moves {
		sum += m.Moves[i].Cost
	}
	return sum
}

// Defragment looks for the fewest workloads whose move makes room for the request: movable
// ones, which Workload.Movable says and not Protected, each of which finds another place at once, in one domain of
// its own level. It evicts nobody and ignores Request.Preempts.
//
// The answer is feasible with a plan; or a proof that there is none within MaxMoves; or
// undecided. A plan is minimal by inclusion: none of its moves can be left out. Whether another
// plan has fewer moves, LowerBound tells; on small clusters every smaller set is tried as far as
// Options.Budget reaches.
//
// It returns an error for a request that is malformed, as Plan does.
func Defragment(s *cluster.Snapshot, r *Request, o MoveOptions) (Moves, error) {
	own := *r
	own.Preempts = false
	p, err := newPlanner(s, &own, o.Options)
	if err != nil {
		return Moves{}, fmt.Errorf("defragmenting for %s: %w", r.Name, err)
	}
	d := p.plan()
	if d.Feasible {
		return Moves{Feasible: true, Plan: d, Sentence: "there is room without any move: " + d.Why.Sentence}, nil
	}
	m := newMover(p, o)
	answer := m.answer()
	if answer.Feasible {
		if answer.Plan = m.planAfter(answer.Moves); answer.Plan.Feasible {
			answer.Sentence = m.praise(&answer)
			return answer, nil
		}
		// Of several groups a plan may be missed that another search found.
		answer = Moves{Undecided: true, LowerBound: answer.LowerBound, Sentence: "moves were found after which a plan was not"}
	}
	answer.Plan = d
	answer.Sentence = d.Why.Sentence + "; " + answer.Sentence
	return answer, nil
}

// answer is Defragment once it is known that there is no room without moves. It leaves the plan
// to its caller.
func (m *mover) answer() Moves {
	if len(m.e.all) == 0 {
		c := m.impossible().Certificate
		return Moves{Undecided: c == nil, Certificate: c, Sentence: "nothing that runs may be moved"}
	}
	if m.e.group == nil && len(m.e.all) > maxForSeveral {
		return Moves{Undecided: true, Sentence: fmt.Sprintf("with %s that may move, making room for several groups at once is not tried",
			plural(len(m.e.all), "workload"))}
	}
	if !m.e.fits(m.without) {
		why := m.impossible()
		return Moves{Undecided: why.Certificate == nil, Certificate: why.Certificate, Sentence: fmt.Sprintf(
			"moving all %s that may move would not be enough: %s", plural(len(m.e.all), "workload"), why.Sentence)}
	}
	if c := m.tooMuch(); c != nil {
		return Moves{Certificate: c, Sentence: fmt.Sprintf(
			"no move makes free GPUs: %d are needed and %d are free in all", c.Need, c.Room)}
	}
	bound, where := m.bound()
	if k := m.o.MaxMoves; k > 0 && bound > k {
		return Moves{LowerBound: bound, Certificate: m.tooMany(bound, where), Sentence: fmt.Sprintf(
			"at least %s would have to move, and %d may", plural(bound, "workload"), k)}
	}
	found := m.search()
	if found == nil || len(found) > bound {
		better, raised := m.smaller(bound, len(found))
		if bound = raised; better != nil {
			found = better
		}
	}
	switch k := m.o.MaxMoves; {
	case found != nil && (k == 0 || len(found) <= k):
		return Moves{Feasible: true, Moves: found, LowerBound: bound}
	case m.proven():
		return Moves{LowerBound: bound, Certificate: m.exhausted(), Sentence: m.allTried()}
	case found != nil:
		return Moves{Undecided: true, LowerBound: bound, Sentence: fmt.Sprintf(
			"moving %s would make room, and %d may move; whether fewer than %d do is not decided",
			plural(len(found), "workload"), k, len(found))}
	}
	return Moves{Undecided: true, LowerBound: bound, Sentence: "whether what is in the way finds places elsewhere is not decided"}
}

// maxForSeveral is among how many workloads it is searched for those to move for a request of
// several groups, of which every question is a search.
const maxForSeveral = 100

// planAfter plans the request as it would be planned once the moves are made.
func (m *mover) planAfter(moves []Move) Decision {
	after := *m.p
	after.s, _ = run(m.p.s, moves)
	return after.plan()
}

// run makes the moves one after the other. It is false where one does not find its targets free.
func run(s *cluster.Snapshot, moves []Move) (*cluster.Snapshot, bool) {
	txn := s.Begin()
	for i := range moves {
		if moves[i].Make(txn) != nil {
			return nil, false
		}
	}
	return txn.Snapshot(), true
}

// Make stops the move's pods and starts them where they go. Where there is no room it returns an
// error, and the pods are stopped.
func (m *Move) Make(txn *cluster.Txn) error {
	txn.Evict(m.places(func(p *PodMove) cluster.Placement { return p.Before })...)
	if err := txn.Place(m.places(func(p *PodMove) cluster.Placement { return p.After })...); err != nil {
		return fmt.Errorf("moving %s: %w", m.Workload, err)
	}
	return nil
}

func (m *Move) places(of func(*PodMove) cluster.Placement) []cluster.Placement {
	places := make([]cluster.Placement, len(m.Pods))
	for i := range m.Pods {
		places[i] = of(&m.Pods[i])
	}
	return places
}

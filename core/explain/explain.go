package explain

import (
	"fmt"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Question is what there is to explain.
type Question struct {
	// Snapshot is the cluster without what the workload in question holds itself.
	Snapshot *cluster.Snapshot
	Request  *placement.Request
	Options  placement.Options
	// Running says of workloads, by name, for how long they were said to run and how long they
	// have. An estimate of zero is not known; neither is that of a workload that is not named.
	Running map[string]placement.Run
	// Idle names workloads that hold GPUs and do not use them, with for how long. Nil where nobody
	// looks.
	Idle map[string]time.Duration
	// Foreign tells of a workload, by name, that nobody knows what its pods ask of a node beside
	// amounts, so that no other place can be proposed for them. Nil: of none.
	Foreign func(name string) bool
}

// Verdict says whose turn it is.
type Verdict string

// The verdicts.
const (
	// Placed: the workload has its places.
	Placed Verdict = "PLACED"
	// Wait: room comes by itself, or nothing but time is known to help.
	Wait Verdict = "WAIT"
	// Change: the request can be met if it asks for something else.
	Change Verdict = "CHANGE"
	// Ask: it is somebody else's decision: who holds the room is less important, idle, or could
	// be elsewhere.
	Ask Verdict = "ASK"
	// Broken: something must be mended first.
	Broken Verdict = "BROKEN"
)

// Explanation is the answer for a person.
type Explanation struct {
	// Workload is the name of the request.
	Workload string
	Verdict  Verdict
	// Reason is the one that dominates, Sentence its evidence.
	Reason   Reason
	Sentence string
	// Misses are the domains that come nearest, the wider ones first.
	Misses []Miss
	// Remedies have been tried, the cheapest first.
	Remedies []Remedy
	// Decision is what the engine answers now.
	Decision placement.Decision
}

// explainer works on one question.
type explainer struct {
	*Question
	refused placement.Decision
	// group is the one in the way.
	group *placement.Group
	rooms []placement.NodeRoom
	// trust leaves out the trial of remedies; spoil edits them before. Both are for tests of what
	// the trial is good for.
	trust bool
	spoil func(*Remedy)
}

// Explain answers the question. Its error is that of placement.Plan: the request is malformed.
func Explain(q *Question) (Explanation, error) {
	return (&explainer{}).explain(q)
}

func (e *explainer) explain(q *Question) (Explanation, error) {
	own := *q
	// The trials are many, over snapshots that differ in a few nodes.
	own.Options.Cache = &placement.Cache{}
	own.Options.Explain = true
	e.Question = &own
	d, err := placement.Plan(own.Snapshot, own.Request, own.Options)
	if err != nil {
		return Explanation{}, fmt.Errorf("explaining %s: %w", own.Request.Name, err)
	}
	own.Options.Explain = false
	answer := Explanation{Workload: own.Request.Name, Decision: d, Reason: ReasonOf(&d)}
	if d.Feasible {
		answer.Verdict = Wait
		answer.Sentence = "there is room now: " + d.Why.Sentence
		if len(d.Victims) > 0 {
			answer.Sentence = "there is room " + d.Why.Sentence
		}
		return answer, nil
	}
	e.refused = d
	if own.Request.Preempts {
		// The evidence is of the cluster as it is, not as it were without what may be evicted.
		calm := *own.Request
		calm.Preempts = false
		if e.refused, err = placement.Plan(own.Snapshot, &calm, own.Options); err != nil {
			return Explanation{}, fmt.Errorf("explaining %s: %w", own.Request.Name, err)
		}
		answer.Reason = ReasonOf(&e.refused)
	}
	e.group = &own.Request.Groups[0]
	for i := range own.Request.Groups {
		if own.Request.Groups[i].Name == e.refused.Why.Group {
			e.group = &own.Request.Groups[i]
		}
	}
	e.survey()
	answer.Misses = e.misses()
	if answer.Remedies, err = e.remedies(); err != nil {
		return Explanation{}, err
	}
	e.judge(&answer)
	return answer, nil
}

// survey counts what each node takes, and what it would if all of it were in service.
func (e *explainer) survey() {
	e.rooms = placement.Rooms(e.Snapshot, &e.group.Pod)
	var out []string
	for _, n := range e.Snapshot.Nodes() {
		if !n.Ready || n.Cordoned || n.Broken != 0 {
			out = append(out, n.Name)
		}
	}
	if len(out) == 0 {
		return
	}
	whole := mended(e.Snapshot, out)
	for i, room := range placement.Rooms(whole, &e.group.Pod) {
		e.rooms[i].FitsEmpty = room.FitsEmpty
	}
}

// judge finds the verdict: what of the answer matters first to the one who waits.
func (e *explainer) judge(answer *Explanation) {
	mends, asks, waits, free, smaller := false, false, false, false, false
	for i := range answer.Remedies {
		switch r := &answer.Remedies[i]; r.Kind {
		case Mend:
			mends = true
		case Move, Preempt, Evict:
			asks = true
		case WaitFor:
			waits = waits || r.Start.Known
		case Edit:
			free = free || r.Cost.GPUs == 0
			smaller = smaller || r.Cost.GPUs > 0
		}
	}
	if mends {
		answer.Reason = NodesOutOfService
	}
	switch {
	case mends, answer.Reason == LevelNotCarried, answer.Reason == NoNodes:
		answer.Verdict = Broken
	case waits:
		answer.Verdict = Wait
	case answer.Reason == NeverFits, answer.Reason == NoSuitableNode, free:
		answer.Verdict = Change
	case asks:
		answer.Verdict = Ask
	case smaller:
		answer.Verdict = Change
	default:
		answer.Verdict = Wait
	}
	answer.Sentence = e.evidence(answer)
}

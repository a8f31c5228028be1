package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Kind says what a remedy does.
type Kind string

// The kinds, in the order in which they are proposed where they cost the same.
const (
	// WaitFor: nothing is done; what is in the way ends.
	WaitFor Kind = "wait"
	// Edit: the request asks for something else.
	Edit Kind = "change"
	// Mend: nodes come back into service.
	Mend Kind = "mend"
	// Move: workloads go elsewhere.
	Move Kind = "move"
	// Preempt: workloads that may be evicted are, by the engine's own rules.
	Preempt Kind = "preempt"
	// Evict: workloads are asked to leave.
	Evict Kind = "ask"
)

func (k Kind) order() int { return slices.Index([]Kind{WaitFor, Edit, Mend, Move, Preempt, Evict}, k) }

// Start is when the workload could start with a remedy.
type Start struct {
	// Known is false if nothing tells. Otherwise In is in how long, 0 for now, and Latest in how
	// long if what is waited for takes long.
	Known      bool
	In, Latest time.Duration
}

// Cost is what a remedy costs.
type Cost struct {
	// Evicted and Moved count the pods that have to stop for good, or to start elsewhere.
	Evicted, Moved int
	// Lost are the GPU-hours that are lost with them, LostKnown whether that is known.
	Lost      float64
	LostKnown bool
	// GPUs are those that the request does without, Levels how many levels wider it spreads, and
	// Mbps the bandwidth a pod that it gives up.
	GPUs, Mbps int64
	Levels     int
	// Nodes is how many nodes somebody has to see to.
	Nodes int
}

// Remedy is something that would let the workload start: the engine has tried it.
type Remedy struct {
	Kind     Kind
	Sentence string
	Start    Start
	Cost     Cost
	// Subjects are the workloads, or the nodes, that it is about.
	Subjects []string
	// What to do to the snapshot and to the request, by kind: pods that leave, moves, nodes that
	// come back, an edit.
	Leave  []cluster.Placement
	Moves  []placement.Move
	Mend   []string
	Change *placement.Change
	// Plan is where the workload goes then.
	Plan placement.Decision
}

// Apply returns the snapshot and the request as the remedy makes them.
func (r *Remedy) Apply(s *cluster.Snapshot, q *placement.Request) (*cluster.Snapshot, *placement.Request, error) {
	// Nobody is evicted beside those that the remedy names.
	calm := *q
	calm.Preempts = false
	asked := &calm
	if r.Change != nil {
		edited, err := r.Change.Apply(s, asked)
		if err != nil {
			return nil, nil, err
		}
		asked = edited
	}
	tx := s.Begin()
	tx.Evict(r.Leave...)
	for _, m := range r.Moves {
		var to []cluster.Placement
		for _, p := range m.Pods {
			tx.Evict(p.Before)
			to = append(to, p.After)
		}
		if err := tx.Place(to...); err != nil {
			return nil, nil, fmt.Errorf("moving %s: %w", m.Workload, err)
		}
	}
	now := tx.Snapshot()
	if len(r.Mend) > 0 {
		now = mended(now, r.Mend)
	}
	return now, asked, nil
}

// mended returns the snapshot in which the named nodes are in service and whole.
func mended(s *cluster.Snapshot, names []string) *cluster.Snapshot {
	nodes := make([]*cluster.Node, 0, len(names))
	for _, name := range names {
		n := s.Node(name)
		if n == nil {
			continue
		}
		whole, next := *n.Machine, *n
		whole.Ready, whole.Cordoned, whole.Broken = true, false, 0
		// What Kubernetes itself says of a node's health goes with what it says of.
		whole.Taints = slices.DeleteFunc(slices.Clone(whole.Taints), func(t cluster.Taint) bool {
			return strings.HasPrefix(t.Key, "node.kubernetes.io/")
		})
		next.Machine = &whole
		nodes = append(nodes, &next)
	}
	return s.Next(s.Generation+1, s.Resources, nodes)
}

// remedies proposes, tries, and orders what helped.
func (e *explainer) remedies() ([]Remedy, error) {
	var found []Remedy
	for _, propose := range []func() ([]Remedy, error){e.waits, e.edits, e.mends, e.moves, e.preempts, e.asks} {
		proposed, err := propose()
		if err != nil {
			return nil, err
		}
		for _, r := range proposed {
			if e.spoil != nil {
				e.spoil(&r)
			}
			if ok, err := e.try(&r); err != nil {
				return nil, err
			} else if ok || e.trust {
				found = append(found, r)
			}
		}
	}
	slices.SortStableFunc(found, compare)
	// Whom the engine may evict by itself need not be asked.
	for i := range found {
		if found[i].Kind == Preempt {
			found = slices.DeleteFunc(found, func(r Remedy) bool { return r.Kind == Evict && slices.Equal(r.Subjects, found[i].Subjects) })
			break
		}
	}
	return found, nil
}

// try applies the remedy and plans again.
func (e *explainer) try(r *Remedy) (bool, error) {
	s, q, err := r.Apply(e.Snapshot, e.Request)
	if err != nil {
		// What was found for a world of more liberties may not be possible in this one.
		return false, nil //nolint:nilerr // then it is no remedy
	}
	if r.Plan, err = placement.Plan(s, q, e.Options); err != nil {
		return false, fmt.Errorf("trying to %s: %w", r.Sentence, err)
	}
	return r.Plan.Feasible, nil
}

// compare orders remedies: those that may never come true last, then those that disturb fewer
// others, then those that give up less, then the sooner ones.
func compare(a, b Remedy) int {
	return cmp.Or(
		order(!a.Start.Known, !b.Start.Known),
		cmp.Compare(a.Cost.Evicted+a.Cost.Moved, b.Cost.Evicted+b.Cost.Moved),
		cmp.Compare(a.Cost.Evicted, b.Cost.Evicted),
		order(!a.Cost.LostKnown, !b.Cost.LostKnown),
		cmp.Compare(a.Cost.Lost, b.Cost.Lost),
		cmp.Compare(a.Cost.GPUs, b.Cost.GPUs),
		cmp.Compare(a.Cost.Levels, b.Cost.Levels),
		cmp.Compare(a.Cost.Mbps, b.Cost.Mbps),
		cmp.Compare(a.Cost.Nodes, b.Cost.Nodes),
		cmp.Compare(a.Start.In, b.Start.In),
		cmp.Compare(a.Kind.order(), b.Kind.order()),
		strings.Compare(a.Sentence, b.Sentence),
	)
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// lost says what is lost if the workloads stop now: what the snapshot says it costs, or the
// GPU-hours since their start, which is the most it can be.
func (e *explainer) lost(pods []cluster.Placement) (hours float64, known bool) {
	known = true
	seen := map[*cluster.Workload]bool{}
	for _, at := range pods {
		w := at.Pod.Workload
		switch run, runs := e.Running[w.Name]; {
		case w.Cost > 0:
			if !seen[w] {
				hours += w.Cost
			}
		case runs && run.Elapsed > 0:
			hours += run.Elapsed.Hours() * float64(at.Pod.Use.At(e.group.Pod.GPUResource))
		default:
			known = false
		}
		seen[w] = true
	}
	return hours, known
}

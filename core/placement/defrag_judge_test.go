package placement

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// wrongMoves returns what is wrong with an answer, "" if nothing. It makes the moves one after
// the other and looks at the cluster by itself after each.
func wrongMoves(s *cluster.Snapshot, r *Request, m *Moves, o MoveOptions) string {
	switch {
	case m.Feasible && m.Undecided || m.Feasible != m.Plan.Feasible:
		return "the verdicts contradict each other"
	case !m.Feasible && (len(m.Moves) > 0 || !m.Undecided && m.Certificate == nil):
		return "a refusal with moves, or without a proof"
	case !m.Feasible:
		return ""
	case o.MaxMoves > 0 && len(m.Moves) > o.MaxMoves:
		return fmt.Sprintf("%d moves, %d are allowed", len(m.Moves), o.MaxMoves)
	case len(m.Moves) < m.LowerBound:
		return fmt.Sprintf("%d moves, which is less than the bound of %d", len(m.Moves), m.LowerBound)
	}
	txn := s.Begin()
	if problem := overdrawn(m, o.Budgets); problem != "" {
		return problem
	}
	for i := range m.Moves {
		if problem := wrongMove(txn, m, i, o); problem != "" {
			return fmt.Sprintf("move %d, of %s: %s", i, m.Moves[i].Workload, problem)
		}
	}
	after := txn.Snapshot()
	if problem := wrongLevels(s, after, m); problem != "" {
		return problem
	}
	if err := txn.Place(m.Plan.Placements(r, &cluster.Workload{Name: r.Name})...); err != nil {
		return err.Error()
	}
	if problem := overfullNode(txn.Snapshot()); problem != "" {
		return problem
	}
	if size := m.Plan.Size(); size < r.Groups[0].least() || size > r.Groups[0].Count {
		return fmt.Sprintf("%d pods placed", size)
	}
	return checkWorld(after, r, m.Plan.Nodes())
}

// overdrawn names a budget of which more workloads move than it has left.
func overdrawn(m *Moves, budgets map[string]int) string {
	used := map[string]int{}
	for i := range m.Moves {
		for _, p := range m.Moves[i].Pods[:min(1, len(m.Moves[i].Pods))] {
			used[p.Before.Pod.Workload.Budget]++
		}
	}
	for name, left := range budgets {
		if used[name] > left {
			return fmt.Sprintf("%d of budget %s move, %d are left", used[name], name, left)
		}
	}
	return ""
}

func wrongMove(txn *cluster.Txn, m *Moves, i int, o MoveOptions) string {
	move := &m.Moves[i]
	if slices.ContainsFunc(m.Moves[:i], func(other Move) bool { return other.Workload == move.Workload }) {
		return "it moved before"
	}
	if slices.Contains(o.Moved, move.Workload) || len(move.Pods) == 0 {
		return "it moved in the window before, or nothing of it moves"
	}
	var from, to []cluster.Placement
	for _, p := range move.Pods {
		before, after := p.Before.Pod, p.After.Pod
		switch {
		case before.Workload.Name != move.Workload || !before.Workload.Movable || before.Workload.Protected:
			return "a pod that may not move"
		case after.Workload != before.Workload || after.Name != before.Name || !slices.Equal(after.Use, before.Use):
			return "a pod that is another one afterwards"
		case !slices.Contains(txn.Snapshot().At(p.Before.Node).Pods, before):
			return "a pod that is not there"
		case p.From != txn.Snapshot().At(p.Before.Node).Name || p.To != txn.Snapshot().At(p.After.Node).Name:
			return "names of other nodes"
		}
		target := txn.Snapshot().At(p.After.Node)
		needs := before.Needs
		if needs == nil {
			needs = &cluster.Needs{}
		}
		if _, tainted := target.Untolerated(needs.Tolerations); tainted || !needs.Selector.Matches(target.Machine) || !target.Ready {
			return "a node that the pod may not use"
		}
		from, to = append(from, p.Before), append(to, p.After)
	}
	txn.Evict(from...)
	if err := txn.Place(to...); err != nil {
		return err.Error()
	}
	return overfullNode(txn.Snapshot())
}

func overfullNode(s *cluster.Snapshot) string {
	for _, n := range s.Nodes() {
		sum := int64(0)
		for _, p := range n.Pods {
			sum += p.Use.At(gpuResource)
		}
		if sum > n.Allocatable.At(gpuResource) || n.Used.At(gpuResource) > n.Allocatable.At(gpuResource) {
			return "too much on " + n.Name
		}
	}
	return ""
}

// wrongLevels finds a workload that was in one domain of its level, moved, and is not any more,
// and one that changed without being in the plan.
func wrongLevels(before, after *cluster.Snapshot, m *Moves) string {
	places := func(s *cluster.Snapshot) map[*cluster.Workload][]string {
		found := map[*cluster.Workload][]string{}
		for _, n := range s.Nodes() {
			for _, p := range n.Pods {
				found[p.Workload] = append(found[p.Workload], n.Name)
			}
		}
		return found
	}
	was, is := places(before), places(after)
	for w, nodes := range was {
		moved := slices.ContainsFunc(m.Moves, func(m Move) bool { return m.Workload == w.Name })
		switch {
		case len(is[w]) != len(nodes):
			return w.Name + " lost pods"
		case !moved && !slices.Equal(is[w], nodes):
			return w.Name + " moved without saying so"
		case moved && !together(after, is[w], w.Level):
			return w.Name + " is torn apart"
		}
	}
	return ""
}

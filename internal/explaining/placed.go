package explaining

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

type snapshot = *cluster.Snapshot

// placed says why a workload is where it is: what was said when it was planned, and how the engine
// judges the place now.
func (e *Explainer) placed(ctx context.Context, ask Ask, w *gpuv1alpha1.GPUWorkload, answer *explainv1alpha1.Explanation) error {
	reason, message := explain.Planned, ask.curtain.text(w.Status.Message)
	if w.Status.Phase == gpuv1alpha1.PhaseRunning || w.Status.Phase == gpuv1alpha1.PhaseScheduled {
		reason = explain.Running
	}
	say(answer, explainv1alpha1.VerdictPlaced, reason, message)
	answer.Runs = true
	nodeOf, err := state.ParsePlacement(w.Status.Placement)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	p := &explainv1alpha1.Placement{Planned: w.Status.LastScheduleTime, Attempt: w.Status.Attempt, Strategy: e.State.Strategy(w)}
	if c := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionPlanned); c != nil && c.Status == metav1.ConditionTrue {
		p.Message = ask.curtain.text(c.Message)
	}
	answer.Placement = p
	s := e.State.Snapshot()
	level := ""
	if t := w.Spec.Topology; t != nil {
		level = t.Required
		if level == "" {
			level = t.Preferred
		}
	}
	p.Nodes = nodeRanks(s, nodeOf, level)
	answer.Snapshot = s.Generation
	pod, err := e.PodOf(w)
	if err != nil {
		// The spec was changed for the next attempt, and cannot be carried out: that is said in its
		// status, and this attempt stands.
		return nil //nolint:nilerr // see above
	}
	q, err := e.question(ctx, ask, w, pod)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	options := q.Options
	options.Explain = true
	d, err := placement.Plan(q.Snapshot, q.Request, options)
	if err != nil {
		return fmt.Errorf("judging where it is: %w", err)
	}
	if !d.Feasible {
		answer.Notes = append(answer.Notes, "planned now, it would find no room where it is allowed to be: "+d.Why.Sentence)
		return nil
	}
	again := len(d.Nodes()) == len(nodeOf)
	for i, node := range d.Nodes() {
		again = again && nodeOf[int32(i)] == node
	}
	p.Again = &again
	p.Scores = scores(&d)
	return nil
}

func scores(d *placement.Decision) []explainv1alpha1.Score {
	var all []explainv1alpha1.Score
	node := func(s *placement.NodeScore, chosen bool) {
		if s != nil {
			all = append(all, explainv1alpha1.Score{What: "node", Name: s.Node, Score: s.Score, Chosen: chosen, Terms: terms(s.Terms)})
		}
	}
	domain := func(s *placement.DomainScore, chosen bool) {
		if s != nil {
			all = append(all, explainv1alpha1.Score{What: s.Level, Name: s.Domain, Score: s.Score, Chosen: chosen, Terms: terms(s.Terms)})
		}
	}
	domain(d.Why.ChosenDomain, true)
	domain(d.Why.NextDomain, false)
	node(d.Why.Chosen, true)
	node(d.Why.Next, false)
	return all
}

func terms(all []placement.Term) []explainv1alpha1.Term {
	var said []explainv1alpha1.Term
	for _, t := range all {
		said = append(said, explainv1alpha1.Term{Name: t.Name, Value: t.Value, Weight: t.Weight})
	}
	return said
}

// nodeRanks says which ranks are on which node, with the domain of the level that the node is in.
func nodeRanks(s snapshot, nodeOf map[int32]string, level string) []explainv1alpha1.NodeRanks {
	at, known := s.Level(level)
	var all []explainv1alpha1.NodeRanks
	for _, p := range state.FormatPlacement(nodeOf) {
		row := explainv1alpha1.NodeRanks{Node: p.Node, Ranks: p.Indexes}
		if n := s.Node(p.Node); n != nil && known && level != "" {
			row.Domain = n.Path[at]
		}
		all = append(all, row)
	}
	return all
}

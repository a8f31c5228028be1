package controller

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
)

// DecisionLog is told of every decision about a workload.
type DecisionLog interface {
	Record(decisions.Decision)
}

// remember tells the decision log what the engine answered, and why.
func (r *Reconciler) remember(p *pass, d *placement.Decision, err error, took time.Duration) {
	if r.decided == nil {
		return
	}
	w := p.workload
	entry := decisions.Decision{
		Time:       p.now,
		Workload:   client.ObjectKeyFromObject(w),
		UID:        w.UID,
		Attempt:    w.Status.Attempt,
		By:         "planned",
		Outcome:    decisions.Refused,
		Sentence:   d.Why.Sentence,
		Strategy:   r.state.Strategy(w),
		Took:       took,
		Generation: d.Generation,
	}
	switch {
	case err != nil:
		entry.Outcome, entry.Reason, entry.Sentence = decisions.Invalid, explain.InvalidSpec, err.Error()
		r.decided.Record(entry)
		return
	case d.Feasible:
		entry.Outcome, entry.Pods, entry.FirstNode = decisions.Planned, d.Size(), d.Nodes()[0]
		seen := map[string]bool{}
		for _, node := range d.Nodes() {
			seen[node] = true
		}
		entry.Nodes = len(seen)
	case d.Undecided:
		entry.Outcome = decisions.Undecided
	}
	entry.Reason = explain.ReasonOf(d)
	for _, v := range d.Victims {
		entry.Victims = append(entry.Victims, v.Workload)
	}
	r.decided.Record(entry)
	for i := range d.Victims {
		r.rememberVictim(&entry, &d.Victims[i])
	}
}

// rememberVictim has the log say of a workload that it makes way, and for whom: its owner asks
// about it, not about the other one.
func (r *Reconciler) rememberVictim(by *decisions.Decision, v *placement.Victim) {
	namespace, name, _ := strings.Cut(v.Workload, "/")
	entry := *by
	entry.Outcome, entry.Reason, entry.For, entry.Victims = decisions.Evicted, explain.Evicted, by.Workload.String(), nil
	// Names are all that the engine knows; an entry of its own is kept for each.
	entry.Workload, entry.UID = types.NamespacedName{Namespace: namespace, Name: name}, types.UID("name:"+v.Workload)
	entry.Sentence = fmt.Sprintf("makes way for %s, which has a higher priority and no room otherwise", entry.For)
	entry.Attempt, entry.Pods, entry.Nodes, entry.FirstNode = 0, len(v.Evicted), 0, ""
	r.decided.Record(entry)
}

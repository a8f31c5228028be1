package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// moveAgain is the pause before a workload that is to move looks for another place again: it may
// become free only once another one has moved.
const moveAgain = 2 * time.Second

// move has the workload start elsewhere to make room for another. It finds its new place before it
// leaves the old one, and stays if there is none. The new plan is written in the one write that
// ends the old attempt; its Job is made when the pods of the old one have ended.
func (r *Reconciler) move(ctx context.Context, p *pass, by *gpuv1alpha1.GPUWorkload) (bool, error) {
	s := p.status()
	if !p.is(gpuv1alpha1.ConditionScheduled) {
		p.lookAgain(moveAgain)
		return false, nil
	}
	if may, err := r.mayLeave(ctx, p); !may {
		return err != nil, err
	}
	old, err := state.ParsePlacement(s.Placement)
	if err != nil {
		return true, fmt.Errorf("reading the plan: %w", err)
	}
	nodeOf, sentence := r.elsewhere(p, old)
	if nodeOf == nil {
		p.lookAgain(moveAgain)
		return false, nil
	}
	message := fmt.Sprintf("moves to make room for %s/%s; %s", by.Namespace, by.Name, sentence)
	p.nextAttempt("Moved", message)
	p.adopt(nodeOf, sentence)
	p.condition(gpuv1alpha1.ConditionPreempted, metav1.ConditionTrue, "Moved", message)
	p.enter(gpuv1alpha1.PhaseScheduling, "%s", message)
	p.normal("Moved", "Move", "%s; Job %s", message, s.JobName)
	if err := r.writeStatus(ctx, p); err != nil {
		return true, err
	}
	p.tell = true
	r.metrics.Moved(len(nodeOf))
	return true, r.deleteJobs(ctx, p, "")
}

// elsewhere finds and holds another place for the next attempt of a workload that runs, as large as
// the old one; nil if there is none, and then the old plan is held as before.
func (r *Reconciler) elsewhere(p *pass, old map[int32]string) (nodeOf map[int32]string, sentence string) {
	// It takes nobody's place.
	calm := p.workload.DeepCopy()
	calm.Spec.PreemptionPolicy = gpuv1alpha1.PreemptNever
	pod := podOf(p.workload, p.template)
	ask := state.Ask{Attempt: p.status().Attempt + 1, Avoid: r.avoid.nodes(p.workload.UID, p.now), Now: p.now}
	if d, nodeOf, err := r.state.Plan(calm, pod, ask); err == nil && d.Feasible && len(nodeOf) >= len(old) {
		return nodeOf, d.Why.Sentence
	}
	r.state.Release(p.workload.UID)
	r.state.Confirm(p.workload, pod, old)
	return nil, ""
}

// adopt makes the plan that of the current attempt.
func (p *pass) adopt(nodeOf map[int32]string, sentence string) {
	s := p.status()
	s.JobName, s.JobUID = jobName(p.workload), ""
	s.NextRetryTime = nil
	now := metav1.NewTime(p.now)
	s.LastScheduleTime = &now
	s.Pods = gpuv1alpha1.PodCounts{Desired: int32(len(nodeOf))}
	p.place(nodeOf)
	p.condition(gpuv1alpha1.ConditionPlanned, metav1.ConditionTrue, "Planned", sentence)
	p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionFalse, "Binding", "the pods are on their way to their nodes")
	p.enter(gpuv1alpha1.PhaseScheduling, "%s", sentence)
}

// tellVictims says who has to make way for the plan.
func (p *pass) tellVictims() {
	var evicted, moved []gpuv1alpha1.Victim
	for _, v := range p.status().Preempting {
		if v.Move {
			moved = append(moved, v)
		} else {
			evicted = append(evicted, v)
		}
	}
	if len(evicted) > 0 {
		p.normal("Preempting", "Preempt", "evicts %s, of lower priority than %s", victimNames(evicted), priorityName(p.workload))
	}
	if len(moved) > 0 {
		p.normal("Moving", "Move", "has %s move elsewhere", victimNames(moved))
	}
}

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// plan finds room for the whole gang and writes the promise down before anything acts on it.
func (r *Reconciler) plan(ctx context.Context, p *pass) (bool, error) {
	if p.planned() {
		return false, nil
	}
	s := p.status()
	if s.NextRetryTime != nil && s.NextRetryTime.After(p.now) {
		p.lookAgain(s.NextRetryTime.Sub(p.now))
		return true, nil
	}
	if wait, err := r.outlived(ctx, p); wait || err != nil {
		return true, err
	}
	if r.waker.outranked(priorityOf(p.workload)) {
		p.waits = true
		p.lookAgain(5 * debounce)
		return true, nil
	}
	held := r.state.Reservation(p.workload.UID, p.now) != ""
	d, nodeOf, err := r.ask(p, state.Ask{Attempt: s.Attempt, Now: p.now, Since: waitsSince(p.workload)})
	if err != nil {
		return r.refuse(p, err)
	}
	p.condition(gpuv1alpha1.ConditionAccepted, metav1.ConditionTrue, "Accepted", "the spec can be carried out")
	if !d.Feasible {
		r.wait(p, &d)
		return true, nil
	}
	if held {
		r.waker.freed() // It need not have taken the room that was held for it.
	}
	p.adopt(nodeOf, d.Why.Sentence)
	s.Preempting = r.state.Victims(p.workload.UID)
	if p.is(gpuv1alpha1.ConditionPreempted) {
		p.condition(gpuv1alpha1.ConditionPreempted, metav1.ConditionFalse, "PlannedAnew", "it was planned anew after it had made way")
	}
	p.normal("Planned", "Plan", "%s; Job %s", d.Why.Sentence, s.JobName)
	p.tellVictims()
	// If the write fails, or its answer is lost, the room stays held: the next pass finds out
	// which, and either goes on or plans again.
	if err := r.writeStatus(ctx, p); err != nil {
		return true, err
	}
	return false, nil
}

// ask puts a question about the workload to the engine.
func (r *Reconciler) ask(p *pass, ask state.Ask) (placement.Decision, map[int32]string, error) {
	ask.Avoid = r.avoid.nodes(p.workload.UID, p.now)
	// It waits from before the question is put: room that appears while the answer is on its
	// way must wake it. The end of the pass takes it off again if it need not wait.
	r.waker.wait(client.ObjectKeyFromObject(p.workload), priorityOf(p.workload), false)
	start := r.clock.Now()
	d, nodeOf, err := r.state.Plan(p.workload, podOf(p.workload, p.template), ask)
	outcome := telemetry.Feasible
	switch {
	case err != nil:
		outcome = telemetry.Invalid
	case !d.Feasible:
		outcome = telemetry.Infeasible
		if d.Undecided {
			outcome = telemetry.Undecided
		}
		if len(ask.Avoid) > 0 {
			p.lookAgain(r.config.AvoidFor)
		}
	}
	took := r.clock.Since(start)
	r.metrics.Planned(r.strategy(p), outcome, took)
	r.remember(p, &d, err, took)
	return d, nodeOf, err
}

// strategy names the workload's strategy for metrics.
func (r *Reconciler) strategy(p *pass) string {
	name := r.state.Strategy(p.workload)
	if _, err := r.state.Strategies().Get(name); err != nil {
		return telemetry.UnknownStrategy
	}
	return name
}

// wait leaves the workload waiting for room, with the reason. News of room wakes it.
func (r *Reconciler) wait(p *pass, d *placement.Decision) {
	reason := reasonNoRoom
	if d.Why.Never {
		reason = "NeverFits"
	}
	sentence := d.Why.Sentence
	held := r.state.Reservation(p.workload.UID, p.now)
	if held != "" {
		reason, sentence = reasonReserved, held+"; "+sentence
	}
	proposed := r.state.Proposal(p.workload.UID)
	// What a move costs grows with time; that there is one is what is told at once, and once.
	news := proposed != "" && !strings.Contains(p.before.Message, state.WouldStart)
	if proposed != "" {
		sentence += "; " + proposed
	}
	old := meta.FindStatusCondition(p.status().Conditions, gpuv1alpha1.ConditionPlanned)
	p.waits, p.never = true, d.Why.Never
	turned := old == nil || old.Reason != reason || old.ObservedGeneration != p.workload.Generation
	switch {
	case turned && held != "":
		p.normal(reason, "Plan", "%s", held)
	case turned:
		p.warning(reason, "Plan", "%s", sentence)
	case !news:
		// Numbers in the sentence change with every pod that comes or goes. With hundreds of
		// workloads waiting, writing each change would be most of the load on the API server.
		if wait := r.waker.quiet(client.ObjectKeyFromObject(p.workload), p.now); wait > 0 {
			p.lookAgain(wait)
			return
		}
	}
	if news {
		p.normal("MoveProposed", "Plan", "%s", proposed)
	}
	p.condition(gpuv1alpha1.ConditionPlanned, metav1.ConditionFalse, reason, sentence)
	if next := p.status().NextRetryTime; next != nil {
		// It waits for room from then on; until then it waited for its back-off.
		meta.FindStatusCondition(p.status().Conditions, gpuv1alpha1.ConditionPlanned).LastTransitionTime = *next
	}
	p.status().NextRetryTime = nil
	p.enter(gpuv1alpha1.PhasePending, "%s", sentence)
}

// place writes the nodes of the gang into the status.
func (p *pass) place(nodeOf map[int32]string) {
	s := p.status()
	s.Placement = state.FormatPlacement(nodeOf)
	s.AssignedNodes = nil
	for _, n := range s.Placement {
		s.AssignedNodes = append(s.AssignedNodes, n.Node)
	}
	s.AssignedNode = s.AssignedNodes[0]
}

// outlived makes sure that nothing of an earlier attempt runs any more: two pods of one rank
// must never run at the same time.
func (r *Reconciler) outlived(ctx context.Context, p *pass) (wait bool, err error) {
	active := 0
	for i := range p.jobs {
		if kind, _ := jobEnd(&p.jobs[i]); kind == "" {
			active++
		}
	}
	left := unfinished(p.pods)
	if active == 0 && left == 0 {
		return false, nil
	}
	if active > 0 {
		if err := r.deleteJobs(ctx, p, ""); err != nil {
			return true, err
		}
	}
	p.status().Message = fmt.Sprintf("waiting for %s of the previous attempt to end", pods(left))
	if !p.planned() {
		p.status().Phase = gpuv1alpha1.PhasePending
	}
	return true, nil
}

// makeJob creates the Job of the planned attempt.
func (r *Reconciler) makeJob(ctx context.Context, p *pass) (bool, error) {
	if p.job == nil {
		// Its own Job may have been deleted before its UID was written down: pods of that one
		// may still run, and two pods of one rank must not.
		if wait, err := r.outlived(ctx, p); wait || err != nil {
			return true, err
		}
		job := buildJob(p.workload, p.template, p.status().Pods.Desired)
		err := r.client.Create(ctx, job)
		switch {
		case apierrors.IsAlreadyExists(err):
			if job, err = r.ownJob(ctx, p); err != nil || job == nil {
				return true, err
			}
		case apierrors.IsInvalid(err):
			r.refuseJob(p, err)
			return true, nil
		case apierrors.IsForbidden(err):
			// A quota or an admission webhook; giveUp ends it if that lasts.
			p.status().Message = fmt.Sprintf("cannot create Job %s: %v", jobName(p.workload), err)
			p.lookAgain(jobAgain)
			return true, nil
		case err != nil:
			return true, fmt.Errorf("creating Job %s: %w", jobName(p.workload), err)
		default:
			r.wrote(p, jobResource(), job.ResourceVersion)
		}
		p.job = job
		p.jobs = append(p.jobs, *job)
	}
	p.status().JobUID = p.job.UID
	return false, nil
}

// jobAgain is the pause before another try to create a Job that is not let in.
const jobAgain = 10 * time.Second

// ownJob returns the Job that has our Job's name already if it is ours, else nil.
func (r *Reconciler) ownJob(ctx context.Context, p *pass) (*batchv1.Job, error) {
	var job batchv1.Job
	key := client.ObjectKey{Namespace: p.workload.Namespace, Name: jobName(p.workload)}
	if err := r.live.Get(ctx, key, &job); err != nil {
		return nil, fmt.Errorf("reading Job %s: %w", key, err)
	}
	if !metav1.IsControlledBy(&job, p.workload) {
		message := fmt.Sprintf("Job %s exists and is not this workload's: delete it, so that the workload can have its own", key)
		p.lookAgain(jobAgain)
		if p.status().Message != message {
			p.status().Message = message
			p.warning("JobNameTaken", "Create", "%s", message)
		}
		return nil, nil
	}
	return &job, nil
}

// sweep deletes the Jobs of earlier attempts, which were kept for their logs until now.
func (r *Reconciler) sweep(ctx context.Context, p *pass) (bool, error) {
	return false, r.deleteJobs(ctx, p, p.job.Name)
}

// podOf returns the pod of a template as the API server would complete it, as far as planning
// needs it.
func podOf(w *gpuv1alpha1.GPUWorkload, t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Labels: t.Labels}, Spec: *t.Spec.DeepCopy()}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name, q := range list[i].Resources.Limits {
				if list[i].Resources.Requests == nil {
					list[i].Resources.Requests = make(corev1.ResourceList)
				}
				if _, ok := list[i].Resources.Requests[name]; !ok {
					list[i].Resources.Requests[name] = q
				}
			}
		}
	}
	return pod
}

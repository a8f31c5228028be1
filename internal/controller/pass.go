package controller

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// pass is one look at one workload: what was read, the status as it will be written, and what
// is to be told afterwards.
type pass struct {
	now time.Time
	// workload is a copy that the steps may change; before is its status as it was read.
	workload *gpuv1alpha1.GPUWorkload
	before   gpuv1alpha1.GPUWorkloadStatus
	// template is the pod as the Job runs it.
	template *corev1.PodTemplateSpec
	// jobs are all Jobs of this workload, job the one of the current attempt or nil. pods are
	// all its pods, of every attempt.
	jobs []batchv1.Job
	job  *batchv1.Job
	pods []corev1.Pod

	news []news
	// after, if set, is when to look again even if nothing happens; waits says that the
	// workload waits for room.
	after time.Duration
	waits bool
	// never says that it waits although it would not fit if nothing ran.
	never bool
	// tell says that the status is worth writing although the pass ends in an error.
	tell bool
}

// news is an event to be published once the status is written.
type news struct {
	kind, reason, action, note string
}

func (p *pass) status() *gpuv1alpha1.GPUWorkloadStatus { return &p.workload.Status }

// changed tells whether the status must be written.
func (p *pass) changed() bool {
	return !equality.Semantic.DeepEqual(p.before, p.workload.Status)
}

// turned tells whether the status says something new, and not only how far the pods are.
func (p *pass) turned() bool {
	before, after := p.before.DeepCopy(), p.workload.Status.DeepCopy()
	for _, s := range []*gpuv1alpha1.GPUWorkloadStatus{before, after} {
		s.Message, s.Pods, s.JobUID = "", gpuv1alpha1.PodCounts{}, ""
	}
	return !equality.Semantic.DeepEqual(before, after)
}

// lookAgain asks for another pass after d, or earlier if one was asked for already.
func (p *pass) lookAgain(d time.Duration) {
	// Zero means "never" to the queue.
	d = max(d, time.Millisecond)
	if p.after == 0 || d < p.after {
		p.after = d
	}
}

func (p *pass) normal(reason, action, format string, args ...any) {
	p.news = append(p.news, news{corev1.EventTypeNormal, reason, action, fmt.Sprintf(format, args...)})
}

func (p *pass) warning(reason, action, format string, args ...any) {
	p.news = append(p.news, news{corev1.EventTypeWarning, reason, action, fmt.Sprintf(format, args...)})
}

// enter sets phase and message.
func (p *pass) enter(phase gpuv1alpha1.WorkloadPhase, format string, args ...any) {
	p.status().Phase = phase
	p.status().Message = fmt.Sprintf(format, args...)
}

func (p *pass) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status().Conditions, metav1.Condition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: p.workload.Generation,
		LastTransitionTime: metav1.NewTime(p.now),
	})
}

func (p *pass) is(condition string) bool {
	return meta.IsStatusConditionTrue(p.status().Conditions, condition)
}

// forgetPlan drops the plan and everything that speaks of the attempt it was for.
func (p *pass) forgetPlan(reason, message string) {
	s := p.status()
	s.Placement, s.AssignedNode, s.AssignedNodes = nil, "", nil
	s.Preempting = nil
	s.Pods = gpuv1alpha1.PodCounts{}
	s.NextRetryTime = nil
	p.condition(gpuv1alpha1.ConditionPlanned, metav1.ConditionFalse, reason, message)
	p.condition(gpuv1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, message)
}

// nextAttempt drops the plan and makes room for the next attempt's.
func (p *pass) nextAttempt(reason, message string) {
	p.forgetPlan(reason, message)
	p.status().Attempt++
	p.status().JobUID = ""
	p.job = nil
}

// planned tells whether a plan of the current attempt stands.
func (p *pass) planned() bool { return len(p.status().Placement) > 0 }

// current returns the pods of the current attempt's Job.
func (p *pass) current() []*corev1.Pod {
	if p.job == nil {
		return nil
	}
	var pods []*corev1.Pod
	for i := range p.pods {
		if metav1.IsControlledBy(&p.pods[i], p.job) {
			pods = append(pods, &p.pods[i])
		}
	}
	return pods
}

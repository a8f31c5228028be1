package kube

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// period is when something ran. The zero value of start is never, that of end is still.
type period struct {
	start, end time.Time
	// gone says that its pods are, so that start is only when it was let go.
	gone bool
}

// started returns when the kubelet took the pod in: it holds its GPUs while images are pulled.
func started(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	return p.Status.StartTime.Time
}

// ended returns when the last container of a pod ended, zero if it has not. A pod that was evicted
// may tell of no container: then what last changed about it counts.
func ended(p *corev1.Pod) time.Time {
	if !state.Finished(p) {
		return time.Time{}
	}
	var last time.Time
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range statuses {
			if c.State.Terminated != nil {
				last = later(last, c.State.Terminated.FinishedAt.Time)
			}
		}
	}
	if last.IsZero() {
		for _, c := range p.Status.Conditions {
			last = later(last, c.LastTransitionTime.Time)
		}
	}
	return later(last, started(p))
}

// jobEnded returns when a Job completed or failed, zero if it has not.
func jobEnded(j *batchv1.Job) time.Time {
	if j.Status.CompletionTime != nil {
		return j.Status.CompletionTime.Time
	}
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// ofJob returns when a Job ran: from when its first full set of pods had started. Pods that
// failed and were replaced later do not start it again.
func ofJob(j jobWork, size int) period {
	var starts []time.Time
	for _, p := range j.pods {
		if s := started(p); !s.IsZero() {
			starts = append(starts, s)
		}
	}
	run := period{end: jobEnded(j.Job)}
	switch {
	case len(starts) > 0:
		slices.SortFunc(starts, time.Time.Compare)
		run.start = starts[min(size, len(starts))-1]
	case !run.end.IsZero() && j.Status.StartTime != nil:
		run.start, run.gone = j.Status.StartTime.Time, true
	}
	return run
}

// ofPods returns when pods ran that belong together.
func ofPods(pods []*corev1.Pod) period {
	var run period
	running := false
	for _, p := range pods {
		run.start = later(run.start, started(p))
		end := ended(p)
		run.end = later(run.end, end)
		running = running || end.IsZero()
	}
	if running {
		run.end = time.Time{}
	}
	return run
}

// both joins the periods of parts that belong together: all have started, and the last ends it.
func both(a, b period) period {
	joined := period{start: later(a.start, b.start), end: later(a.end, b.end), gone: a.gone || b.gone}
	if a.start.IsZero() || b.start.IsZero() {
		joined.start = time.Time{}
	}
	if a.end.IsZero() || b.end.IsZero() {
		joined.end = time.Time{}
	}
	return joined
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

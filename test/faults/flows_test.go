package faults

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// flow is something that a workload goes through, from its beginning to the end that it must
// have whatever goes wrong on the way.
type flow struct {
	name string
	run  func(context.Context, *lane) error
}

// flows are all of them. A new one is a row here: it drives a workload in a lane, says where its
// own part begins, and returns an error unless the end is the promised one.
func flows() []flow {
	return []flow{
		{"run", runs},
		{"retry", retries},
		{"exhaust", exhausts},
		{"suspend", suspends},
		{"delete", deletes},
		{"reuse-name", reusesName},
		{"wait", waits},
		{"withdraw-gang", withdrawsGang},
		{"withdraw-member", withdrawsMember},
		{"replace-member", replacesMember},
		{"job-deleted", losesJob},
		{"deadline", reachesDeadline},
		{"expire", expires},
	}
}

func runs(ctx context.Context, l *lane) error {
	w := l.gang("w", 3, 2)
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 0, 3) },
	)
}

func retries(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, simulate("fail-attempts", "1"))
	return all(
		func() error { return l.Create(ctx, w) },
		func() error {
			return l.until(ctx, w, "up or over it", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.Pods.Bound == 2 || w.Status.RetryCount > 0
			})
		},
		func() error { l.begins(); return nil },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 1, 2) },
	)
}

func exhausts(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, simulate("fail", "true"), func(w *gpuv1alpha1.GPUWorkload) { w.Spec.RetryPolicy.MaxRetries = ptr.To[int32](0) })
	return all(
		func() error { return l.Create(ctx, w) },
		func() error {
			return l.until(ctx, w, "up or over it", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.Pods.Bound == 2 || w.Status.Phase.Finished()
			})
		},
		func() error { l.begins(); return nil },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseFailed) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseFailed, 0, 0) },
	)
}

func suspends(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, forever)
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error { return l.edit(ctx, w, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true }) },
		func() error {
			return l.until(ctx, w, "suspended", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.Phase == gpuv1alpha1.PhasePending && meta.IsStatusConditionTrue(w.Status.Conditions, gpuv1alpha1.ConditionSuspended)
			})
		},
		func() error {
			return l.await(ctx, "its pods to end", func(ctx context.Context) (bool, error) {
				pods, err := l.pods(ctx, string(w.UID))
				return len(pods) == 0, err
			})
		},
		func() error {
			return l.edit(ctx, w, func(w *gpuv1alpha1.GPUWorkload) {
				w.Spec.Suspend = false
				simulate("run-for", "300ms")(w)
			})
		},
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 0, 2) },
	)
}

func deletes(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, forever)
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error { return l.remove(ctx, w) },
		func() error { return l.gone(ctx, w) },
	)
}

// reusesName deletes a workload and makes another of its name as soon as it may.
func reusesName(ctx context.Context, l *lane) error {
	w, next := l.gang("w", 2, 2, forever), l.gang("w", 2, 2)
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error { return l.remove(ctx, w) },
		func() error {
			return l.await(ctx, "the name to be free", func(ctx context.Context) (bool, error) {
				err := l.Create(ctx, next)
				return err == nil, ignoreExists(err)
			})
		},
		func() error { return l.untilPhase(ctx, next, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(next, gpuv1alpha1.PhaseSucceeded, 0, 2) },
		func() error { return l.gone(ctx, w) },
	)
}

// waits has no room until another one is deleted.
func waits(ctx context.Context, l *lane) error {
	first, w := l.gang("first", 3, 8, l.here, forever), l.gang("w", 2, 8, l.here)
	return all(
		func() error { return l.Create(ctx, first) },
		func() error { return l.untilPhase(ctx, first, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error { return l.Create(ctx, w) },
		func() error {
			return l.until(ctx, w, "without room", func(w *gpuv1alpha1.GPUWorkload) bool {
				c := meta.FindStatusCondition(w.Status.Conditions, gpuv1alpha1.ConditionPlanned)
				return c != nil && c.Reason == "NoRoom"
			})
		},
		func() error { return l.remove(ctx, first) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 0, 2) },
		func() error { return l.gone(ctx, first) },
	)
}

// withdrawsGang is refused by the scheduler as a whole, and planned elsewhere as a whole.
func withdrawsGang(ctx context.Context, l *lane) error {
	refused, err := l.refuse(ctx)
	if err != nil {
		return err
	}
	w := l.gang("w", 2, 4, refused, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "binPack" })
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 0, 2) },
	)
}

// withdrawsMember is refused one member while the other runs.
func withdrawsMember(ctx context.Context, l *lane) error {
	refused, err := l.refuse(ctx)
	if err != nil {
		return err
	}
	w := l.gang("w", 2, 8, refused, simulate("run-for", "8s"))
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseSucceeded) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseSucceeded, 0, 2) },
	)
}

// replacesMember loses one pod while the other goes on.
func replacesMember(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, forever, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.RestartPolicy = gpuv1alpha1.RestartMember })
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error {
			pods, err := l.pods(ctx, string(w.UID))
			if err != nil {
				return err
			}
			for i := range pods {
				if pods[i].Annotations[batchv1.JobCompletionIndexAnnotation] != "1" {
					continue
				}
				before := pods[i].DeepCopy()
				pods[i].Status.Phase = corev1.PodFailed
				return l.Status().Patch(ctx, &pods[i], client.MergeFrom(before))
			}
			return errNoPod
		},
		func() error {
			return l.until(ctx, w, "whole again", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.Phase == gpuv1alpha1.PhaseRunning && w.Status.Pods.Running == 2 && w.Status.RetryCount == 1
			})
		},
		func() error {
			if w.Status.Attempt != 0 {
				return fmt.Errorf("the whole gang was started again: attempt %d", w.Status.Attempt)
			}
			return nil
		},
	)
}

// losesJob has its Job deleted by somebody else.
func losesJob(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, forever)
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning) },
		func() error { l.begins(); return nil },
		func() error {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Status.JobName}}
			return l.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		},
		func() error {
			return l.until(ctx, w, "running anew", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.Phase == gpuv1alpha1.PhaseRunning && w.Status.Attempt > 0
			})
		},
		func() error {
			if w.Status.RetryCount > 0 {
				return fmt.Errorf("%d retries: nothing had failed", w.Status.RetryCount)
			}
			return nil
		},
	)
}

func reachesDeadline(ctx context.Context, l *lane) error {
	w := l.gang("w", 2, 2, forever, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) })
	return all(
		func() error { return l.Create(ctx, w) },
		func() error {
			return l.until(ctx, w, "up or over it", func(w *gpuv1alpha1.GPUWorkload) bool {
				return w.Status.StartTime != nil || w.Status.Phase.Finished()
			})
		},
		func() error { l.begins(); return nil },
		func() error { return l.untilPhase(ctx, w, gpuv1alpha1.PhaseFailed) },
		func() error { return l.ends(w, gpuv1alpha1.PhaseFailed, 0, 0) },
		func() error {
			return l.await(ctx, "its pods to end", func(ctx context.Context) (bool, error) {
				pods, err := l.pods(ctx, string(w.UID))
				return len(pods) == 0, err
			})
		},
	)
}

func expires(ctx context.Context, l *lane) error {
	w := l.gang("w", 1, 2, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) })
	return all(
		func() error { return l.Create(ctx, w) },
		func() error { return l.untilUp(ctx, w) },
		func() error { l.begins(); return nil },
		func() error { return l.gone(ctx, w) },
	)
}

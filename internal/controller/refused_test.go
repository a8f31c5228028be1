package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// against returns a reconciler whose API server has a workload and a Job, and does with deletes
// what it is told.
func against(t *testing.T, w *gpuv1alpha1.GPUWorkload, job *batchv1.Job, onDelete func() error) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.DeepCopy(), job).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := onDelete(); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
	}).Build()
	return &Reconciler{client: c, live: c, state: state.New(nil, nil), waker: newWaker(func(int) {}), avoid: newAvoidList(), pacer: newPacer()}
}

func runningJob(w *gpuv1alpha1.GPUWorkload) *batchv1.Job {
	job := buildJob(w, &corev1.PodTemplateSpec{}, 1)
	job.UID, job.ResourceVersion = "job", "1"
	return job
}

// A refusal to delete the Job of a workload whose time is over is no success: the workload would
// end, and its pods run on for good.
func TestADeadlineIsNotOverBeforeItsJobIs(t *testing.T) {
	start := metav1.NewTime(time.Now().Add(-time.Hour))
	w := testWorkload(func(w *gpuv1alpha1.GPUWorkload) {
		w.ResourceVersion = "7"
		w.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
		w.Status.StartTime, w.Status.Phase = &start, gpuv1alpha1.PhaseRunning
	})
	job := runningJob(w)
	r := against(t, w, job.DeepCopy(), func() error { return apierrors.NewConflict(jobResource(), job.Name, nil) })
	p := &pass{now: time.Now(), workload: w, jobs: []batchv1.Job{*job}}
	if _, err := r.deadline(t.Context(), p); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), job.Name) {
		t.Errorf("the delete was refused, and the step says %v", err)
	}
	if w.Status.Phase.Finished() {
		t.Errorf("the workload is %s with its Job running", w.Status.Phase)
	}
}

// A leader that was paused decided on the Job as it was. Its delete must not hit the Job as it is.
func TestALateDeleteIsRefused(t *testing.T) {
	w := testWorkload()
	seen := runningJob(w)
	now := seen.DeepCopy()
	now.ResourceVersion, now.Status.Ready = "2", ptr.To[int32](1)
	r := against(t, w, now, func() error { return nil })
	if err := r.deleteJob(t.Context(), seen); !apierrors.IsConflict(err) {
		t.Errorf("the late delete ends with %v", err)
	}
	var left batchv1.JobList
	if err := r.live.List(t.Context(), &left); err != nil || len(left.Items) != 1 {
		t.Errorf("%v; %d Jobs are left", err, len(left.Items))
	}
}

// A leader that was paused and replaced sees, for a moment, the new leader's Job beside a workload
// that has no plan yet. It must not take that Job for what an earlier attempt left.
func TestAnOldViewOfTheWorkloadDeletesNothing(t *testing.T) {
	seen := testWorkload(func(w *gpuv1alpha1.GPUWorkload) { w.ResourceVersion = "7" })
	now := seen.DeepCopy()
	now.ResourceVersion, now.Status.Phase = "8", gpuv1alpha1.PhaseRunning
	job := runningJob(seen)
	r := against(t, now, job.DeepCopy(), func() error { t.Error("the running gang's Job is deleted"); return nil })
	if _, err := r.outlived(t.Context(), &pass{now: time.Now(), workload: seen, jobs: []batchv1.Job{*job}}); !errors.Is(err, errStale) {
		t.Errorf("the step says %v", err)
	}
}

// A leader that was paused can make a Job after the workload has ended.
func TestNothingRunsOnAfterTheEnd(t *testing.T) {
	w := testWorkload(func(w *gpuv1alpha1.GPUWorkload) { w.Status.Phase = gpuv1alpha1.PhaseFailed })
	job := runningJob(w)
	r := against(t, w, job.DeepCopy(), func() error { return nil })
	if _, err := r.expire(t.Context(), &pass{now: time.Now(), workload: w, jobs: []batchv1.Job{*job}}); err != nil {
		t.Fatal(err)
	}
	var left batchv1.JobList
	if err := r.live.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%v; %d Jobs run on", err, len(left.Items))
	}
	ended := runningJob(w)
	ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	r = against(t, w, ended.DeepCopy(), func() error { t.Error("a Job that has ended is kept for its logs"); return nil })
	if _, err := r.expire(t.Context(), &pass{now: time.Now(), workload: w, jobs: []batchv1.Job{*ended}}); err != nil {
		t.Fatal(err)
	}
}

// A plan whose Job waits for the pods of the last attempt is not without progress while those have
// their grace period.
func TestNoPlanIsGivenUpWhilePodsOfTheLastAttemptMayEnd(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const grace = time.Hour
	for name, c := range map[string]struct {
		after    time.Duration
		attempt  string
		finished bool
		gives    bool
	}{
		"within the grace period":           {30 * time.Minute, "0", false, false},
		"soon after it":                     {grace + time.Minute, "0", false, false},
		"long after it":                     {grace + 5*time.Minute, "0", false, true},
		"the last attempt has ended":        {30 * time.Minute, "0", true, true},
		"the attempt is the plan's own one": {30 * time.Minute, "1", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := testWorkload(func(w *gpuv1alpha1.GPUWorkload) {
				at := metav1.NewTime(start)
				w.ResourceVersion = "7"
				w.Status.Attempt, w.Status.LastScheduleTime = 1, &at
				w.Status.Placement = state.FormatPlacement(map[int32]string{0: "a"})
			})
			r := against(t, w, runningJob(w), func() error { return nil })
			r.config = Config{BindTimeout: 30 * time.Second, AvoidFor: time.Minute}
			old := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "old", Labels: map[string]string{gpuv1alpha1.AttemptLabel: c.attempt}}}
			old.DeletionTimestamp = &metav1.Time{Time: start.Add(grace)}
			if c.finished {
				old.Status.Phase = corev1.PodSucceeded
			}
			p := &pass{now: start.Add(c.after), workload: w, pods: []corev1.Pod{old}}
			gave, err := r.giveUp(t.Context(), p)
			if err != nil || gave != c.gives || gave != (len(w.Status.Placement) == 0) {
				t.Errorf("given up: %t, %v; %s", gave, err, w.Status.Message)
			}
		})
	}
}

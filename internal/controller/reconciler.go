package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// controllerName labels logs and metrics.
const controllerName = "gpuworkload"

// Config is what an installation may set about the reconciler.
type Config struct {
	// ClassName picks the workloads that are ours: those with the same spec.className.
	ClassName string
	// DefaultImage runs where a workload has no template.
	DefaultImage string
	// BindTimeout is how long a planned pod may wait for its scheduler before it is withdrawn
	// and planned anew.
	BindTimeout time.Duration
	// AvoidFor is how long a node that refused a pod is left out of that workload's plans.
	AvoidFor time.Duration
	// Reservations is how room is held for those that wait.
	Reservations state.Reservations
	// Workers is the number of workloads worked on at the same time.
	Workers int
}

// Reconciler brings GPUWorkloads to their end. Make one with New.
type Reconciler struct {
	config   Config
	client   client.Client
	live     client.Reader
	state    *state.State
	metrics  *telemetry.Metrics
	decided  DecisionLog
	recorder events.EventRecorder
	clock    clock.PassiveClock
	beat     func()

	// written remembers our own writes until the cache shows them: acting on an older view
	// would do things twice.
	written consistency.ConsistencyStore
	waker   *waker
	avoid   *avoidList
	pacer   *pacer

	restoring sync.Mutex
	restored  bool
}

func workloadResource() schema.GroupResource {
	return schema.GroupResource{Group: gpuv1alpha1.GroupVersion.Group, Resource: "gpuworkloads"}
}

func jobResource() schema.GroupResource {
	return schema.GroupResource{Group: "batch", Resource: "jobs"}
}

func podResource() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }

// errStale says that the cache does not show our own last write yet.
var errStale = errors.New("waiting for the cache to show the last write")

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req == heartbeat() {
		r.beat()
		return ctrl.Result{}, nil
	}
	if req == reservations() {
		return r.reserve(r.clock.Now()), nil
	}
	start := r.clock.Now()
	r.waker.look(req.NamespacedName)
	defer r.waker.looked(req.NamespacedName)
	result, err := r.reconcile(ctx, req, start)
	outcome := telemetry.ResultSuccess
	switch {
	case err != nil && ctx.Err() != nil:
		// The process is told to end. What was not done, the next one does.
		err = nil
	case errors.Is(err, errStale), apierrors.IsConflict(err):
		// Somebody, ourselves perhaps, wrote in between. The news of it is on its way.
		result, err, outcome = ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil, telemetry.ResultRequeue
	case err != nil:
		outcome = telemetry.ResultError
	case result.RequeueAfter > 0:
		outcome = telemetry.ResultRequeue
	}
	r.metrics.Reconciled(controllerName, outcome, r.clock.Since(start))
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request, now time.Time) (ctrl.Result, error) {
	if err := r.restore(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.written.EnsureReady(req.NamespacedName); err != nil {
		return ctrl.Result{}, fmt.Errorf("%w: %w", errStale, err)
	}
	workload := &gpuv1alpha1.GPUWorkload{}
	if err := r.client.Get(ctx, req.NamespacedName, workload); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Clear(req.NamespacedName, "")
			r.waker.done(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the workload: %w", err)
	}
	if workload.Spec.ClassName != r.config.ClassName {
		return ctrl.Result{}, nil
	}
	p := &pass{now: now, workload: workload, before: *workload.Status.DeepCopy()}
	if err := r.read(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	err := r.run(ctx, p)
	if err == nil || p.tell {
		err = errors.Join(err, r.finishPass(ctx, p))
	}
	if errors.Is(err, errGone) {
		r.forget(workload)
		return ctrl.Result{}, nil
	}
	if p.waits {
		r.waker.wait(req.NamespacedName, priorityOf(workload), p.never)
	} else {
		r.waker.done(req.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.after}, nil
}

// run takes the steps in order until one of them ends the pass.
func (r *Reconciler) run(ctx context.Context, p *pass) error {
	for _, next := range []func(context.Context, *pass) (bool, error){
		r.remove,
		r.protect,
		r.expire,
		r.suspend,
		r.accept,
		r.judge,
		r.deadline,
		r.yield,
		r.plan,
		r.giveUp,
		r.makeJob,
		r.sweep,
		r.makeWay,
		r.openGates,
		r.observe,
	} {
		if done, err := next(ctx, p); done || err != nil {
			return err
		}
	}
	return nil
}

// finishPass writes the status if it changed, and then tells what happened.
func (r *Reconciler) finishPass(ctx context.Context, p *pass) error {
	if wait := r.pacer.wait(p.workload.UID, p.now); wait > 0 && !p.turned() && len(p.news) == 0 && p.changed() {
		p.lookAgain(wait)
		return nil
	}
	if err := r.writeStatus(ctx, p); err != nil {
		return err
	}
	for _, e := range p.news {
		// The API server refuses longer notes.
		r.recorder.Eventf(p.workload, nil, e.kind, e.reason, e.action, "%s", e.note[:min(len(e.note), 1024)])
	}
	p.news = nil
	return nil
}

// writeStatus writes the status if it changed. The write carries the resourceVersion that was
// read: if anybody wrote in between, this process paused and replaced by another perhaps, it
// is refused, and nothing of this pass has happened.
func (r *Reconciler) writeStatus(ctx context.Context, p *pass) error {
	p.status().ObservedGeneration = p.workload.Generation
	if !p.changed() {
		return nil
	}
	if err := r.client.Status().Update(ctx, p.workload); apierrors.IsNotFound(err) {
		return errGone
	} else if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	r.wrote(p, workloadResource(), p.workload.ResourceVersion)
	r.pacer.wrote(p.workload.UID, p.now)
	r.count(p)
	p.before = *p.workload.Status.DeepCopy()
	return nil
}

// count brings the metrics up to date with what the status write made true.
func (r *Reconciler) count(p *pass) {
	before, after := &p.before, p.status()
	strategy := r.state.Strategy(p.workload)
	if scheduled(after) && !scheduled(before) {
		r.metrics.Scheduled(strategy)
		if before.StartTime == nil {
			r.metrics.FirstScheduled(strategy, int(after.Pods.Desired), p.now.Sub(p.workload.CreationTimestamp.Time))
		}
	}
	for range after.RetryCount - before.RetryCount {
		r.metrics.Retried()
		r.metrics.Failed("Retried")
	}
	if after.Phase == gpuv1alpha1.PhaseFailed && before.Phase != gpuv1alpha1.PhaseFailed {
		r.metrics.Failed(finishReason(after))
	}
}

func (r *Reconciler) wrote(p *pass, resource schema.GroupResource, resourceVersion string) {
	key := types.NamespacedName{Namespace: p.workload.Namespace, Name: p.workload.Name}
	r.written.WroteAt(key, p.workload.UID, resource, resourceVersion)
}

// forget drops everything that is remembered of a workload that is gone.
func (r *Reconciler) forget(w *gpuv1alpha1.GPUWorkload) {
	if r.state.Release(w.UID) {
		r.waker.freed()
	}
	r.waker.done(types.NamespacedName{Namespace: w.Namespace, Name: w.Name})
	r.avoid.forget(w.UID)
	r.pacer.forget(w.UID)
}

// release gives back what is held for a workload; others may have waited for it.
func (r *Reconciler) release(p *pass) {
	if r.state.Release(p.workload.UID) {
		r.waker.freed()
	}
}

// restore holds, once after this process began to lead, what plans written down by an earlier process promise, and
// room for those that wait.
func (r *Reconciler) restore(ctx context.Context) error {
	r.restoring.Lock()
	defer r.restoring.Unlock()
	if r.restored {
		return nil
	}
	var all gpuv1alpha1.GPUWorkloadList
	if err := r.client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing workloads to restore their plans: %w", err)
	}
	for i := range all.Items {
		w := &all.Items[i]
		if w.Spec.ClassName != r.config.ClassName || w.Status.Phase.Finished() {
			continue
		}
		if len(w.Status.Placement) == 0 {
			r.restoreWaiting(w)
			continue
		}
		// A plan that cannot be read holds nothing; its workload says so when its turn comes.
		nodeOf, err := state.ParsePlacement(w.Status.Placement)
		if err != nil {
			continue
		}
		if t, err := r.standingTemplate(ctx, w); err == nil {
			r.state.Confirm(w, podOf(w, t), nodeOf)
		}
	}
	now := r.clock.Now()
	r.state.Lead(now)
	r.state.Reserve(now)
	r.restored = true
	return nil
}

// isRestored tells whether restore has done its work.
func (r *Reconciler) isRestored() bool {
	r.restoring.Lock()
	defer r.restoring.Unlock()
	return r.restored
}

// standingTemplate is the pod of the Job that stands, or the one that the spec asks for.
func (r *Reconciler) standingTemplate(ctx context.Context, w *gpuv1alpha1.GPUWorkload) (*corev1.PodTemplateSpec, error) {
	var job batchv1.Job
	err := r.client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Status.JobName}, &job)
	if err == nil && metav1.IsControlledBy(&job, w) {
		return &job.Spec.Template, nil
	}
	return podTemplate(w, r.config.DefaultImage)
}

package controller

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// Parts are what a Reconciler is made of.
type Parts struct {
	Config Config
	State  *state.State
	// Policies are those that the state follows.
	Policies *policy.Book
	Metrics  *telemetry.Metrics
	// Decisions is told of every decision; nil is nobody.
	Decisions DecisionLog
	Clock     clock.PassiveClock
	// Beat is called whenever the control loop turned.
	Beat func()
}

// Setup adds the GPUWorkload reconciler to a manager. It returns a function that tells whether
// the reconciler's view of the cluster is complete.
func Setup(ctx context.Context, mgr ctrl.Manager, parts Parts) (synced func() bool, err error) {
	r := &Reconciler{
		config:   parts.Config,
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		state:    parts.State,
		metrics:  parts.Metrics,
		decided:  parts.Decisions,
		recorder: mgr.GetEventRecorder("gpu-orchestrator"),
		clock:    parts.Clock,
		beat:     parts.Beat,
		waker:    newWaker(parts.Metrics.Waiting),
		avoid:    newAvoidList(),
		pacer:    newPacer(),
	}
	if r.written, err = ownWrites(ctx, mgr); err != nil {
		return nil, err
	}
	if err := errors.Join(addIndexes(ctx, mgr.GetCache()), addVictimIndex(ctx, mgr.GetCache())); err != nil {
		return nil, err
	}
	fed, err := r.state.Feed(ctx, mgr.GetCache(), r.waker.freed, r.waker.better)
	if err != nil {
		return nil, err
	}
	inside, err := r.state.FeedInventories(ctx, mgr.GetCache(), r.waker.better, r.refuseInventory)
	if err != nil {
		return nil, err
	}
	synced = func() bool { return fed() && inside() }
	err = ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(parts.Config.Workers, 1)}).
		Watches(&gpuv1alpha1.GPUWorkload{}, r.byPriority()).
		Watches(&batchv1.Job{}, toWorkload()).
		Watches(&corev1.Pod{}, toWorkload()).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			// The first plan must see the whole cluster, not what has arrived so far.
			if !toolscache.WaitForCacheSync(ctx.Done(), synced) {
				return fmt.Errorf("waiting for nodes and pods: %w", context.Cause(ctx))
			}
			return r.waker.start(ctx, q)
		})).
		Complete(r)
	if err != nil {
		return nil, fmt.Errorf("setting up the %s controller: %w", controllerName, err)
	}
	if parts.Policies == nil {
		return synced, nil
	}
	return synced, SetupPolicies(mgr, PolicyParts{Class: parts.Config.ClassName, Book: parts.Policies, Better: r.waker.better})
}

// refuseInventory says on a GPUNode why it is not gone by.
func (r *Reconciler) refuseInventory(n *gpuv1alpha1.GPUNode, err error) {
	r.recorder.Eventf(n, nil, corev1.EventTypeWarning, "InventoryRefused", "Read",
		"placement goes by the labels and allocatable of the node, because what its agent wrote contradicts itself: %v", err)
}

// ownWrites returns a store that knows when the caches show what we wrote.
func ownWrites(ctx context.Context, mgr ctrl.Manager) (consistency.ConsistencyStore, error) {
	stores := make(map[schema.GroupResource]consistency.LastSyncRVGetter)
	for resource, obj := range map[schema.GroupResource]client.Object{
		workloadResource(): &gpuv1alpha1.GPUWorkload{},
		jobResource():      &batchv1.Job{},
		podResource():      &corev1.Pod{},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, obj)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", resource, err)
		}
		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return nil, fmt.Errorf("watching %s: the cache's %T tells no resource version", resource, informer)
		}
		stores[resource] = shared.GetStore()
	}
	return consistency.NewConsistencyStore(stores), nil
}

// byPriority has workloads looked at in the order of their priority when many come at once.
func (r *Reconciler) byPriority() handler.EventHandler {
	add := func(obj client.Object, q queue) {
		w, ok := obj.(*gpuv1alpha1.GPUWorkload)
		if !ok {
			return
		}
		priority := priorityOf(w)
		if w.Status.JobName != "" || w.DeletionTimestamp != nil {
			priority = queueProgress
		}
		enqueue(q, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}, priority, 0)
		for _, v := range w.Status.Preempting {
			enqueue(q, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: v.Namespace, Name: v.Name}}, queueProgress, 0)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(e.ObjectNew, q)
			r.addPreemptors(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.addPreemptors(ctx, e.Object, q)
			// Somebody may have taken the finalizer away, so that no pass saw it go.
			if w, ok := e.Object.(*gpuv1alpha1.GPUWorkload); ok {
				r.forget(w)
			}
			add(e.Object, q)
		},
	}
}

// addPreemptors has those looked at that wait for the workload to make way.
func (r *Reconciler) addPreemptors(ctx context.Context, victim client.Object, q queue) {
	// Without an answer they are looked at a little later, when the victim's pods end.
	list, err := r.preemptors(ctx, victim.GetUID())
	if err != nil {
		return
	}
	for i := range list {
		enqueue(q, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])}, queueProgress, 0)
	}
}

// toWorkload has the workload of a Job or pod looked at.
func toWorkload() handler.EventHandler {
	add := func(obj client.Object, q queue) {
		if name := obj.GetLabels()[gpuv1alpha1.WorkloadLabel]; name != "" {
			key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
			enqueue(q, ctrl.Request{NamespacedName: key}, queueProgress, 0)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

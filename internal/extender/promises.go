package extender

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// promises has the state hold what the plans of GPUWorkloads promise to pods that are not bound
// yet, as their status tells: plain pods must not be sent to that room.
type promises struct {
	state        *state.State
	defaultImage string
}

// follow connects the promises to the informers and returns a function that tells whether all that
// was there at the start is held.
func (p *promises) follow(ctx context.Context, c cache.Cache) (synced func() bool, err error) {
	informer, err := c.GetInformer(ctx, &gpuv1alpha1.GPUWorkload{})
	if err != nil {
		return nil, fmt.Errorf("watching workloads: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: p.keep,
		UpdateFunc: func(old, obj any) {
			was, isOld := old.(*gpuv1alpha1.GPUWorkload)
			if w, ok := obj.(*gpuv1alpha1.GPUWorkload); ok && isOld && was.UID != w.UID {
				p.state.Release(was.UID)
			}
			p.keep(obj)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if w, ok := obj.(*gpuv1alpha1.GPUWorkload); ok {
				p.state.Release(w.UID)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching workloads: %w", err)
	}
	return registration.HasSynced, nil
}

func (p *promises) keep(obj any) {
	w, ok := obj.(*gpuv1alpha1.GPUWorkload)
	if !ok {
		return
	}
	nodeOf, err := state.ParsePlacement(w.Status.Placement)
	if err != nil || len(nodeOf) == 0 || w.Status.Phase.Finished() {
		p.state.Release(w.UID)
		return
	}
	// What is in the cache is everybody's: the pod is made of a copy.
	copied := w.DeepCopy()
	pod, err := controller.PodOf(copied, p.defaultImage)
	if err != nil {
		p.state.Release(w.UID)
		return
	}
	p.state.Confirm(copied, pod, nodeOf)
}

package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Feed connects the state to the informers of a cache and returns a function that tells
// whether everything that was there at the start has been taken in. Freed is called, without any
// lock held, when a pod gave room back or a workload may be evicted that could not be, and better when a node came or changed.
func (s *State) Feed(ctx context.Context, c cache.Cache, freed, better func()) (synced func() bool, err error) {
	nodes, err := feed(ctx, c, &corev1.Node{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.onNode(obj, better) },
		UpdateFunc: func(_, obj any) { s.onNode(obj, better) },
		DeleteFunc: func(obj any) {
			s.news.heard()
			if n, ok := last(obj).(*corev1.Node); ok {
				s.DropNode(n.Name)
				s.resize(better)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	pods, err := feed(ctx, c, &corev1.Pod{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { s.onPod(obj, freed) },
		UpdateFunc: func(old, obj any) {
			// A watch that was interrupted tells of a pod that replaced another as of one change.
			if was, ok := old.(*corev1.Pod); ok && replaced(was, obj) && s.DropPod(was.UID) {
				freed()
			}
			s.onPod(obj, freed)
		},
		DeleteFunc: func(obj any) {
			s.news.heard()
			if p, ok := last(obj).(*corev1.Pod); ok && s.DropPod(p.UID) {
				freed()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	workloads, err := feed(ctx, c, &gpuv1alpha1.GPUWorkload{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: s.onWorkload,
		UpdateFunc: func(old, obj any) {
			was, ok := old.(*gpuv1alpha1.GPUWorkload)
			if ok && replaced(was, obj) {
				s.onWorkloadGone(was, freed)
				s.news.gone(was.UID)
			}
			s.onWorkload(obj)
			if now, is := obj.(*gpuv1alpha1.GPUWorkload); ok && is && yields(was, now) {
				freed()
			}
		},
		DeleteFunc: func(obj any) {
			s.news.heard()
			if w, ok := last(obj).(*gpuv1alpha1.GPUWorkload); ok {
				s.onWorkloadGone(w, freed)
				s.news.gone(w.UID)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching workloads: %w", err)
	}
	guides, err := s.feedPolicies(ctx, c, better)
	if err != nil {
		return nil, err
	}
	return func() bool {
		for _, has := range guides {
			if !has() {
				return false
			}
		}
		return nodes.HasSynced() && pods.HasSynced() && workloads.HasSynced()
	}, nil
}

// yields tells whether a workload may be evicted now by somebody who could not before.
func yields(was, now *gpuv1alpha1.GPUWorkload) bool {
	return now.Evictable() && (!was.Evictable() || Priority(now) < Priority(was))
}

// replaced tells whether the new object is another one of the same name.
func replaced(old client.Object, obj any) bool {
	now, ok := obj.(client.Object)
	return ok && now.GetUID() != old.GetUID()
}

func (s *State) onWorkload(obj any) {
	s.news.heard()
	if w, ok := obj.(*gpuv1alpha1.GPUWorkload); ok {
		s.SetWorkload(w)
		s.news.waits(w)
	}
}

// onWorkloadGone gives back what is held for a workload, in case nobody saw it go.
func (s *State) onWorkloadGone(w *gpuv1alpha1.GPUWorkload, freed func()) {
	s.DropWorkload(w)
	if s.Release(w.UID) {
		freed()
	}
}

func feed(ctx context.Context, c cache.Cache, obj client.Object, h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := c.GetInformer(ctx, obj)
	if err != nil {
		return nil, err
	}
	return informer.AddEventHandler(h)
}

func (s *State) onNode(obj any, better func()) {
	s.news.heard()
	if n, ok := obj.(*corev1.Node); ok && s.SetNode(n) {
		s.resize(better)
		better()
	}
}

func (s *State) onPod(obj any, freed func()) {
	s.news.heard()
	if p, ok := obj.(*corev1.Pod); ok && s.SetPod(p) {
		freed()
	}
}

// last unwraps what an informer hands over when it missed a deletion and knows only the last
// state it saw.
func last(obj any) any {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}

// Trim drops from cached objects what nothing here reads; it is a transform of the cache, for
// objects of every kind. At ten thousand pods this is most of the memory.
func Trim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Spec.Volumes = nil
		for i := range o.Spec.Containers {
			trimContainer(&o.Spec.Containers[i])
		}
		for i := range o.Spec.InitContainers {
			trimContainer(&o.Spec.InitContainers[i])
		}
	case *corev1.Node:
		o.Status.Images = nil
	case *corev1.Namespace:
		o.Annotations = nil
	}
	return obj, nil
}

// trimContainer keeps what says how large the container is and how it went.
func trimContainer(c *corev1.Container) {
	*c = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
}

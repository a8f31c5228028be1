package scheduler

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// feedInventories has State learn what is inside nodes, where the cluster serves GPUNodes: a
// scheduler by itself, without the rest of the product, does without. It returns a function that
// tells whether all that was there at the start has been taken in.
func (d *desk) feedInventories(ctx context.Context, config *rest.Config) (synced func() bool, err error) {
	if config == nil {
		return func() bool { return true }, nil // There is nobody to ask.
	}
	// The scheduler's own clients speak protobuf, which custom resources do not.
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	served, err := servesInventories(config)
	if err != nil || !served {
		return func() bool { return true }, err
	}
	scheme := runtime.NewScheme()
	if err := gpuv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	inventories, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("watching GPUNodes: %w", err)
	}
	synced, err = d.state.FeedInventories(ctx, inventories, d.tidings, func(n *gpuv1alpha1.GPUNode, err error) {
		klog.FromContext(ctx).Info("Going by labels and allocatable of a node, because its GPUNode contradicts itself", "node", n.Name, "problem", err.Error())
	})
	if err != nil {
		return nil, err
	}
	go func() {
		if err := inventories.Start(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Watching GPUNodes")
		}
	}()
	return synced, nil
}

func servesInventories(config *rest.Config) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("setting up a client: %w", err)
	}
	list, err := client.ServerResourcesForGroupVersion(gpuv1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking what the API server serves: %w", err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == "GPUNode" }), nil
}

package kube

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

const (
	// pageSize is how many objects are asked for at a time: what kubectl asks for.
	pageSize = 500
	// pagesPerSecond keeps a listing of a hundred thousand pods from being felt by others.
	pagesPerSecond = 20
)

// Objects are what a cluster has.
type Objects struct {
	Nodes     []*corev1.Node
	Pods      []*corev1.Pod
	Jobs      []*batchv1.Job
	Workloads []*gpuv1alpha1.GPUWorkload
}

// Scope is what is read.
type Scope struct {
	// Namespace is the only one whose jobs and pods are read, "" for all.
	Namespace string
	// NodesOnly leaves jobs and pods alone.
	NodesOnly bool
}

// ForbiddenError says what the user may not do.
type ForbiddenError struct {
	// Verb and Resource are as in a role; Namespace is "" for all, or where there is none.
	Verb, Resource, Namespace string
	err                       error
}

// Error implements error.
func (e *ForbiddenError) Error() string {
	where := "in the whole cluster"
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	return fmt.Sprintf("the cluster does not let you %s %s %s: ask its administrator for the role in docs/import.md; it says: %v", e.Verb, e.Resource, where, e.err)
}

// Unwrap returns what the API server said.
func (e *ForbiddenError) Unwrap() error { return e.err }

// Connect finds the cluster as kubectl does: by the file, or by KUBECONFIG, ~/.kube/config or the
// pod that it runs in. The error is about what the user gave.
func Connect(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	return config, nil
}

// Read lists what there is. The error is a ForbiddenError where the user lacks a right.
func Read(ctx context.Context, config *rest.Config, scope Scope) (*Objects, error) {
	r, err := newReader(config)
	if err != nil {
		return nil, err
	}
	var o Objects
	if o.Nodes, err = list[*corev1.Node](ctx, r, corev1.SchemeGroupVersion, "nodes", "", &corev1.NodeList{}); err != nil || scope.NodesOnly {
		return &o, err
	}
	if o.Pods, err = list[*corev1.Pod](ctx, r, corev1.SchemeGroupVersion, "pods", scope.Namespace, &corev1.PodList{}); err != nil {
		return nil, err
	}
	if o.Jobs, err = list[*batchv1.Job](ctx, r, batchv1.SchemeGroupVersion, "jobs", scope.Namespace, &batchv1.JobList{}); err != nil {
		return nil, err
	}
	o.Workloads, err = list[*gpuv1alpha1.GPUWorkload](ctx, r, gpuv1alpha1.GroupVersion, "gpuworkloads", scope.Namespace, &gpuv1alpha1.GPUWorkloadList{})
	if apierrors.IsNotFound(err) {
		err = nil // the product is not installed there
	}
	return &o, err
}

// reader is a connection to an API server.
type reader struct {
	config *rest.Config
	scheme *runtime.Scheme
}

func newReader(config *rest.Config) (*reader, error) {
	r := &reader{config: rest.CopyConfig(config), scheme: runtime.NewScheme()}
	if err := errors.Join(corev1.AddToScheme(r.scheme), batchv1.AddToScheme(r.scheme), gpuv1alpha1.AddToScheme(r.scheme)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	r.config.QPS, r.config.Burst = pagesPerSecond, pagesPerSecond
	r.config.UserAgent = "warp"
	// What the server warns of is how others wrote their objects.
	r.config.WarningHandler = rest.NoWarnings{}
	r.config.NegotiatedSerializer = serializer.NewCodecFactory(r.scheme).WithoutConversion()
	return r, nil
}

// client returns a client of one group of kinds.
func (r *reader) client(gv schema.GroupVersion) (*rest.RESTClient, error) {
	config := rest.CopyConfig(r.config)
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	if gv.Group != gpuv1alpha1.GroupVersion.Group {
		// A third of the size of JSON. Custom resources have no other form than JSON.
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return rest.RESTClientFor(config)
}

// list returns all objects of a resource. Pages whose continuation the server has forgotten are
// asked for again, all at once.
func list[T runtime.Object](ctx context.Context, r *reader, gv schema.GroupVersion, resource, namespace string, empty runtime.Object) ([]T, error) {
	client, err := r.client(gv)
	if err != nil {
		return nil, fmt.Errorf("preparing to list %s: %w", resource, err)
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page := empty.DeepCopyObject()
		err := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).
			VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(page)
		trim(page)
		return page, err
	})
	pages.PageSize = pageSize
	var all []T
	found, _, err := pages.List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, &ForbiddenError{Verb: "list", Resource: resourceName(gv, resource), Namespace: namespace, err: err}
	case err != nil:
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	err = meta.EachListItem(found, func(object runtime.Object) error {
		one, ok := object.(T)
		if !ok {
			return fmt.Errorf("listing %s: there is a %T among them", resource, object)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}

// resourceName is how kubectl and roles call a resource: "jobs.batch".
func resourceName(gv schema.GroupVersion, resource string) string {
	return schema.GroupResource{Group: gv.Group, Resource: resource}.String()
}

// trim drops what is not read before the next page is asked for: of a hundred thousand pods it is
// nearly everything.
func trim(page runtime.Object) {
	switch l := page.(type) {
	case *corev1.PodList:
		for i := range l.Items {
			// Trim fails for no object.
			_, _ = state.Trim(&l.Items[i])
		}
	case *batchv1.JobList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	case *corev1.NodeList:
		for i := range l.Items {
			_, _ = state.Trim(&l.Items[i])
		}
	}
}

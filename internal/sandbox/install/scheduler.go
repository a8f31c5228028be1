package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scheduler is what the manifests say of our scheduler's process.
type Scheduler struct {
	Namespace string
	// Account is the service account it acts as, in Namespace.
	Account string
	// Configs are the files that its Deployment mounts, by name.
	Configs map[string]string
}

// OurScheduler applies our scheduler, but for its Deployment, and returns what that says. The product
// must be there.
func OurScheduler(ctx context.Context, config *rest.Config, manifests fs.FS) (Scheduler, error) {
	objects, err := Render(manifests, "scheduler")
	if err != nil {
		return Scheduler{}, err
	}
	found, err := FindScheduler(objects)
	if err != nil {
		return Scheduler{}, err
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return Scheduler{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	first, rest := split(objects)
	return found, apply(ctx, cluster, append(first, rest...))
}

// FindScheduler reads the Deployment of the manifests and the ConfigMap with its files.
func FindScheduler(objects []*unstructured.Unstructured) (Scheduler, error) {
	var found Scheduler
	for _, object := range objects {
		var err error
		switch object.GetKind() {
		case kindDeployment:
			var d appsv1.Deployment
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d)
			found.Namespace, found.Account = d.Namespace, d.Spec.Template.Spec.ServiceAccountName
		case kindConfigMap:
			var c corev1.ConfigMap
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c)
			found.Configs = c.Data
		}
		if err != nil {
			return found, fmt.Errorf("decoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if found.Account == "" || found.Configs == nil {
		return found, errors.New("finding our scheduler: the manifests have no Deployment or no ConfigMap")
	}
	return found, nil
}

package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part applies a part of the product that is not in config/default, after Product, and returns as
// whom its Deployment runs.
func Part(ctx context.Context, config *rest.Config, manifests fs.FS, dir string) (Manager, error) {
	objects, err := Render(manifests, dir)
	if err != nil {
		return Manager{}, err
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return Manager{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	_, rest := split(objects)
	if err := apply(ctx, cluster, rest); err != nil {
		return Manager{}, err
	}
	for _, object := range objects {
		if object.GetKind() != kindDeployment {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return Manager{}, fmt.Errorf("decoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		return Manager{Namespace: d.Namespace, Account: d.Spec.Template.Spec.ServiceAccountName}, nil
	}
	return Manager{}, errors.New("finding the account of " + dir + ": the manifests have no Deployment")
}

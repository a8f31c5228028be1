package install

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// fieldOwner names the sandbox among those who write objects.
const fieldOwner = "gpu-orchestrator-sandbox"

// tokenValidity is longer than any sandbox stays up: nothing renews the token.
const tokenValidity = 365 * 24 * time.Hour

// The objects that others need to exist first, and those that are looked into.
const (
	kindNamespace  = "Namespace"
	kindCRD        = "CustomResourceDefinition"
	kindDeployment = "Deployment"
	kindConfigMap  = "ConfigMap"
)

// Product applies the product and returns what its manager's Deployment says of
// the manager, which serves where local says.
func Product(ctx context.Context, config *rest.Config, manifests fs.FS, local Local) (Manager, error) {
	objects, err := Render(manifests, "default")
	if err != nil {
		return Manager{}, err
	}
	if err := CallWebhooksAt(local.Webhooks, objects); err != nil {
		return Manager{}, err
	}
	manager, err := FindManager(objects)
	if err != nil {
		return Manager{}, err
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return Manager{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	if objects, err = local.reach(objects); err != nil {
		return Manager{}, err
	}
	first, rest := split(objects)
	if err := apply(ctx, cluster, first); err != nil {
		return Manager{}, err
	}
	if err := awaitEstablished(ctx, config, first); err != nil {
		return Manager{}, err
	}
	return manager, apply(ctx, cluster, append(rest, managedDefault()))
}

// managedDefault puts the namespace that people start in under management, so that
// they see the admission policies at work.
func managedDefault() *unstructured.Unstructured {
	n := &unstructured.Unstructured{}
	n.SetAPIVersion("v1")
	n.SetKind(kindNamespace)
	n.SetName(metav1.NamespaceDefault)
	n.SetLabels(map[string]string{gpuv1alpha1.ManagedLabel: "true"})
	return n
}

// split puts first what others need to exist, and leaves Deployments out.
func split(objects []*unstructured.Unstructured) (first, rest []*unstructured.Unstructured) {
	for _, object := range objects {
		switch object.GetKind() {
		case kindNamespace, kindCRD:
			first = append(first, object)
		case kindDeployment:
		default:
			rest = append(rest, object)
		}
	}
	return first, rest
}

// apply is server-side, as a custom resource definition with a pod template in it
// is too large for the annotation that client-side apply writes.
func apply(ctx context.Context, cluster client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner(fieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func awaitEstablished(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	cluster, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	for _, object := range objects {
		if object.GetKind() != kindCRD {
			continue
		}
		if err := awaitCRD(ctx, cluster, object.GetName()); err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", object.GetName(), err)
		}
	}
	return nil
}

func awaitCRD(ctx context.Context, cluster apiextensions.Interface, name string) error {
	definitions := cache.NewListWatchFromClient(cluster.ApiextensionsV1().RESTClient(),
		"customresourcedefinitions", metav1.NamespaceAll, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	_, err := watchtools.UntilWithSync(ctx, definitions, &apiextensionsv1.CustomResourceDefinition{}, nil, func(event watch.Event) (bool, error) {
		definition, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
		return ok && apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established), nil
	})
	return err
}

// Token mints a token for a service account.
func Token(ctx context.Context, cluster kubernetes.Interface, namespace, account string) (string, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenValidity / time.Second))},
	}
	response, err := cluster.CoreV1().ServiceAccounts(namespace).
		CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("minting a token for service account %s/%s: %w", namespace, account, err)
	}
	return response.Status.Token, nil
}

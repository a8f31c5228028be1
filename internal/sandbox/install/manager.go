package install

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manager is what the manifests say of the manager's process.
type Manager struct {
	Namespace string
	// Account is the service account it acts as, in Namespace.
	Account string
	// Config is the file that its Deployment mounts from a ConfigMap.
	Config string
}

// FindManager reads the one Deployment of the manifests and the ConfigMap that it
// mounts.
func FindManager(objects []*unstructured.Unstructured) (Manager, error) {
	var deployments []appsv1.Deployment
	configs := map[string]corev1.ConfigMap{}
	for _, object := range objects {
		var err error
		switch object.GetKind() {
		case kindDeployment:
			var d appsv1.Deployment
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d)
			deployments = append(deployments, d)
		case kindConfigMap:
			var c corev1.ConfigMap
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c)
			configs[c.Name] = c
		}
		if err != nil {
			return Manager{}, fmt.Errorf("decoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if len(deployments) != 1 {
		return Manager{}, fmt.Errorf("finding the manager: the manifests have %d Deployments, not one", len(deployments))
	}
	pod := deployments[0].Spec.Template.Spec
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for _, content := range configs[volume.ConfigMap.Name].Data {
			return Manager{Namespace: deployments[0].Namespace, Account: pod.ServiceAccountName, Config: content}, nil
		}
	}
	return Manager{}, errors.New("finding the manager's configuration: its Deployment mounts no ConfigMap of the manifests")
}

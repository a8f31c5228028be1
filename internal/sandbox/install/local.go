package install

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	kindService    = "Service"
	kindAPIService = "APIService"
)

// Local says where on this machine the manager serves its part of the API.
type Local struct {
	// Port is on the loopback interface; 0 if there is no manager.
	Port int
	// CA issued the manager's certificate.
	CA []byte
	// Webhooks is the beginning of the URL where it answers admission requests.
	Webhooks string
}

// reach has the API server find the manager, which is a process and no pod: its Service is another
// name of this machine. An APIService that nobody serves would keep namespaces from being deleted,
// so that without a manager there is none.
func (l Local) reach(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var services []string
	for _, object := range objects {
		if object.GetKind() != kindAPIService {
			continue
		}
		name, found, err := unstructured.NestedString(object.Object, "spec", "service", "name")
		if err != nil || !found {
			return nil, fmt.Errorf("reading the service of %s: found %t, %w", object.GetName(), found, err)
		}
		services = append(services, name)
		spec := map[string]any{"port": int64(l.Port), "caBundle": base64.StdEncoding.EncodeToString(l.CA)}
		for field, value := range spec {
			path := []string{"spec", field}
			if field == "port" {
				path = []string{"spec", "service", field}
			}
			if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
				return nil, fmt.Errorf("changing %s: %w", object.GetName(), err)
			}
		}
		unstructured.RemoveNestedField(object.Object, "spec", "insecureSkipTLSVerify")
	}
	ofAPI := func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kindAPIService || object.GetKind() == kindService && slices.Contains(services, object.GetName())
	}
	if l.Port == 0 {
		return slices.DeleteFunc(objects, ofAPI), nil
	}
	for _, object := range objects {
		if object.GetKind() == kindService && ofAPI(object) {
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		}
	}
	return objects, nil
}

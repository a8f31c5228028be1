package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CallWebhooksAt has the webhook configurations among the objects name a URL that
// begins with base instead of a Service, which without a network of pods leads
// nowhere.
func CallWebhooksAt(base string, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		switch object.GetKind() {
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		default:
			continue
		}
		webhooks, ok := object.Object["webhooks"].([]any)
		if !ok {
			return fmt.Errorf("reading %s %s: it has no list of webhooks", object.GetKind(), object.GetName())
		}
		for _, entry := range webhooks {
			webhook, ok := entry.(map[string]any)
			if !ok {
				return fmt.Errorf("reading %s %s: a webhook is a %T", object.GetKind(), object.GetName(), entry)
			}
			path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			if err != nil || !found {
				return fmt.Errorf("reading %s %s: a webhook names no Service with a path", object.GetKind(), object.GetName())
			}
			webhook["clientConfig"] = map[string]any{"url": base + path}
		}
	}
	return nil
}

package e2e

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// pastWebhook is a label of namespaces whose workloads the webhook does not see: what is stored
// while nobody answers gets to the controller in the same way.
const pastWebhook = "e2e/past-the-webhook"

// unchecked makes a namespace for the test where the webhook refuses nothing.
func (c *cluster) unchecked(t *testing.T) string {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var config admissionregistrationv1.ValidatingWebhookConfiguration
		if err := c.Get(t.Context(), client.ObjectKey{Name: "gpu-orchestrator"}, &config); err != nil {
			return err
		}
		without := metav1.LabelSelectorRequirement{Key: pastWebhook, Operator: metav1.LabelSelectorOpDoesNotExist}
		for i := range config.Webhooks {
			config.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{without}}
		}
		return c.Update(t.Context(), &config)
	})
	if err != nil {
		t.Fatal(err)
	}
	name := c.namespace(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+pastWebhook+`":"true"}}}`))
	if err := c.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		wrong := gpuWorkload(name, "probe", 1, 1, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.SchedulingStrategy = "nonsense" })
		return c.Create(t.Context(), wrong, client.DryRunAll)
	})
	return name
}

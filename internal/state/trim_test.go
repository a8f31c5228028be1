package state

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Nothing that is cached keeps who owns which field: of many objects it is the larger half.
func TestNobodyKeepsManagedFields(t *testing.T) {
	for _, o := range []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{}, &batchv1.Job{},
		&gpuv1alpha1.GPUWorkload{}, &gpuv1alpha1.PlacementPolicy{},
	} {
		o.SetName("x")
		o.SetLabels(map[string]string{"a": "b"})
		o.SetFinalizers([]string{"example.com/kept"})
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		kept, err := Trim(o)
		if err != nil {
			t.Fatalf("%T: %v", o, err)
		}
		trimmed := kept.(client.Object)
		if len(trimmed.GetManagedFields()) > 0 {
			t.Errorf("%T keeps its managed fields", o)
		}
		if trimmed.GetName() != "x" || trimmed.GetLabels()["a"] != "b" || len(trimmed.GetFinalizers()) != 1 {
			t.Errorf("%T loses what is read: %v", o, trimmed)
		}
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "x", Obj: &corev1.Pod{}}
	if kept, err := Trim(gone); err != nil || kept != gone {
		t.Errorf("a missed deletion became %v, %v", kept, err)
	}
}

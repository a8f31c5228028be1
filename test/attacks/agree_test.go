package attacks

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// TestPoliciesAndCodeAgree holds what is said twice, in CEL and in Go: which keys are for users.
func TestPoliciesAndCodeAgree(t *testing.T) {
	for _, o := range policies(t) {
		if o.GetName() != "gpu-orchestrator-reserved-keys" {
			continue
		}
		variables, _, err := unstructured.NestedSlice(o.Object, "spec", "variables")
		if err != nil {
			t.Fatal(err)
		}
		own := variables[0].(map[string]any)["expression"].(string)
		var said []string
		for _, m := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(own, -1) {
			said = append(said, m[1])
		}
		if want := gpuv1alpha1.UserKeys(); !slices.Equal(slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(want))) {
			t.Errorf("the policy lets users write %q, the code %q", said, want)
		}
		return
	}
	t.Error("there is no policy reserved-keys")
}

// TestTheSameAreGPUs asks the API server and the code which pods ask for GPUs: those that the
// webhook gives the scheduler.
func TestTheSameAreGPUs(t *testing.T) {
	w := open(t)
	for _, name := range []string{
		"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage",
		"nvidia.com/mig-1g.10gb", "nvidia.com/nvme", "amd.com/gpu", "amd.com/gpu2", "gpu.intel.com/i915", "gpu.intel.com/xe", "gpu.intel.com/x", "example.com/gpu",
	} {
		u, err := w.tryCreate(t.Context(), alice, `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, resources: {limits: {`+name+`: 1}}}]}}`)
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedString(u.Object, "spec", "schedulerName")
		if state.IsGPU(name) != (got == binder) {
			t.Errorf("%s: for the code a GPU: %v; the scheduler became %s", name, state.IsGPU(name), got)
		}
	}
}

// TestEveryPolicyIsBoundAndSpeaks holds that each policy denies, says what to do, and leaves
// kube-system and our own namespace alone.
func TestEveryPolicyIsBoundAndSpeaks(t *testing.T) {
	objects := policies(t)
	bindings := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetKind() == "ValidatingAdmissionPolicyBinding" {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
			bindings[name] = o
		}
	}
	// Those that are about objects without a namespace, or about our own kind.
	everywhere := []string{"gpu-orchestrator-managed-namespaces", "gpu-orchestrator-node-labels", "gpu-orchestrator-workload-rights"}
	count := 0
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		count++
		if policy, _, _ := unstructured.NestedString(o.Object, "spec", "failurePolicy"); policy != "Fail" {
			t.Errorf("%s: failurePolicy %q", o.GetName(), policy)
		}
		validations, _, _ := unstructured.NestedSlice(o.Object, "spec", "validations")
		for _, v := range validations {
			if message, _ := v.(map[string]any)["message"].(string); message == "" {
				t.Errorf("%s has a validation without a message", o.GetName())
			}
		}
		b := bindings[o.GetName()]
		if b == nil {
			t.Errorf("%s is not bound", o.GetName())
			continue
		}
		if slices.Contains(everywhere, o.GetName()) {
			continue
		}
		selector, _, _ := unstructured.NestedMap(b.Object, "spec", "matchResources", "namespaceSelector")
		labels, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
		expressions, _, _ := unstructured.NestedSlice(selector, "matchExpressions")
		if !maps.Equal(labels, map[string]string{gpuv1alpha1.ManagedLabel: "true"}) || len(expressions) != 1 {
			t.Errorf("%s holds where it should not: %v", o.GetName(), selector)
			continue
		}
		values, _, _ := unstructured.NestedStringSlice(expressions[0].(map[string]any), "values")
		if !slices.Equal(values, []string{"kube-system", system}) {
			t.Errorf("%s leaves out %v", o.GetName(), values)
		}
	}
	if count != 9 {
		t.Errorf("%d policies", count)
	}
}

func policies(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := install.Render(config.FS, "default")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

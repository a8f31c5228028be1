package webhook

import (
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// FuzzAdmission sends anything to both handlers. They answer, never panic, decide the same when asked
// again, never patch what they refuse, and touch nothing of a pod but its scheduler.
func FuzzAdmission(f *testing.F) {
	h, _ := start(f, Limits{})
	for _, spec := range []string{
		`{modelName: m}`,
		`{modelName: m, parallelism: 8, minParallelism: 3, topology: {required: spine, preferred: leaf, slice: {size: 2, level: host}}}`,
		`{modelName: m, gpuCount: 2, gpu: {milli: 5, minMemory: 1e1000}, template: {metadata: {labels: {gpu.warp.dev/attempt: "1"}}, spec: {containers: [{name: a, resources: {limits: {cpu: 5e9999999999}}}]}}}`,
	} {
		f.Add(review(f, workloadRequest(f, spec, "")))
		f.Add(review(f, workloadRequest(f, spec, `{modelName: n, schedulingStrategy: x}`)))
	}
	f.Add(review(f, podRequest(f, `{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{WorkloadPath, PodPath} {
			first := post(h, path, body)
			if first.Code != http.StatusOK {
				t.Fatalf("%s: status %d: %s", path, first.Code, first.Body)
			}
			a := answer(t, first)
			// Which of two mistakes is named may change.
			if b := answer(t, post(h, path, body)); a.Allowed != b.Allowed || string(a.Patch) != string(b.Patch) {
				t.Fatalf("%s: two answers:\n%+v\n%+v", path, a, b)
			}
			if len(a.Patch) == 0 {
				continue
			}
			var ops []struct{ Op, Path, Value string }
			if err := json.Unmarshal(a.Patch, &ops); err != nil || !a.Allowed || path != PodPath || len(ops) != 1 ||
				ops[0].Op != "add" || ops[0].Path != "/spec/schedulerName" || ops[0].Value != "gpu-orchestrator" || *a.PatchType != admissionv1.PatchTypeJSONPatch {
				t.Fatalf("%s patches %s (%v)", path, a.Patch, err)
			}
		}
	})
}

package webhook

import (
	"net/http"
	"strings"
	"testing"
)

// TestAmountsThatTakeMinutesAreNotRead sends what no API server sends: reading any of these would
// take minutes of a processor, and the test with it.
func TestAmountsThatTakeMinutesAreNotRead(t *testing.T) {
	h, _ := start(t, Limits{})
	const plain = `{modelName: m}`
	for _, c := range []struct{ spec, old string }{
		{`{modelName: m, gpu: {minMemory: "9e-99999999"}}`, ""},
		{`{modelName: m, gpu: {minMemory: "9e9999999"}}`, `{modelName: m, gpu: {minMemory: 1}}`},
		{plain, `{modelName: m, gpu: {minMemory: "9E-99999999"}}`},
		{`{modelName: m, template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: "9e-99999999"}}}]}}}`, ""},
		{`{modelName: m, template: {spec: {overhead: {cpu: "1.5e+9999999"}, containers: [{name: c}]}}}`, ""},
		{`{modelName: m, template: {spec: {volumes: [{name: v, emptyDir: {SizeLimit: "9e-9999999"}}], containers: [{name: c}]}}}`, ""},
		{`{modelName: m, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "` + strings.Repeat("9", 1<<16) + `"}}}]}}}`, ""},
	} {
		a := answer(t, post(h, WorkloadPath, review(t, workloadRequest(t, c.spec, c.old))))
		if a.Allowed || a.Result.Code != http.StatusBadRequest || !strings.Contains(a.Result.Message, "such as 40Gi") {
			t.Errorf("%.200s: %+v", c.spec, a.Result)
		}
	}
	a := answer(t, post(h, PodPath, review(t, podRequest(t, `{containers: [{name: c, resources: {limits: {nvidia.com/gpu: "9e-99999999"}}}]}`))))
	if a.Allowed || !strings.Contains(a.Result.Message, "spec.containers[0].resources.limits.nvidia.com/gpu is an amount") {
		t.Errorf("a pod: %+v", a.Result)
	}
	// What only looks like one is nobody's amount.
	for _, spec := range []string{
		`{modelName: "7e1234567", template: {metadata: {labels: {commit: "12e45678"}}, spec: {containers: [{name: c, image: "x:1e999", args: ["` + strings.Repeat("1", 100) + `"], resources: {limits: {memory: 1e10}}}]}}}`,
	} {
		if a := answer(t, post(h, WorkloadPath, review(t, workloadRequest(t, spec, "")))); !a.Allowed {
			t.Errorf("%s: %+v", spec, a.Result)
		}
	}
}

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// published is the schema of GPUWorkload that the API server publishes, which kubectl explain
// and editors read. It appears a moment after the definition is established.
func published(t *testing.T) map[string]any {
	t.Helper()
	client := discoveryClient(t).RESTClient()
	var schema map[string]any
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		text, err := client.Get().AbsPath("/openapi/v3/apis", gpuv1alpha1.GroupVersion.Group, gpuv1alpha1.GroupVersion.Version).DoRaw(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return false, err
		}
		schema = document.Components.Schemas["dev.warp.gpu.v1alpha1.GPUWorkload"]
		return schema != nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for the schema of GPUWorkload to be published: %v", err)
	}
	return schema
}

// TestEveryFieldIsDescribed walks the published schema down into the pod template.
func TestEveryFieldIsDescribed(t *testing.T) {
	count := 0
	var walk func(string, map[string]any)
	walk = func(path string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, value := range properties {
			inner := value.(map[string]any)
			at := path + "." + name
			// The generator gives the metadata of what is embedded five fields and no words.
			embedded := strings.HasPrefix(path, ".spec.template.") && strings.HasSuffix(path, ".metadata")
			if !embedded {
				count++
				if text, _ := inner["description"].(string); strings.TrimSpace(text) == "" {
					t.Errorf("%s has no description", at)
				}
			}
			walk(at, inner)
		}
		for _, key := range []string{"items", "additionalProperties"} {
			if inner, ok := schema[key].(map[string]any); ok {
				walk(path+"[]", inner)
			}
		}
	}
	root := published(t)
	delete(root["properties"].(map[string]any), "metadata") // a reference to Kubernetes' own
	walk("", root)
	if count < 500 {
		t.Errorf("only %d fields were found: the schema was misread", count)
	}
}

// TestDefaultsAreDescribed holds that each field's text names its default, as kubectl explain
// shows nothing else of it.
func TestDefaultsAreDescribed(t *testing.T) {
	count := 0
	for _, f := range fields(definition(t)) {
		value, ok := f.schema["default"]
		if _, object := value.(map[string]any); !ok || object {
			continue // an object's fields have defaults of their own
		}
		count++
		text, _ := f.schema["description"].(string)
		text = strings.Join(strings.Fields(text), " ")
		if !strings.Contains(text, fmt.Sprint(value)) || !strings.Contains(strings.ToLower(text), "default") {
			t.Errorf("the default of %s is %v; its description does not say so: %s", f.path, value, text)
		}
	}
	if count < 9 {
		t.Errorf("only %d defaults were found", count)
	}
}

// TestExplain asks kubectl what a person asks it.
func TestExplain(t *testing.T) {
	published(t)
	for of, wanted := range map[string][]string{
		"gpuw":                            {"GPUWorkload is a GPU job", "spec: {modelName: llama2, gpuCount: 2}", "-required-"},
		"gpuworkload.spec":                {"modelName", "-required-", "enum: low, medium, high, critical", "From 1 (the default) to 1024", "leastLoaded"},
		"gpuworkload.spec.gpu.minMemory":  {"the least memory of each GPU, for example 40Gi"},
		"gpuworkload.spec.topology.slice": {"{size: 16, level: leaf} keeps ranks 0-15 under one leaf", "parallelism must be a multiple of it"},
		"gpuworkload.status.phase":        {"Pending, Scheduling, Scheduled (every pod is bound)"},
		"gpuworkload.spec.template.spec":  {"containers"},
	} {
		t.Run(of, func(t *testing.T) {
			out := kubectl(t, "explain", of)
			text := strings.Join(strings.Fields(out), " ")
			for _, w := range wanted {
				if !strings.Contains(text, w) {
					t.Errorf("kubectl explain %s does not say %q:\n%s", of, w, out)
				}
			}
		})
	}
}

// TestKubectlGet asks for workloads by the short name, and as part of all.
func TestKubectlGet(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	create(t, c, space, `{metadata: {name: llama}, spec: {modelName: llama2, gpuCount: 2}}`)
	for _, what := range []string{"gpuw", "gpuworkload", "gpuworkloads.gpu.warp.dev", "all"} {
		out := kubectl(t, "get", what, "--namespace", space)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 2 ||
			strings.Join(strings.Fields(lines[0]), " ") != "NAME PHASE MODEL GPUS PODS NODE RETRIES AGE MESSAGE" ||
			!strings.Contains(lines[1], "llama") {
			t.Errorf("kubectl get %s:\n%s", what, out)
		}
	}
}

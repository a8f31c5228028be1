package api

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestIntegersThatDoNotFit writes the first number that the Go type of each integer field
// cannot hold. Let in, it could not be read again, and no list that has it.
func TestIntegersThatDoNotFit(t *testing.T) {
	c := cluster(t)
	u := create(t, c, namespace(t, c), `{spec: {modelName: m}}`)
	tried := 0
	for _, f := range fields(definition(t)) {
		if f.schema["type"] != "integer" {
			continue
		}
		tried++
		t.Run(f.path, func(t *testing.T) {
			tooLarge := map[any]string{"int32": "2147483648", "int64": "9223372036854775808"}[f.schema["format"]]
			if tooLarge == "" {
				t.Fatalf("an integer of format %v: how large may it be?", f.schema["format"])
			}
			changed := u.DeepCopy()
			set(t, changed, at(f.path, tooLarge))
			var err error
			if strings.HasPrefix(f.path, "status.") {
				err = c.Status().Update(t.Context(), changed, client.DryRunAll)
			} else {
				err = c.Update(t.Context(), changed, client.DryRunAll)
			}
			// The server checks a status by itself, and names its fields from there on.
			path := strings.ReplaceAll(strings.TrimPrefix(f.path, "status."), "[]", "[0]")
			if got := sentences(t, err); !strings.Contains(got, path) {
				t.Errorf("%s: %s is answered with: %s", f.path, tooLarge, got)
			}
		})
	}
	if tried < 15 {
		t.Errorf("only %d integers were found", tried)
	}
}

// TestTypes writes values of a wrong type, as YAML makes them of what people write.
func TestTypes(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	for _, test := range []struct{ spec, says string }{
		{`{modelName: 7}`, `spec.modelName: Invalid value: "integer": spec.modelName in body must be of type string: "integer"`},
		{`{modelName: m, gpuCount: two}`, `spec.gpuCount: Invalid value: "string": spec.gpuCount in body must be of type integer: "string"`},
		{`{modelName: m, gpuCount: "2"}`, `spec.gpuCount: Invalid value: "string": spec.gpuCount in body must be of type integer: "string"`},
		{`{modelName: m, suspend: "yes"}`, `spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean: "string"`},
		{`{modelName: m, topology: leaf}`, `spec.topology: Invalid value: "string": spec.topology in body must be of type object: "string"`},
		{`{modelName: m, gpu: {minMemory: [40Gi]}}`, `spec.gpu.minMemory: Invalid value: "array": spec.gpu.minMemory in body must be of type integer,string: "array"`},
	} {
		t.Run(test.spec, func(t *testing.T) {
			err := c.Create(t.Context(), workload(t, space, `{spec: `+test.spec+`}`), client.DryRunAll)
			if got := sentences(t, err); !strings.HasPrefix(got, test.says) {
				t.Errorf("got:  %s\nwant: %s", got, test.says)
			}
		})
	}
}

// TestMisspeltFields holds that a typing error is told and not dropped, at every depth.
func TestMisspeltFields(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	for field, spec := range map[string]string{
		"spec.gpuCont":                            `{modelName: m, gpuCont: 2}`,
		"spec.retryPolicy.retries":                `{modelName: m, retryPolicy: {retries: 2}}`,
		"spec.gpu.model":                          `{modelName: m, gpu: {model: H100}}`,
		"spec.topology.slice.count":               `{modelName: m, topology: {slice: {size: 1, level: leaf, count: 1}}}`,
		"spec.template.spec.containers[0].images": `{modelName: m, template: {spec: {containers: [{name: main, images: i}]}}}`,
	} {
		t.Run(field, func(t *testing.T) {
			err := c.Create(t.Context(), workload(t, space, `{spec: `+spec+`}`), client.DryRunAll, client.FieldValidation("Strict"))
			if err == nil || !strings.Contains(err.Error(), `unknown field "`+field+`"`) {
				t.Errorf("got: %v", err)
			}
		})
	}
}

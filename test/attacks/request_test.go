package attacks

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kinds are those that requests are about, and what each has if a request does not say.
func kinds() map[string]struct{ version, fields string } {
	const container = `{containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}`
	const template = `{metadata: {labels: {app: x}}, spec: ` + container + `}`
	return map[string]struct{ version, fields string }{
		"Pod":         {"v1", `{spec: ` + container + `}`},
		"PodTemplate": {"v1", `{template: ` + template + `}`},
		"Node":        {"v1", `{}`},
		"Namespace":   {"v1", `{}`},
		"Job":         {"batch/v1", `{spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`},
		"CronJob":     {"batch/v1", `{spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}}}}`},
		"Deployment":  {"apps/v1", `{spec: {selector: {matchLabels: {app: x}}, template: ` + template + `}}`},
		"StatefulSet": {"apps/v1", `{spec: {serviceName: x, selector: {matchLabels: {app: x}}, template: ` + template + `}}`},
		"GPUWorkload": {"gpu.warp.dev/v1alpha1", `{spec: {modelName: m}}`},
	}
}

// object reads what a request is about: YAML, over what its kind has anyway.
func object(text string) (*unstructured.Unstructured, error) {
	var edit map[string]any
	if err := yaml.Unmarshal([]byte(text), &edit); err != nil {
		return nil, fmt.Errorf("reading %s: %w", text, err)
	}
	kind, _ := edit["kind"].(string)
	base, ok := kinds()[kind]
	if !ok {
		return nil, fmt.Errorf("there is no kind %q", kind)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(base.fields), &u.Object); err != nil {
		return nil, err
	}
	merge(u.Object, edit)
	u.SetAPIVersion(base.version)
	if u.GetName() == "" {
		u.SetGenerateName("x-")
	}
	return u, nil
}

func merge(into, edit map[string]any) {
	for key, value := range edit {
		inner, ok := value.(map[string]any)
		old, was := into[key].(map[string]any)
		if ok && was {
			merge(old, inner)
		} else {
			into[key] = value
		}
	}
}

// dryCreate tries to create an object, and leaves nothing.
func (w *world) dryCreate(ctx context.Context, who identity, text string) error {
	_, err := w.tryCreate(ctx, who, text)
	return err
}

func (w *world) tryCreate(ctx context.Context, who identity, text string) (*unstructured.Unstructured, error) {
	u, err := object(text)
	if err != nil {
		return nil, err
	}
	c, err := w.client(who)
	if err != nil {
		return nil, err
	}
	return u, c.Create(ctx, u, client.DryRunAll)
}

// tryPatch tries to change an object that is there, and leaves it as it was. Text is a merge patch
// with the kind, the name and, if it has one, the subresource in it.
func (w *world) tryPatch(ctx context.Context, who identity, text string) error {
	var patch map[string]any
	if err := yaml.Unmarshal([]byte(text), &patch); err != nil {
		return fmt.Errorf("reading %s: %w", text, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": patch["metadata"]}}
	kind, _ := patch["kind"].(string)
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(kinds()[kind].version, kind))
	subresource, _ := patch["subresource"].(string)
	delete(patch, "kind")
	delete(patch, "subresource")
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	c, err := w.client(who)
	if err != nil {
		return err
	}
	raw := client.RawPatch(types.MergePatchType, data)
	if subresource != "" {
		return c.SubResource(subresource).Patch(ctx, u, raw, client.DryRunAll)
	}
	return c.Patch(ctx, u, raw, client.DryRunAll)
}

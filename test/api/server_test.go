package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// TestDefaults holds what the server makes of what a user writes.
func TestDefaults(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	for name, test := range map[string]struct{ written, stored string }{
		"the shortest workload": {
			written: `{modelName: m}`,
			stored: `{modelName: m, gpuCount: 1, parallelism: 1, priority: medium, preemptionPolicy: Never, preemptible: true, movable: false,
				restartPolicy: gang, retryPolicy: {maxRetries: 3, backoffSeconds: 30}, suspend: false}`,
		},
		"null is the same as left out": {
			written: `{modelName: m, gpuCount: null, parallelism: null, priority: null, schedulingStrategy: null,
				restartPolicy: null, retryPolicy: null, suspend: null, gpu: null, topology: null, template: null}`,
			stored: `{modelName: m, gpuCount: 1, parallelism: 1, priority: medium, preemptionPolicy: Never, preemptible: true, movable: false,
				restartPolicy: gang, retryPolicy: {maxRetries: 3, backoffSeconds: 30}, suspend: false}`,
		},
		"zero and empty structs are kept, and filled in": {
			written: `{modelName: m, retryPolicy: {maxRetries: 0}, gpu: {}, topology: {}}`,
			stored: `{modelName: m, gpuCount: 1, parallelism: 1, priority: medium, preemptionPolicy: Never, preemptible: true, movable: false,
				restartPolicy: gang, retryPolicy: {maxRetries: 0, backoffSeconds: 30}, suspend: false,
				gpu: {resourceName: nvidia.com/gpu, topologyPreference: none}, topology: {}}`,
		},
		"what is written stays": {
			written: `{modelName: m, gpuCount: 2, parallelism: 4, minParallelism: 2, priority: low, schedulingStrategy: random,
				restartPolicy: member, retryPolicy: {maxRetries: 1, backoffSeconds: 2}, suspend: true,
				gpu: {resourceName: amd.com/gpu, topologyPreference: pcie, minMemory: 40Gi},
				topology: {required: spine, preferred: leaf, slice: {size: 2, level: host}},
				className: a, schedulerName: b, priorityClassName: c, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 9}`,
			stored: `{modelName: m, gpuCount: 2, parallelism: 4, minParallelism: 2, priority: low, preemptionPolicy: Never, preemptible: true, movable: false, schedulingStrategy: random,
				restartPolicy: member, retryPolicy: {maxRetries: 1, backoffSeconds: 2}, suspend: true,
				gpu: {resourceName: amd.com/gpu, topologyPreference: pcie, minMemory: 40Gi},
				topology: {required: spine, preferred: leaf, slice: {size: 2, level: host}},
				className: a, schedulerName: b, priorityClassName: c, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 9}`,
		},
		"the template gets nothing": {
			written: `{modelName: m, template: {spec: {containers: [{name: main}]}}}`,
			stored: `{modelName: m, gpuCount: 1, parallelism: 1, priority: medium, preemptionPolicy: Never, preemptible: true, movable: false,
				restartPolicy: gang, retryPolicy: {maxRetries: 3, backoffSeconds: 30}, suspend: false,
				template: {spec: {containers: [{name: main}]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := workload(t, space, `{spec: `+test.written+`}`)
			if err := c.Create(t.Context(), u, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			// Read as the server's answer is, so that numbers have the same type.
			want := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(`{apiVersion: v1, kind: X, spec: ` + test.stored + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := want.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(u.Object["spec"], want.Object["spec"]) {
				t.Errorf("got:  %v\nwant: %v", u.Object["spec"], want.Object["spec"])
			}
		})
	}
}

// TestGoClients writes a workload as a Go program does: it sends no field that would be
// refused, and none that hides a default.
func TestGoClients(t *testing.T) {
	c := cluster(t)
	w := &gpuv1alpha1.GPUWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t, c), Name: "w"},
		Spec:       gpuv1alpha1.GPUWorkloadSpec{ModelName: "m", GPU: &gpuv1alpha1.GPURequirements{}, Topology: &gpuv1alpha1.TopologyRequirements{}},
	}
	if err := c.Create(t.Context(), w, client.FieldValidation("Strict")); err != nil {
		t.Fatal(err)
	}
	want := gpuv1alpha1.GPUWorkloadSpec{
		ModelName: "m", GPUCount: 1, Parallelism: 1,
		Priority:         gpuv1alpha1.PriorityMedium,
		PreemptionPolicy: gpuv1alpha1.PreemptNever, Preemptible: ptr.To(true),
		RestartPolicy: gpuv1alpha1.RestartGang,
		RetryPolicy:   gpuv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](3), BackoffSeconds: ptr.To[int32](30)},
		GPU:           &gpuv1alpha1.GPURequirements{ResourceName: gpuv1alpha1.DefaultResourceName, TopologyPreference: gpuv1alpha1.TopologyNone},
		Topology:      &gpuv1alpha1.TopologyRequirements{},
	}
	if !equality.Semantic.DeepEqual(w.Spec, want) {
		t.Errorf("got:  %+v\nwant: %+v", w.Spec, want)
	}
	w.Status = gpuv1alpha1.GPUWorkloadStatus{Phase: gpuv1alpha1.PhasePending, NextRetryTime: ptr.To(metav1.Now())}
	if err := c.Status().Update(t.Context(), w, client.FieldValidation("Strict")); err != nil {
		t.Errorf("writing the status: %v", err)
	}
}

// TestStatusIsApart holds that who writes the spec does not touch the status, nor the other
// way round: a user's apply must not undo what the controller noted.
func TestStatusIsApart(t *testing.T) {
	c := cluster(t)
	u := create(t, c, namespace(t, c), `{spec: {modelName: m}, status: {phase: Succeeded}}`)
	expect := func(priority, phase string, generation int64) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		gotPriority, _, _ := unstructured.NestedString(u.Object, "spec", "priority")
		gotPhase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if gotPriority != priority || gotPhase != phase || u.GetGeneration() != generation {
			t.Errorf("priority %q, phase %q, generation %d; want %q, %q, %d", gotPriority, gotPhase, u.GetGeneration(), priority, phase, generation)
		}
	}
	expect("medium", "", 1)

	set(t, u, `{spec: {priority: low}, status: {phase: Running}}`)
	if err := c.Status().Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	expect("medium", "Running", 1)

	set(t, u, `{spec: {priority: high}, status: {phase: Failed}}`)
	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	expect("high", "Running", 2)

	set(t, u, `{status: null}`)
	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	expect("high", "Running", 2)
}

// TestTemplateMetadata holds that labels and annotations reach the pods: a pruned annotation
// would fail nothing and be missed by everybody.
func TestTemplateMetadata(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	create(t, c, space, `{spec: {modelName: m, template: {
		metadata: {labels: {team: research}, annotations: {example.com/note: "a: b"}},
		spec: {containers: [{name: main, image: i}]}}}}`)
	var w gpuv1alpha1.GPUWorkload
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "w"}, &w); err != nil {
		t.Fatal(err)
	}
	if got := w.Spec.Template.Labels; len(got) != 1 || got["team"] != "research" {
		t.Errorf("labels: %v", got)
	}
	if got := w.Spec.Template.Annotations; len(got) != 1 || got["example.com/note"] != "a: b" {
		t.Errorf("annotations: %v", got)
	}
}

// TestColumns asks for the table that kubectl prints.
func TestColumns(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	u := create(t, c, space, `{metadata: {name: llama}, spec: {modelName: llama2, gpuCount: 2, parallelism: 4, priority: high, schedulingStrategy: leastLoaded}}`)
	set(t, u, `{status: {phase: Running, assignedNode: node-1, assignedNodes: [node-1, node-2], retryCount: 1, message: runs on 2 nodes, jobName: llama-0}}`)
	if err := c.Status().Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	table := tableOf(t, space)
	want := []struct {
		column string
		wide   bool
		cell   any
	}{
		{"Name", false, "llama"},
		{"Phase", false, "Running"},
		{"Model", false, "llama2"},
		{"GPUs", false, 2.0},
		{"Pods", false, 4.0},
		{"Node", false, "node-1"},
		{"Retries", false, 1.0},
		{"Age", false, nil},
		{"Message", false, "runs on 2 nodes"},
		{"Priority", true, "high"},
		{"Strategy", true, "leastLoaded"},
		{"Job", true, "llama-0"},
		{"Nodes", true, `["node-1","node-2"]`},
	}
	if len(table.Rows) != 1 || len(table.ColumnDefinitions) != len(want) {
		t.Fatalf("%d rows, columns %v", len(table.Rows), table.ColumnDefinitions)
	}
	for i, w := range want {
		column, cell := table.ColumnDefinitions[i], table.Rows[0].Cells[i]
		if column.Name != w.column || (column.Priority > 0) != w.wide {
			t.Errorf("column %d is %s, priority %d; want %s, wide: %v", i, column.Name, column.Priority, w.column, w.wide)
		}
		if cell != w.cell && w.cell != nil {
			t.Errorf("%s shows %#v, want %#v", column.Name, cell, w.cell)
		}
		if age, ok := cell.(string); w.column == "Age" && (!ok || !strings.HasSuffix(age, "s")) {
			t.Errorf("Age shows %#v, want seconds", cell)
		}
	}
}

// tableOf lists the workloads of a namespace as kubectl get does.
func tableOf(t *testing.T, namespace string) metav1.Table {
	t.Helper()
	r, err := discoveryClient(t).RESTClient().Get().
		AbsPath("/apis", gpuv1alpha1.GroupVersion.Group, gpuv1alpha1.GroupVersion.Version, "namespaces", namespace, "gpuworkloads").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(r, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func discoveryClient(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	config := connect(t)
	config.WarningHandler = rest.NoWarnings{}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestNames holds what a user may call the kind.
func TestNames(t *testing.T) {
	list, err := discoveryClient(t).ServerResourcesForGroupVersion(gpuv1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		served[r.Name] = r
	}
	kinds := map[string]metav1.APIResource{
		"gpuworkloads":      {Kind: "GPUWorkload", SingularName: "gpuworkload", ShortNames: []string{"gpuw"}, Namespaced: true, Categories: []string{"all"}},
		"gpunodes":          {Kind: "GPUNode", SingularName: "gpunode", ShortNames: []string{"gpun"}},
		"placementpolicies": {Kind: "PlacementPolicy", SingularName: "placementpolicy", ShortNames: []string{"ppol"}},
	}
	for name, want := range kinds {
		r := served[name]
		if r.Kind != want.Kind || r.SingularName != want.SingularName || r.Namespaced != want.Namespaced || !slices.Equal(r.ShortNames, want.ShortNames) {
			t.Errorf("got %+v", r)
		}
		// What belongs to the cluster is not among all that a namespace has.
		if !slices.Equal(r.Categories, want.Categories) {
			t.Errorf("%s: categories %v", name, r.Categories)
		}
		if _, ok := served[name+"/status"]; !ok {
			t.Errorf("%s has no status of its own", name)
		}
	}
	if len(served) != 2*len(kinds) {
		t.Errorf("served: %v", served)
	}
}

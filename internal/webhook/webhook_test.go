package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// classes knows PriorityClass "there".
type classes struct{ client.Reader }

func (classes) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if key.Name == "there" {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "priorityclasses"}, key.Name)
}

// start returns the handlers as the server has them, and the clock that they go by.
func start(t testing.TB, limits Limits) (http.Handler, *testingclock.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	mux := http.NewServeMux()
	Register(ctrlwebhook.NewServer(ctrlwebhook.Options{WebhookMux: mux}), Parts{
		Config: Config{
			DefaultImage: "image:1",
			Levels:       []cluster.Level{{Name: "spine", Labels: []string{"s"}}, {Name: "leaf", Labels: []string{"l"}}, {Name: "host", Labels: []string{"h"}}},
			PodScheduler: "gpu-orchestrator",
			Submissions:  limits,
		},
		Scheme: scheme, Strategies: strategies, Priorities: classes{}, Clock: clock,
	})
	return mux, clock
}

// review wraps a request as the API server does.
func review(t testing.TB, r *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	r.UID, r.UserInfo = "u", authenticationv1.UserInfo{Username: "alice"}
	text, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": r})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func post(h http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func answer(t testing.TB, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil {
		t.Fatalf("status %d, no admission response (%v): %s", w.Code, err, w.Body)
	}
	return out.Response
}

func raw(t testing.TB, kind, text string) runtime.RawExtension {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	o["kind"], o["apiVersion"] = kind, "v1"
	if kind == "GPUWorkload" {
		o["apiVersion"] = gpuv1alpha1.GroupVersion.String()
	}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

// workloadRequest asks about a workload; old, if any, is what it was.
func workloadRequest(t testing.TB, spec, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := &admissionv1.AdmissionRequest{
		Namespace: "team-a", Name: "w", Operation: admissionv1.Create,
		Object: raw(t, "GPUWorkload", `{metadata: {name: w, namespace: team-a}, spec: `+spec+`}`),
	}
	r.Resource.Group, r.Resource.Version, r.Resource.Resource = "gpu.warp.dev", "v1alpha1", "gpuworkloads"
	if old != "" {
		r.Operation = admissionv1.Update
		r.OldObject = raw(t, "GPUWorkload", `{metadata: {name: w, namespace: team-a}, spec: `+old+`}`)
	}
	return r
}

func TestWorkloads(t *testing.T) {
	h, _ := start(t, Limits{})
	for name, c := range map[string]struct{ spec, old, refused, warned string }{
		"the shortest":           {spec: `{modelName: m}`},
		"unknown strategy":       {spec: `{modelName: m, schedulingStrategy: best}`, refused: `spec.schedulingStrategy: unknown strategy "best"; registered are`},
		"unknown level":          {spec: `{modelName: m, parallelism: 2, topology: {required: pod}}`, refused: `spec.topology.required: there is no topology level "pod"; this installation knows spine, leaf, host`},
		"another class":          {spec: `{modelName: m, className: other, schedulingStrategy: best}`},
		"two GPU containers":     {spec: `{modelName: m, gpuCount: 1, template: {spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}, {name: b, resources: {requests: {nvidia.com/gpu: 1}}}]}}}`, refused: `containers "a" and "b" both ask for GPUs`},
		"no such amount":         {spec: `{modelName: m, template: {spec: {containers: [{name: a, resources: {limits: {cpu: "5e99"}}}]}}}`, refused: "no machine has"},
		"unreadable":             {spec: `{modelName: m, template: {spec: {containers: [{name: a, ports: [{containerPort: 3000000000}]}]}}}`, refused: "spec.template: it cannot be read as a pod template"},
		"reserved keys":          {spec: `{modelName: m, template: {metadata: {labels: {gpu.warp.dev/attempt: "1"}, annotations: {gpu.warp.dev/planned-node: n1}}, spec: {containers: [{name: a}]}}}`, refused: `spec.template.metadata.annotations: "gpu.warp.dev/planned-node" is for gpu-orchestrator alone to write: take it out; spec.template.metadata.labels: "gpu.warp.dev/attempt"`},
		"gang keys":              {spec: `{modelName: m, template: {metadata: {labels: {gpu.warp.dev/gang: g}}, spec: {containers: [{name: a}]}}}`},
		"no such PriorityClass":  {spec: `{modelName: m, priorityClassName: gold}`, warned: `there is no PriorityClass "gold"`},
		"a PriorityClass":        {spec: `{modelName: m, priorityClassName: there}`},
		"elastic, but not":       {spec: `{modelName: m, parallelism: 4, minParallelism: 4}`, warned: "so the gang is not elastic"},
		"links of one GPU":       {spec: `{modelName: m, gpuCount: 1, gpu: {topologyPreference: nvlink}}`, warned: "a pod has one"},
		"links nobody goes by":   {spec: `{modelName: m, gpuCount: 4, gpu: {topologyPreference: nvlink}}`, warned: "only schedulingStrategy topologyAware"},
		"links":                  {spec: `{modelName: m, gpuCount: 4, schedulingStrategy: topologyAware, gpu: {topologyPreference: nvlink}}`},
		"wider than required":    {spec: `{modelName: m, parallelism: 4, topology: {required: leaf, preferred: spine}}`, warned: "preferring spine changes nothing"},
		"narrower":               {spec: `{modelName: m, parallelism: 4, topology: {required: spine, preferred: leaf}}`},
		"one pod's topology":     {spec: `{modelName: m, topology: {required: leaf}}`, warned: "this workload has one pod"},
		"a machine too large":    {spec: `{modelName: m, gpuCount: 1024}`, warned: "no machine has 1024 GPUs"},
		"gone at once":           {spec: `{modelName: m, ttlSecondsAfterFinished: 0}`, warned: "gone the moment it ends"},
		"foreign gate":           {spec: `{modelName: m, template: {spec: {schedulingGates: [{name: x/y}], containers: [{name: a}]}}}`, warned: `somebody removes "x/y"`},
		"hidden GPUs":            {spec: `{modelName: m, template: {spec: {containers: [{name: a, env: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]}]}}}`, warned: "frees none"},
		"host port":              {spec: `{modelName: m, template: {spec: {containers: [{name: a, ports: [{containerPort: 1, hostPort: 99}]}]}}}`, warned: "host port 99"},
		"AMD by NVIDIA's labels": {spec: `{modelName: m, gpu: {resourceName: amd.com/gpu, product: MI300X}}`, warned: "use template.spec.nodeSelector"},
		"slices in one domain":   {spec: `{modelName: m, parallelism: 4, topology: {required: leaf, slice: {size: 2, level: leaf}}}`, warned: "name a narrower level"},

		"was wrong, is suspended": {spec: `{modelName: m, suspend: true, schedulingStrategy: best}`, old: `{modelName: m, schedulingStrategy: best}`, warned: "unknown strategy"},
		"was wrong, and more":     {spec: `{modelName: m, schedulingStrategy: best, topology: {required: pod}}`, old: `{modelName: m, schedulingStrategy: worst}`, refused: `unknown strategy "best"`},
		"was right":               {spec: `{modelName: m, schedulingStrategy: best}`, old: `{modelName: m}`, refused: "unknown strategy"},
		"spec as it was":          {spec: `{modelName: m, schedulingStrategy: best}`, old: `{modelName: m, schedulingStrategy: best}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := review(t, workloadRequest(t, c.spec, c.old))
			first := post(h, WorkloadPath, body)
			if second := post(h, WorkloadPath, body); second.Body.String() != first.Body.String() {
				t.Errorf("asked again, it says something else: %s and %s", first.Body, second.Body)
			}
			a := answer(t, first)
			switch {
			case a.Allowed != (c.refused == ""):
				t.Errorf("allowed %v: %+v", a.Allowed, a.Result)
			case !a.Allowed && !strings.Contains(a.Result.Message, c.refused):
				t.Errorf("refused with %q, want %q", a.Result.Message, c.refused)
			case !a.Allowed && (a.Result.Code != http.StatusUnprocessableEntity || len(a.Result.Details.Causes) == 0):
				t.Errorf("not told as invalid: %+v", a.Result)
			}
			if got := strings.Join(a.Warnings, "\n"); (got == "") != (c.warned == "") || !strings.Contains(got, c.warned) {
				t.Errorf("warned of %q, want %q", got, c.warned)
			}
			for _, text := range a.Warnings {
				if len(text) > longestWarning {
					t.Errorf("the API server cuts %q", text)
				}
			}
			if len(a.Patch) > 0 {
				t.Errorf("a validator patches: %s", a.Patch)
			}
		})
	}
}

// What is not ours to judge passes: subresources, deletions, other resources.
func TestOthersPass(t *testing.T) {
	h, _ := start(t, Limits{PerSecond: 1, Burst: 1})
	for name, edit := range map[string]func(*admissionv1.AdmissionRequest){
		"status":    func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" },
		"scale":     func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" },
		"deletion":  func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete },
		"connect":   func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect },
		"elsewhere": func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "configmaps" },
	} {
		for range 3 {
			for _, path := range []string{WorkloadPath, PodPath} {
				r := workloadRequest(t, `{modelName: m, schedulingStrategy: best}`, "")
				edit(r)
				if a := answer(t, post(h, path, review(t, r))); !a.Allowed || len(a.Patch) > 0 {
					t.Errorf("%s at %s: %+v", name, path, a)
				}
			}
		}
	}
}

func podRequest(t testing.TB, spec string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := &admissionv1.AdmissionRequest{Namespace: "team-a", Operation: admissionv1.Create, Object: raw(t, "Pod", `{spec: `+spec+`}`)}
	r.Resource.Version, r.Resource.Resource = "v1", "pods"
	return r
}

// f(f(x)) = f(x), and nothing but the scheduler's name is touched.
func TestPods(t *testing.T) {
	h, _ := start(t, Limits{})
	const gpu = `containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]`
	for spec, want := range map[string]string{
		`{` + gpu + `}`: "gpu-orchestrator",
		`{schedulerName: default-scheduler, ` + gpu + `}`:                        "gpu-orchestrator",
		`{schedulerName: gpu-orchestrator, ` + gpu + `}`:                         "gpu-orchestrator",
		`{schedulerName: mine, ` + gpu + `}`:                                     "mine",
		`{nodeName: n1, ` + gpu + `}`:                                            "",
		`{containers: [{name: c}]}`:                                              "",
		`{containers: [{name: c, resources: {limits: {nvidia.com/gpumem: 1}}}]}`: "",
		`{containers: [{name: c}], initContainers: [{name: d, resources: {requests: {nvidia.com/mig-1g.10gb: 1}}}]}`: "gpu-orchestrator",
	} {
		r := podRequest(t, spec)
		for range 2 {
			var before, after corev1.Pod
			patched := apply(t, r.Object.Raw, answer(t, post(h, PodPath, review(t, r))))
			if err := errors.Join(json.Unmarshal(r.Object.Raw, &before), json.Unmarshal(patched, &after)); err != nil {
				t.Fatal(err)
			}
			if after.Spec.SchedulerName != want {
				t.Errorf("%s: scheduler %q, want %q", spec, after.Spec.SchedulerName, want)
			}
			before.Spec.SchedulerName = after.Spec.SchedulerName
			if a, b := fmt.Sprint(before), fmt.Sprint(after); a != b {
				t.Errorf("%s: more than the scheduler changed:\n%s\n%s", spec, a, b)
			}
			r.Object.Raw = patched
		}
		if a := answer(t, post(h, PodPath, review(t, r))); len(a.Patch) > 0 {
			t.Errorf("%s: the second time changes it again: %s", spec, a.Patch)
		}
	}
}

// apply carries out a patch of "add /spec/schedulerName"; there must be no other.
func apply(t *testing.T, object []byte, a *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	if !a.Allowed {
		t.Fatalf("refused: %+v", a.Result)
	}
	if len(a.Patch) == 0 {
		return object
	}
	var ops []struct{ Op, Path, Value string }
	var pod map[string]any
	if err := errors.Join(json.Unmarshal(a.Patch, &ops), json.Unmarshal(object, &pod)); err != nil {
		t.Fatal(err)
	}
	if len(ops) != 1 || ops[0].Op != "add" || ops[0].Path != "/spec/schedulerName" {
		t.Fatalf("patch %s", a.Patch)
	}
	pod["spec"].(map[string]any)["schedulerName"] = ops[0].Value
	out, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSubmissionsAreLimitedByNamespace(t *testing.T) {
	h, clock := start(t, Limits{PerSecond: 2, Burst: 3})
	submit := func(namespace string, dry bool) *admissionv1.AdmissionResponse {
		r := workloadRequest(t, `{modelName: m}`, "")
		r.Namespace, r.DryRun = namespace, ptr.To(dry)
		return answer(t, post(h, WorkloadPath, review(t, r)))
	}
	var got []bool
	for range 10 {
		submit("a", true) // Leaves no trace.
	}
	for range 5 {
		got = append(got, submit("a", false).Allowed)
	}
	if want := []bool{true, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("allowed %v, want %v", got, want)
	}
	refused := submit("a", false)
	if refused.Result.Code != http.StatusTooManyRequests || refused.Result.Details.RetryAfterSeconds != 1 ||
		!strings.Contains(refused.Result.Message, "namespace a submits GPUWorkloads faster than this installation takes them, 2 a second and 3 at once: try again in 1 s") {
		t.Errorf("refused with %+v", refused.Result)
	}
	if !submit("b", false).Allowed {
		t.Error("another namespace pays for it")
	}
	// What is refused is not counted: after half a second there is one more.
	clock.SetTime(clock.Now().Add(500 * time.Millisecond))
	if first, second := submit("a", false).Allowed, submit("a", false).Allowed; !first || second {
		t.Errorf("half a second later: %v, %v", first, second)
	}
}

func TestMemoryOfNamespacesIsBounded(t *testing.T) {
	l := newLimiter(Limits{PerSecond: 1, Burst: 1}, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	for i := range 2 * mostNamespaces {
		l.take(fmt.Sprint(i))
	}
	if n := l.buckets.Len(); n > mostNamespaces {
		t.Errorf("%d namespaces are remembered, at most %d", n, mostNamespaces)
	}
}

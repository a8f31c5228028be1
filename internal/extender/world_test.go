package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// world is a cluster in memory: pods as the API server has them, and a replica of the extender
// that is told of them.
type world struct {
	mu    sync.Mutex
	state *state.State
	pods  map[types.NamespacedName]*corev1.Pod
	// lag has the replica not told of bindings, until show is called.
	lag     bool
	hidden  []*corev1.Pod
	clock   *testclock.FakeClock
	engine  *engine
	handler *handler
	// stale are pods as the replica's cache still has them.
	stale map[types.NamespacedName]*corev1.Pod
	// refuse, if set, is what the API server says to a binding.
	refuse error
}

func newWorld(t testing.TB) *world {
	t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	levels := []cluster.Level{
		{Name: "spine", Labels: []string{gpuv1alpha1.SpineLabel}},
		{Name: "leaf", Labels: []string{gpuv1alpha1.LeafLabel}},
		{Name: "host", Labels: []string{"kubernetes.io/hostname"}},
	}
	w := &world{
		state: state.New(levels, strategies),
		pods:  map[types.NamespacedName]*corev1.Pod{},
		clock: testclock.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
	}
	w.engine = newEngine(w.state, w.clock)
	m, err := telemetry.NewExtender(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.handler = &handler{
		engine: w.engine, cluster: w, metrics: m, log: logr.Discard(),
		ready:   func() error { return nil },
		client:  func(*http.Request, string) error { return nil },
		largest: 1 << 20,
		catchUp: defaultCatchUp,
		room:    semaphore.NewWeighted(2 << 20),
	}
	return w
}

// node adds a node with so many GPUs: "leaf-1/a".
func (w *world) node(leaf, name string, gpus int64, edits ...func(*corev1.Node)) *world {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			gpuv1alpha1.SpineLabel: "s", gpuv1alpha1.LeafLabel: leaf, "kubernetes.io/hostname": name,
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"),
				"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, edit := range edits {
		edit(n)
	}
	w.state.SetNode(n)
	return w
}

// pod adds a pod that asks for so many GPUs; its UID is its name with a prefix.
func (w *world) pod(name string, gpus int64, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	w.state.SetPod(p)
	return p
}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func gang(name string, size int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[gpuv1alpha1.GangLabel], p.Labels[gpuv1alpha1.GangSizeLabel] = name, fmt.Sprint(size)
	}
}

func says(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func inOneLeaf(p *corev1.Pod) { p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "leaf" }

// Seen implements Cluster.
func (w *world) Seen(_ context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	if old, ok := w.stale[key]; ok {
		return old, nil
	}
	return w.Live(context.Background(), key)
}

// Live implements Cluster.
func (w *world) Live(_ context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[key]; ok {
		return p, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
}

// Bind implements Cluster, as the API server does it.
func (w *world) Bind(_ context.Context, b *corev1.Binding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := w.pods[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}]
	switch {
	case w.refuse != nil:
		return w.refuse
	case !ok || pod.UID != b.UID:
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, b.Name, fmt.Errorf("another UID"))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, b.Name, fmt.Errorf("bound already"))
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = b.Target.Name
	w.pods[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = pod
	if w.lag {
		w.hidden = append(w.hidden, pod)
	} else {
		w.state.SetPod(pod)
	}
	return nil
}

// show tells the replica of all bindings that it was not told of.
func (w *world) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.hidden {
		w.state.SetPod(p)
	}
	w.hidden = nil
}

// post asks the handler, and decodes an answer of 200 into result.
func (w *world) post(t testing.TB, verb string, body, result any) (code int, text string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/"+verb, bytes.NewReader(data))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.routes().ServeHTTP(rec, r)
	out, err := io.ReadAll(rec.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(out, result); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
	}
	return rec.Code, string(out)
}

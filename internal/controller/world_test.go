package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// grace is for how many rounds a pod that was deleted still holds its node.
const grace = 2

// world is an API server in memory with what else acts in a cluster: Job controller, garbage
// collector, scheduler and kubelets take one step a round, and the manager looks at every
// workload once. Nothing in it depends on time or chance.
type world struct {
	client.Client
	t     *testing.T
	nodes []string
	order []string
	ends  map[types.UID]int
	now   time.Time

	// killAt is the write at which the manager dies, counted from 1, 0 for never; applied says
	// whether the write is made before it does.
	killAt  int
	moves   bool
	applied bool
	writing sync.Mutex
	writes  int
	made    int
	dead    bool
	process *Reconciler
	known   map[types.UID]bool
	events  chan string
}

var errKilled = errors.New("the process is no more")

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	byLabel := func(o client.Object) []string { return []string{o.GetLabels()[gpuv1alpha1.WorkloadUIDLabel]} }
	w := &world{t: t, nodes: nodes, ends: map[types.UID]int{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), events: make(chan string, 10000)}
	// The tracker that the builder makes itself keeps managed fields, at a third of the time.
	w.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())).
		WithStatusSubresource(&gpuv1alpha1.GPUWorkload{}, &batchv1.Job{}, &corev1.Pod{}).
		WithIndex(&batchv1.Job{}, uidIndex, byLabel).
		WithIndex(&corev1.Pod{}, uidIndex, byLabel).
		WithIndex(&gpuv1alpha1.GPUWorkload{}, victimIndex, victimUIDs).
		Build()
	for _, name := range nodes {
		list := corev1.ResourceList{"pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
		w.must(w.Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
			Status:     corev1.NodeStatus{Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}))
	}
	w.start()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start runs a manager that knows what the API server does and nothing else.
func (w *world) start() {
	w.t.Helper()
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	w.must(err)
	metrics, err := telemetry.New(prometheus.NewRegistry())
	w.must(err)
	counted := interceptor.NewClient(mortal{w.Client}, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.made++
			o.SetUID(types.UID(fmt.Sprintf("made-%d", w.made)))
			return w.write(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return w.write(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
	w.dead, w.known = false, map[types.UID]bool{}
	w.process = &Reconciler{
		config: Config{DefaultImage: "image", BindTimeout: 30 * time.Second, AvoidFor: time.Minute},
		client: counted, live: w.Client,
		state:    state.New([]cluster.Level{{Name: "host", Labels: []string{"kubernetes.io/hostname"}}}, strategies),
		metrics:  metrics,
		recorder: &events.FakeRecorder{Events: w.events},
		clock:    clocktesting.NewFakePassiveClock(w.now),
		beat:     func() {},
		written:  readsItsWrites{},
		waker:    newWaker(func(int) {}), avoid: newAvoidList(), pacer: newPacer(),
	}
	w.process.state.SetReservations(state.Reservations{Max: 4, Patience: 3 * time.Second, MaxWait: time.Hour})
	w.process.state.SetDefragmentation(state.Defragmentation{Enabled: w.moves, MaxMoves: 2, Window: 5 * time.Second}, w.now)
	w.tell()
}

// mortal makes a plain client fit an interceptor; nothing here watches.
type mortal struct{ client.Client }

func (mortal) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.ErrUnsupported
}

// readsItsWrites is for a client without a cache.
type readsItsWrites struct{}

func (readsItsWrites) WroteAt(types.NamespacedName, types.UID, schema.GroupResource, string) {}
func (readsItsWrites) Clear(types.NamespacedName, types.UID)                                 {}
func (readsItsWrites) EnsureReady(types.NamespacedName) error                                { return nil }

// write lets the manager write, unless its time has come.
func (w *world) write(do func() error) error {
	w.writing.Lock() // Gates are opened side by side.
	defer w.writing.Unlock()
	if w.dead {
		return errKilled
	}
	w.writes++
	if w.writes != w.killAt {
		return do()
	}
	w.dead = true
	if w.applied {
		w.must(client.IgnoreNotFound(do()))
	}
	return errKilled
}

// submit creates a workload of whole nodes, unless an edit says otherwise.
func (w *world) submit(name string, priority gpuv1alpha1.WorkloadPriority, pods int32, edits ...func(*gpuv1alpha1.GPUWorkload)) {
	w.t.Helper()
	workload := testWorkload(edits...)
	workload.Name, workload.UID, workload.Generation = name, types.UID("uid-"+name), 1
	workload.CreationTimestamp = metav1.NewTime(w.now)
	workload.Spec.Parallelism, workload.Spec.Priority = pods, priority
	if workload.Spec.GPUCount == 2 {
		workload.Spec.GPUCount = 8
	}
	w.must(w.Create(w.t.Context(), workload))
	w.order = append(w.order, name)
	w.tell()
}

func evicting(w *gpuv1alpha1.GPUWorkload) {
	w.Spec.PreemptionPolicy = gpuv1alpha1.PreemptLowerPriority
}

// get returns a workload, nil if it is gone.
func (w *world) get(name string) *gpuv1alpha1.GPUWorkload {
	w.t.Helper()
	var found gpuv1alpha1.GPUWorkload
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: "team-a", Name: name}, &found)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	w.must(err)
	return &found
}

// edit changes a spec, as the API server would count it.
func (w *world) edit(name string, edit func(*gpuv1alpha1.GPUWorkload)) {
	w.t.Helper()
	workload := w.get(name)
	edit(workload)
	workload.Generation++
	w.must(w.Update(w.t.Context(), workload))
	w.tell()
}

// look has the manager look at one workload, once.
func (w *world) look(name string) {
	w.t.Helper()
	w.process.clock = clocktesting.NewFakePassiveClock(w.now)
	_, err := w.process.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: name}})
	if w.dead {
		w.start()
	} else if err != nil {
		w.t.Fatalf("looking at %s: %v", name, err)
	}
	w.tell()
}

// round has everybody act once.
func (w *world) round() {
	w.t.Helper()
	for _, name := range w.order {
		w.look(name)
	}
	w.process.reserve(w.now)
	w.collect()
	w.makePods()
	w.bind()
	w.judge()
	w.tell()
	w.now = w.now.Add(time.Second)
}

// settle lets rounds pass until nothing changes any more.
func (w *world) settle() {
	w.t.Helper()
	quiet, last := 0, ""
	for range 100 {
		w.round()
		now := w.versions()
		if quiet++; now != last {
			quiet, last = 0, now
		}
		if quiet == 3 {
			return
		}
	}
	w.t.Error("it does not come to rest")
}

// versions changes whenever an object does.
func (w *world) versions() string {
	w.t.Helper()
	var all []string
	for _, list := range []client.ObjectList{&gpuv1alpha1.GPUWorkloadList{}, &batchv1.JobList{}, &corev1.PodList{}} {
		w.must(w.List(w.t.Context(), list))
		w.must(meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			all = append(all, object.GetName()+"@"+object.GetResourceVersion())
			return err
		}))
	}
	return strings.Join(all, " ")
}

func (w *world) pods() []corev1.Pod {
	var list corev1.PodList
	w.must(w.List(w.t.Context(), &list))
	return list.Items
}

// collect is the garbage collector and the kubelets: pods without their Job are deleted, and end
// when their grace period is over.
func (w *world) collect() {
	for _, pod := range w.pods() {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil {
			continue
		}
		err := w.Get(w.t.Context(), types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &batchv1.Job{})
		if err != nil && pod.DeletionTimestamp == nil {
			w.must(w.Delete(w.t.Context(), &pod))
			continue
		}
		if pod.DeletionTimestamp == nil {
			continue
		}
		if w.ends[pod.UID]++; w.ends[pod.UID] > grace || pod.Spec.NodeName == "" {
			pod.Finalizers = nil
			w.must(client.IgnoreNotFound(w.Update(w.t.Context(), &pod)))
		}
	}
}

// makePods is the Job controller.
func (w *world) makePods() {
	var jobs batchv1.JobList
	w.must(w.List(w.t.Context(), &jobs))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		have := map[int32]bool{}
		for _, pod := range w.pods() {
			if rank, ok := state.Rank(&pod); ok && metav1.IsControlledBy(&pod, job) {
				have[rank] = true
			}
		}
		for rank := range *job.Spec.Completions {
			if have[rank] {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.Name, rank)
			pod.UID = types.UID(fmt.Sprintf("%s@%s", pod.Name, job.UID))
			pod.CreationTimestamp = metav1.NewTime(w.now)
			pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
			pod.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(int(rank))
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}
			w.must(w.Create(w.t.Context(), pod))
		}
	}
}

// bind is the scheduler, with the kubelets that start what is bound at once. It never binds what
// does not fit.
func (w *world) bind() {
	for _, pod := range w.pods() {
		node := state.PlannedNode(&pod)
		if pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 || node == "" || pod.DeletionTimestamp != nil {
			continue
		}
		if w.used(node)+gpusOfPod(&pod) > 8 {
			w.t.Errorf("%s was sent to %s, where there is no room", pod.Name, node)
			continue
		}
		pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
		status := pod.Status
		w.must(w.Update(w.t.Context(), &pod))
		pod.Status = status
		w.must(w.Status().Update(w.t.Context(), &pod))
	}
}

func gpusOfPod(pod *corev1.Pod) int64 {
	q := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	return q.Value()
}

func (w *world) used(node string) int64 {
	sum := int64(0)
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == node && !state.Finished(&pod) {
			sum += gpusOfPod(&pod)
		}
	}
	return sum
}

// judge checks what must hold at any time.
func (w *world) judge() {
	w.t.Helper()
	ranks := map[string]string{}
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == "" || state.Finished(&pod) || metav1.GetControllerOf(&pod) == nil {
			continue
		}
		key := pod.Labels[gpuv1alpha1.WorkloadLabel] + "/" + pod.Annotations[batchv1.JobCompletionIndexAnnotation]
		if other := ranks[key]; other != "" {
			w.t.Errorf("%s and %s run at the same time", other, pod.Name)
		}
		ranks[key] = pod.Name
	}
	for _, node := range w.nodes {
		if used := w.used(node); used > 8 {
			w.t.Errorf("%d GPUs of %s are in use", used, node)
		}
	}
}

// tell has the manager's informers catch up.
func (w *world) tell() {
	w.t.Helper()
	s := w.process.state
	var nodes corev1.NodeList
	w.must(w.List(w.t.Context(), &nodes))
	for i := range nodes.Items {
		s.SetNode(&nodes.Items[i])
	}
	var workloads gpuv1alpha1.GPUWorkloadList
	w.must(w.List(w.t.Context(), &workloads))
	for i := range workloads.Items {
		s.SetWorkload(&workloads.Items[i])
	}
	there := map[types.UID]bool{}
	for _, pod := range w.pods() {
		there[pod.UID], w.known[pod.UID] = true, true
		s.SetPod(&pod)
	}
	for uid := range w.known {
		if !there[uid] {
			s.DropPod(uid)
			delete(w.known, uid)
		}
	}
}

// said tells whether an event was told that contains the text.
func (w *world) said(text string) bool {
	var all []string
	for {
		select {
		case e := <-w.events:
			all = append(all, e)
			continue
		default:
		}
		break
	}
	for _, e := range all {
		w.events <- e
	}
	return slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) })
}

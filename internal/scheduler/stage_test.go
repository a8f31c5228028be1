package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// stage plays a kube-scheduler and an API server to the plugin, in a bubble of simulated time: the
// queue with those that PreEnqueue keeps out, the cycle, Permit, and pods that are bound.
type stage struct {
	t      testing.TB
	plugin *Plugin
	handle *fakeHandle
	nodes  map[string]*corev1.Node
	pods   map[types.UID]*corev1.Pod
	// cycles counts scheduling cycles that the plugin refused, by pod.
	refused map[string]int
	said    map[string]string
	// refuses tells whether another plugin refuses the node for the pod, bindFails whether the
	// API server refuses the binding, stalled whether the pod is not popped from the queue.
	refuses   func(pod *corev1.Pod, node string) bool
	bindFails func(pod *corev1.Pod) bool
	stalled   func(pod *corev1.Pod) bool
	made      int
}

// play runs the test in a bubble.
func play(t *testing.T, nodes int, f func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStage(ctx, t)
		for i := range nodes {
			s.addNode(fmt.Sprintf("n%02d", i), fmt.Sprintf("leaf-%d", i/4))
		}
		s.settle()
		f(s)
		cancel()
	})
}

func newStage(ctx context.Context, t testing.TB) *stage {
	s := &stage{
		t: t, nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, refused: map[string]int{}, said: map[string]string{},
		refuses: func(*corev1.Pod, string) bool { return false }, bindFails: func(*corev1.Pod) bool { return false },
		stalled: func(*corev1.Pod) bool { return false },
	}
	s.handle = &fakeHandle{
		factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		queue:   map[types.UID]*queued{}, waiting: map[types.UID]*fakeWaiting{},
	}
	made, err := NewFactory()(ctx, nil, s.handle)
	if err != nil {
		t.Fatal(err)
	}
	s.plugin = made.(*Plugin)
	s.plugin.fed = func() bool { return true }
	s.handle.plugin = s.plugin
	return s
}

func (s *stage) addNode(name, leaf string) {
	list := corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("100"),
		corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("100"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gpuv1alpha1.LeafLabel: leaf}},
		Status: corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
	s.nodes[name] = n
	s.plugin.onNode(n)
}

// cordon takes a node out of service, or back in.
func (s *stage) cordon(name string, out bool) {
	n := s.nodes[name].DeepCopy()
	n.Spec.Unschedulable = out
	s.nodes[name] = n
	s.plugin.onNode(n)
}

func (s *stage) pod(name string, gpus int64) *corev1.Pod {
	s.made++
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("uid-%04d", s.made)), ResourceVersion: "1",
			Labels: map[string]string{}, Annotations: map[string]string{}, CreationTimestamp: metav1.Now(),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}}},
	}
}

func (s *stage) gang(name string, size int, gpus int64) []*corev1.Pod {
	pods := make([]*corev1.Pod, size)
	for i := range pods {
		pods[i] = s.member(name, i, size, gpus)
	}
	return pods
}

func (s *stage) member(gang string, rank, size int, gpus int64) *corev1.Pod {
	p := s.pod(fmt.Sprintf("%s-%d", gang, rank), gpus)
	p.Labels[gpuv1alpha1.GangLabel] = gang
	p.Labels[gpuv1alpha1.GangSizeLabel] = fmt.Sprint(size)
	p.Annotations[gpuv1alpha1.RankAnnotation] = fmt.Sprint(rank)
	return p
}

// add creates pods: the informers and the queue are told.
func (s *stage) add(pods ...*corev1.Pod) {
	for _, p := range pods {
		s.pods[p.UID] = p
		s.plugin.onPod(p)
		s.handle.add(p)
	}
}

// remove deletes a pod, whatever it is doing.
func (s *stage) remove(p *corev1.Pod) {
	delete(s.pods, p.UID)
	s.handle.mu.Lock()
	delete(s.handle.queue, p.UID)
	w := s.handle.waiting[p.UID]
	s.handle.mu.Unlock()
	s.plugin.dropPod(p)
	if w != nil {
		w.Reject(Name, "deleted")
	}
}

// settle runs cycles until nothing is left to do without more time.
func (s *stage) settle() {
	synctest.Wait()
	for range 10000 {
		s.finish()
		p := s.handle.pop(s.stalled)
		if p == nil {
			synctest.Wait()
			if s.finish(); s.handle.idle(s.stalled) {
				return
			}
			continue
		}
		s.cycle(p)
		synctest.Wait()
	}
	s.t.Fatal("the scheduler does not come to rest")
}

// pass lets time go by.
func (s *stage) pass(d time.Duration) {
	<-time.After(d)
	s.settle()
}

// cycle is what kube-scheduler does with a pod that it popped.
func (s *stage) cycle(pod *corev1.Pod) {
	ctx, state := context.Background(), framework.NewCycleState()
	next := framework.NewPodsToActivate()
	state.Write(framework.PodsToActivateKey, next)
	result, status := s.plugin.PreFilter(ctx, state, pod, nil)
	statuses := framework.NewDefaultNodeToStatus()
	node := ""
	switch {
	case status.IsSkip():
		s.t.Fatalf("pod %s is left to the stock plugins, of which there are none here", pod.Name)
	case !status.IsSuccess():
		s.refused[pod.Name]++
		s.said[pod.Name] = status.Message()
		statuses.SetAbsentNodesStatus(status.WithPlugin(Name))
	default:
		node = result.NodeNames.UnsortedList()[0]
		if s.refuses(pod, node) {
			statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable))
			statuses.Set(node, fwk.NewStatus(fwk.Unschedulable).WithPlugin("Other"))
			node = ""
		}
	}
	if node == "" {
		_, _ = s.plugin.PostFilter(ctx, state, pod, statuses)
		s.handle.park(pod)
		return
	}
	if status := s.plugin.Reserve(ctx, state, pod, node); !status.IsSuccess() {
		s.plugin.Unreserve(ctx, state, pod, node)
		s.handle.park(pod)
		return
	}
	status, timeout := s.plugin.Permit(ctx, state, pod, node)
	switch {
	case status.IsWait():
		s.handle.wait(pod, state, node, timeout)
	case !status.IsSuccess():
		s.plugin.Unreserve(ctx, state, pod, node)
		s.handle.park(pod)
		return
	default:
		s.bind(pod, state, node)
	}
	s.handle.Activate(klog.Background(), next.Map)
}

func (s *stage) bind(pod *corev1.Pod, state fwk.CycleState, node string) {
	if _, there := s.pods[pod.UID]; !there || s.bindFails(pod) {
		s.plugin.Unreserve(context.Background(), state, pod, node)
		if there {
			s.handle.park(pod)
		}
		return
	}
	s.plugin.PostBind(context.Background(), state, pod, node)
	bound := pod.DeepCopy()
	bound.Spec.NodeName, bound.ResourceVersion = node, pod.ResourceVersion+"b"
	s.pods[pod.UID] = bound
	s.plugin.onPod(bound)
}

// finish ends the waiting of those who were told to go on, or not to.
func (s *stage) finish() {
	for _, w := range s.handle.done() {
		if w.allowed {
			s.bind(w.pod, w.state, w.node)
			continue
		}
		s.plugin.Unreserve(context.Background(), w.state, w.pod, w.node)
		if _, there := s.pods[w.pod.UID]; there {
			s.handle.park(w.pod)
		}
	}
}

// bound returns the nodes of the pods of a gang, by rank, "" for those without.
func (s *stage) bound(gang string) []string {
	var pods []*corev1.Pod
	for _, p := range s.pods {
		if p.Labels[gpuv1alpha1.GangLabel] == gang {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return rank(a) - rank(b) })
	nodes := []string{}
	for _, p := range pods {
		nodes = append(nodes, p.Spec.NodeName)
	}
	return nodes
}

// held returns how many GPUs State counts as held.
func (s *stage) held() int64 {
	snapshot, held := s.plugin.state.Snapshot(), int64(0)
	for _, n := range snapshot.Nodes() {
		held += n.Used.At(snapshot.Resources.Index("nvidia.com/gpu"))
	}
	return held
}

// queued is a pod that the queue knows.
type queued struct {
	pod    *corev1.Pod
	active bool
	since  time.Time
}

// fakeHandle is the scheduler's queue and the pods that wait in Permit.
type fakeHandle struct {
	fwk.Handle
	factory informers.SharedInformerFactory
	plugin  *Plugin

	mu      sync.Mutex
	queue   map[types.UID]*queued
	waiting map[types.UID]*fakeWaiting
}

func (h *fakeHandle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *fakeHandle) ProfileName() string                                    { return "test" }

func (h *fakeHandle) add(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := &queued{pod: pod, since: time.Now()}
	h.queue[pod.UID] = q
	q.active = h.plugin.PreEnqueue(context.Background(), pod).IsSuccess()
}

// Activate implements fwk.PodActivator.
func (h *fakeHandle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pod := range pods {
		if q := h.queue[pod.UID]; q != nil && !q.active {
			q.active = h.plugin.PreEnqueue(context.Background(), q.pod).IsSuccess()
		}
	}
}

// pop takes the first pod of the queue, nil if there is none.
func (h *fakeHandle) pop(but func(*corev1.Pod) bool) *corev1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first *queued
	for _, q := range h.queue {
		if q.active && !but(q.pod) && (first == nil || h.plugin.Less(info(q), info(first))) {
			first = q
		}
	}
	if first == nil {
		return nil
	}
	delete(h.queue, first.pod.UID)
	return first.pod
}

func info(q *queued) fwk.QueuedPodInfo {
	return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: q.pod}, Timestamp: q.since}
}

func (h *fakeHandle) idle(but func(*corev1.Pod) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.queue {
		if q.active && !but(q.pod) {
			return false
		}
	}
	return true
}

// park puts a pod that was refused back, to wait for news.
func (h *fakeHandle) park(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue[pod.UID] = &queued{pod: pod, since: time.Now()}
}

func (h *fakeHandle) wait(pod *corev1.Pod, state fwk.CycleState, node string, timeout time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &fakeWaiting{handle: h, pod: pod, state: state, node: node}
	w.timer = time.AfterFunc(timeout, func() { w.Reject(Name, "timeout") })
	h.waiting[pod.UID] = w
}

// done takes those whose waiting is over.
func (h *fakeHandle) done() []*fakeWaiting {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*fakeWaiting
	for uid, w := range h.waiting {
		if w.over {
			list = append(list, w)
			delete(h.waiting, uid)
		}
	}
	return list
}

// GetWaitingPod implements fwk.Handle.
func (h *fakeHandle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[uid]; w != nil {
		return w
	}
	return nil
}

// IterateOverWaitingPods implements fwk.Handle.
func (h *fakeHandle) IterateOverWaitingPods(callback func(fwk.WaitingPod)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.waiting {
		callback(w)
	}
}

// fakeWaiting is a pod that waits in Permit. The handle's lock guards it.
type fakeWaiting struct {
	fwk.WaitingPod
	handle        *fakeHandle
	pod           *corev1.Pod
	state         fwk.CycleState
	node          string
	timer         *time.Timer
	over, allowed bool
}

func (w *fakeWaiting) GetPod() *corev1.Pod         { return w.pod }
func (w *fakeWaiting) GetPendingPlugins() []string { return []string{Name} }
func (w *fakeWaiting) Allow(string)                { w.end(true) }
func (w *fakeWaiting) Reject(string, string) bool  { w.end(false); return true }
func (w *fakeWaiting) end(allowed bool) {
	w.handle.mu.Lock()
	defer w.handle.mu.Unlock()
	if !w.over {
		w.over, w.allowed = true, allowed
		w.timer.Stop()
	}
}

var _ frameworkruntime.PluginFactory = NewFactory()

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	// parked are pods that the stock plugins found no place for: they wake them at any news.
	parked []*corev1.Pod
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
		queue:   map[types.UID]*queued{}, recalled: map[types.UID]bool{}, waiting: map[types.UID]*fakeWaiting{},
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
		s.tell(p)
		s.handle.add(p)
	}
}

// tell has the informers take in a pod as it is now.
func (s *stage) tell(p *corev1.Pod) {
	s.pods[p.UID] = p
	if err := s.handle.factory.Core().V1().Pods().Informer().GetStore().Update(p); err != nil {
		s.t.Fatal(err)
	}
	s.plugin.onPod(p)
}

// lose has the informers take in that a pod is gone.
func (s *stage) lose(p *corev1.Pod) {
	delete(s.pods, p.UID)
	if err := s.handle.factory.Core().V1().Pods().Informer().GetStore().Delete(p); err != nil {
		s.t.Fatal(err)
	}
	s.plugin.dropPod(p)
}

// remove deletes a pod, whatever it is doing.
func (s *stage) remove(p *corev1.Pod) {
	s.handle.mu.Lock()
	delete(s.handle.queue, p.UID)
	w := s.handle.waiting[p.UID]
	s.handle.mu.Unlock()
	s.lose(p)
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
	woken := map[string]*corev1.Pod{}
	for _, p := range s.parked {
		woken[p.Name] = p
	}
	s.parked = nil
	s.handle.Activate(klog.Background(), woken)
	s.settle()
}

// stock is what the stock plugins do with a pod that is left to them: any node with room.
func (s *stage) stock(pod *corev1.Pod) string {
	free := map[string]int64{}
	for name, n := range s.nodes {
		if !n.Spec.Unschedulable && !s.refuses(pod, name) {
			free[name] = 8
		}
	}
	take := func(p *corev1.Pod, node string) {
		q := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		free[node] -= q.Value()
	}
	for _, p := range s.pods {
		take(p, p.Spec.NodeName)
	}
	for _, w := range s.handle.waiting {
		take(w.pod, w.node)
	}
	delete(free, "")
	take(pod, "")
	for _, name := range slices.Sorted(maps.Keys(free)) {
		if name != "" && free[name]+free[""] >= 0 {
			return name
		}
	}
	return ""
}

// cycle is what kube-scheduler does with a pod that it popped.
func (s *stage) cycle(pod *corev1.Pod) {
	ctx, state := context.Background(), framework.NewCycleState()
	result, status := s.plugin.PreFilter(ctx, state, pod, nil)
	statuses := framework.NewDefaultNodeToStatus()
	node := ""
	switch {
	case status.IsSkip():
		if node = s.stock(pod); node == "" {
			s.parked = append(s.parked, pod)
		}
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
}

func (s *stage) bind(pod *corev1.Pod, state fwk.CycleState, node string) {
	if _, there := s.pods[pod.UID]; !there || s.bindFails(pod) {
		s.plugin.Unreserve(context.Background(), state, pod, node)
		if there {
			// What fails for no reason of a plugin is tried again after a pause.
			s.handle.park(pod)
			s.parked = append(s.parked, pod)
		}
		return
	}
	s.plugin.PostBind(context.Background(), state, pod, node)
	bound := pod.DeepCopy()
	bound.Spec.NodeName, bound.ResourceVersion = node, pod.ResourceVersion+"b"
	s.tell(bound)
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

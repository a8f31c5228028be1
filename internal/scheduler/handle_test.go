package scheduler

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

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

	mu    sync.Mutex
	queue map[types.UID]*queued
	// recalled are pods that were sent for while they were being scheduled.
	recalled map[types.UID]bool
	waiting  map[types.UID]*fakeWaiting
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
		q := h.queue[pod.UID]
		switch {
		case q == nil:
			h.recalled[pod.UID] = true // It is being scheduled, and comes back at once.
		case !q.active:
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
	delete(h.recalled, first.pod.UID)
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
	q := &queued{pod: pod, since: time.Now()}
	h.queue[pod.UID] = q
	q.active = h.recalled[pod.UID] && h.plugin.PreEnqueue(context.Background(), pod).IsSuccess()
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

package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Priorities in the queue: news about workloads on their way comes before workloads that
// wait, and those come in the order of their own priority.
const (
	queueHeartbeat = 1000
	queueProgress  = 100
	queueStep      = 10
)

// heartbeat is the request that shows that the control loop turns.
func heartbeat() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: "\x00heartbeat"}}
}

// heartbeatEvery is the pause between two heartbeats.
const heartbeatEvery = 5 * time.Second

// debounce gathers the news of one moment: a gang that ends frees its nodes pod by pod.
const debounce = 20 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// waker remembers which workloads wait for room and wakes them when there may be some.
type waker struct {
	report func(waiting int)

	mu      sync.Mutex
	queue   queue
	waiting map[types.NamespacedName]waiting
	// due counts, by priority, the workloads that were woken and not yet looked at.
	due map[int]int
}

// waiting is one workload that waits: its priority, when its message was last written, whether
// it was woken and not yet looked at, and whether it stands in the queue for that. The last two
// differ while a worker is at it: news that comes then must put it into the queue again.
type waiting struct {
	priority    int
	told        time.Time
	due, queued bool
	// never says that it would not fit if nothing ran: only a node can change that.
	never bool
}

func newWaker(report func(waiting int)) *waker {
	return &waker{report: report, waiting: make(map[types.NamespacedName]waiting), due: make(map[int]int)}
}

// start is a source of the controller: it learns the queue and feeds the heartbeat into it.
func (w *waker) start(ctx context.Context, q queue) error {
	w.mu.Lock()
	w.queue = q
	w.mu.Unlock()
	enqueue(q, reservations(), queueProgress, reserveAfter)
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			enqueue(q, heartbeat(), queueHeartbeat, 0)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// wait adds a workload to those that wait.
func (w *waker) wait(key types.NamespacedName, priority int, never bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.waiting[key]
	if e.due && e.priority != priority {
		w.due[e.priority]--
		w.due[priority]++
	}
	e.priority, e.never = priority, never
	w.waiting[key] = e
	w.report(len(w.waiting))
}

// tellEvery is the least time between two messages of a workload that waits for one reason.
const tellEvery = 15 * time.Second

// quiet returns how long a waiting workload has yet to keep its message, 0 if it may tell a
// new one now.
func (w *waker) quiet(key types.NamespacedName, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.waiting[key]
	if left := e.told.Add(tellEvery).Sub(now); left > 0 {
		return left
	}
	e.told = now
	w.waiting[key] = e
	return 0
}

// done takes a workload off those that wait.
func (w *waker) done(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.waiting[key]; ok {
		if e.due {
			w.due[e.priority]--
		}
		delete(w.waiting, key)
		w.report(len(w.waiting))
	}
}

// freed has those looked at again that room can help, the most important first.
func (w *waker) freed() { w.wake(false) }

// better has all looked at again: a node came or changed.
func (w *waker) better() { w.wake(true) }

func (w *waker) wake(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for key, e := range w.waiting {
		if e.never && !all {
			continue
		}
		// With thousands waiting, news by the hundred must not cost a queue operation each.
		if e.queued {
			continue
		}
		e.queued = true
		// What never fits must not keep the others from being planned.
		if !e.due && !e.never {
			e.due = true
			w.due[e.priority]++
		}
		w.waiting[key] = e
		enqueue(w.queue, ctrl.Request{NamespacedName: key}, e.priority, debounce)
	}
	if len(w.waiting) > 0 {
		enqueue(w.queue, reservations(), queueProgress, reserveAfter)
	}
}

// again has one that waits looked at.
func (w *waker) again(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.waiting[key]; ok && w.queue != nil {
		enqueue(w.queue, ctrl.Request{NamespacedName: key}, e.priority, 0)
	}
}

// look notes that a worker begins to look at a workload.
func (w *waker) look(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.waiting[key]; ok {
		e.queued = false
		w.waiting[key] = e
	}
}

// looked notes that a workload was looked at, however that went.
func (w *waker) looked(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle(key)
}

// outranked tells whether a more important workload was woken and not yet looked at. Several
// workers take workloads off the queue at the same time: without this the less important one
// could be planned first and take the room.
func (w *waker) outranked(priority int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, n := range w.due {
		if other > priority && n > 0 {
			return true
		}
	}
	return false
}

// settle takes a workload off those that are due, unless news put it into the queue again while
// it was looked at. The caller holds the lock.
func (w *waker) settle(key types.NamespacedName) {
	if e, ok := w.waiting[key]; ok && e.due && !e.queued {
		e.due = false
		w.due[e.priority]--
		w.waiting[key] = e
	}
}

// enqueue uses the queue's priorities where it has them.
func enqueue(q queue, req ctrl.Request, priority int, after time.Duration) {
	if pq, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, req)
		return
	}
	q.AddAfter(req, after)
}

// priorityOf orders workloads that wait.
func priorityOf(w *gpuv1alpha1.GPUWorkload) int {
	switch w.Spec.Priority {
	case gpuv1alpha1.PriorityCritical:
		return 4 * queueStep
	case gpuv1alpha1.PriorityHigh:
		return 3 * queueStep
	case gpuv1alpha1.PriorityLow:
		return queueStep
	default:
		return 2 * queueStep
	}
}

package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Verb is what is done to a request.
type Verb int

// The verbs. "Before" and "after" are as seen from the API server's store.
const (
	// Fail answers with a status code; the API server never sees the request.
	Fail Verb = iota + 1
	// ResetBefore drops the request before the API server sees it.
	ResetBefore
	// CommitThenLose has the API server carry the request out, and drops the answer.
	CommitThenLose
	// CommitThenFail has it carried out, and answers with a status code all the same.
	CommitThenFail
	// Hang never answers and never forwards; it ends when the client gives up.
	Hang
	// Delay forwards the request after a while.
	Delay
	// HoldBefore stops the request before the API server sees it, until the test lets it go.
	HoldBefore
	// HoldAfter has it carried out and keeps the answer back, until the test lets it go.
	HoldAfter
)

// Action is what to do, and how often.
type Action struct {
	Verb Verb
	// Code is the status of Fail and CommitThenFail.
	Code int
	// RetryAfter, in whole seconds, is told with 429 and 503 if it is not 0.
	RetryAfter time.Duration
	// For is how long Delay waits.
	For time.Duration
	// Times is how many requests in a row of the same class it is done to; 0 means 1.
	Times int
	// Connection drops the whole connection, where the verb drops anything, and with it
	// everything else that the client has under way. Else only the request is dropped.
	Connection bool
}

// Faults is what the listeners of one test do, and what they have seen. The zero value forwards
// everything. It may be used by several goroutines.
type Faults struct {
	mu      sync.Mutex
	armed   map[string][]*Armed
	counts  map[string]int
	cut     map[string]bool
	views   map[viewKey]*view
	lists   map[string][]byte
	journal []Record
	follow  []func(Record)
}

// NewFaults returns faults that forward everything.
func NewFaults() *Faults {
	return &Faults{
		armed:  make(map[string][]*Armed),
		counts: make(map[string]int),
		cut:    make(map[string]bool),
		views:  make(map[viewKey]*view),
		lists:  make(map[string][]byte),
	}
}

// Armed is an action that waits for its request.
type Armed struct {
	namespace, point string
	action           Action
	left             int
	class            string
	fired            chan struct{}
	held             chan Held
	let              chan Verdict
	over             chan struct{}
	once             sync.Once
}

// Held is a request that stands still.
type Held struct {
	// Instance is the listener it came through, and so the process that waits for it.
	Instance string
	Point    Point
}

// Verdict is what becomes of a held request.
type Verdict int

const (
	// Forward lets it go on: to the API server if it was held before, to the client if after.
	Forward Verdict = iota + 1
	// Drop drops it.
	Drop
)

// Any is, for Arm, the next write in any namespace whose class begins like the point does.
const Any = "*"

// Arm has an action done to the request with the given point (Point.String) in a namespace;
// namespace "" is for objects that have none. It happens once, or Action.Times in a row.
func (f *Faults) Arm(namespace, point string, action Action) *Armed {
	a := &Armed{
		namespace: namespace, point: point, action: action, left: max(action.Times, 1),
		fired: make(chan struct{}), held: make(chan Held, 1), let: make(chan Verdict, 1),
		over: make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed[namespace] = append(f.armed[namespace], a)
	return a
}

// Disarm takes an action back that was not done yet, and tells whether it had been.
func (f *Faults) Disarm(a *Armed) (done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.armed[a.namespace]
	for i := range list {
		if list[i] == a {
			f.armed[a.namespace] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	select {
	case <-a.fired:
		return true
	default:
		return false
	}
}

// Fired is closed when the action is done for the first time; for a held request, when it is
// held.
func (a *Armed) Fired() <-chan struct{} { return a.fired }

// Held yields the request once it stands still.
func (a *Armed) Held() <-chan Held { return a.held }

// Let decides about a held request. Only the first decision counts.
func (a *Armed) Let(v Verdict) {
	select {
	case a.let <- v:
	default:
	}
}

// Over is closed when a held request stands no longer, for a decision or because its client is
// gone.
func (a *Armed) Over() <-chan struct{} { return a.over }

// await waits for the decision. The client's own end ends the wait only if nothing can be
// forwarded any more without it; a process that is merely stopped keeps its connection.
func (a *Armed) await(ctx context.Context) Verdict {
	defer a.once.Do(func() { close(a.over) })
	select {
	case v := <-a.let:
		return v
	case <-ctx.Done():
		return Drop
	}
}

// meet names a write and returns the action for it, if there is one.
func (f *Faults) meet(namespace string, p Point) (Point, *Armed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := namespace + "\x00" + p.Class()
	f.counts[key]++
	p.Occurrence = f.counts[key]
	name := p.String()
	for _, a := range slices.Concat(f.armed[namespace], f.armed[Any]) {
		again := a.class == p.Class() && a.left > 0
		first := a.class == "" && (a.point == name || a.namespace == Any && strings.HasPrefix(name, a.point))
		if !again && !first {
			continue
		}
		a.left--
		if a.class == "" {
			a.class = p.Class()
			close(a.fired)
		}
		return p, a
	}
	return p, nil
}

// Cut takes an instance's connection to the API server away, or gives it back. What it has under
// way when it is cut, watches included, is dropped with its next byte.
func (f *Faults) Cut(instance string, cut bool) {
	f.mu.Lock()
	f.cut[instance] = cut
	f.mu.Unlock()
	f.wake()
}

func (f *Faults) isCut(instance string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut[instance]
}

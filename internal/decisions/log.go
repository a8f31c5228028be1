package decisions

import (
	"container/list"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reyisjones/gpu-orchestrator/core/explain"
)

// Outcome says in one word how a decision came out.
type Outcome string

// The outcomes.
const (
	Planned   Outcome = "Planned"
	Refused   Outcome = "Refused"
	Undecided Outcome = "Undecided"
	Invalid   Outcome = "Invalid"
	// Evicted and Moved are of workloads that made way for another one's plan.
	Evicted Outcome = "Evicted"
	Moved   Outcome = "Moved"
)

// Decision is one decision about one workload.
type Decision struct {
	// Time is when it was made; Last when the same was decided for the last time, and Count how
	// often. A workload that waits is asked about again and again: that is one entry.
	Time, Last time.Time
	Count      int
	// Workload is a GPUWorkload, a pod or a gang; UID tells it from others of its name.
	Workload types.NamespacedName
	UID      types.UID
	Attempt  int32
	// By says who decided: "planned" or "scheduler".
	By       string
	Outcome  Outcome
	Reason   explain.Reason
	Sentence string
	Strategy string
	// Policy is the PlacementPolicy that was gone by, "" for none.
	Policy string
	// Pods were placed on Nodes nodes, of which FirstNode is that of rank 0.
	Pods, Nodes int
	FirstNode   string
	// Took is how long the engine needed, Generation the snapshot that it was asked about.
	Took       time.Duration
	Generation uint64
	// Victims are the workloads that make way, For is the one that this one makes way for.
	Victims []string
	For     string
}

// same tells whether the two say the same of the same thing, but for the numbers in it.
func (d *Decision) same(other *Decision) bool {
	return d.Outcome == other.Outcome && d.Reason == other.Reason && d.Attempt == other.Attempt &&
		d.Outcome != Planned && d.For == other.For
}

// size is about what the entry takes of memory.
func (d *Decision) size() int {
	const fixed = 400 // The struct, its place in the list and in the index.
	n := fixed + len(d.Workload.Namespace) + len(d.Workload.Name) + len(d.UID) + len(d.Sentence) + len(d.FirstNode) + len(d.For)
	for _, v := range d.Victims {
		n += 16 + len(v)
	}
	return n
}

// Limits bound what is remembered.
type Limits struct {
	// Count is the most entries, Bytes about the most memory.
	Count, Bytes int
}

// DefaultLimits hold the last 10,000 decisions in at most 8 MiB.
func DefaultLimits() Limits { return Limits{Count: 10000, Bytes: 8 << 20} }

// longest is the most of a sentence that is kept.
const longest = 1024

// Log is what was decided. It is safe for concurrent use.
type Log struct {
	limits Limits
	lines  logr.Logger

	mu sync.Mutex
	// entries are in the order in which they were last renewed, the oldest in front.
	entries *list.List
	latest  map[types.UID]*list.Element
	bytes   int
}

// New returns an empty log, which also writes a line for each new entry to lines.
func New(limits Limits, lines logr.Logger) *Log {
	return &Log{limits: limits, lines: lines, entries: list.New(), latest: map[types.UID]*list.Element{}}
}

// Record takes in a decision. One that says again what was said last of the workload renews that
// entry, and writes no line.
func (l *Log) Record(d Decision) {
	if len(d.Sentence) > longest {
		d.Sentence = d.Sentence[:longest]
	}
	d.Last, d.Count = d.Time, 1
	if l.add(&d) {
		l.lines.Info("decision", "namespace", d.Workload.Namespace, "name", d.Workload.Name, "attempt", d.Attempt, "by", d.By,
			"outcome", d.Outcome, "reason", d.Reason, "sentence", d.Sentence, "strategy", d.Strategy, "policy", d.Policy,
			"pods", d.Pods, "nodes", d.Nodes, "firstNode", d.FirstNode, "took", d.Took.String(), "snapshot", d.Generation,
			"victims", d.Victims, "for", d.For)
	}
}

// add reports whether the entry is a new one.
func (l *Log) add(d *Decision) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.latest[d.UID]; ok {
		if last := entry(e); last.same(d) {
			renewed := *d
			renewed.Time, renewed.Count = last.Time, last.Count+1
			l.bytes += renewed.size() - last.size()
			e.Value = &renewed
			l.entries.MoveToBack(e)
			l.trim()
			return false
		}
	}
	l.latest[d.UID] = l.entries.PushBack(d)
	l.bytes += d.size()
	l.trim()
	return true
}

func (l *Log) trim() {
	for l.entries.Len() > 1 && (l.entries.Len() > l.limits.Count || l.bytes > l.limits.Bytes) {
		e := l.entries.Front()
		d := entry(e)
		l.bytes -= d.size()
		l.entries.Remove(e)
		if l.latest[d.UID] == e {
			delete(l.latest, d.UID)
		}
	}
}

func entry(e *list.Element) *Decision {
	d, ok := e.Value.(*Decision)
	if !ok {
		// The list is this package's own.
		panic("decisions: a foreign entry")
	}
	return d
}

// Query picks entries. What is zero does not narrow.
type Query struct {
	Namespace, Name string
	Outcome         Outcome
	Since           time.Time
	// Limit keeps the last so many.
	Limit int
}

// Find returns the entries that match, the oldest first.
func (l *Log) Find(q Query) []Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Decision
	for e := l.entries.Back(); e != nil; e = e.Prev() {
		d := entry(e)
		if d.Last.Before(q.Since) {
			break // What comes before was renewed earlier.
		}
		if q.Namespace != "" && d.Workload.Namespace != q.Namespace || q.Name != "" && d.Workload.Name != q.Name ||
			q.Outcome != "" && d.Outcome != q.Outcome {
			continue
		}
		found = append(found, *d)
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
	}
	for i, k := 0, len(found)-1; i < k; i, k = i+1, k-1 {
		found[i], found[k] = found[k], found[i]
	}
	return found
}

// Len returns how many entries there are, and about how many bytes they take.
func (l *Log) Len() (entries, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len(), l.bytes
}

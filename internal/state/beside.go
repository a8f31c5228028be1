package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// before returns which of what is held a workload must leave alone, as bits: what is held for
// those that go before it, unless it has almost surely ended when they start.
func (s *State) before(w *gpuv1alpha1.GPUWorkload, ask *Ask) (held uint64) {
	r := &s.reservations
	overdue := !ask.Since.IsZero() && ask.Now.Sub(ask.Since) >= r.limits.MaxWait
	end := Latest(w)
	holds := slices.ContainsFunc(r.held, func(h reserved) bool { return h.uid == w.UID })
	for i := range r.held {
		h := &r.held[i]
		switch {
		case h.uid == w.UID:
			continue
		case holds && slices.Contains(h.Needs, keyOf(w).name):
			// It begins once this one has ended: two that wait for each other would wait for ever.
			continue
		case h.Firm && overdue && ask.Since.Before(h.since):
			continue
		case !h.Firm && (overdue || h.priority < Priority(w)):
			continue
		case !h.Firm && end > 0 && !h.start.IsZero() && !ask.Now.Add(end).After(h.start):
			continue
		}
		held |= 1 << i
	}
	return held
}

// besides returns the cluster as it is for a workload that has to leave the given reservations
// alone. Strict takes what is reserved as in use beside everything that runs; otherwise what has
// to end first counts until it has, and what is reserved from then on: the larger of the two.
func (s *State) besides(held uint64, strict bool) *cluster.Snapshot {
	now := s.current()
	if held == 0 {
		return now
	}
	r := &s.reservations
	if r.base != now || r.beside == nil {
		r.base, r.beside = now, make(map[besideKey]*cluster.Snapshot)
	}
	key := besideKey{held, strict}
	if known, ok := r.beside[key]; ok {
		return known
	}
	var changed []*cluster.Node
	for name := range s.heldNodes(held) {
		if n := now.Node(name); n != nil {
			changed = append(changed, s.reservedNode(n, held, strict))
		}
	}
	// The generation is nobody else's: the next one of the state may look like it and differ.
	s.generation++
	next := now.Next(s.generation, s.resources, changed)
	r.beside[key] = next
	return next
}

// heldNodes are the nodes of the given reservations.
func (s *State) heldNodes(held uint64) map[string]bool {
	nodes := make(map[string]bool)
	for i := range s.reservations.held {
		if held&(1<<i) != 0 {
			for node := range s.reservations.held[i].pods {
				nodes[node] = true
			}
		}
	}
	return nodes
}

func (s *State) reservedNode(n *cluster.Node, held uint64, strict bool) *cluster.Node {
	next := *n
	then := n.Used.Clone()
	ending := make(map[string]bool)
	for i := range s.reservations.held {
		h := &s.reservations.held[i]
		if held&(1<<i) == 0 || h.pods[n.Name] == 0 {
			continue
		}
		for range h.pods[n.Name] {
			then = then.Add(h.use)
		}
		for _, name := range h.Needs {
			ending[name] = true
		}
	}
	if !strict {
		for _, p := range n.Pods {
			if p.Workload != nil && ending[p.Workload.Name] {
				then = then.Sub(p.Use)
			}
		}
	}
	next.Used = n.Used.Clone()
	for i := range then {
		for len(next.Used) <= i {
			next.Used = append(next.Used, 0)
		}
		next.Used[i] = max(next.Used[i], then[i])
	}
	return &next
}

// Latest is in how long a workload has almost surely ended once it starts, 0 if it does not say.
func Latest(w *gpuv1alpha1.GPUWorkload) time.Duration {
	e := estimateOf(w)
	return max(e.P50, e.P90)
}

// estimateOf is how long a workload says that it runs. It is stopped at its deadline.
func estimateOf(w *gpuv1alpha1.GPUWorkload) placement.Estimate {
	var e placement.Estimate
	if d := w.Spec.ExpectedDuration; d != nil {
		e.P50 = d.Duration
	}
	if limit := w.Spec.ActiveDeadlineSeconds; limit != nil {
		e.P90 = time.Duration(min(*limit, int64(maxDeadline/time.Second))) * time.Second
		if e.P50 == 0 || e.P50 > e.P90 {
			e.P50 = e.P90
		}
		if w.Spec.ExpectedDuration != nil {
			// The deadline bounds the estimate and is none itself.
			e.P90 = e.P50
		}
	}
	return e
}

// maxDeadline keeps sums of times within what a Duration holds.
const maxDeadline = 100 * 365 * 24 * time.Hour

// elapsed is how long the workload's pods have run, on average.
func (w *work) elapsed(now time.Time) time.Duration {
	if w.bound == 0 {
		return 0
	}
	return max(0, time.Duration(now.Unix()-w.since/int64(w.bound))*time.Second)
}

// Reservation says for people what is held for a workload: "" if nothing is.
func (s *State) Reservation(uid types.UID, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.reservations.held {
		if h := &s.reservations.held[i]; h.uid == uid {
			return h.words(now)
		}
	}
	return ""
}

func (h *reserved) words(now time.Time) string {
	nodes := fmt.Sprintf("%d nodes", len(h.pods))
	if len(h.pods) == 1 {
		for name := range h.pods {
			nodes = "node " + name
		}
	}
	if h.Domain != "" {
		nodes += " of " + h.Domain
	}
	text := "reserved: " + nodes
	switch left := h.start.Sub(now); {
	case h.start.IsZero():
		text += ", expected once what runs there has ended, which no estimate tells"
	case left <= 0:
		text += ", expected any moment"
	default:
		text += fmt.Sprintf(", expected in %s (%s)", placement.Span(left), h.start.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if len(h.Needs) > 0 {
		text += ", after " + some(h.Needs)
	}
	return text
}

// withheld says that there would be room for a workload if it were not held for others. Sees tells
// whose names may be told, by namespace; nil: all.
func (s *State) withheld(held uint64, now time.Time, sees func(namespace string) bool) string {
	var names []string
	for i := range s.reservations.held {
		if h := &s.reservations.held[i]; held&(1<<i) != 0 {
			name := h.Name
			if sees != nil && !sees(h.key.Namespace) {
				name = h.key.Namespace + "/(hidden)"
			}
			if !h.start.IsZero() {
				name += fmt.Sprintf(" (expected to start in %s)", placement.Span(max(0, h.start.Sub(now))))
			}
			names = append(names, name)
		}
	}
	return fmt.Sprintf("there is room now, but it is held for %s; what says by spec.expectedDuration that it ends before may go first", some(names))
}

// some lists up to three names and says how many more there are.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(slices.Clone(names[:most]), ", "), len(names)-most)
}

package explain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// after makes the cluster that a remedy speaks of, from nothing, by other means than the code
// under test: pod by pod.
func after(s *cluster.Snapshot, r *Remedy) (*cluster.Snapshot, error) {
	leaves := map[*cluster.Pod]bool{}
	comes := map[int][]*cluster.Pod{}
	for _, at := range r.Leave {
		leaves[at.Pod] = true
	}
	for _, m := range r.Moves {
		for _, p := range m.Pods {
			leaves[p.Before.Pod] = true
			comes[p.After.Node] = append(comes[p.After.Node], p.After.Pod)
		}
	}
	found := 0
	var nodes []*cluster.Node
	for i, n := range s.Nodes() {
		m := *n.Machine
		if slices.Contains(r.Mend, n.Name) {
			m.Ready, m.Cordoned, m.Broken = true, false, 0
			m.Taints = slices.DeleteFunc(slices.Clone(m.Taints), func(t cluster.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
		}
		pods := comes[i]
		for _, p := range n.Pods {
			if leaves[p] {
				found++
			} else {
				pods = append(pods, p)
			}
		}
		next := (&cluster.Node{Machine: &m}).With(pods...)
		for k, used := range next.Used {
			if used > m.Allocatable.At(k) {
				return nil, fmt.Errorf("%s would hold %d of resource %d", m.Name, used, k)
			}
		}
		nodes = append(nodes, next)
	}
	if found != len(leaves) {
		return nil, fmt.Errorf("%d of the %d pods that leave are not there", len(leaves)-found, len(leaves))
	}
	return cluster.NewSnapshot(9, s.Levels, s.Resources, nodes), nil
}

// wrong says what is wrong with an answer, "" for nothing.
func wrong(q *Question, a *Explanation) string {
	for i := range a.Remedies {
		r := &a.Remedies[i]
		s, err := after(q.Snapshot, r)
		if err != nil {
			return r.Sentence + ": " + err.Error()
		}
		calm := *q.Request
		calm.Preempts = false
		asked := &calm
		if r.Change != nil {
			if asked, err = r.Change.Apply(s, asked); err != nil {
				return err.Error()
			}
		}
		d, err := placement.Plan(s, asked, placement.Options{})
		if err != nil {
			return err.Error()
		}
		switch {
		case !d.Feasible:
			return fmt.Sprintf("%s: applied, it does not help: %s", r.Sentence, d.Why.Sentence)
		case r.Kind == WaitFor && r.Start.Known && r.Start.In <= 0:
			return r.Sentence + ": it waits for nothing"
		case i > 0 && compare(a.Remedies[i-1], *r) > 0:
			return r.Sentence + ": out of order"
		case (r.Kind == Evict || r.Kind == Preempt) && r.Cost.Evicted != len(r.Leave):
			return r.Sentence + ": costs something else"
		}
	}
	return ""
}

// TestRemediesHelp: each remedy, applied to the snapshot, makes the request feasible.
func TestRemediesHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		a, err := Explain(q)
		if err != nil {
			t.Fatal(err)
		}
		if problem := wrong(q, &a); problem != "" {
			t.Fatal(problem)
		}
		if a.Sentence == "" || a.Verdict == "" || a.Reason == "" {
			t.Fatalf("half an answer: %+v", a)
		}
		if again, err := Explain(q); err != nil || !reflect.DeepEqual(told(a), told(again)) {
			t.Fatalf("asked again: %v %v, before %v", err, told(again), told(a))
		}
		complete(t, q, &a)
	})
}

func told(a Explanation) []string {
	lines := []string{string(a.Verdict), string(a.Reason), a.Sentence, fmt.Sprint(a.Misses)}
	for i := range a.Remedies {
		lines = append(lines, a.Remedies[i].Sentence, fmt.Sprint(a.Remedies[i].Plan.Nodes()))
	}
	return lines
}

// complete checks that a request that would fit without what runs has a remedy that says so.
func complete(t *rapid.T, q *Question, a *Explanation) {
	if a.Decision.Feasible || a.Decision.Undecided {
		return
	}
	var empty []*cluster.Node
	for _, n := range q.Snapshot.Nodes() {
		empty = append(empty, &cluster.Node{Machine: n.Machine, Used: make(cluster.Vector, 4)})
	}
	d, err := placement.Plan(cluster.NewSnapshot(2, q.Snapshot.Levels, q.Snapshot.Resources, empty), &placement.Request{
		Name: q.Request.Name, Strategy: q.Request.Strategy, Groups: q.Request.Groups}, placement.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Kind]bool{}
	for i := range a.Remedies {
		kinds[a.Remedies[i].Kind] = true
	}
	if d.Feasible && (!kinds[WaitFor] || !kinds[Evict] && !kinds[Preempt]) {
		t.Fatalf("it would fit without what runs, and of waiting and asking there is only %v", kinds)
	}
	if kinds[Mend] != (a.Verdict == Broken && a.Reason == NodesOutOfService) {
		t.Fatalf("%s for %s with remedies %v", a.Verdict, a.Reason, kinds)
	}
}

// The property must be able to fail: remedies that nobody tried, and that do a little too little,
// are found.
func TestPropertyFindsRemediesThatDoNotHelp(t *testing.T) {
	for name, spoil := range map[string]func(*Remedy){
		"one pod stays":         func(r *Remedy) { r.Leave = r.Leave[:max(0, len(r.Leave)-1)] },
		"one move is forgotten": func(r *Remedy) { r.Moves = r.Moves[:max(0, len(r.Moves)-1)] },
		"one node is forgotten": func(r *Remedy) { r.Mend = r.Mend[:max(0, len(r.Mend)-1)] },
		"the edit is none": func(r *Remedy) {
			if r.Change != nil && r.Change.Field == "topology.required" {
				r.Change = nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			for round := 0; round < 30 && !found; round++ {
				rapid.Check(t, func(t *rapid.T) {
					if found {
						return
					}
					q := drawQuestion(t)
					a, err := (&explainer{trust: true, spoil: spoil}).explain(q)
					found = err == nil && wrong(q, &a) != ""
				})
			}
			if !found {
				t.Error("the property holds for broken remedies")
			}
		})
	}
}

package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// tally counts what was drawn, for the log of a test.
type tally map[string]int

// judged plans a drawn request and holds the answer against trying everything.
func judged(s *cluster.Snapshot, r *Request, plan planFunc, o Options, count tally) string {
	d, err := plan(s, r, o)
	if err != nil {
		return err.Error()
	}
	count["all"]++
	for _, is := range kindsOf(r) {
		count[is]++
	}
	if d.Feasible {
		count["feasible"]++
		if problem := wrong(s, r, &d); problem != "" {
			return problem
		}
	}
	b := newBrute(s, r)
	if d.Undecided {
		count["undecided"]++
		return ""
	}
	if len(r.Groups) > 1 || len(r.Sets) > 0 {
		if d.Feasible {
			return ""
		}
		sizes := make([]int, len(r.Groups))
		for i := range r.Groups {
			sizes[i] = smallest(&r.Groups[i])
		}
		found, known := b.fits(sizes)
		if !known {
			count["too long to try"]++
		} else if found {
			return fmt.Sprintf("refused (%s, %+v), but it fits: %v", d.Why.Sentence, d.Why.Certificate, b.on)
		}
		return ""
	}
	size, known := b.largest()
	switch {
	case !known:
		count["too long to try"]++
	case d.Feasible && d.Size() != size, !d.Feasible && size > 0:
		return fmt.Sprintf("%d pods placed (%s), %d fit", d.Size(), d.Why.Sentence, size)
	}
	return ""
}

// kindsOf names what is special about a request.
func kindsOf(r *Request) []string {
	kinds := []string{fmt.Sprintf("%d groups", len(r.Groups))}
	add := func(is bool, kind string) {
		if is {
			kinds = append(kinds, kind)
		}
	}
	add(len(r.Sets) == 1, "a set")
	add(len(r.Sets) == 2, "nested sets")
	for i := range r.Groups {
		g := &r.Groups[i]
		add(len(g.Slices) == 1, "groups in slices")
		add(len(g.Slices) == 2, "groups in nested slices")
		add(len(g.Slices) > 0 && g.Count%g.Slices[0].Size > 0, "groups with a short slice")
		add(g.MinCount > 0 && g.MinCount < g.Count, "elastic groups")
		add(g.Limits != nil, "groups with limits")
		add(g.Topology.Required >= 0, "groups with a required level")
		add(g.Mbps > 0, "groups with bandwidth")
		add(g.KeptInSlices, "groups with kept members")
		add(g.Pod.GPUs > 0, "groups with GPUs")
		add(g.Pod.Milli > 0, "groups with shares")
		add(len(g.Pod.MIG) > 0, "groups with MIG instances")
	}
	return kinds
}

func TestOneGroupIsExact(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 1, 7)
	cases(t, 10000, func(t *rapid.T) {
		k.devices = rapid.Bool().Draw(t, "devices")
		s := k.world(t)
		r := k.request(t, s)
		if chance(t, 6, "limited") {
			drawLimits(t, s, &r.Groups[0])
		}
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
}

func TestSeveralGroupsAreExact(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 8, 3, 8)
	cases(t, 6000, func(t *rapid.T) {
		s := k.world(t)
		r := k.request(t, s)
		if chance(t, 6, "limited") {
			drawLimits(t, s, &r.Groups[0])
		}
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
	if u := count["undecided"]; u*50 > count["all"] {
		t.Errorf("%d of %d undecided", u, count["all"])
	}
}

func TestSeveralGroupsWithDevicesAreSound(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 6, 3, 7)
	k.devices = true
	cases(t, 4000, func(t *rapid.T) {
		s := k.world(t)
		r := k.request(t, s)
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
}

// show writes a case for the person who has to understand it.
func show(s *cluster.Snapshot, r *Request) string {
	text := ""
	for _, n := range s.Nodes() {
		text += fmt.Sprintf("\n  %s %q allocatable %v used %v", n.Name, n.Path, n.Allocatable, n.Used)
		if n.Board != nil {
			text += fmt.Sprintf(" GPUs %d taken %v broken %v shares %v instances %+v", n.Board.Count(), n.Taken, n.Broken, n.Shares, n.Instances)
		}
	}
	for i := range r.Groups {
		g := r.Groups[i]
		q := &g.Pod
		text += fmt.Sprintf("\n  group %d: %d (%d) of %v GPUs %d milli %d mig %v include %v at %+v slices %v limits %v kept %v mbps %d",
			i, g.Count, g.MinCount, q.Resources, q.GPUs, q.Milli, q.MIG, q.Include, g.Topology, g.Slices, g.Limits, g.Kept, g.Mbps)
	}
	return text + fmt.Sprintf("\n  sets %+v avoid %v by %s\n", r.Sets, r.Avoid, r.Strategy)
}

package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// drawDeviceMoves draws a cluster of which the inside of the nodes is known, work on it that was
// placed by plans, and a request.
func drawDeviceMoves(t *rapid.T, k *kit, o Options) (*cluster.Snapshot, *Request) {
	s := k.world(t)
	for i := range between(t, 1, 5, "workloads") {
		r := k.request(t, s)
		r.Name = fmt.Sprintf("w%d", i)
		d, err := Plan(s, r, o)
		if err != nil || !d.Feasible {
			continue
		}
		w := &cluster.Workload{Name: r.Name, Movable: true, Level: oneOf(t, "level", -1, -1, leaf), Mbps: int64(between(t, 0, 1, "mbps"))}
		placements := d.Placements(r, w)
		for n, p := range placements {
			shape := &r.Groups[0].Pod
			for g := range r.Groups {
				if r.Groups[g].Name == p.Pod.Group {
					shape = &r.Groups[g].Pod
				}
			}
			p.Pod.Name = fmt.Sprintf("w%d-%d", i, n)
			p.Pod.Needs = &cluster.Needs{Selector: shape.Selector, Tolerations: shape.Tolerations}
		}
		s = putPods(s, placements)
	}
	return s, k.request(t, s)
}

// wrongDevices makes the moves and returns what is given out twice on the way, "" if nothing is.
func wrongDevices(s *cluster.Snapshot, r *Request, m *Moves) string {
	txn := s.Begin()
	for i := range m.Moves {
		if err := m.Moves[i].Make(txn); err != nil {
			return err.Error()
		}
		for _, n := range txn.Snapshot().Nodes() {
			if problem := overlapping(n); problem != "" {
				return problem
			}
		}
	}
	if !m.Feasible {
		return ""
	}
	return wrong(txn.Snapshot(), r, &m.Plan)
}

// overlapping finds instances in use that overlap on one GPU.
func overlapping(n *cluster.Node) string {
	for i, a := range n.Instances {
		for _, b := range n.Instances[:i] {
			if a.Used && b.Used && a.GPU == b.GPU && a.Start < b.Start+b.Size && b.Start < a.Start+a.Size {
				return fmt.Sprintf("%s and %s overlap on %s", a.Profile, b.Profile, n.Name)
			}
		}
	}
	return ""
}

// Whole GPUs, shares, MIG instances and requests of several groups are moved and made room for
// without giving anything out twice.
func TestMovesGiveNoDeviceOutTwice(t *testing.T) {
	k := newKit(t, 5, 2, 5)
	k.devices = true
	o := Options{Strategies: registry(t)}
	drawn, plans, moves := 0, 0, 0
	cases(t, 3000, func(t *rapid.T) {
		drawn++
		s, r := drawDeviceMoves(t, k, o)
		m, err := Defragment(s, r, MoveOptions{Options: o})
		if err != nil {
			t.Fatal(err)
		}
		if problem := wrongDevices(s, r, &m); problem != "" {
			t.Fatal(problem)
		}
		if len(m.Moves) > 0 {
			plans, moves = plans+1, moves+len(m.Moves)
		}
	})
	t.Logf("%d plans with %d moves", plans, moves)
	if plans == 0 && drawn > 1000 {
		t.Error("nothing ever moved")
	}
}

// The property must be able to fail: moves that forget which GPUs are taken are found.
func TestDeviceMovesFindMistakes(t *testing.T) {
	k := newKit(t, 4, 1, 4)
	k.devices, k.plain = true, true
	o, found := Options{Strategies: registry(t)}, false
	until(t, 4000, &found, func(t *rapid.T) {
		s, r := drawDeviceMoves(t, k, o)
		m, err := Defragment(s, r, MoveOptions{Options: o})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Moves {
			for n := range m.Moves[i].Pods {
				p := &m.Moves[i].Pods[n]
				if p.After.Pod.GPUs != 0 {
					p.After.Pod.GPUs = p.Before.Pod.GPUs
				}
			}
		}
		found = wrongDevices(s, r, &m) != ""
	})
	if !found {
		t.Error("the property holds for moves that keep their GPUs' numbers")
	}
}

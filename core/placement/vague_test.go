package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// vagueNode is a machine with 22 GPUs in MIG mode, of which it takes too long to count how many
// pods fit with the profiles that manyOf asks for.
func vagueNode(t testing.TB, name string) *cluster.Node {
	t.Helper()
	g, ok := gpu.GeometryOf("NVIDIA-A100-SXM4-40GB", 40960)
	if !ok {
		t.Fatal("the A100 has no geometry")
	}
	board, err := gpu.NewBoard(gpu.Wiring{Count: 22})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster.Node{Machine: &cluster.Machine{
		Name: name, Ready: true, Path: []string{"s", "l", name}, Board: board, Geometry: g,
		Labels:      map[string]string{"host": name},
		Allocatable: cluster.Vector{1 << 20, 1 << 40, 1 << 20, 22},
	}}
}

// withLow is the node with pods of workloads that may be evicted or move, but have nowhere else
// to go; each takes a unit of its CPU.
func withLow(n *cluster.Node, workloads int) *cluster.Node {
	here := &cluster.Needs{Selector: cluster.Selector{Labels: map[string]string{"host": n.Name}}}
	for i := range workloads {
		w := &cluster.Workload{Name: fmt.Sprintf("low%d", i), Movable: true, Preemptible: true, Level: -1}
		n = n.With(&cluster.Pod{Name: w.Name + "-0", Workload: w, Use: cluster.Vector{1, 0, 1}, Needs: here})
	}
	return n
}

// claimsMoves returns how the answer claims more than is known, "" if it does not.
func claimsMoves(m *Moves) string {
	if m.Feasible || !m.Undecided || m.Certificate != nil || m.LowerBound > 1 {
		return fmt.Sprintf("feasible %v, undecided %v, at least %d moves, %+v", m.Feasible, m.Undecided, m.LowerBound, m.Certificate)
	}
	return ""
}

// manyOf asks for a gang with more pods than can be counted on the node.
func manyOf(count int, edits ...func(*Request)) *Request {
	r := &Request{Name: "test/many", Strategy: "leastLoaded", Groups: []Group{{
		Name: "mig", Count: count, Topology: NoTopology(),
		Pod: Shape{GPUResource: -1, Resources: cluster.Vector{1, 1, 1},
			MIG: []string{"3g.20gb", "4g.20gb", "1g.5gb+me", "7g.40gb", "1g.5gb", "1g.5gb"}},
	}}}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// What does not fit by a count that gave up is not called impossible.
func TestCountsThatGaveUpProveNothing(t *testing.T) {
	n := withLow(vagueNode(t, "n0"), 1)
	s := cluster.NewSnapshot(1, testLevels(), drawnResources(), []*cluster.Node{n})
	fits := counted(t, s, n)
	second := func(r *Request) {
		r.Groups = append(r.Groups, Group{Name: "more", Count: 1, Topology: NoTopology(), Pod: Shape{GPUResource: -1, Resources: cluster.Vector{1, 1, 1}}})
	}
	for name, r := range map[string]*Request{
		"a gang":          manyOf(fits + 1),
		"an elastic gang": manyOf(fits+2, group(func(g *Group) { g.MinCount = fits + 1 })),
		"two groups":      manyOf(fits+1, second),
		"a set": manyOf(fits+1, second, func(r *Request) {
			r.Sets = []Set{{Groups: []int{0, 1}, Topology: Topology{Required: leaf, Preferred: AnyLevel}}}
		}),
		"a gang that may evict": manyOf(fits+1, func(r *Request) { r.Preempts, r.Priority = true, 1 }),
	} {
		d := plan(t, s, r)
		if d.Feasible || !d.Undecided || d.Why.Certificate != nil || d.Why.Never {
			t.Errorf("%s: feasible %v, undecided %v, never %v, %+v", name, d.Feasible, d.Undecided, d.Why.Never, d.Why.Certificate)
		}
		if !strings.Contains(d.Why.Sentence, "not decided: on 1 node counting") {
			t.Errorf("%s: %s", name, d.Why.Sentence)
		}
	}
	if d := plan(t, s, manyOf(fits)); !d.Feasible {
		t.Errorf("%d fit, and are refused: %s", fits, d.Why.Sentence)
	}
}

// Groups of a set each of which fits in a domain, but in none both.
func TestSetsOfCountsThatGaveUpAreUndecided(t *testing.T) {
	n := vagueNode(t, "n0")
	other := &cluster.Node{Machine: &cluster.Machine{
		Name: "n1", Ready: true, Path: []string{"s", "m", "n1"}, Allocatable: cluster.Vector{8, 1 << 40, 110},
		Labels: map[string]string{"zone": "a"},
	}}
	s := cluster.NewSnapshot(1, testLevels(), drawnResources(), []*cluster.Node{n, other})
	r := manyOf(1, func(r *Request) {
		pod := Shape{GPUResource: -1, Resources: cluster.Vector{1, 1, 1}, Selector: cluster.Selector{Labels: map[string]string{"zone": "a"}}}
		r.Groups = append(r.Groups, Group{Name: "cpu", Count: 1, Topology: NoTopology(), Pod: pod})
		r.Sets = []Set{{Groups: []int{0, 1}, Topology: Topology{Required: leaf, Preferred: AnyLevel}}}
	})
	if d := plan(t, s, r); d.Feasible || !d.Undecided || d.Why.Certificate != nil {
		t.Errorf("feasible %v, undecided %v: %s", d.Feasible, d.Undecided, d.Why.Sentence)
	}
}

// counted returns how many pods of manyOf are counted on the node.
func counted(t testing.TB, s *cluster.Snapshot, n *cluster.Node) int {
	t.Helper()
	q := newNeed(&manyOf(1).Groups[0].Pod, s.Resources)
	fits, _, exact := q.fits(n, Fits)
	if exact || fits == 0 {
		t.Fatalf("%d fit, exact %v: choose a harder case", fits, exact)
	}
	return int(fits)
}

// A gang needs as many pods as are counted on one node and two on another, where each workload
// takes the CPU of one. If more fit on the first, no workload needs to move, or only one.
func TestMovesAreNotBoundedByCountsThatGaveUp(t *testing.T) {
	many := vagueNode(t, "n0")
	few, m := *many, *many.Machine
	m.Name, m.Path, m.Labels = "n1", []string{"s", "l", "n1"}, map[string]string{"host": "n1"}
	m.Allocatable = cluster.Vector{2, 1 << 40, 110, 22}
	few.Machine = &m
	s := cluster.NewSnapshot(1, testLevels(), drawnResources(), []*cluster.Node{many, withLow(&few, 2)})
	fits := counted(t, s, many)
	plain := Group{Name: "more", Count: 1, Topology: NoTopology(), Pod: Shape{GPUResource: -1, Resources: cluster.Vector{0, 1, 1}}}
	for name, r := range map[string]*Request{
		"a gang":     manyOf(fits + 2),
		"two groups": manyOf(fits+2, func(r *Request) { r.Groups = append(r.Groups, plain) }),
	} {
		answer, err := Defragment(s, r, MoveOptions{MaxMoves: 1, Options: Options{Strategies: registry(t), Budget: 3}})
		if claim := claimsMoves(&answer); err != nil || claim != "" {
			t.Errorf("%s: %s (%v)", name, claim, err)
		}
	}
}

// Once nothing is left to be counted there, a refusal is a proof again.
func TestCountsAreSureAgain(t *testing.T) {
	o := Options{Strategies: registry(t), Cache: &Cache{}}
	n := vagueNode(t, "n0")
	plain := &cluster.Node{Machine: &cluster.Machine{Name: "a", Ready: true, Path: []string{"s", "a", "a"}, Allocatable: cluster.Vector{8, 1 << 40, 110}}}
	s := cluster.NewSnapshot(1, testLevels(), drawnResources(), []*cluster.Node{plain, n})
	r := manyOf(1000)
	if d, err := Plan(s, r, o); err != nil || !d.Undecided {
		t.Fatalf("undecided %v (%v)", d.Undecided, err)
	}
	cordoned, m := *n, *n.Machine
	m.Cordoned, cordoned.Machine = true, &m
	for _, next := range []*cluster.Snapshot{
		s.Next(2, s.Resources, []*cluster.Node{&cordoned}),
		cluster.NewSnapshot(3, testLevels(), drawnResources(), []*cluster.Node{plain}),
	} {
		if d, err := Plan(next, r, o); err != nil || d.Undecided || d.Why.Certificate == nil {
			t.Errorf("undecided %v, %+v (%v)", d.Undecided, d.Why.Certificate, err)
		}
		if d, err := Plan(s, r, o); err != nil || !d.Undecided {
			t.Fatalf("undecided %v (%v)", d.Undecided, err)
		}
	}
}

package cluster

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// What exactly fits is placed; what is over what a node offers, and was before, keeps out only
// pods that take more of it.
func TestTxnPlacesWhatFits(t *testing.T) {
	for _, c := range []struct {
		name      string
		used, pod Vector
		other     *Pod
		fits      bool
		gpus      gpu.Mask
		milli     int
	}{
		{name: "the last unit", used: Vector{7, 64}, pod: Vector{1}, fits: true},
		{name: "one more than that", used: Vector{7, 64}, pod: Vector{2}},
		{name: "nothing of what is oversold", used: Vector{9, 64}, pod: Vector{0, 0, 1}, fits: true},
		{name: "a unit of what is oversold", used: Vector{9, 64}, pod: Vector{1}},
		{name: "the free part of a GPU", other: &Pod{GPUs: gpu.MaskOf(1), Milli: 700}, gpus: gpu.MaskOf(1), milli: 300, fits: true},
		{name: "more than the free part", other: &Pod{GPUs: gpu.MaskOf(1), Milli: 700}, gpus: gpu.MaskOf(1), milli: 301},
		{name: "1000/1000 of a free GPU", gpus: gpu.MaskOf(1), milli: 1000, fits: true},
		{name: "all of a shared GPU", other: &Pod{GPUs: gpu.MaskOf(1), Milli: 100}, gpus: gpu.MaskOf(1)},
		{name: "all of its neighbour", other: &Pod{GPUs: gpu.MaskOf(1), Milli: 100}, gpus: gpu.MaskOf(2), fits: true},
	} {
		n := drawnFixed(t)
		n.Used = c.used
		if c.other != nil {
			n = n.With(c.other)
		}
		txn := NewSnapshot(1, levels(), NewResources("gpu"), []*Node{n}).Begin()
		err := txn.Place(Placement{Node: 0, Pod: &Pod{Use: c.pod, GPUs: c.gpus, Milli: c.milli}})
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// All thousandths of a GPU are the whole of it.
func TestAllOfAGPUIsAWholeOne(t *testing.T) {
	n := drawnFixed(t).With(&Pod{GPUs: gpu.MaskOf(3), Milli: Full})
	if !n.Taken.Has(3) || n.WholeGPUs().Has(3) || n.FreeShare(3) != 0 {
		t.Errorf("GPU 3 is not taken: %+v", *n)
	}
}

// Reports may contradict each other for a while: nothing becomes negative by that, nor more
// than there is.
func TestNodesOutliveContradictions(t *testing.T) {
	p := &Pod{GPUs: gpu.MaskOf(1), Milli: 300}
	n := drawnFixed(t)
	n.Pods = []*Pod{p} // What it holds was not told.
	if got := n.Without(p).FreeShare(1); got != Full {
		t.Errorf("%d/1000 free", got)
	}
	used := gpu.Instance{GPU: 0, Profile: "3g.40gb", Start: 0, Size: 4, Used: true}
	n = drawnFixed(t)
	n.Instances = []gpu.Instance{used}
	n = n.With(&Pod{Instances: []gpu.Instance{{GPU: 0, Profile: "1g.10gb", Start: 1, Size: 1}}})
	if !slices.Contains(n.Instances, used) {
		t.Errorf("an instance in use is gone: %+v", n.Instances)
	}
}

// Unused instances stay that only touch the new one.
func TestNeighboursDoNotGiveWay(t *testing.T) {
	n := drawnFixed(t)
	for _, start := range []int{0, 4} {
		n.Instances = append(n.Instances, gpu.Instance{GPU: 0, Profile: "2g.20gb", Start: start, Size: 2})
	}
	n.Instances = append(n.Instances, gpu.Instance{GPU: 1, Profile: "2g.20gb", Start: 2, Size: 2})
	n = n.With(&Pod{Instances: []gpu.Instance{{GPU: 0, Profile: "2g.20gb", Start: 2, Size: 2}}})
	if len(n.Instances) != 4 {
		t.Errorf("left: %+v", n.Instances)
	}
}

// Leaves of one name in two spines that follow each other are two.
func TestDomainsOfOneNameAreTwo(t *testing.T) {
	s := NewSnapshot(1, levels(), NewResources(), []*Node{
		node("b", map[string]string{"s": "s2", "l": "x"}), node("a", map[string]string{"s": "s1", "l": "x"}),
	})
	if len(s.Domains(1)) != 2 || s.DomainOf(1, 0) == s.DomainOf(1, 1) {
		t.Errorf("leaves %v", s.Domains(1))
	}
}

// Nodes are in the order of their paths and names, and what is told of domains by position
// agrees with the paths.
func TestDomainsAgreeWithPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]*Node, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			labels := map[string]string{}
			for _, l := range []string{"s", "l"} {
				labels[l] = rapid.SampledFrom([]string{"x", "y", "z", ""}).Draw(t, l)
			}
			nodes[i] = node(fmt.Sprintf("n%d", i), labels)
		}
		s := NewSnapshot(1, levels(), NewResources(), rapid.Permutation(nodes).Draw(t, "order"))
		for i, n := range s.Nodes() {
			if i > 0 && slices.Compare(append(slices.Clone(s.At(i-1).Path), s.At(i-1).Name), append(slices.Clone(n.Path), n.Name)) >= 0 {
				t.Fatalf("%s after %s", n.Name, s.At(i-1).Name)
			}
			for level := range s.Levels {
				d := s.DomainOf(level, i)
				if (d >= 0) != (n.Path[level] != "") || d >= 0 && !s.Domains(level)[d].Holds(i) {
					t.Fatalf("%v is in domain %d of level %d", n.Path, d, level)
				}
			}
		}
		for _, outer := range append(s.Domains(0), s.Whole()) {
			first, end := s.Within(1, outer)
			for k, d := range s.Domains(1) {
				if inside := outer.First <= d.First && d.End <= outer.End; inside != (first <= k && k < end) {
					t.Fatalf("leaf %v within %v: %v", d, outer, inside)
				}
			}
		}
	})
}

// Changed tells of every node that is not the same, and of no other, in clusters of several
// chunks.
func TestChangedIsWhatChanged(t *testing.T) {
	board := newBoard(t)
	rapid.Check(t, func(t *rapid.T) {
		old := drawnWorld(t, board)
		var want []int
		var changed []*Node
		for i, n := range old.Nodes() {
			if rapid.IntRange(0, 20).Draw(t, "changes") == 20 {
				want, changed = append(want, i), append(changed, n.With(&Pod{}))
			}
		}
		var got []int
		old.Next(2, old.Resources, changed).Changed(old, func(i int) { got = append(got, i) })
		if !slices.Equal(got, want) {
			t.Fatalf("told of %v, changed %v", got, want)
		}
	})
}

func TestPathsAreReadFromLabels(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   []string
	}{
		{map[string]string{"s": "s1", "l": "l1"}, []string{"s1", "l1"}},
		{map[string]string{"s": "new", "old/s": "old"}, []string{"new", ""}},
		{map[string]string{"s": " ", "old/s": "old", "l": " l1\t"}, []string{"old", "l1"}},
		{nil, []string{"", ""}},
	} {
		if got := PathOf(levels(), c.labels); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.labels, got, c.want)
		}
	}
}

func TestLevelsThatNobodyCarriesAreNotNamed(t *testing.T) {
	s := NewSnapshot(1, levels(), NewResources(), []*Node{node("a", map[string]string{"l": "l1"})})
	if names := s.CarriedLevels(); !slices.Equal(names, []string{"leaf"}) {
		t.Errorf("carried levels: %v", names)
	}
}

// An uplink that more was promised of than it has is full; one of which nothing is known stays so.
func TestUplinksAreNeverBelowNothing(t *testing.T) {
	s := NewSnapshot(1, levels(), NewResources(), []*Node{
		node("a", map[string]string{"s": "s1"}), node("b", map[string]string{"s": "s2"}), node("c", map[string]string{"s": "s3"}),
	})
	s, err := s.WithUplinks([]Uplink{{Level: 0, Path: []string{"s1"}, Mbps: 5}, {Level: 0, Path: []string{"s3"}, Mbps: 9}})
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{Mbps: 7}
	s = s.Next(2, s.Resources, []*Node{s.At(0).With(&Pod{Workload: w}), s.At(1).With(&Pod{Workload: w})})
	if left := s.UplinksLeft()[0]; !slices.Equal(left, []int64{0, -1, 9}) {
		t.Errorf("left: %v", left)
	}
}

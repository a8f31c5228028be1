package cluster

import (
	"slices"
	"testing"
)

func levels() []Level {
	return []Level{{Name: "spine", Labels: []string{"s", "old/s"}}, {Name: "leaf", Labels: []string{"l"}}}
}

func node(name string, labels map[string]string) *Node {
	return &Node{Machine: &Machine{Name: name, Labels: labels, Path: PathOf(levels(), labels)}}
}

func TestDomainsAreContiguousAndNamed(t *testing.T) {
	s := NewSnapshot(1, levels(), NewResources(), []*Node{
		node("d", map[string]string{"s": "s2", "l": "l1"}),
		node("a", map[string]string{"s": "s1", "l": "l1"}),
		node("e", map[string]string{"s": "s2"}), // no leaf
		node("c", map[string]string{"old/s": "s1", "l": "l2"}),
		node("f", nil), // nowhere
		node("b", map[string]string{"s": "s1", "l": "l1"}),
	})
	got := map[string][]string{}
	for level := range levels() {
		for _, d := range s.Domains(level) {
			name := s.Levels[level].Name + " " + s.DomainName(d)
			for _, n := range s.In(d) {
				got[name] = append(got[name], n.Name)
			}
		}
	}
	// Leaf l1 of spine s2 is not leaf l1 of spine s1, but both are called l1.
	want := map[string][]string{"spine s1": {"a", "b", "c"}, "spine s2": {"e", "d"}, "leaf l1": {"a", "b", "d"}, "leaf l2": {"c"}}
	for name, nodes := range want {
		if !slices.Equal(got[name], nodes) {
			t.Errorf("%s: got %v, want %v", name, got[name], nodes)
		}
	}
	if len(got) != len(want) || len(s.Domains(0)) != 2 || len(s.Domains(1)) != 3 {
		t.Errorf("got %v, %d spines and %d leaves", got, len(s.Domains(0)), len(s.Domains(1)))
	}
	if names := s.CarriedLevels(); !slices.Equal(names, []string{"spine", "leaf"}) {
		t.Errorf("carried levels: %v", names)
	}
}

func TestLevelsAreFoundByNameAndLabel(t *testing.T) {
	s := NewSnapshot(1, levels(), NewResources(), nil)
	for name, want := range map[string]int{"spine": 0, "old/s": 0, "leaf": 1, "l": 1} {
		if got, ok := s.Level(name); !ok || got != want {
			t.Errorf("level %q: %d, %v", name, got, ok)
		}
	}
	if _, ok := s.Level("rack"); ok {
		t.Error("found a level that is not there")
	}
}

func TestNextLeavesTheOldSnapshotAlone(t *testing.T) {
	a, b := node("a", nil), node("b", nil)
	old := NewSnapshot(1, levels(), NewResources("gpu"), []*Node{a, b})
	machine := *b.Machine
	machine.Ready = true
	next := old.Next(2, old.Resources, []*Node{{Machine: &machine}})
	if old.Node("b").Ready || !next.Node("b").Ready || next.Node("a") != a || next.Generation != 2 {
		t.Error("Next changed what it must not, or did not change what it must")
	}
	if old.Node("zzz") != nil || old.IndexOf("zzz") != -1 {
		t.Error("found a node that is not there")
	}
}

func TestResourcesKeepTheirIndexes(t *testing.T) {
	small := NewResources("nvidia.com/gpu")
	large := small.With("amd.com/gpu").With("nvidia.com/gpu")
	if small.Len() != 4 || large.Len() != 5 || small.Index("amd.com/gpu") != -1 {
		t.Errorf("%d, %d entries", small.Len(), large.Len())
	}
	for _, name := range []string{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		if i := small.Index(name); i != large.Index(name) || large.Name(i) != name {
			t.Errorf("%s moved", name)
		}
	}
	if large.Extended(Memory) || !large.Extended(large.Index("amd.com/gpu")) {
		t.Error("memory is not an extended resource, a GPU is")
	}
}

func TestVectorsOfDifferentLength(t *testing.T) {
	v := Vector{1, 2}.Add(Vector{1, 1, 5})
	if !slices.Equal(v, Vector{2, 3, 5}) {
		t.Errorf("sum %v", v)
	}
	if v = v.Sub(Vector{2}); !slices.Equal(v, Vector{0, 3, 5}) {
		t.Errorf("difference %v", v)
	}
	n := &Node{Machine: &Machine{Allocatable: Vector{4, 0, 9}}, Used: Vector{1, 0, 10}}
	for _, c := range []struct {
		pod  Vector
		want int64
	}{{Vector{1}, 3}, {Vector{2}, 1}, {Vector{0, 1}, 0}, {Vector{0, 0, 1}, 0}, {Vector{0, 0, 0, 1}, 0}, {Vector{}, 5}} {
		if got := n.Fits(c.pod, 5); got != c.want {
			t.Errorf("%v fits %d times, want %d", c.pod, got, c.want)
		}
	}
	if got := n.FitsEmpty(Vector{0, 0, 3}, 5); got != 3 {
		t.Errorf("fits %d times on the empty node", got)
	}
}

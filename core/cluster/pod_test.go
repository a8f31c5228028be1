package cluster

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// With and Without undo each other in any order of leaving, as long as no two pods hold one GPU.
func TestWithoutUndoesWith(t *testing.T) {
	board := newBoard(t)
	rapid.Check(t, func(t *rapid.T) {
		empty := drawnNode(t, "a", board)
		n := empty
		var pods []*Pod
		for range rapid.IntRange(1, 6).Draw(t, "pods") {
			p := drawPod(t)
			if checkGPUs(n, []*Pod{p}) == nil {
				pods = append(pods, p)
				n = n.With(p)
			}
		}
		all := n.With()
		for _, p := range rapid.Permutation(pods).Draw(t, "order") {
			n = n.Without(p)
		}
		same := n.Taken == 0 && len(n.Pods) == 0 && !slices.ContainsFunc(n.Used, func(x int64) bool { return x != 0 }) &&
			!slices.ContainsFunc(n.Shares, func(x int16) bool { return x != 0 }) &&
			!slices.ContainsFunc(n.Instances, func(x gpu.Instance) bool { return x.Used })
		if !same {
			t.Fatalf("left over: %+v", *n)
		}
		if again := empty.With(pods...); !reflect.DeepEqual(again.Used, all.Used) || again.Taken != all.Taken ||
			!reflect.DeepEqual(again.Shares, all.Shares) || !reflect.DeepEqual(again.Instances, all.Instances) {
			t.Fatal("together they are not what they are one by one")
		}
	})
}

func TestWithoutIgnoresStrangers(t *testing.T) {
	n := drawnFixed(t).With(&Pod{Name: "mine", Use: Vector{1}, GPUs: gpu.MaskOf(2)})
	if got := n.Without(&Pod{Name: "mine", Use: Vector{1}, GPUs: gpu.MaskOf(2)}); !reflect.DeepEqual(got.Used, n.Used) || got.Taken != n.Taken {
		t.Error("a pod that is not there was taken away")
	}
}

// A new instance takes the place of unused ones that it overlaps, never of one in use.
func TestInstancesGiveWay(t *testing.T) {
	small := gpu.Instance{GPU: 0, Profile: "1g.10gb", Start: 1, Size: 1}
	far := gpu.Instance{GPU: 0, Profile: "1g.10gb", Start: 6, Size: 1}
	n := drawnFixed(t)
	one, two := &Pod{Instances: []gpu.Instance{small}}, &Pod{Instances: []gpu.Instance{far}}
	n = n.With(one, two).Without(one)
	big := &Pod{Instances: []gpu.Instance{{GPU: 0, Profile: "3g.40gb", Start: 0, Size: 4}}}
	n = n.With(big)
	if len(n.Instances) != 2 || !n.Instances[0].Used || !n.Instances[1].Used {
		t.Errorf("got %+v", n.Instances)
	}
	if n = n.Without(big, two); len(n.Instances) != 2 || n.Instances[0].Used || n.Instances[1].Used {
		t.Errorf("got %+v", n.Instances)
	}
}

func drawnFixed(t *testing.T) *Node {
	n := node("a", nil)
	n.Board, n.Allocatable = newBoard(t), Vector{8, 64, 6, 4}
	return n
}

// UplinksLeft agrees with counting, domain by domain and pod by pod.
func TestUplinksLeftAgreesWithCounting(t *testing.T) {
	board := newBoard(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawnWorld(t, board)
		var uplinks []Uplink
		for _, d := range s.Domains(0) {
			uplinks = append(uplinks, Uplink{Level: 0, Path: s.At(d.First).Path[:1], Mbps: 40})
		}
		linked, err := s.WithUplinks(uplinks)
		if err != nil {
			t.Fatal(err)
		}
		works := []*Workload{{Name: "x", Mbps: 7}, {Name: "y", Mbps: 3}, {Name: "z"}}
		on := map[*Workload][]int{}
		for range rapid.IntRange(0, 8).Draw(t, "pods") {
			w, at := rapid.SampledFrom(works).Draw(t, "workload"), rapid.IntRange(0, s.Len()-1).Draw(t, "at")
			on[w] = append(on[w], at)
			linked = linked.Next(2, s.Resources, []*Node{linked.At(at).With(&Pod{Workload: w})})
		}
		for i, d := range s.Domains(0) {
			want := int64(40)
			for w, nodes := range on {
				inside := 0
				for _, at := range nodes {
					if s.At(at).Path[0] == s.At(d.First).Path[0] {
						inside++
					}
				}
				if inside < len(nodes) {
					want -= int64(inside) * w.Mbps
				}
			}
			if got := linked.UplinksLeft()[0][i]; got != max(0, want) {
				t.Fatalf("%d left, counted %d", got, want)
			}
		}
	})
}

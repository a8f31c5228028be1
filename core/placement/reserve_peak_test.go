package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// otherwise is the node with other work on it.
func otherwise(t *rapid.T, n *cluster.Node) *cluster.Node {
	other := *n
	other.Used = slices.Clone(n.Used)
	for i := range other.Used {
		other.Used[i] = int64(between(t, 0, int(min(n.Allocatable.At(i), 1<<30)), "used"))
	}
	if n.Board == nil {
		return &other
	}
	other.Taken = gpu.Mask(between(t, 0, 1<<n.Board.Count()-1, "taken")) &^ n.Broken
	other.Shares = make([]int16, n.Board.Count())
	for i := range other.Shares {
		if !other.Taken.Has(i) {
			other.Shares[i] = oneOf[int16](t, "share", 0, 0, 300, 800)
		}
	}
	other.Instances = slices.Clone(n.Instances)
	for i := range other.Instances {
		other.Instances[i].Used = chance(t, 2, "in use") && !other.Taken.Has(other.Instances[i].GPU)
	}
	return &other
}

// What fits where as much is in use as at either of two times fits at both; a peak that forgets
// something does not hold that.
func TestPeakHasNoMoreRoomThanEither(t *testing.T) {
	forget := func(edit func(n, a *cluster.Node)) func(a, b *cluster.Node) *cluster.Node {
		return func(a, b *cluster.Node) *cluster.Node {
			n := peak(a, b)
			edit(n, a)
			return n
		}
	}
	for name, of := range map[string]func(a, b *cluster.Node) *cluster.Node{
		"whole":             peak,
		"forgets amounts":   forget(func(n, a *cluster.Node) { n.Used = a.Used }),
		"forgets GPUs":      forget(func(n, a *cluster.Node) { n.Taken = a.Taken }),
		"forgets shares":    forget(func(n, a *cluster.Node) { n.Shares = a.Shares }),
		"forgets instances": forget(func(n, a *cluster.Node) { n.Instances = a.Instances }),
	} {
		t.Run(name, func(t *testing.T) {
			// A mistake may take more draws than usual to be seen.
			wrong, roomy := peakIsWrong(t, of)
			for round := 0; round < 30 && !wrong && name != "whole"; round++ {
				wrong, _ = peakIsWrong(t, of)
			}
			if wrong != (name != "whole") || roomy < 300/slowdown {
				t.Errorf("wrong is %v, %d nodes had room", wrong, roomy)
			}
		})
	}
}

func peakIsWrong(t *testing.T, of func(a, b *cluster.Node) *cluster.Node) (wrong bool, roomy int) {
	k := newKit(t, 6, 2, 6)
	k.devices = true
	cases(t, 4000, func(t *rapid.T) {
		s := k.world(t)
		q := newNeed(&k.request(t, s).Groups[0].Pod, s.Resources)
		for _, a := range s.Nodes() {
			b := otherwise(t, a)
			kind := q.filterKind(a.Machine)
			inA, _, _ := q.fits(a, kind)
			inB, _, _ := q.fits(b, kind)
			in, _, _ := q.fits(of(a, b), kind)
			wrong = wrong || in > min(inA, inB)
			if in > 0 {
				roomy++
			}
		}
	})
	return wrong, roomy
}

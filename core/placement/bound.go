package placement

import (
	"math/bits"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// maxKnapsack is the number of GPUs of a node up to which it is worked out how many of them
// pods of the given sizes can use; of larger nodes all free GPUs count as usable.
const maxKnapsack = 63

// usable returns how many GPUs of d pods of the groups can use at most, and how many they ask
// for. It is false where they do not all ask for whole GPUs of one resource.
//
// A node with 7 free GPUs is worth 6 to pods of 3 and of 8: of every node the largest sum of
// sizes counts that is not above what is free. More than the sum of these cannot be placed,
// however the groups are mixed; that is a proof that a search cannot give.
func usable(gangs []*gang, d cluster.Domain) (most, want int64, ok bool) {
	for _, g := range gangs {
		need := &g.view.need
		if !need.whole || need.GPUResource != gangs[0].view.need.GPUResource {
			return 0, 0, false
		}
		want += int64(g.group.Count) * need.GPUs
	}
	if len(gangs) > 64 {
		return 0, 0, false
	}
	worth := map[[2]int64]int64{}
	for i := d.First; i < d.End; i++ {
		free, fit := int64(0), int64(0)
		for k, g := range gangs {
			if g.room.fits[i] > 0 {
				fit |= 1 << k
				free = max(free, g.view.need.freeGPUs(g.s.At(i)))
			}
		}
		if fit == 0 {
			continue
		}
		key := [2]int64{free, fit}
		w, known := worth[key]
		if !known {
			w = knapsack(free, fit, gangs)
			worth[key] = w
		}
		most += w
	}
	return most, want, true
}

// knapsack returns the largest sum, not above free, of any number of pods of the gangs in fit.
func knapsack(free, fit int64, gangs []*gang) int64 {
	if free > maxKnapsack {
		return free
	}
	// Bit n says that n GPUs can be used exactly.
	reach := uint64(1)
	for k, g := range gangs {
		size := g.view.need.GPUs
		if fit&(1<<k) == 0 || size > free {
			continue
		}
		for n := size; n <= free; n += size {
			reach |= reach << size
		}
	}
	reach &= 1<<(free+1) - 1
	return int64(bits.Len64(reach) - 1)
}

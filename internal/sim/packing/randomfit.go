package packing

import (
	"math/rand" //nolint:depguard // it goes on with the numbers that the order was drawn from
)

// randomFit takes any node that fits, and for a share any of its GPUs that has room. The
// published runs drew from a stream that other parts of a scheduler drew from at the same time,
// so that only their means can be found again.
type randomFit struct {
	world *world
	rest  *rand.Rand
	able  []int
}

func (r *randomFit) place(k *kind) (spot, bool, error) {
	r.able = r.able[:0]
	for i := range r.world.nodes {
		if r.world.nodes[i].fits(k) {
			r.able = append(r.able, i)
		}
	}
	if len(r.able) == 0 {
		return spot{}, false, nil
	}
	i := r.able[r.rest.Intn(len(r.able))]
	share := 0
	if k.shares() {
		var able []int
		for g, left := range r.world.nodes[i].left {
			if left >= k.milli {
				able = append(able, g)
			}
		}
		share = able[r.rest.Intn(len(able))]
	}
	return spotOn(r.world, i, k, share), true, nil
}

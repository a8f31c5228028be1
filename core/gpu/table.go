package gpu

import (
	"math/bits"
	"sync"
)

// tableGPUs is the most GPUs of a board for which tables are kept: 2^16 entries of 6 bytes for
// each size that is asked for.
const tableGPUs = 16

// table answers Best for one size k, by the set of free GPUs. A division of a set is the
// choice of the part that holds its lowest GPU, and a division of the rest: so the best
// division of every set follows from those of smaller ones.
type table struct {
	once sync.Once
	k    int
	// sums is the score of the pairs inside a set, best that of the best division of it.
	sums, best []int32
	// choice is the part of the best division that is to be taken.
	choice []uint16
}

// table returns the table of sets of k GPUs, 2 <= k < b.count <= tableGPUs.
func (b *Board) table(k int) *table {
	t := &b.tables[k]
	t.once.Do(func() {
		b.scoreSums.once.Do(func() { b.scoreSums.sums = b.score.sums() })
		t.build(k, b.count, b.scoreSums.sums)
	})
	return t
}

// build fills the table for n GPUs: O(3^n), 0.1 s for 16.
func (t *table) build(k, n int, sums []int32) {
	t.k, t.sums = k, sums
	t.best = make([]int32, len(sums))
	t.choice = make([]uint16, len(sums))
	first := make([]uint16, len(sums)) // the part with the lowest GPU in the best division
	for low := n - 1; low >= 0; low-- {
		t.addLowest(low, n, first)
	}
	for set := range first {
		if bits.OnesCount(uint(set)) < k {
			continue
		}
		part := first[set]
		later := t.choice[set&^int(part)]
		if bits.OnesCount16(part) < k || later != 0 && sums[later] > sums[part] {
			part = later
		}
		t.choice[set] = part
	}
}

// addLowest works out the best division of the sets whose lowest GPU is low; those of the sets
// above it must be known.
func (t *table) addLowest(low, n int, first []uint16) {
	above := uint32(1)<<n - uint32(2)<<low
	for sub := above; ; sub = (sub - 1) & above {
		part := sub | 1<<low
		if size := bits.OnesCount32(part); size <= t.k {
			others := above &^ part
			for rest := others; ; rest = (rest - 1) & others {
				// A smaller part is what is left over: there is one at most.
				if size == t.k || bits.OnesCount32(rest)%t.k == 0 {
					set, sum := part|rest, t.sums[part]+t.best[rest]
					if first[set] == 0 || sum > t.best[set] || sum == t.best[set] && earlier(part, uint32(first[set])) {
						t.best[set], first[set] = sum, uint16(part)
					}
				}
				if rest == 0 {
					break
				}
			}
		}
		if sub == 0 {
			return
		}
	}
}

// earlier tells whether NVIDIA's policy comes to the part a before it comes to the part b: in
// the order of the indexes written in ascending order, where a part that ends comes last.
func earlier(a, b uint32) bool {
	differ := a ^ b
	return a&differ&-differ != 0
}

// with returns the set that holds include in the first of the best divisions of free that have
// one. include is neither empty nor as large as a set.
func (t *table) with(free, include uint32) Mask {
	for {
		value := t.value(free, include)
		low := free & -free
		var found uint32
		others := free &^ low
		left := bits.OnesCount32(free) % t.k
		for sub := others; ; sub = (sub - 1) & others {
			part := sub | low
			size := bits.OnesCount32(part)
			if (size == t.k || size == left) && (found == 0 || earlier(part, found)) &&
				t.sums[part]+t.best[free&^part] >= value {
				switch part & include {
				case include:
					if size == t.k {
						found = part
					}
				case 0:
					if t.sums[part]+t.value(free&^part, include) == value {
						found = part
					}
				}
			}
			if sub == 0 {
				break
			}
		}
		if found&include != 0 {
			return Mask(found)
		}
		free &^= found
	}
}

// value returns the score of the best division of free that has a set with all of include, -1
// if there is none.
func (t *table) value(free, include uint32) int32 {
	best := int32(-1)
	others := free &^ include
	for sub := others; ; sub = (sub - 1) & others {
		if part := sub | include; bits.OnesCount32(part) == t.k {
			best = max(best, t.sums[part]+t.best[free&^part])
		}
		if sub == 0 {
			return best
		}
	}
}

// MostLinks returns the most NVLinks inside any k GPUs of the board; 0 if there are none or
// they are unknown. With more than 16 GPUs it is the most that a greedy search finds.
func (b *Board) MostLinks(k int) int {
	if b.links == nil || k < 2 || k > b.count {
		return 0
	}
	b.most.once.Do(func() { b.most.links = b.links.most() })
	return b.most.links[k]
}

// most returns the largest sum inside any set, by its size.
func (p pairs) most() []int {
	most := make([]int, len(p)+1)
	if len(p) > tableGPUs {
		for seed := range p {
			for k := 2; k <= len(p); k++ {
				sum := p.sum(p.grow(bit(seed), All(len(p)), k))
				most[k] = max(most[k], int(sum))
			}
		}
		return most
	}
	for set, sum := range p.sums() {
		size := bits.OnesCount(uint(set))
		most[size] = max(most[size], int(sum))
	}
	return most
}

package gpu

import "math/bits"

// pairs holds a number for each pair of GPUs: symmetric, 0 on the diagonal.
type pairs [][]int32

func newPairs(n int) pairs {
	p := make(pairs, n)
	cells := make([]int32, n*n)
	for i := range p {
		p[i], cells = cells[:n:n], cells[n:]
	}
	return p
}

// with returns the sum of the pairs of the GPU i with those of the set.
func (p pairs) with(i int, set Mask) int32 {
	var sum int32
	for row := p[i]; set != 0; set &= set - 1 {
		sum += row[bits.TrailingZeros64(uint64(set))]
	}
	return sum
}

// sum returns the sum of the pairs inside the set.
func (p pairs) sum(set Mask) int32 {
	var sum int32
	for ; set != 0; set &= set - 1 {
		sum += p.with(set.Lowest(), set&(set-1))
	}
	return sum
}

// grow adds GPUs of free to the set until it has k: always the one with the largest sum to the
// set, between equals the one with the smallest sum to the rest of free, then the first.
func (p pairs) grow(set, free Mask, k int) Mask {
	for set.Count() < k {
		next := -1
		var gain, loss int32
		for i := range (free &^ set).Each() {
			g, l := p.with(i, set), p.with(i, free&^set)
			if next < 0 || g > gain || g == gain && l < loss {
				next, gain, loss = i, g, l
			}
		}
		set = set.With(next)
	}
	return set
}

// sums returns the sum of the pairs inside each set of the n GPUs, indexed by the set.
func (p pairs) sums() []int32 {
	sums := make([]int32, 1<<len(p))
	for set := 1; set < len(sums); set++ {
		rest := set & (set - 1)
		sums[set] = sums[rest] + p.with(bits.TrailingZeros(uint(set)), Mask(rest))
	}
	return sums
}

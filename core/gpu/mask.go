package gpu

import (
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// MaxGPUs is the most GPUs that a node can have here, as a Mask has a bit for each.
const MaxGPUs = 64

// Mask is a set of GPUs of one node: bit i is the GPU with index i.
type Mask uint64

// All returns the GPUs with index 0 to n-1; n is held between 0 and MaxGPUs.
func All(n int) Mask {
	if n <= 0 {
		return 0
	}
	return ^Mask(0) >> (MaxGPUs - min(n, MaxGPUs))
}

// MaskOf returns the set of the given indexes. Those that no GPU can have are left out.
func MaskOf(indexes ...int) Mask {
	var m Mask
	for _, i := range indexes {
		m = m.With(i)
	}
	return m
}

// Count returns how many GPUs are in the set.
func (m Mask) Count() int { return bits.OnesCount64(uint64(m)) }

// Has tells whether the GPU i is in the set.
func (m Mask) Has(i int) bool { return m&bit(i) != 0 }

// With returns the set and the GPU i.
func (m Mask) With(i int) Mask { return m | bit(i) }

// Without returns the set without the GPU i.
func (m Mask) Without(i int) Mask { return m &^ bit(i) }

// Lowest returns the lowest index in the set, -1 if it is empty.
func (m Mask) Lowest() int {
	if m == 0 {
		return -1
	}
	return bits.TrailingZeros64(uint64(m))
}

// Each walks the indexes in ascending order without allocating.
func (m Mask) Each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; m != 0; m &= m - 1 {
			if !yield(bits.TrailingZeros64(uint64(m))) {
				return
			}
		}
	}
}

// Indexes returns the indexes in ascending order.
func (m Mask) Indexes() []int {
	indexes := make([]int, 0, m.Count())
	for i := range m.Each() {
		indexes = append(indexes, i)
	}
	return indexes
}

// String writes the indexes as "{0,3}".
func (m Mask) String() string {
	var s strings.Builder
	for i := range m.Each() {
		if s.Len() > 0 {
			s.WriteByte(',')
		}
		s.WriteString(strconv.Itoa(i))
	}
	return "{" + s.String() + "}"
}

// bit is the set of one GPU, empty for an index that no GPU can have.
func bit(i int) Mask {
	if i < 0 || i >= MaxGPUs {
		return 0
	}
	return 1 << i
}

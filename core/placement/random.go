package placement

import (
	"hash/fnv"
	"io"
	"math"
)

// Random takes any node that fits, each with the same chance. The choice is a function of the
// request's seed and the node's name, so that it can be repeated.
type Random struct{}

// Name implements Strategy.
func (Random) Name() string { return "random" }

// Score implements Strategy: a number in [0, 1) from a hash of seed, node and how many pods
// of the gang are there already.
func (Random) Score(c Candidate) float64 {
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i] = byte(c.Seed >> (8 * i))
		b[8+i] = byte(uint64(c.Placed) >> (8 * i))
	}
	h.Write(b[:])
	io.WriteString(h, c.Node.Name) //nolint:errcheck // a hash never fails to write
	return float64(mix(h.Sum64())) / math.MaxUint64
}

// mix spreads the weak low bits of FNV over the word (the finalizer of SplitMix64, Steele et
// al. 2014), so that names that differ in one digit do not come out in order.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

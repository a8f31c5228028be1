package placement

import "math"

// Random takes any node that fits, each with the same chance. The choice is a function of the
// request's seed and the node's name, so that it can be repeated.
type Random struct{}

// Name implements Strategy.
func (Random) Name() string { return "random" }

// Score implements Strategy: a number in [0, 1) from a hash of seed, node and how many pods
// of the gang are there already.
func (Random) Score(c *Candidate) float64 {
	h := mix(hashString(c.Node.Name) ^ mix(c.Seed+uint64(c.Placed)))
	return float64(h) / math.MaxUint64
}

// Pick implements Picker. The remainder prefers small numbers by less than 2^-40.
func (Random) Pick(count int, seed uint64) int { return int(mix(seed) % uint64(count)) }

// mix spreads the weak low bits of FNV over the word (the finalizer of SplitMix64, Steele et
// al. 2014), so that names that differ in one digit do not come out in order.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

const fnvPrime = 1099511628211

// hashString is FNV-1a, written out: hash/fnv costs an allocation for every call.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// Seeded implements Seeded: scores of one request say nothing of the next.
func (Random) Seeded() bool { return true }

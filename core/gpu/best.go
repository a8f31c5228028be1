package gpu

// The rule of NVIDIA's best-effort policy (go-gpuallocator, which the Kubernetes device plugin
// asks): among all ways to divide the free GPUs into sets of k, and one of what is left over,
// take the one whose sets are worth most together; of its sets, the one worth most. A single
// job might have found a better set; the next one then finds a worse.

// The worth of a pair, from the same source: 100 a link, and 10 a class of PCIe from SYS (10)
// to one board (60).
const (
	linkScore = 100
	pcieScore = 10
)

// scorePairs fills b.score. Where the PCIe path is unknown but the NUMA nodes are known, the
// path is SYS or at least NODE.
func (b *Board) scorePairs() {
	for i := range b.count {
		for j := range b.count {
			if i == j {
				continue
			}
			b.score[i][j] = pcieScore * int32(b.class(i, j))
			if b.links != nil {
				b.score[i][j] += linkScore * b.links[i][j]
			}
		}
	}
}

// class returns the class of the path between two GPUs, as told or as follows from their NUMA
// nodes.
func (b *Board) class(i, j int) PCIe {
	switch {
	case b.pcie != nil && b.pcie[i][j] != UnknownPCIe:
		return b.pcie[i][j]
	case b.numa == nil || b.numa[i] < 0 || b.numa[j] < 0:
		return UnknownPCIe
	case b.numa[i] == b.numa[j]:
		return NODE
	}
	return SYS
}

// Best returns the k GPUs of free that a well-informed allocator takes, among them all of
// include. It is false if free has fewer than k, or if include is not within free or larger
// than k. Of k = 0 the answer is the empty set.
//
// Up to 16 GPUs the answer is NVIDIA's, also between equals (the lowest indexes). With more, a
// greedy search stands in for the division of all free GPUs: see greedy. A single GPU is the
// one that the others miss least; there NVIDIA takes the first.
func (b *Board) Best(free Mask, k int, include Mask) (Mask, bool) {
	free &= All(b.count)
	switch {
	case k < 0 || free.Count() < k || include&^free != 0 || include.Count() > k:
		return 0, false
	case k == free.Count():
		return free, true
	case k == include.Count():
		return include, true
	case k == 1:
		return b.loneliest(free), true
	case b.count > tableGPUs:
		return b.greedy(free, k, include), true
	}
	t := b.table(k)
	if include == 0 {
		return Mask(t.choice[free]), true
	}
	return t.with(uint32(free), uint32(include)), true
}

// loneliest returns the GPU of free that is worth least to the rest of it.
func (b *Board) loneliest(free Mask) Mask {
	best, least := -1, int32(0)
	for i := range free.Each() {
		if worth := b.score.with(i, free); best < 0 || worth < least {
			best, least = i, worth
		}
	}
	return bit(best)
}

// greedy stands in for the tables of boards with more than 16 GPUs: from every GPU a set is
// grown by the one that is worth most to it, and of these sets the one worth most is taken;
// between equals always the one that the GPUs left behind miss least, then the first. O(n²k).
func (b *Board) greedy(free Mask, k int, include Mask) Mask {
	seeds := free
	if include != 0 {
		seeds = bit(include.Lowest())
	}
	var best Mask
	var inside, outside int32
	for seed := range seeds.Each() {
		set := b.score.grow(include.With(seed), free, k)
		in, out := b.score.sum(set), int32(0)
		for i := range set.Each() {
			out += b.score.with(i, free&^set)
		}
		if best == 0 || in > inside || in == inside && out < outside {
			best, inside, outside = set, in, out
		}
	}
	return best
}

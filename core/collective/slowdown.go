package collective

// Slowdown returns how many times as long an all-reduce of so many bytes takes as at the gang's
// ideal place: 1 is ideal. Own flows must not be among those of others, as for AllReduce.
func (g *Gang) Slowdown(bytes float64, others *Load) float64 {
	ideal := g.Ideal(bytes).Best()
	if ideal <= 0 {
		return 1
	}
	return g.AllReduce(bytes, others).Best() / ideal
}

// Ideal returns the time of the gang at its ideal place. Where it has more ranks on a node than
// the fabric's nodes have GPUs, that is what nodes have.
func (g *Gang) Ideal(bytes float64) Cost { return g.ideal.cost(&g.model.fabric, bytes) }

// IterationSlowdown returns how many times as long an iteration takes whose share commShare, 0 to
// 1, is communication at the ideal place, when that takes allReduceSlowdown times as long and
// nothing else changes: 1-c+c*s, as no communication is hidden behind computation. A share
// outside 0 to 1 counts as the nearer of them.
func IterationSlowdown(commShare, allReduceSlowdown float64) float64 {
	c := min(1, max(0, commShare))
	return 1 - c + c*allReduceSlowdown
}

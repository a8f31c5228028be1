package placement

// LeastLoaded takes the node with the most free GPUs. It spreads work, which keeps nodes cool
// and leaves every node a little fragmented; see docs/strategies.md for when that is wrong.
type LeastLoaded struct{}

// Name implements Strategy.
func (LeastLoaded) Name() string { return "leastLoaded" }

// Score implements Strategy.
func (LeastLoaded) Score(c *Candidate) float64 { return float64(c.FreeGPUs) }

// SpreadsShares implements ShareChooser: a share goes to the emptiest GPU.
func (LeastLoaded) SpreadsShares() bool { return true }

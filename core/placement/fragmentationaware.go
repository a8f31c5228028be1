package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// FragmentationAware takes the node on which the pod makes the fewest idle GPUs useless to the
// work that is expected (Scoring.Mix): fragmentation gradient descent, after FGD (Weng et al.,
// USENIX ATC'23). What it does differently is said at fragmentation.
type FragmentationAware struct{}

// tidiness is what an idle GPU on the chosen node costs, in GPUs: between nodes that are
// nearly equal the fullest wins, and a pod without GPUs goes where none are idle.
const tidiness = 1.25e-3

// Name implements Strategy.
func (FragmentationAware) Name() string { return "fragmentationAware" }

// Score implements Strategy: minus the growth of the node's fragmentation, in GPUs. It is more
// than zero where the pod uses up what was of little use to others.
func (FragmentationAware) Score(c *Candidate) float64 {
	d := c.Scoring.ready()
	var s stock
	s.read(c)
	before := d.fragmentation(&s)
	s.take()
	growth := d.fragmentation(&s) - before
	return -(growth + tidiness*s.idle()) / cluster.Full
}

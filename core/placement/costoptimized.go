package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// CheapNodeLabel marks, with the value "true", the nodes that CostOptimized prefers.
const CheapNodeLabel = "gpu-orchestrator/cheap-node"

// CostOptimized takes the nodes labelled as cheap first, and among equals the one with the
// most free GPUs. Without a cheap node that fits, it is LeastLoaded.
type CostOptimized struct{}

// Name implements Strategy.
func (CostOptimized) Name() string { return "costOptimized" }

// Score implements Strategy. A cheap node outranks any number of free GPUs.
func (s CostOptimized) Score(c *Candidate) float64 {
	score := float64(c.FreeGPUs)
	if s.Prefers(c.Node) {
		score += 1 << 16
	}
	return score
}

// Prefers tells which nodes a gang's domain should have: cheap ones.
func (CostOptimized) Prefers(n *cluster.Node) bool { return n.Labels[CheapNodeLabel] == "true" }

package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// BinPack takes the fullest node that fits: the one with the fewest GPUs left, so that others
// stay whole for pods that need many GPUs of one node. A gang goes into as few nodes, and as
// few domains of every level, as will hold it.
type BinPack struct{}

// Name implements Strategy.
func (BinPack) Name() string { return "binPack" }

// Score implements Strategy: minus the GPUs, and parts of GPUs, that are free once the pod
// runs. Between nodes that are equal to a thousandth of a GPU, what else the pod leaves unused
// decides.
func (BinPack) Score(c *Candidate) float64 {
	var after stock
	after.read(c)
	after.take()
	return resourcesTerm(&after)/1e6 - after.idle()/cluster.Full
}

// Packs implements Packer.
func (BinPack) Packs() bool { return true }

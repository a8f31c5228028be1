package placement

import (
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// The parts of the topology term (requirement document 4, "Topology Scoring Algorithm"): a
// base of 50, and at most so many points more.
const (
	bandwidthPoints = 50 // NVLink: 50 to 100
	oneNUMAPoints   = 20 // NUMA: 50 to 90, with
	latencyPoints   = 20
	oneSwitchPoints = 20 // PCIe: 50 to 80, with
	affinityPoints  = 10
	worstLatency    = float64(gpu.SYS)
	bestLatency     = float64(gpu.PIX)
	latencyOfAClass = latencyPoints / (bestLatency - worstLatency)
	sameNUMA        = gpu.NODE
)

// topologyTerm is how well the GPUs that the pod would get on the node are connected, 50 to
// 100, by what the pod prefers: 50 without a preference, to 100 for NVLink, to 90 for NUMA, to
// 80 for PCIe.
//
// It is neutral, 50, also where there is nothing to compare: for a node of whose inside
// nothing is known, since unknown must not win, and for a pod with one GPU or less, which has
// no pair of GPUs, so that for it no node is better than another.
func topologyTerm(c *Candidate) float64 {
	set, ok := chosenSet(c)
	if !ok {
		return neutral
	}
	switch c.Pod.Prefer {
	case PreferNVLink:
		return neutral + bandwidthPoints*linkShare(c.Node.Board, set)
	case PreferNUMA:
		return neutral + numaPoints(c.Node.Board, set)
	case PreferPCIe:
		return neutral + pciePoints(c.Node.Board, set)
	}
	return neutral
}

// chosenSet returns the GPUs that the device plugin's rule picks for the pod; false if there
// is no set of two or more whose connections are known and asked for.
func chosenSet(c *Candidate) (gpu.Mask, bool) {
	p := c.Pod
	if c.Node.Board == nil || p.Prefer == AnyGPUs || p.GPUs < 2 || p.GPUs > gpu.MaxGPUs ||
		p.Milli > 0 || len(p.MIG) > 0 || !p.namesWhole() {
		return 0, false
	}
	return c.Node.Board.Best(c.Whole, int(p.GPUs), p.Include)
}

// linkShare is the number of NVLinks inside the set as a share of the most that so many GPUs
// of the board can have: 0 to 1; 0 where there are no links or none are known.
func linkShare(b *gpu.Board, set gpu.Mask) float64 {
	most := b.MostLinks(set.Count())
	if most <= 0 {
		return 0
	}
	return within(float64(b.Links(set))/float64(most), 0, 1)
}

// numaPoints is 20 for a set in one NUMA node, and 0 to 20 by the class of its worst path: 5
// more for each class from SYS (0) to PIX; no path between two GPUs is shorter than that.
func numaPoints(b *gpu.Board, set gpu.Mask) float64 {
	points := 0.0
	if numaNodes(b, set) == 1 {
		points = oneNUMAPoints
	}
	if worst := b.WorstPCIe(set); worst != gpu.UnknownPCIe {
		points += within((float64(worst)-worstLatency)*latencyOfAClass, 0, latencyPoints)
	}
	return points
}

// pciePoints is 20 for a set whose paths stay within PCIe switches (PIX, PXB), and up to 10
// by affinity to the CPUs: 10 divided by the number of NUMA nodes, 0 if that is unknown.
func pciePoints(b *gpu.Board, set gpu.Mask) float64 {
	points := 0.0
	if b.WorstPCIe(set) >= gpu.PXB {
		points = oneSwitchPoints
	}
	if nodes := numaNodes(b, set); nodes > 0 {
		points += affinityPoints / float64(nodes)
	}
	return points
}

// numaNodes returns how many NUMA nodes the set is in, 0 if unknown. Paths of class NODE and
// closer do not leave one.
func numaNodes(b *gpu.Board, set gpu.Mask) int {
	if nodes := b.NUMANodes(set); nodes > 0 {
		return nodes
	}
	if b.WorstPCIe(set) >= sameNUMA {
		return 1
	}
	return 0
}

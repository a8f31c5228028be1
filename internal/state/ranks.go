package state

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// FormatPlacement writes which ranks go where the way the status shows it, nodes in order of
// their first rank. It is the inverse of ParsePlacement.
func FormatPlacement(nodeOf map[int32]string) []gpuv1alpha1.NodePlacement {
	ranks := make(map[string][]int, len(nodeOf))
	for rank, node := range nodeOf {
		ranks[node] = append(ranks[node], int(rank))
	}
	nodes := make([]string, 0, len(ranks))
	for node := range ranks {
		slices.Sort(ranks[node])
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b string) int { return ranks[a][0] - ranks[b][0] })
	placement := make([]gpuv1alpha1.NodePlacement, len(nodes))
	for i, node := range nodes {
		// A set of CPUs and a Job's completed indexes are written the same way: "0-3,7".
		placement[i] = gpuv1alpha1.NodePlacement{Node: node, Indexes: cpuset.New(ranks[node]...).String()}
	}
	return placement
}

// ParsePlacement returns the node of each rank. It fails on text that the controller never
// writes, naming the node whose ranks cannot be read.
func ParsePlacement(placement []gpuv1alpha1.NodePlacement) (map[int32]string, error) {
	nodeOf := make(map[int32]string)
	for _, p := range placement {
		set, err := cpuset.Parse(p.Indexes)
		if err != nil {
			return nil, fmt.Errorf("reading the ranks of node %s from %q: %w", p.Node, p.Indexes, err)
		}
		for _, rank := range set.UnsortedList() {
			nodeOf[int32(rank)] = p.Node
		}
	}
	return nodeOf, nil
}

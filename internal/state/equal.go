package state

import (
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// equalNodes tells whether placement would see no difference. Most node events are heartbeats,
// which must cost nothing.
func equalNodes(a, b *cluster.Machine) bool {
	return a.Ready == b.Ready && a.Cordoned == b.Cordoned && a.GPU == b.GPU &&
		equalVectors(a.Allocatable, b.Allocatable) && equalPaths(a, b) &&
		slices.Equal(a.Taints, b.Taints) && maps.Equal(a.Labels, b.Labels)
}

func equalPaths(a, b *cluster.Machine) bool { return slices.Equal(a.Path, b.Path) }

// equalVectors compares amounts; a shorter vector is zero at its end.
func equalVectors(a, b cluster.Vector) bool {
	for i := range max(len(a), len(b)) {
		if a.At(i) != b.At(i) {
			return false
		}
	}
	return true
}

package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// NodeRoom is what one node has for pods of a shape.
type NodeRoom struct {
	// Fits is how many pods it takes now, Why what keeps even one of them out, and FitsEmpty how
	// many it would take if nothing ran and all of it were in service.
	Fits, FitsEmpty int
	Why             Reason
}

// Rooms looks at every node of the snapshot, in its order. It is what Plan counts with, for
// those who tell people about it.
func Rooms(s *cluster.Snapshot, shape *Shape) []NodeRoom {
	q := newNeed(shape, s.Resources)
	rooms := make([]NodeRoom, s.Len())
	for i, n := range s.Nodes() {
		fits, why, _ := q.fits(n, q.filterKind(n.Machine))
		empty, _ := q.fitsEmpty(n.Machine)
		rooms[i] = NodeRoom{Fits: int(fits), FitsEmpty: int(empty), Why: why}
	}
	return rooms
}

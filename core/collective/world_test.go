package collective

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// place is where a node of a test's network stands: names of spine and leaf, "" for none.
type place struct{ spine, leaf string }

// network builds a snapshot of nodes that stand at the given places, with a level for the hosts.
// The position of a node in it is not that in places; at finds it.
func network(places ...place) *cluster.Snapshot {
	levels := []cluster.Level{{Name: "spine"}, {Name: "leaf"}, {Name: "host"}}
	nodes := make([]*cluster.Node, len(places))
	for i, p := range places {
		name := fmt.Sprintf("n%05d", i)
		nodes[i] = &cluster.Node{Machine: &cluster.Machine{Name: name, Path: []string{p.spine, p.leaf, name}}}
	}
	return cluster.NewSnapshot(1, levels, cluster.NewResources(), nodes)
}

// fatTree is the places of nodes with so many nodes a leaf and leaves a spine.
func fatTree(nodes, nodesPerLeaf, leavesPerSpine int) []place {
	places := make([]place, nodes)
	for i := range places {
		leaf := i / nodesPerLeaf
		places[i] = place{fmt.Sprintf("s%03d", leaf/leavesPerSpine), fmt.Sprintf("l%04d", leaf)}
	}
	return places
}

func model(t testing.TB, f Fabric, s *cluster.Snapshot, uplinks ...cluster.Uplink) *Model {
	t.Helper()
	m, err := New(f, s, uplinks)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// whole seats a gang on the given nodes, all GPUs of each.
func whole(gpus int, nodes ...int) []Seat {
	seats := make([]Seat, len(nodes))
	for i, n := range nodes {
		seats[i] = Seat{Node: n, GPUs: gpus}
	}
	return seats
}

// plain is a fabric of round numbers: 100 B/s by NVLink, 10 B/s by each of two NICs a node; steps of
// 1, 10 and 100 seconds.
func plain() Fabric {
	return Fabric{GPUs: 2, NVLink: 100, NIC: 10, NVLinkLatency: 1, NICLatency: 10, HopLatency: 100}
}

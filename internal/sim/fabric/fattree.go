package fabric

import (
	"fmt"
	"math"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// build makes the nodes of a shape. Numbers of leaves run through the whole cluster, so that a
// leaf's name alone says which leaf it is.
func (s *shape) build() (*Cluster, error) {
	b := newBuilder(s.tree)
	c := &Cluster{Levels: b.levels, Resources: b.resources, Nodes: make([]*cluster.Node, s.nodes)}
	c.Fabric, c.Notes = s.network()
	if s.routing != nil {
		c.Fabric.Routing = *s.routing
	}
	leaves := (s.nodes + s.nodesPerLeaf - 1) / s.nodesPerLeaf
	spines := (leaves + s.leavesPerSpine - 1) / s.leavesPerSpine
	names := func(i int) (spine, leaf string) {
		if !s.tree {
			return "", ""
		}
		// Padded, as domains are ordered by name.
		return fmt.Sprintf("spine-%0*d", width(spines, 2), i/s.leavesPerSpine+1), fmt.Sprintf("leaf-%0*d", width(leaves, 3), i+1)
	}
	for i := range c.Nodes {
		spine, leaf := names(i / s.nodesPerLeaf)
		node, err := b.node(s.of(fmt.Sprintf("node-%0*d", width(s.nodes, 4), i+1), spine, leaf))
		if err != nil {
			return nil, fmt.Errorf("building node %d: %w", i+1, err)
		}
		c.Nodes[i] = node
	}
	if s.oversubscription == 0 {
		return c, nil
	}
	nics := float64(s.GPUs)
	if c.Fabric.Shared {
		nics = 1
	}
	mbps := c.Fabric.NIC * 8 / 1e6 * nics * float64(s.nodesPerLeaf) / s.oversubscription
	for i := range leaves {
		spine, leaf := names(i)
		c.Uplinks = append(c.Uplinks, cluster.Uplink{Level: 1, Path: []string{spine, leaf}, Mbps: max(1, int64(math.Round(mbps)))})
	}
	return c, nil
}

// width is how many digits the numbers up to n take, least or more.
func width(n, least int) int {
	return max(least, len(fmt.Sprint(n)))
}

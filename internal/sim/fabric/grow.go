package fabric

import (
	"fmt"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Grow adds n nodes like the one of which there are most, in leaves of their own that are as large
// as the largest there is, in a spine of their own. Uplinks of the new leaves carry what those of
// the largest leaf do.
func (c *Cluster) Grow(n int) error {
	if n < 0 {
		return fmt.Errorf("%d more nodes; expected none or more", n)
	}
	if n > maxNodes-len(c.Nodes) {
		return fmt.Errorf("%d more nodes than %d; expected at most %d in all", n, len(c.Nodes), maxNodes)
	}
	if n == 0 || len(c.Nodes) == 0 {
		return nil
	}
	model := c.usual()
	leaf, size := c.largestLeaf()
	var uplink *cluster.Uplink
	for i := range c.Uplinks {
		if strings.Join(c.Uplinks[i].Path, "/") == leaf {
			uplink = &c.Uplinks[i]
		}
	}
	taken := map[string]bool{}
	for _, node := range c.Nodes {
		taken[node.Name] = true
	}
	before := c.addedLeaves()
	for i, number := 0, 1; i < n; number++ {
		name := fmt.Sprintf("added-%04d", number)
		if taken[name] {
			continue
		}
		m := *model.Machine
		m.Name = name
		m.Path = make([]string, len(c.Levels))
		for l := range c.Levels {
			switch {
			case c.Levels[l].Name == "host":
				m.Path[l] = name
			case model.Path[l] == "":
			case c.Levels[l].Name == "leaf":
				m.Path[l] = fmt.Sprintf("added-leaf-%03d", before+i/size+1)
			default:
				m.Path[l] = "added-" + c.Levels[l].Name
			}
		}
		c.Nodes = append(c.Nodes, &cluster.Node{Machine: &m})
		if uplink != nil && i%size == 0 {
			c.Uplinks = append(c.Uplinks, cluster.Uplink{Level: uplink.Level, Path: m.Path[:uplink.Level+1], Mbps: uplink.Mbps})
		}
		i++
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%s added, like %s, %d a leaf", plural(n, "node"), model.Name, size))
	return nil
}

// addedLeaves counts the leaves that were added before.
func (c *Cluster) addedLeaves() int {
	level, ok := cluster.FindLevel(c.Levels, "leaf")
	if !ok {
		return 0
	}
	leaves := map[string]bool{}
	for _, n := range c.Nodes {
		if strings.HasPrefix(n.Path[level], "added-leaf-") {
			leaves[n.Path[level]] = true
		}
	}
	return len(leaves)
}

// usual returns the first of the most frequent kind of node.
func (c *Cluster) usual() *cluster.Node {
	key := func(n *cluster.Node) string { return fmt.Sprint(n.GPU.Product, n.Allocatable) }
	count := map[string]int{}
	for _, n := range c.Nodes {
		count[key(n)]++
	}
	best := c.Nodes[0]
	for _, n := range c.Nodes {
		if count[key(n)] > count[key(best)] {
			best = n
		}
	}
	return best
}

// largestLeaf returns the path of the leaf with the most nodes, and their number; all nodes of a
// cluster without leaves.
func (c *Cluster) largestLeaf() (path string, size int) {
	level, ok := cluster.FindLevel(c.Levels, "leaf")
	if !ok {
		return "", len(c.Nodes)
	}
	count := map[string]int{}
	for _, n := range c.Nodes {
		if n.Path[level] == "" {
			continue
		}
		p := strings.Join(n.Path[:level+1], "/")
		if count[p]++; count[p] > size {
			path, size = p, count[p]
		}
	}
	return path, max(1, size)
}

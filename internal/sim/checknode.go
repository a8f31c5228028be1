package sim

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

func (c *checker) allNodes() {
	names, hosts := map[string]bool{}, map[string]string{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		p := path{"nodes", i}
		c.named(p.with("name"), n.Name, "node", names)
		if host := n.Labels[hostnameLabel]; host != "" {
			if first, twice := hosts[host]; twice {
				c.bad(p.with("labels", hostnameLabel), "%q is the host of node %s, too; expected a host of its own", host, first)
			}
			hosts[host] = n.Name
		}
		for t, taint := range n.Taints {
			if taint.Key == "" {
				c.bad(p.with("taints", t), "has no key; expected one")
			}
			c.oneOf(p.with("taints", t, "effect"), taint.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
		o := &occupied{Node: n, sum: Amounts{}}
		if n.GPUs != nil {
			c.inside(p.with("gpus"), o)
		} else if count := n.Allocatable[gpuResource]; count <= maxGPUs {
			o.free = slices.Repeat([]int{1000}, int(count))
		}
		c.nodes[n.Name] = o
	}
}

// gpuCount returns how many GPUs the node has; 0 where nothing is known of its inside.
func (n *Node) gpuCount() int {
	if n.GPUs == nil || n.GPUs.Opaque {
		return 0
	}
	for _, told := range []int{len(n.GPUs.Links), len(n.GPUs.PCIe), len(n.GPUs.NUMA), len(n.GPUs.Milli)} {
		if told > 0 {
			return told
		}
	}
	if whole := n.Allocatable[gpuResource]; whole > 0 {
		return int(min(whole, maxGPUs+1))
	}
	// A node all of whose GPUs are cut offers no whole ones.
	count := 0
	for _, m := range n.GPUs.MIG {
		count = max(count, min(m.GPU, maxGPUs)+1)
	}
	return count
}

// inside checks what a node says of its GPUs.
func (c *checker) inside(p path, o *occupied) {
	g, count := o.GPUs, o.gpuCount()
	if count > maxGPUs {
		c.bad(p, "describes %d GPUs; expected up to %d", count, maxGPUs)
		return
	}
	o.free = slices.Repeat([]int{1000}, count)
	c.lengths(p, g, count)
	if g.Opaque && (len(g.Links)+len(g.PCIe)+len(g.NUMA)+len(g.Milli)+len(g.Used)+len(g.Broken)+len(g.MIG) > 0) {
		c.bad(p.with("opaque"), "is true, but something is said of single GPUs; expected one of the two")
	}
	if have := o.Allocatable[gpuResource]; have > int64(count) && g.Replicas < 2 && !g.Opaque {
		c.bad(p, "describes %s, but %d are allocatable; expected as many or more", counted(count, "GPU"), have)
	}
	c.atLeast(p.with("memoryMiB"), g.MemoryMiB, 0)
	c.atLeast(p.with("replicas"), int64(g.Replicas), 0)
	c.oneOf(p.with("sharing"), g.Sharing, "", "mps", "time-slicing")
	c.links(p.with("links"), g.Links)
	c.pcie(p.with("pcie"), g.PCIe)
	for i, numa := range g.NUMA {
		if numa < -1 || numa > 1023 {
			c.bad(p.with("numa", i), "is %d; expected 0 to 1023, or -1 for unknown", numa)
		}
	}
	for i, left := range g.Milli {
		if left < 0 || left > 1000 {
			c.bad(p.with("milli", i), "is %d; expected 0 to 1000 thousandths", left)
		} else if i < count {
			o.free[i] = left
		}
	}
	used := c.indexes(p.with("used"), g.Used, count)
	for _, i := range used {
		o.free[i] = 0
	}
	c.indexes(p.with("broken"), g.Broken, count)
	if len(g.MIGProfiles) > 0 {
		o.geometry = c.profiles(p.with("migProfiles"), g.MIGProfiles)
	} else {
		o.geometry = c.geometryOf(g.Product, g.MemoryMiB)
	}
	c.instances(p.with("mig"), o)
}

func (c *checker) lengths(p path, g *GPUs, count int) {
	for _, told := range []struct {
		field string
		n     int
	}{{"links", len(g.Links)}, {"pcie", len(g.PCIe)}, {"numa", len(g.NUMA)}, {"milli", len(g.Milli)}} {
		if told.n > 0 && told.n != count {
			c.bad(p.with(told.field), "is of %s; expected %d, as the other fields say", counted(told.n, "GPU"), count)
		}
	}
}

// indexes checks a list of GPUs and returns those that are there, each once.
func (c *checker) indexes(p path, list []int, count int) []int {
	var found []int
	for k, i := range list {
		switch {
		case i < 0 || i >= count:
			c.bad(p.with(k), "is %d; expected %s", i, upTo(count))
		case slices.Contains(found, i):
			c.bad(p.with(k), "names GPU %d for a second time; expected each once", i)
		default:
			found = append(found, i)
		}
	}
	return found
}

func upTo(count int) string {
	if count == 0 {
		return "nothing: the node has no GPUs"
	}
	return fmt.Sprintf("a GPU from 0 to %d", count-1)
}

// square notes a problem if a matrix is none. It is generic in what it holds.
func square[T any](c *checker, p path, m [][]T) bool {
	for i, row := range m {
		if len(row) != len(m) {
			c.bad(p.with(i), "has %s; expected %d, one for each GPU", counted(len(row), "value"), len(m))
			return false
		}
	}
	return true
}

// maxLinks is more than any GPU has to another: 18 with NVLink 4 and 5.
const maxLinks = 64

func (c *checker) links(p path, m [][]int) {
	if !square(c, p, m) {
		return
	}
	for i, row := range m {
		for j, here := range row {
			switch there := m[j][i]; {
			case here < 0 || here > maxLinks:
				c.bad(p.with(i, j), "is %d; expected 0 to %d NVLinks", here, maxLinks)
			case i == j && here != 0:
				c.bad(p.with(i, j), "is %d; expected 0: a GPU has no link to itself", here)
			case i < j && here != there:
				c.bad(p.with(i, j), "is %d, but [%d][%d] is %d; expected the same both ways", here, j, i, there)
			}
		}
	}
}

func (c *checker) pcie(p path, m [][]string) {
	if !square(c, p, m) {
		return
	}
	classes := make([][]gpu.PCIe, len(m))
	for i, row := range m {
		classes[i] = make([]gpu.PCIe, len(row))
		for j, here := range row {
			class, err := gpu.ParsePCIe(here)
			if err != nil {
				c.bad(p.with(i, j), "is %q; expected SELF, PIX, PXB, PHB, NODE or SYS", here)
				return
			}
			if classes[i][j] = class; i == j && class != gpu.SELF && class != gpu.UnknownPCIe {
				c.bad(p.with(i, j), "is %s; expected SELF: a GPU's way to itself", class)
			}
		}
	}
	for i, row := range classes {
		for j, here := range row {
			if there := classes[j][i]; i < j && here != there {
				c.bad(p.with(i, j), "is %s, but [%d][%d] is %s; expected the same both ways", here, j, i, there)
			}
		}
	}
}

package fabric

import (
	"fmt"
	"io"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/fabric/ibnet"
)

// Discovered makes the cluster of a fabric from the output of ibnetdiscover, as irregular as it is.
// Its leaf level are groups of hosts on the same leaf switches, its spine level groups of leaves under
// the same spine switches; an uplink carries what the links of its switches do together. What is in a
// host the file does not tell: m does. file is named in errors, a problem.Problems.
//
// The Notes count what was understood, what is missing, and whom it leaves out: see takeCensus.
func Discovered(file string, in io.Reader, m Machine) (*Cluster, error) {
	g, err := ibnet.Read(file, in)
	if err != nil {
		return nil, err
	}
	people := takeCensus(g)
	if len(people.hosts) == 0 {
		return nil, problem.Problems{{File: file, Text: `there is no host; expected HCAs that tell theirs, such as "node-1 mlx5_0"`}}
	}
	groups, irregular := groupHosts(people.hosts)
	spines := groupSpines(groups)

	m = m.filled()
	b := newBuilder(true)
	c := &Cluster{Levels: b.levels, Resources: b.resources}
	var notes []string
	c.Fabric, notes = m.network()
	for _, g := range groups {
		for _, h := range g.hosts {
			n, err := b.node(m.of(h.name, g.spine.name, g.name))
			if err != nil {
				return nil, fmt.Errorf("building host %s: %w", h.name, err)
			}
			c.Nodes = append(c.Nodes, n)
		}
	}
	c.Notes = append(c.Notes, counted(people.hosts, groups, spines), missingLinks(spines))
	if irregular > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("kept: %s whose leaves are not all those of their group", plural(irregular, "host")))
	}
	c.Notes = append(append(c.Notes, people.notes()...), notes...)
	if g.OneSided > 0 {
		c.Notes = append(c.Notes, plural(g.OneSided, "link")+" told by one end only")
	}
	c.nics(people.hosts, people.usual)
	c.uplinks(groups, spines)
	c.Notes = slices.DeleteFunc(c.Notes, func(note string) bool { return note == "" })
	return c, nil
}

// counted says what the cluster consists of.
func counted(hosts []*host, groups []*group, spines []*spineGroup) string {
	leafSwitches, spineSwitches := 0, 0
	for _, s := range spines {
		leafSwitches += len(s.leaves)
		spineSwitches += len(s.spines)
	}
	return fmt.Sprintf("%s in %s of %s, under %s of %s", plural(len(hosts), "host"), plural(len(groups), "group"),
		plural(leafSwitches, "leaf"), plural(len(spines), "group"), plural(spineSwitches, "spine"))
}

// missingLinks counts how many links there are fewer between leaves and spines than there would
// be if each leaf had as many to each spine of its group as most have.
func missingLinks(spines []*spineGroup) string {
	var pairs []int
	often := map[int]int{}
	for _, s := range spines {
		for _, leaf := range s.leaves {
			for _, spine := range s.spines {
				n := 0
				for i := range leaf.Ports {
					if leaf.Ports[i].Peer == spine {
						n++
					}
				}
				pairs = append(pairs, n)
				if n > 0 {
					often[n]++
				}
			}
		}
	}
	usual, missing := mostOften(often), 0
	for _, n := range pairs {
		missing += max(0, usual-n)
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d links between leaves and spines are missing, if each leaf should have %d to each spine", missing, usual*len(pairs), usual)
}

// nics sets what a GPU has of its host's NICs, from hosts with the usual links that tell their
// rate: hosts may have fewer NICs on the fabric than GPUs, and several GPUs share one then.
func (c *Cluster) nics(hosts []*host, usual int) {
	slowest := int64(0)
	for _, h := range hosts {
		if h.links == usual && h.mbps > 0 && (slowest == 0 || h.mbps < slowest) {
			slowest = h.mbps
		}
	}
	if slowest == 0 {
		c.Notes = append(c.Notes, "the file does not tell what the hosts' links carry: the data sheet of their GPUs is believed")
		return
	}
	c.Fabric.Shared = false
	c.Fabric.NIC = float64(slowest) * 1e6 / 8 / float64(c.Fabric.GPUs)
}

// uplinks adds up the links out of each group, where all tell what they carry.
func (c *Cluster) uplinks(groups []*group, spines []*spineGroup) {
	untold := 0
	add := func(level int, path []string, inside, own []*ibnet.Node) {
		mbps := int64(0)
		for _, n := range own {
			for i := range n.Ports {
				p := &n.Ports[i]
				if p.Peer.Kind == ibnet.HCA || slices.Contains(inside, p.Peer) {
					continue
				}
				if p.Mbps == 0 {
					untold++
					return
				}
				mbps += p.Mbps
			}
		}
		if mbps > 0 {
			c.Uplinks = append(c.Uplinks, cluster.Uplink{Level: level, Path: path, Mbps: mbps})
		}
	}
	for _, g := range groups {
		add(1, []string{g.spine.name, g.name}, g.leaves, g.leaves)
	}
	for _, s := range spines {
		if s.name != "" {
			add(0, []string{s.name}, slices.Concat(s.leaves, s.spines), s.spines)
		}
	}
	if untold > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s with links whose rate is not told: taken as without limit", plural(untold, "uplink")))
	}
}

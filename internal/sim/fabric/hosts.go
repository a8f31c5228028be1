package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/fabric/ibnet"
)

// host is a machine on an InfiniBand fabric.
type host struct {
	name string
	// leaves are the switches that it hangs on, each once, by name.
	leaves []*ibnet.Node
	// links is how many links it has to them, mbps what they carry together: 0 if any does not tell.
	links int
	mbps  int64
}

// census is who is on a fabric.
type census struct {
	// hosts are those that are kept, by name.
	hosts []*host
	// usual is how many links most hosts have.
	usual int
	// nameless is how many HCAs do not tell their host.
	nameless int
	// namesakes and small are names that were left out: of several hosts, and of hosts with at most
	// half of the usual links.
	namesakes, small []string
}

// takeCensus finds the hosts of a fabric. An HCA tells its host by its description, "a08-c01
// mlx5_5". What tells none, because the host has not booted or has no name yet, is counted and left
// out: to which others of its kind it belongs would be guesswork. So are hosts with at most half
// of the links that most hosts have: machines that manage the fabric, which hang on it like any
// other and are no place for GPU work. A machine that misses fewer links is kept.
func takeCensus(g *ibnet.Graph) census {
	var c census
	hosts, adapters := map[string]*host{}, map[string]map[string]bool{}
	namesakes := map[string]bool{}
	for _, n := range g.Nodes {
		if n.Kind != ibnet.HCA || n.Aggregates() {
			continue
		}
		name, adapter, ok := n.Host()
		if !ok {
			c.nameless++
			continue
		}
		if hosts[name] == nil {
			hosts[name], adapters[name] = &host{name: name}, map[string]bool{}
		}
		namesakes[name] = namesakes[name] || adapters[name][adapter]
		adapters[name][adapter] = true
		hosts[name].add(n)
	}
	links := map[int]int{}
	for name, h := range hosts {
		if h.links == 0 || namesakes[name] {
			continue
		}
		links[h.links]++
	}
	c.usual = mostOften(links)
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		switch {
		case namesakes[name]:
			c.namesakes = append(c.namesakes, name)
		case 2*h.links <= c.usual:
			c.small = append(c.small, name)
		default:
			slices.SortFunc(h.leaves, byName)
			h.leaves = slices.Compact(h.leaves)
			c.hosts = append(c.hosts, h)
		}
	}
	return c
}

// add counts the links of an HCA to switches.
func (h *host) add(n *ibnet.Node) {
	for i := range n.Ports {
		p := &n.Ports[i]
		if p.Peer.Kind != ibnet.Switch {
			continue
		}
		if h.links == 0 || h.mbps > 0 && p.Mbps > 0 {
			h.mbps += p.Mbps
		} else {
			h.mbps = 0
		}
		h.links++
		h.leaves = append(h.leaves, p.Peer)
	}
}

// byName orders nodes for people, and the same in every run.
func byName(a, b *ibnet.Node) int {
	return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(a.ID, b.ID))
}

// mostOften returns the number that is there most often, the larger one of equals; 0 of none.
func mostOften(counts map[int]int) int {
	best := 0
	for n, times := range counts {
		if times > counts[best] || times == counts[best] && n > best {
			best = n
		}
	}
	return best
}

// notes say whom the census left out.
func (c *census) notes() []string {
	var notes []string
	if c.nameless > 0 {
		notes = append(notes, fmt.Sprintf("left out: %s that %s no host, about %s by the usual %d links", plural(c.nameless, "HCA"), tell(c.nameless), plural((c.nameless+c.usual-1)/max(1, c.usual), "host"), c.usual))
	}
	if len(c.small) > 0 {
		notes = append(notes, fmt.Sprintf("left out: %s with at most half of the usual %d links: %s", plural(len(c.small), "host"), c.usual, list(c.small)))
	}
	if len(c.namesakes) > 0 {
		notes = append(notes, "left out: names that several hosts have: "+list(c.namesakes))
	}
	fewer := 0
	for _, h := range c.hosts {
		if h.links < c.usual {
			fewer++
		}
	}
	if fewer > 0 {
		notes = append(notes, fmt.Sprintf("kept: %s with fewer than the usual %d links", plural(fewer, "host"), c.usual))
	}
	return notes
}

func tell(n int) string {
	if n == 1 {
		return "tells"
	}
	return "tell"
}

// list names the first few.
func list(names []string) string {
	const few = 5
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// plural writes a number with what it counts.
func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "f"):
		return fmt.Sprintf("%d %sves", n, what[:len(what)-1])
	}
	return fmt.Sprintf("%d %ss", n, what)
}

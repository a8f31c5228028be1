package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/fabric/ibnet"
)

// group is a domain of the level leaf: the hosts that hang on the same leaf switches.
type group struct {
	name   string
	leaves []*ibnet.Node
	hosts  []*host
	spine  *spineGroup
}

// groupHosts divides the hosts by the set of leaf switches that they hang on. With one HCA a host
// that is one group a leaf. With rails, where each HCA of a host hangs on another leaf, as NVIDIA's
// scalable units are cabled, the hosts of a unit have all their leaves in common, and reach each
// other on every rail through one switch: a unit is what a leaf is elsewhere.
//
// A host that misses links, or has one in another unit by mistake, belongs to the largest group
// that has more than half of its leaves. What is no more like any group than that is a group of its
// own: no host is lost. A leaf is then of the group that most of its hosts are in.
//
// irregular counts the hosts whose leaves are not all those of their group.
func groupHosts(hosts []*host) (groups []*group, irregular int) {
	for _, set := range sameLeaves(hosts) {
		var home *group
		for _, g := range groups {
			if n := common(g.leaves, set[0].leaves); 2*n > len(set[0].leaves) && (home == nil || n > common(home.leaves, set[0].leaves)) {
				home = g
			}
		}
		if home == nil {
			home = &group{leaves: set[0].leaves}
			groups = append(groups, home)
		}
		home.hosts = append(home.hosts, set...)
	}
	assignLeaves(groups)
	slices.SortFunc(groups, func(a, b *group) int { return slices.CompareFunc(a.leaves, b.leaves, byName) })
	taken := map[string]bool{}
	for _, g := range groups {
		g.name = unused(taken, groupName(g.leaves))
		for _, h := range g.hosts {
			if !slices.Equal(h.leaves, g.leaves) {
				irregular++
			}
		}
	}
	return groups, irregular
}

// sameLeaves returns the hosts in sets with the same leaves, those of most hosts first and of these
// those of most leaves: what is regular comes before what is not.
func sameLeaves(hosts []*host) [][]*host {
	bySet := map[string][]*host{}
	for _, h := range hosts {
		key := fmt.Sprint(ids(h.leaves))
		bySet[key] = append(bySet[key], h)
	}
	return slices.SortedFunc(maps.Values(bySet), func(a, b []*host) int {
		return cmp.Or(len(b)-len(a), len(b[0].leaves)-len(a[0].leaves), slices.CompareFunc(a[0].leaves, b[0].leaves, byName))
	})
}

// assignLeaves gives each leaf to the group that most of its hosts are in, the earlier of equals. A
// group that would have none keeps those it has.
func assignLeaves(groups []*group) {
	most, owner := map[*ibnet.Node]int{}, map[*ibnet.Node]*group{}
	for _, g := range groups {
		here := map[*ibnet.Node]int{}
		for _, h := range g.hosts {
			for _, l := range h.leaves {
				here[l]++
			}
		}
		for l, n := range here {
			if n > most[l] {
				most[l], owner[l] = n, g
			}
		}
	}
	own := map[*group][]*ibnet.Node{}
	for l, g := range owner {
		own[g] = append(own[g], l)
	}
	for _, g := range groups {
		if leaves := own[g]; leaves != nil {
			g.leaves = leaves
			slices.SortFunc(g.leaves, byName)
		}
	}
}

func ids(nodes []*ibnet.Node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.ID
	}
	return all
}

func common(a, b []*ibnet.Node) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// groupName names several switches by the first: "leaf-1+3" is leaf-1 and three others.
func groupName(switches []*ibnet.Node) string {
	name := strings.Join(strings.Fields(switches[0].Name()), "-")
	if len(switches) > 1 {
		name += fmt.Sprintf("+%d", len(switches)-1)
	}
	return name
}

// unused returns the name, with a number where it is taken.
func unused(taken map[string]bool, name string) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s#%d", name, i)
	}
	taken[free] = true
	return free
}

// spineGroup is a domain of the level spine: groups of hosts whose leaves are connected through
// spine switches.
type spineGroup struct {
	name           string
	spines, leaves []*ibnet.Node
}

// groupSpines connects the groups through the switches above their leaves, but not through those
// further up: what meets only there is in different domains. A group without a switch above it is
// in none.
func groupSpines(groups []*group) []*spineGroup {
	leaf := map[*ibnet.Node]*spineGroup{} // of each leaf and spine, the group that it is in so far
	all := map[*ibnet.Node]bool{}
	for _, g := range groups {
		for _, l := range g.leaves {
			all[l] = true
		}
	}
	merge := func(into, from *spineGroup) *spineGroup {
		if into == from {
			return into
		}
		into.leaves, into.spines = append(into.leaves, from.leaves...), append(into.spines, from.spines...)
		for _, n := range slices.Concat(from.leaves, from.spines) {
			leaf[n] = into
		}
		return into
	}
	for _, g := range groups {
		g.spine = &spineGroup{}
		for _, l := range g.leaves {
			if leaf[l] == nil {
				leaf[l] = &spineGroup{leaves: []*ibnet.Node{l}}
			}
			g.spine = merge(leaf[l], g.spine)
			for i := range l.Ports {
				above := l.Ports[i].Peer
				if above.Kind != ibnet.Switch || all[above] {
					continue
				}
				if leaf[above] == nil {
					leaf[above] = &spineGroup{spines: []*ibnet.Node{above}}
				}
				g.spine = merge(leaf[above], g.spine)
			}
		}
	}
	var found []*spineGroup
	for _, g := range groups {
		if g.spine = leaf[g.leaves[0]]; !slices.Contains(found, g.spine) {
			found = append(found, g.spine)
		}
	}
	taken := map[string]bool{}
	for _, s := range found {
		slices.SortFunc(s.spines, byName)
		slices.SortFunc(s.leaves, byName)
		if len(s.spines) > 0 {
			s.name = unused(taken, groupName(s.spines))
		}
	}
	return found
}

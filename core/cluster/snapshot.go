package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// Level is one level of the topology, such as a spine, a leaf or a host.
type Level struct {
	// Name is what people call it: "leaf".
	Name string
	// Labels are the node labels that may carry it; the first that a node has counts.
	Labels []string
}

// Domain is a set of nodes that share one value at a level and at all levels outside it.
type Domain struct {
	// Level is the index into Snapshot.Levels; -1 is the whole cluster.
	Level int
	// First and End are the range of the domain in Snapshot.Nodes: [First, End).
	First, End int
}

// Snapshot is the cluster at one moment. It is immutable: share it, never write to it.
type Snapshot struct {
	// Generation grows with every change of the cluster.
	Generation uint64
	// Levels are the topology levels, outermost first.
	Levels []Level
	// Resources names the entries of every Vector of the snapshot.
	Resources *Resources
	// Nodes are in topology order: every domain of every level is one contiguous range.
	Nodes []*Node

	domains [][]Domain
	index   map[string]int
}

// NewSnapshot orders the nodes and finds the domains. Each node's Path must have one entry a
// level. It takes O(n log n) of the number of nodes; Next is what follows a small change.
func NewSnapshot(generation uint64, levels []Level, resources *Resources, nodes []*Node) *Snapshot {
	s := &Snapshot{
		Generation: generation,
		Levels:     levels,
		Resources:  resources,
		Nodes:      slices.Clone(nodes),
		domains:    make([][]Domain, len(levels)),
		index:      make(map[string]int, len(nodes)),
	}
	slices.SortFunc(s.Nodes, func(a, b *Node) int {
		if c := slices.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	for i, n := range s.Nodes {
		s.index[n.Name] = i
	}
	for l := range levels {
		s.domains[l] = findDomains(s.Nodes, l)
	}
	return s
}

// findDomains walks the ordered nodes once. A node without a value at the level is in no
// domain of it.
func findDomains(nodes []*Node, level int) []Domain {
	var found []Domain
	for i := 0; i < len(nodes); {
		end := i + 1
		for end < len(nodes) && slices.Equal(nodes[i].Path[:level+1], nodes[end].Path[:level+1]) {
			end++
		}
		if nodes[i].Path[level] != "" {
			found = append(found, Domain{Level: level, First: i, End: end})
		}
		i = end
	}
	return found
}

// Next returns the snapshot after the given nodes changed without moving in the topology:
// their names and Paths are those of nodes of s. It copies one pointer a node.
func (s *Snapshot) Next(generation uint64, resources *Resources, changed []*Node) *Snapshot {
	next := *s
	next.Generation = generation
	next.Resources = resources
	next.Nodes = slices.Clone(s.Nodes)
	for _, n := range changed {
		next.Nodes[s.index[n.Name]] = n
	}
	return &next
}

// Node returns the node of that name, or nil.
func (s *Snapshot) Node(name string) *Node {
	if i, ok := s.index[name]; ok {
		return s.Nodes[i]
	}
	return nil
}

// IndexOf returns the position of the named node in Nodes, or -1.
func (s *Snapshot) IndexOf(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

// Domains returns the domains of a level in topology order. Level -1 has one: the cluster.
func (s *Snapshot) Domains(level int) []Domain {
	if level < 0 {
		return []Domain{s.Whole()}
	}
	return s.domains[level]
}

// Whole returns the domain of all nodes.
func (s *Snapshot) Whole() Domain { return Domain{Level: -1, End: len(s.Nodes)} }

// Level returns the index of the level that is called name or read from the label name, or
// -1. The second result is false if there is no such level.
func (s *Snapshot) Level(name string) (int, bool) {
	return FindLevel(s.Levels, name)
}

// FindLevel returns the index of the level that is called name or read from the label name.
func FindLevel(levels []Level, name string) (int, bool) {
	for i, l := range levels {
		if l.Name == name || slices.Contains(l.Labels, name) {
			return i, true
		}
	}
	return -1, false
}

// DomainName returns the value of the domain for people: "leaf-003", or "the cluster".
func (s *Snapshot) DomainName(d Domain) string {
	if d.Level < 0 || d.First >= len(s.Nodes) {
		return "the cluster"
	}
	return s.Nodes[d.First].Path[d.Level]
}

// CarriedLevels returns the names of the levels that at least one node has a value for.
func (s *Snapshot) CarriedLevels() []string {
	var names []string
	for i, l := range s.Levels {
		if len(s.domains[i]) > 0 {
			names = append(names, l.Name)
		}
	}
	return names
}

// PathOf reads a node's position at each level from its labels. A label value may contain
// anything but is compared as it is.
func PathOf(levels []Level, labels map[string]string) []string {
	path := make([]string, len(levels))
	for i, l := range levels {
		for _, key := range l.Labels {
			if v := strings.TrimSpace(labels[key]); v != "" {
				path[i] = v
				break
			}
		}
	}
	return path
}

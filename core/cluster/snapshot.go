package cluster

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// Snapshot is the cluster at one moment. It is immutable: share it, never write to it.
//
// Nodes are in topology order, so that every domain of every level is one contiguous range of
// them. They are kept in chunks of which the next snapshot shares all that did not change, so
// that it costs a copy of one chunk and of the list of chunks, and so that what differs
// between two snapshots is found without looking at every node.
type Snapshot struct {
	// Generation grows with every change of the cluster.
	Generation uint64
	// Levels are the topology levels, outermost first.
	Levels []Level
	// Resources names the entries of every Vector of the snapshot.
	Resources *Resources

	frame  *frame
	chunks []*chunk
}

// chunkSize was chosen by BenchmarkSnapshotNext: smaller ones make the list of chunks long,
// larger ones make each of them dear to copy.
const chunkSize = 64

type chunk [chunkSize]*Node

// frame is what stays as long as no node comes, goes or moves.
type frame struct {
	count   int
	domains [][]Domain
	// inDomain is, by level and node, the index of the node's domain in domains; -1 for none.
	inDomain [][]int32
	index    map[string]int
	uplinks  [][]int64
}

// NewSnapshot orders the nodes and finds the domains. Each node's Path must have one entry a
// level. It takes O(n log n) of the number of nodes; Next is what follows a small change.
func NewSnapshot(generation uint64, levels []Level, resources *Resources, nodes []*Node) *Snapshot {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *Node) int {
		if c := slices.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	s := &Snapshot{
		Generation: generation,
		Levels:     levels,
		Resources:  resources,
		frame:      newFrame(levels, nodes),
		chunks:     make([]*chunk, (len(nodes)+chunkSize-1)/chunkSize),
	}
	for i := range s.chunks {
		s.chunks[i] = &chunk{}
		copy(s.chunks[i][:], nodes[i*chunkSize:])
	}
	return s
}

func newFrame(levels []Level, nodes []*Node) *frame {
	f := &frame{
		count:    len(nodes),
		domains:  make([][]Domain, len(levels)),
		inDomain: make([][]int32, len(levels)),
		index:    make(map[string]int, len(nodes)),
	}
	for i, n := range nodes {
		f.index[n.Name] = i
	}
	for l := range levels {
		f.domains[l] = findDomains(nodes, l)
		f.inDomain[l] = make([]int32, len(nodes))
		for i := range f.inDomain[l] {
			f.inDomain[l][i] = -1
		}
		for d, domain := range f.domains[l] {
			for i := domain.First; i < domain.End; i++ {
				f.inDomain[l][i] = int32(d)
			}
		}
	}
	return f
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
// their names and Paths are those of nodes of s.
func (s *Snapshot) Next(generation uint64, resources *Resources, changed []*Node) *Snapshot {
	next := *s
	next.Generation = generation
	next.Resources = resources
	next.chunks = slices.Clone(s.chunks)
	for _, n := range changed {
		i := s.frame.index[n.Name]
		c := i / chunkSize
		if next.chunks[c] == s.chunks[c] {
			own := *s.chunks[c]
			next.chunks[c] = &own
		}
		next.chunks[c][i%chunkSize] = n
	}
	return &next
}

// Len returns the number of nodes.
func (s *Snapshot) Len() int { return s.frame.count }

// At returns the node at position i of the topology order.
func (s *Snapshot) At(i int) *Node { return s.chunks[i/chunkSize][i%chunkSize] }

// Nodes iterates over all nodes in topology order.
func (s *Snapshot) Nodes() iter.Seq2[int, *Node] { return s.In(s.Whole()) }

// In iterates over the nodes of a domain in topology order, with their positions.
func (s *Snapshot) In(d Domain) iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		for i := d.First; i < d.End; i++ {
			if !yield(i, s.At(i)) {
				return
			}
		}
	}
}

// SameFrame tells whether the two snapshots have the same nodes in the same places.
func (s *Snapshot) SameFrame(other *Snapshot) bool { return s.frame == other.frame }

// Changed calls visit for the position of every node that is not the same in both snapshots,
// which must have the same frame. It skips what they share chunk by chunk.
func (s *Snapshot) Changed(old *Snapshot, visit func(i int)) {
	for c, now := range s.chunks {
		was := old.chunks[c]
		if now == was {
			continue
		}
		for k := range now {
			if now[k] != was[k] {
				visit(c*chunkSize + k)
			}
		}
	}
}

// Node returns the node of that name, or nil.
func (s *Snapshot) Node(name string) *Node {
	if i, ok := s.frame.index[name]; ok {
		return s.At(i)
	}
	return nil
}

// IndexOf returns the position of the named node, or -1.
func (s *Snapshot) IndexOf(name string) int {
	if i, ok := s.frame.index[name]; ok {
		return i
	}
	return -1
}

// Domains returns the domains of a level in topology order. Level -1 has one: the cluster.
func (s *Snapshot) Domains(level int) []Domain {
	if level < 0 {
		return []Domain{s.Whole()}
	}
	return s.frame.domains[level]
}

// DomainOf returns the index in Domains(level) of the domain that the node at position i is
// in, or -1. At level -1 that is always 0.
func (s *Snapshot) DomainOf(level, i int) int {
	if level < 0 {
		return 0
	}
	return int(s.frame.inDomain[level][i])
}

// Within returns the range, in Domains(level), of the domains inside d.
func (s *Snapshot) Within(level int, d Domain) (first, end int) {
	all := s.Domains(level)
	first = sort.Search(len(all), func(i int) bool { return all[i].First >= d.First })
	end = first + sort.Search(len(all)-first, func(i int) bool { return all[first+i].End > d.End })
	return first, end
}

// Whole returns the domain of all nodes.
func (s *Snapshot) Whole() Domain { return Domain{Level: -1, End: s.frame.count} }

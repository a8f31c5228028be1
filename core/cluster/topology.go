package cluster

import (
	"fmt"
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
	// First and End are the range of the domain in the snapshot's order of nodes: [First, End).
	First, End int
}

// Holds tells whether the node at position i is in the domain.
func (d Domain) Holds(i int) bool { return d.First <= i && i < d.End }

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
	if d.Level < 0 || d.First >= s.Len() {
		return "the cluster"
	}
	return s.At(d.First).Path[d.Level]
}

// CarriedLevels returns the names of the levels that at least one node has a value for.
func (s *Snapshot) CarriedLevels() []string {
	var names []string
	for i, l := range s.Levels {
		if len(s.frame.domains[i]) > 0 {
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

// Uplink is the link with which a domain hangs on what is outside it.
type Uplink struct {
	// Level and Path name the domain: its values from the outermost level to its own.
	Level int
	Path  []string
	// Mbps is its capacity in megabits a second.
	Mbps int64
}

// WithUplinks returns the snapshot with the capacities of the given uplinks. Domains that none
// of them names are taken to have as much as anybody asks for. An uplink of a domain that is
// not there is an error.
func (s *Snapshot) WithUplinks(uplinks []Uplink) (*Snapshot, error) {
	next, f := *s, *s.frame
	f.uplinks = make([][]int64, len(s.Levels))
	for l := range f.uplinks {
		f.uplinks[l] = slices.Repeat([]int64{-1}, len(f.domains[l]))
	}
	for _, u := range uplinks {
		if u.Level < 0 || u.Level >= len(s.Levels) || len(u.Path) != u.Level+1 {
			return nil, fmt.Errorf("an uplink at level %d with %d values in its path", u.Level, len(u.Path))
		}
		i := slices.IndexFunc(f.domains[u.Level], func(d Domain) bool {
			return slices.Equal(s.At(d.First).Path[:u.Level+1], u.Path)
		})
		if i < 0 {
			return nil, fmt.Errorf("an uplink of %s %s, which has no node", s.Levels[u.Level].Name, strings.Join(u.Path, "/"))
		}
		f.uplinks[u.Level][i] = u.Mbps
	}
	next.frame = &f
	return &next, nil
}

// UplinksLeft returns, by level and index in Domains(level), how many megabits a second of
// each uplink no running workload was promised; -1 where the capacity is not known. It is nil
// where no capacity is known at all.
//
// A workload's promise counts on the uplink of every domain that holds some of its pods but
// not all of them, once for each of those pods. It looks at every pod.
func (s *Snapshot) UplinksLeft() [][]int64 {
	if s.frame.uplinks == nil {
		return nil
	}
	left := make([][]int64, len(s.Levels))
	for l := range left {
		left[l] = slices.Clone(s.frame.uplinks[l])
	}
	places := map[*Workload][]int{}
	for i, n := range s.Nodes() {
		for _, p := range n.Pods {
			if p.Workload != nil && p.Workload.Mbps > 0 {
				places[p.Workload] = append(places[p.Workload], i)
			}
		}
	}
	for w, nodes := range places {
		for l := range left {
			s.charge(left[l], l, w.Mbps, nodes)
		}
	}
	return left
}

// charge takes the promise to pods on the given nodes from the uplinks of one level.
func (s *Snapshot) charge(left []int64, level int, mbps int64, nodes []int) {
	inside := map[int]int64{}
	for _, i := range nodes {
		inside[s.DomainOf(level, i)]++
	}
	for d, pods := range inside {
		if d >= 0 && left[d] >= 0 && pods < int64(len(nodes)) {
			left[d] = max(0, left[d]-pods*mbps)
		}
	}
}

package collective

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Model is a fabric laid over the nodes of a cluster. It never changes and may be used by many at
// a time.
type Model struct {
	fabric Fabric
	// levels are those of switches, innermost first.
	levels []level
	// sizes is by level of the Snapshot how many domains it has, and nodes how many nodes there are.
	sizes []int
	nodes int
}

// level is a level of switches.
type level struct {
	// index is that in Snapshot.Levels.
	index int
	// group is by node the index of its domain. Nodes without a domain have a group of their own,
	// or of their domain inside: indexes from len(uplinks) on, whose uplinks nobody knows.
	group []int32
	// uplinks is by domain what its uplink carries, in bytes a second; +Inf if unlimited.
	uplinks []float64
	// holds is how many nodes the i+1 largest groups hold, fastest is by i the uplink than which i
	// are faster.
	holds   []int
	fastest []float64
}

// New lays a fabric over the nodes of a snapshot, of which it keeps the topology only. Each level
// of the snapshot is taken for a level of switches, unless each of its domains is a single node: then
// it names the node. The given uplinks have the capacities that they say, all others what the
// fabric's oversubscription leaves them.
//
// The error says which number of the fabric cannot be, or which uplink is of no domain.
func New(f Fabric, s *cluster.Snapshot, uplinks []cluster.Uplink) (*Model, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("a fabric that cannot be: %w", err)
	}
	f.Oversubscription = slices.Clone(f.Oversubscription)
	m := &Model{fabric: f, sizes: make([]int, len(s.Levels)), nodes: s.Len()}
	inside := make([]int32, s.Len()) // the groups of the level inside: at first, the nodes
	for i := range inside {
		inside[i] = int32(i)
	}
	told := map[int]bool{}
	for _, u := range uplinks {
		told[u.Level] = true
	}
	for index := len(s.Levels) - 1; index >= 0; index-- {
		m.sizes[index] = len(s.Domains(index))
		single := !slices.ContainsFunc(s.Domains(index), func(d cluster.Domain) bool { return d.End-d.First > 1 })
		if single && !told[index] {
			continue
		}
		l := level{index: index, group: groups(s, index, inside)}
		l.uplinks = make([]float64, m.sizes[index])
		for i, d := range s.Domains(index) {
			l.uplinks[i] = float64(d.End-d.First) * f.node() / f.oversubscription(len(m.levels))
		}
		m.levels = append(m.levels, l)
		inside = l.group
	}
	if err := m.tell(s, uplinks); err != nil {
		return nil, err
	}
	for i := range m.levels {
		m.levels[i].rank()
	}
	return m, nil
}

// groups returns the group of each node at a level, where inside are those of the next level.
func groups(s *cluster.Snapshot, index int, inside []int32) []int32 {
	of := make([]int32, s.Len())
	without := map[int32]int32{}
	for i := range of {
		if d := s.DomainOf(index, i); d >= 0 {
			of[i] = int32(d)
			continue
		}
		g, known := without[inside[i]]
		if !known {
			g = int32(len(s.Domains(index)) + len(without))
			without[inside[i]] = g
		}
		of[i] = g
	}
	return of
}

// tell sets the capacities that are known.
func (m *Model) tell(s *cluster.Snapshot, uplinks []cluster.Uplink) error {
	domains := map[string]int{}
	for _, l := range m.levels {
		for i, d := range s.Domains(l.index) {
			domains[pathKey(l.index, s.At(d.First).Path)] = i
		}
	}
	for _, u := range uplinks {
		if u.Level < 0 || u.Level >= len(s.Levels) || len(u.Path) != u.Level+1 {
			return fmt.Errorf("an uplink at level %d with %d values in its path", u.Level, len(u.Path))
		}
		d, known := domains[pathKey(u.Level, u.Path)]
		if !known {
			return fmt.Errorf("an uplink of %s %s, which has no node", s.Levels[u.Level].Name, strings.Join(u.Path, "/"))
		}
		if u.Mbps <= 0 {
			return fmt.Errorf("the uplink of %s %s carries %d Mb/s: it must be more than 0", s.Levels[u.Level].Name, strings.Join(u.Path, "/"), u.Mbps)
		}
		l := slices.IndexFunc(m.levels, func(l level) bool { return l.index == u.Level })
		m.levels[l].uplinks[d] = float64(u.Mbps) * gigabit / 1000
	}
	return nil
}

func pathKey(index int, path []string) string {
	return strings.Join(path[:index+1], "\x00")
}

// rank sorts what the ideal placement asks: how few domains may do, and how fast theirs may be.
func (l *level) rank() {
	counts := map[int32]int{}
	for _, g := range l.group {
		counts[g]++
	}
	for _, n := range counts {
		l.holds = append(l.holds, n)
	}
	slices.SortFunc(l.holds, func(a, b int) int { return b - a })
	for i := 1; i < len(l.holds); i++ {
		l.holds[i] += l.holds[i-1]
	}
	l.fastest = slices.Clone(l.uplinks)
	for len(l.fastest) < len(l.holds) {
		l.fastest = append(l.fastest, math.Inf(1))
	}
	slices.Sort(l.fastest)
	slices.Reverse(l.fastest)
}

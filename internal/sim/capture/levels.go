package capture

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// nowhere is the value of a level that a node lacks outside one that it has. It sorts before all
// label values, as having none does.
const nowhere = "(none)"

// ladder is the levels that the file has, with the label that carries each there. In a cluster a
// level may be read from several labels, and a node may have one without those outside it; in a
// file each level is one label, and a node that lacks it is in no domain inside either.
type ladder struct {
	index []int
	key   map[int]string
	// asked are the levels of which domains are looked at, from the widest that the request names
	// to the narrowest; for a single pod only those it names. required is the request's.
	asked    map[int]bool
	required int
	// preferred is the level that the request prefers, or, as plans do where no node has that, the
	// next one outside it.
	preferred int
}

func ladderOf(s *cluster.Snapshot, g *placement.Group) *ladder {
	l := &ladder{key: map[int]string{}, asked: map[int]bool{}, required: g.Topology.Required, preferred: g.Topology.Preferred}
	carried := s.CarriedLevels()
	for l.preferred > g.Topology.Required && !slices.Contains(carried, s.Levels[l.preferred].Name) {
		l.preferred--
		if g.Count == 1 {
			l.preferred = placement.AnyLevel // There is nothing that a single pod could be near to.
		}
	}
	needed := map[int]bool{g.Topology.Required: true}
	for _, slice := range g.Slices {
		needed[slice.Level] = true
	}
	l.ask(needed, len(s.Levels), g.Count)
	for i, level := range s.Levels {
		// One that nobody has would cut off those inside it.
		if !slices.Contains(carried, level.Name) && !needed[i] {
			continue
		}
		l.index = append(l.index, i)
		l.key[i] = level.Name
		for _, n := range s.Nodes() {
			if value, taken := n.Labels[level.Name]; taken && value != n.Path[i] {
				l.key[i] = "level/" + level.Name // Somebody's label has the name.
				break
			}
		}
	}
	return l
}

func (l *ladder) ask(needed map[int]bool, levels, pods int) {
	first, last := -1, -1
	for i := range levels {
		if needed[i] || i == l.preferred {
			l.asked[i] = true
			if last = i; first < 0 {
				first = i
			}
		}
	}
	for i := first; pods > 1 && first >= 0 && i < last; i++ {
		l.asked[i] = true
	}
}

// check returns an error where the node lacks a level but has one inside it, and the answer
// depends on both.
func (l *ladder) check(s *cluster.Snapshot, n *cluster.Node) error {
	lacks := -1
	for _, i := range l.index {
		switch {
		case n.Path[i] == "" && l.asked[i] && i <= l.required:
			return nil // It is out of the question.
		case n.Path[i] == "" && l.asked[i]:
			lacks = i
		case lacks >= 0 && l.asked[i]:
			return fmt.Errorf("node %s has a %s and no %s around it, which a file cannot say", n.Name, s.Levels[i].Name, s.Levels[lacks].Name)
		}
	}
	return nil
}

func (l *ladder) keys() []string {
	var keys []string
	for _, i := range l.index {
		keys = append(keys, l.key[i])
	}
	return keys
}

// locate adds the labels that say where the node is.
func (l *ladder) locate(labels map[string]string, n *cluster.Node) {
	for _, i := range l.index {
		switch {
		case n.Path[i] != "":
			labels[l.key[i]] = n.Path[i]
		case !l.asked[i]:
			labels[l.key[i]] = nowhere
		}
	}
}

package placement

import (
	"cmp"
	"slices"
)

// sortTakes puts takes into topology order.
func sortTakes(takes []take) {
	slices.SortFunc(takes, func(a, b take) int { return cmp.Compare(a.node, b.node) })
}

// order puts the takes into the order of ranks: topology order, so that neighbours in a ring
// of ranks are neighbours in the network, but for the domain of a short last slice, which
// comes last so that the slices before it are whole.
func (g *gang) order(takes []take) {
	sortTakes(takes)
	for layer := len(g.group.Slices) - 1; layer >= 0; layer-- {
		s := g.group.Slices[layer]
		count := map[int]int{}
		total := 0
		for _, t := range takes {
			count[g.s.DomainOf(s.Level, t.node)] += t.count
			total += t.count
		}
		if total%s.Size == 0 {
			continue
		}
		slices.SortStableFunc(takes, func(a, b take) int {
			shortA := count[g.s.DomainOf(s.Level, a.node)]%s.Size != 0
			shortB := count[g.s.DomainOf(s.Level, b.node)]%s.Size != 0
			switch {
			case shortA == shortB:
				return 0
			case shortA:
				return 1
			}
			return -1
		})
	}
}

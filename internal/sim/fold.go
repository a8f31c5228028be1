package sim

import (
	"fmt"
	"slices"
)

// shortestRun is how many nodes that look alike are worth one line.
const shortestRun = 4

// foldRuns puts nodes that are beside each other and get the same into one: of a large gang
// nobody reads a hundred lines that say the same.
func foldRuns(domains []*domain) []*domain {
	var folded []*domain
	for i := 0; i < len(domains); {
		end := i + 1
		for end < len(domains) && alike(domains[end-1], domains[end]) {
			end++
		}
		if end-i >= shortestRun {
			folded = append(folded, fold(domains[i:end]))
		} else {
			folded = append(folded, domains[i:end]...)
		}
		i = end
	}
	return folded
}

// alike tells whether b can be said in the same words as a, but for the ranks, which go on.
func alike(a, b *domain) bool {
	if !a.isNode || !b.isNode || !a.marked || !b.marked || a.room >= 0 || b.room >= 0 || a.uplink != nil || b.uplink != nil {
		return false
	}
	return slices.Equal(a.gpus, b.gpus) && slices.EqualFunc(a.pods, b.pods, func(p, q occupant) bool {
		return p.group == q.group && p.kept == q.kept && p.added == q.added &&
			len(p.instead) == len(q.instead) && len(p.ranks) == len(q.ranks) && slices.Equal(p.devices, q.devices)
	})
}

func fold(nodes []*domain) *domain {
	first, last := nodes[0], nodes[len(nodes)-1]
	all := &domain{
		name:   fmt.Sprintf("%s … %s (%d)", first.name, last.name, len(nodes)),
		isNode: true,
		marked: true,
		room:   -1,
		pods:   slices.Clone(first.pods),
	}
	for i, n := range nodes {
		all.gpus = addSupplies(all.gpus, n.gpus)
		for k, o := range n.pods {
			if i == 0 {
				all.pods[k].ranks = slices.Clone(o.ranks)
				all.pods[k].each = len(o.devices) > 0
				continue
			}
			all.pods[k].ranks = append(all.pods[k].ranks, o.ranks...)
			all.pods[k].instead = append(all.pods[k].instead[:len(all.pods[k].instead):len(all.pods[k].instead)], o.instead...)
			all.pods[k].kept += o.kept
			all.pods[k].added += o.added
		}
	}
	for k := range all.pods {
		slices.Sort(all.pods[k].ranks)
	}
	return all
}

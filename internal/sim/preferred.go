package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// missedPreferences lists the preferred levels of which the plan takes several domains.
func missedPreferences(q *question, d *placement.Decision, asked *asking) []Preference {
	var missed []Preference
	look := func(level int, groups ...int) {
		if level < 0 {
			return
		}
		var names []string
		var at []int
		for _, i := range groups {
			g := &asked.request.Groups[i]
			names = append(names, g.Name)
			for _, n := range d.Groups[i].At {
				at = append(at, int(n))
			}
			for _, name := range g.Kept {
				at = append(at, q.snapshot.IndexOf(name))
			}
		}
		p := Preference{Groups: names, Level: q.Levels[level], Domains: len(q.domainsOf(level, at))}
		if p.Domains < 2 {
			return
		}
		for level--; level >= 0 && p.Instead == nil; level-- {
			if in := q.domainsOf(level, at); len(in) == 1 && in[0] >= 0 {
				p.Instead = &Within{Level: q.Levels[level], Domain: q.snapshot.DomainName(q.snapshot.Domains(level)[in[0]])}
			}
		}
		missed = append(missed, p)
	}
	for i := range d.Groups {
		look(asked.request.Groups[i].Topology.Preferred, i)
	}
	for _, s := range asked.request.Sets {
		look(s.Topology.Preferred, s.Groups...)
	}
	return missed
}

// domainsOf returns the different domains of a level that the nodes are in; -1 is in none.
func (q *question) domainsOf(level int, nodes []int) []int {
	var in []int
	for _, n := range nodes {
		if n < 0 {
			continue
		}
		if at := q.snapshot.DomainOf(level, n); !slices.Contains(in, at) {
			in = append(in, at)
		}
	}
	return in
}

// preferenceText says what became of a preferred level: "rack: spread over 2, one spine, s,
// instead".
func preferenceText(e *Explanation, p Preference) string {
	noun := kindOf(p.Level)
	text := noun + ": "
	if e.several() || len(p.Groups) > 1 {
		text = strings.Join(p.Groups, " and ") + ", " + text
	}
	// Of one group the engine says how much the best domain holds.
	if len(p.Groups) == 1 && p.Groups[0] == e.Group && e.kept == 0 {
		for _, m := range e.Misses {
			if m.Level == p.Level && m.Room < e.placed {
				text += fmt.Sprintf("no %s holds all %d, the best, %s, %d; ", noun, e.placed, m.Domain, m.Room)
			}
		}
	}
	text += fmt.Sprintf("spread over %d", p.Domains)
	if p.Instead != nil {
		text += fmt.Sprintf(", all in %s %s instead", kindOf(p.Instead.Level), p.Instead.Domain)
	}
	return text
}

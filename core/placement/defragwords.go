package placement

import (
	"fmt"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// impossible explains why there is no room even if everything that may move were gone. The
// certificate is nil where that is not proven.
func (m *mover) impossible() Explanation {
	after := *m.p
	after.s = m.without
	d := after.plan()
	if d.Undecided {
		d.Why.Certificate = nil
	}
	return d.Why
}

func (m *mover) tooMany(bound int, d cluster.Domain) *Certificate {
	c := &Certificate{Kind: TooManyMoves, Groups: m.names(), Room: m.o.MaxMoves, Need: bound}
	if d.Level >= 0 {
		c.Level, c.Domain = m.p.s.Levels[d.Level].Name, m.p.s.DomainName(d)
	}
	return c
}

func (m *mover) exhausted() *Certificate {
	return &Certificate{Kind: Exhausted, Groups: m.names(), Room: m.o.MaxMoves}
}

func (m *mover) allTried() string {
	if k := m.o.MaxMoves; k > 0 && k < len(m.e.all) {
		return fmt.Sprintf("no %s could move so that there is room: every set was tried", plural(k, "workload"))
	}
	if len(m.o.Budgets) > 0 {
		return "no workloads could move so that there is room: every set within the limits was tried"
	}
	return fmt.Sprintf("what is in the way finds no places elsewhere, even if all %s that may move do: every way was tried",
		plural(len(m.e.all), "workload"))
}

func (m *mover) names() []string {
	names := make([]string, len(m.p.request.Groups))
	for i := range names {
		names[i] = m.p.request.Groups[i].Name
	}
	return names
}

// praise says what moves, what it costs, and how good that is.
func (m *mover) praise(a *Moves) string {
	var names []string
	for _, one := range a.Moves[:min(3, len(a.Moves))] {
		names = append(names, fmt.Sprintf("%s (%s)", one.Workload, plural(len(one.Pods), "pod")))
	}
	text := strings.Join(names, ", ")
	if more := len(a.Moves) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	verb := "move"
	if len(a.Moves) == 1 {
		verb = "moves"
	}
	text = fmt.Sprintf("there is room once %s %s", text, verb)
	if cost := a.Cost(); cost > 0 {
		text += fmt.Sprintf(", which costs %.4g GPU-hours", cost)
	}
	if a.LowerBound == len(a.Moves) {
		text += "; fewer moves cannot do"
	} else {
		text += fmt.Sprintf("; at least %d would be needed in any way", a.LowerBound)
	}
	return text + ": " + a.Plan.Why.Sentence
}

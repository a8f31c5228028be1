package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// explain puts the engine's explanation into the words of an answer.
func explain(q *question, d *placement.Decision, asked *asking) *Explanation {
	why := &d.Why
	e := &Explanation{
		Group:     why.Group,
		Nodes:     why.Nodes,
		Room:      why.Room,
		RoomEmpty: why.RoomEmpty,
		Best:      why.Best,
		Never:     why.Never,
		Chosen:    nodeScore(why.Chosen),
		Next:      nodeScore(why.Next),
		Removed:   removed(why),
		groups:    len(q.Request.Groups),
	}
	if p := asked.part(why.Group); p != nil {
		e.kept = len(p.kept)
	}
	if i := slices.IndexFunc(d.Groups, func(a placement.Assignment) bool { return a.Name == why.Group }); i >= 0 {
		e.placed = len(d.Groups[i].Nodes)
	}
	if c := why.Certificate; c != nil {
		e.Certificate = &Certificate{
			Kind: string(c.Kind), Groups: c.Groups, Level: c.Level, Domain: c.Domain, Room: c.Room, Need: c.Need,
		}
	}
	for _, m := range why.Misses {
		e.Misses = append(e.Misses, Miss{Level: m.Level, Domain: m.Domain, Room: m.Room})
	}
	for _, c := range why.Changes {
		e.Changes = append(e.Changes, asked.change(c, why.Group, e.groups))
	}
	if d.Feasible {
		e.Missed = missedPreferences(q, d, asked)
	}
	e.ChosenDomain, e.NextDomain = domainScore(why.ChosenDomain), domainScore(why.NextDomain)
	return e
}

// removed counts the nodes that cannot take a pod by why, nil if all can.
func removed(why *placement.Explanation) map[string]int {
	var counts map[string]int
	for reason, n := range why.Removed {
		if n > 0 {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[placement.Reason(reason).String()] = n
		}
	}
	return counts
}

// part returns that of a group, which may be left out if there is one only; nil for none.
func (a *asking) part(group string) *part {
	for i := range a.parts {
		if a.parts[i].Name == group || group == "" && len(a.parts) == 1 {
			return &a.parts[i]
		}
	}
	return nil
}

// change puts an edit of what the engine was asked into one of the file, which says more pods:
// those that stay, too. The group in the way is meant where none is named.
func (a *asking) change(tried placement.Change, inTheWay string, groups int) Change {
	c := Change{Group: tried.Group, Field: tried.Field, To: tried.To}
	group := c.Group
	if group == "" {
		group = inTheWay
	}
	p := a.part(group)
	if p == nil || c.Field != "count" {
		return c
	}
	c.Group = group // a request for some of the groups may look like one of one group
	if groups == 1 {
		c.Group = ""
	}
	if len(p.lost) > 0 {
		c.Field = "replaces"
	} else if n, err := strconv.Atoi(c.To); err == nil {
		c.To = strconv.Itoa(n + len(p.kept))
	}
	return c
}

// remedies is the engine's part of a refusal's sentence that names edits.
const remedies = "; it would fit now "

// refusal is the engine's sentence, in which the edits are those of the file.
func (a *asking) refusal(why *placement.Explanation, groups int) string {
	text, _, found := strings.Cut(why.Sentence, remedies)
	if p := a.part(why.Group); !found || p == nil || len(p.kept)+len(p.lost) == 0 {
		return why.Sentence
	}
	var edits []string
	for _, c := range why.Changes {
		edits = append(edits, changeText(a.change(c, why.Group, groups)))
	}
	return text + remedies + strings.Join(edits, ", or ")
}

func domainScore(d *placement.DomainScore) *DomainScore {
	if d == nil {
		return nil
	}
	return &DomainScore{Level: d.Level, Domain: d.Domain, Score: d.Score, Terms: terms(d.Terms)}
}

func nodeScore(s *placement.NodeScore) *NodeScore {
	if s == nil {
		return nil
	}
	return &NodeScore{Node: s.Node, Score: s.Score, Terms: terms(s.Terms)}
}

func terms(all []placement.Term) []Term {
	var said []Term
	for _, t := range all {
		said = append(said, Term{Name: t.Name, Value: t.Value, Weight: t.Weight})
	}
	return said
}

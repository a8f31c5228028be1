package sim

import "github.com/reyisjones/gpu-orchestrator/core/placement"

// explain puts the engine's explanation into the words of an answer.
func explain(why *placement.Explanation) *Explanation {
	e := &Explanation{
		Group:     why.Group,
		Nodes:     why.Nodes,
		Room:      why.Room,
		RoomEmpty: why.RoomEmpty,
		Best:      why.Best,
		Never:     why.Never,
		Chosen:    nodeScore(why.Chosen),
		Next:      nodeScore(why.Next),
	}
	for reason, n := range why.Removed {
		if n > 0 {
			if e.Removed == nil {
				e.Removed = map[string]int{}
			}
			e.Removed[placement.Reason(reason).String()] = n
		}
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
		e.Changes = append(e.Changes, Change{Field: c.Field, To: c.To})
	}
	e.ChosenDomain, e.NextDomain = domainScore(why.ChosenDomain), domainScore(why.NextDomain)
	return e
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

package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// choose returns the domain to place the gang in. A whole gang in a preferred domain comes
// first, then a whole gang in ever wider domains up to the required level, then, for an
// elastic gang, the domain with the most room.
func (p *planner) choose() (domainView, bool) {
	t := p.request.Topology
	for level := t.Preferred; level > t.Required; level-- {
		if d, ok := p.best(level, p.request.Count); ok {
			return d, true
		}
	}
	return p.best(t.Required, p.request.least())
}

// best returns the domain of the level that takes the largest part of the gang, at least the
// given number of pods. Among equals it is the one that keeps the least room afterwards (so
// that large domains stay whole for large gangs), then the one that comes first.
//
// A strategy's preference for certain nodes counts before that: a domain in which more of the
// gang would go to the nodes the strategy ranks highest is better.
func (p *planner) best(level, least int) (domainView, bool) {
	var best domainView
	var bestLiked int
	found := false
	for _, d := range p.snapshot.Domains(level) {
		if !p.holdsKept(d) {
			continue
		}
		room := p.room(d)
		v := domainView{Domain: d, room: room, size: min(p.request.Count, room)}
		if v.size < least || v.size == 0 {
			continue
		}
		liked := p.liked(d, v.size)
		if !found || v.size > best.size ||
			v.size == best.size && (liked > bestLiked || liked == bestLiked && v.room < best.room) {
			best, bestLiked, found = v, liked, true
		}
	}
	return best, found
}

// liked returns how many of the first size pods would go to nodes that the strategy marks as
// preferred; strategies without such nodes like all domains the same.
func (p *planner) liked(d cluster.Domain, size int) int {
	s, ok := p.strategy.(NodePreferrer)
	if !ok {
		return 0
	}
	total := 0
	for i := d.First; i < d.End && total < size; i++ {
		if p.fits[i] > 0 && s.Prefers(p.snapshot.Nodes[i]) {
			total += int(p.fits[i])
		}
	}
	return min(total, size)
}

// holdsKept tells whether all members that stay are inside the domain.
func (p *planner) holdsKept(d cluster.Domain) bool {
	if d.Level < 0 {
		return true
	}
	for _, name := range p.request.Kept {
		if i := p.snapshot.IndexOf(name); i < d.First || i >= d.End {
			return false
		}
	}
	return true
}

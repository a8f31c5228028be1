package collective

import "math"

// trunks returns the uplinks that are crossed as trunks of links as fast as a NIC; what is slower
// than a NIC is less than one link. The flows of trees are rounded up: there is no half flow, and
// those of a NIC take turns.
func (m *Model) trunks(crossings []Crossing) []trunk {
	list := make([]trunk, len(crossings))
	for i := range crossings {
		c := &crossings[i]
		own, links := c.Flows, 1.0
		if c.Level != NIC {
			own, links = math.Ceil(own), m.capacity(c)/m.fabric.NIC
		}
		if i > 0 && list[i-1].is(own, links) {
			list[i] = list[i-1]
			continue
		}
		list[i] = newTrunk(own, links)
	}
	return list
}

func (t *trunk) is(own, links float64) bool { return t.own == own && t.links == links }

// fullestLink returns how many flows are expected on the fullest link that carries own ones, 0 if
// nothing is crossed.
func fullestLink(crossings []Crossing, trunks []trunk, others *Load) float64 {
	if len(trunks) == 0 {
		return 0
	}
	f := fullest{scale: 1}
	for i := range trunks {
		f.crowded(&trunks[i], others.others(&crossings[i]))
	}
	for i := 0; i < len(trunks); {
		t, x, first := &trunks[i], others.others(&crossings[i]), i
		for i < len(trunks) && trunks[i].is(t.own, t.links) && others.others(&crossings[i]) == x {
			i++ // neighbors are alike more often than not
		}
		f.add(t, x, float64(i-first))
	}
	return f.expected()
}

// leastFullest is fullestLink for the fewest groups that hold the nodes, at each level those with the
// fastest uplinks.
func (m *Model) leastFullest(s *shape, a Algorithm) float64 {
	f, crossed, average := fullest{scale: 1}, false, 0.0
	for i := range m.levels {
		l := &m.levels[i]
		n := l.fewest(s.nodes)
		if n == 0 {
			continue
		}
		crossed = true
		if links := l.fastest[n-1] / m.fabric.NIC; !math.IsInf(links, 1) {
			least, own := l.leastFlows(a, s.rails, n)
			t := newTrunk(own, links)
			f.crowded(&t, 0)
			average = max(average, least/links)
		}
	}
	if !crossed {
		return 0
	}
	for i := range m.levels {
		l := &m.levels[i]
		n := l.fewest(s.nodes)
		_, own := l.leastFlows(a, s.rails, n)
		for d := 0; d < n; {
			first := d
			for d < n && l.fastest[d] == l.fastest[first] {
				d++
			}
			if links := l.fastest[first] / m.fabric.NIC; !math.IsInf(links, 1) {
				t := newTrunk(own, links)
				f.add(&t, 0, float64(d-first))
			}
		}
	}
	return max(average, f.expected())
}

// leastFlows returns how many flows leave each of n groups at least, and how many whole ones may be
// counted on the uplink of each. The ring leaves each once. Either tree has an edge at each, and n-1
// edges of two ends among all, which are best spread over uplinks that are alike.
func (l *level) leastFlows(a Algorithm, rails float64, n int) (each, whole float64) {
	if a == Ring {
		return rails, rails
	}
	each = rails / 2
	if whole = each; n > 0 && l.fastest[0] == l.fastest[len(l.fastest)-1] {
		whole = rails * float64(n-1) / float64(n)
	}
	return each, max(1, math.Floor(whole))
}

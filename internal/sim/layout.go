package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// domain is a part of the cluster as a table shows it: what is in it, and who goes there.
type domain struct {
	// level is the label of the level, "" for the cluster and for nodes.
	level, name string
	isNode      bool
	// gpus are its GPUs, by kind; nil where there are no nodes.
	gpus []supply
	// uplink is what is left of the link to the rest, in Mbit/s; nil where that is not known.
	uplink *uplink
	// marked says that the plan, or what came nearest to one, is in it.
	marked bool
	// room is how many pods would fit, of domains that came nearest; -1 for others.
	room     int
	pods     []occupant
	children []*domain
}

// occupant are the pods of one group on one node.
type occupant struct {
	group string
	// kept is how many were there before, added how many come without a rank of their own, and
	// instead of whom those come that replace others.
	kept, added int
	instead     []string
	ranks       []int
	// devices says, for each pod that comes, what it gets; empty where that is not known.
	devices []string
	// each says that the devices are those of every one of several nodes.
	each bool
}

// uplink is the capacity of a link, and what is left of it before and after the plan.
type uplink struct{ mbps, free, after int64 }

// layout returns the cluster with the plan in it, or with what came nearest to one. Putting the
// plan in is also a check of it: an error means that the engine gave out what it does not have.
func layout(q *question, d *placement.Decision, asked *asking, moves []placement.Move) (*domain, error) {
	l := &layouter{q: q, before: q.withShrinking(), after: q.snapshot, pods: map[string][]occupant{}, rooms: map[roomKey]int{}}
	l.linksBefore = q.snapshot.UplinksLeft()
	l.linksAfter = l.linksBefore
	l.kinds = q.gpuKinds()
	if !d.Feasible {
		for _, m := range d.Why.Misses {
			l.rooms[roomKey{m.Level, m.Domain}] = m.Room
		}
		return l.domain(q.snapshot.Whole()), nil
	}
	if len(d.Groups) > 0 {
		txn := q.snapshot.Begin()
		for _, v := range d.Victims {
			txn.Evict(v.Evicted...)
		}
		for i := range moves {
			if err := moves[i].Make(txn); err != nil {
				return nil, fmt.Errorf("the plan does not fit: %w", err)
			}
		}
		if err := txn.Place(d.Placements(asked.request, q.own())...); err != nil {
			return nil, fmt.Errorf("the plan does not fit: %w", err)
		}
		l.after = txn.Snapshot()
		l.linksAfter = l.after.UplinksLeft()
	}
	l.occupy(d, asked)
	return l.domain(q.snapshot.Whole()), nil
}

type layouter struct {
	q             *question
	before, after *cluster.Snapshot
	kinds         []*gpuKind
	pods          map[string][]occupant
	// rooms are how many pods fit in the domains that came nearest, each named once.
	rooms map[roomKey]int
	// linksBefore and linksAfter are what is left of the uplinks, as Snapshot.UplinksLeft says.
	linksBefore, linksAfter [][]int64
}

type roomKey struct{ level, domain string }

// occupy notes who is on which node.
func (l *layouter) occupy(d *placement.Decision, asked *asking) {
	for i := range l.q.Request.Groups {
		g := &l.q.Request.Groups[i]
		at := slices.IndexFunc(asked.parts, func(p part) bool { return p.Name == g.Name })
		if at >= 0 {
			l.occupyBy(g, &d.Groups[at], &asked.parts[at])
		} else {
			l.occupyBy(g, nil, &part{})
		}
	}
}

func (l *layouter) occupyBy(g *Group, a *placement.Assignment, p *part) {
	by := map[string]*occupant{}
	var order []string
	on := func(node string) *occupant {
		if by[node] == nil {
			by[node] = &occupant{group: g.Name}
			order = append(order, node)
		}
		return by[node]
	}
	kept := l.q.staying(g.Name)
	for _, node := range kept {
		on(node).kept++
	}
	if a != nil {
		// Members that join others get whichever ranks are missing.
		ranked := len(kept) == 0 && len(l.q.Request.Replaces) == 0
		for rank, node := range a.Nodes {
			o := on(node)
			switch {
			case p.limits != nil:
				o.kept++
			case ranked:
				o.ranks = append(o.ranks, rank)
			case rank < len(p.lost):
				o.instead = append(o.instead, p.lost[rank])
			default:
				o.added++
			}
			if said := devices(g, a, rank); said != "" {
				o.devices = append(o.devices, said)
			}
		}
	}
	for _, node := range order {
		l.pods[node] = append(l.pods[node], *by[node])
	}
}

// devices says what the pod gets of its node.
func devices(g *Group, a *placement.Assignment, rank int) string {
	if a.Instances != nil {
		text := ""
		for k, i := range a.Instances[rank] {
			if k > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%s at %d of GPU %d", g.MIG[k], i.Start, i.GPU)
			if !i.New {
				text += " (exists)"
			}
		}
		return text
	}
	if a.Offers != nil && a.Offers[rank].Resource != "" {
		return fmt.Sprintf("%d %s", a.Offers[rank].Amount, a.Offers[rank].Resource)
	}
	if a.GPUs == nil || a.GPUs[rank] == 0 {
		return ""
	}
	indexes := a.GPUs[rank].Indexes()
	text := "GPU " + ranges(indexes)
	if len(indexes) > 1 {
		text = "GPUs " + ranges(indexes)
	}
	if a.Offers != nil {
		text = fmt.Sprintf("%d/1000 of %s", a.Offers[rank].Amount, text)
	}
	return text
}

// domain returns a domain with everything in it.
func (l *layouter) domain(d cluster.Domain) *domain {
	out := &domain{name: "cluster", room: -1, marked: d.Level < 0}
	if d.Level >= 0 {
		out.level, out.name = l.before.Levels[d.Level].Name, l.before.DomainName(d)
		out.uplink = l.uplink(d.Level, d.First)
	}
	l.inside(out, d, d.Level+1)
	for _, c := range out.children {
		out.gpus = addSupplies(out.gpus, c.gpus)
		out.marked = out.marked || c.marked
	}
	l.setRoom(out, roomKey{out.level, l.before.DomainName(d)})
	return out
}

// inside adds the domains of a level inside d, and the nodes that are in none.
func (l *layouter) inside(out *domain, d cluster.Domain, level int) {
	next := d.First
	if level < len(l.before.Levels) {
		first, end := l.before.Within(level, d)
		for _, c := range l.before.Domains(level)[first:end] {
			l.nodes(out, next, c.First)
			next = c.End
			if c.End-c.First == 1 && level == len(l.before.Levels)-1 {
				// The domain of a node is the node.
				n := l.node(c.First)
				n.uplink = l.uplink(level, c.First)
				l.setRoom(n, roomKey{l.before.Levels[level].Name, l.before.DomainName(c)})
				out.children = append(out.children, n)
				continue
			}
			out.children = append(out.children, l.domain(c))
		}
	}
	l.nodes(out, next, d.End)
}

func (l *layouter) nodes(out *domain, first, end int) {
	for i := first; i < end; i++ {
		out.children = append(out.children, l.node(i))
	}
}

func (l *layouter) node(i int) *domain {
	n := l.before.At(i)
	return &domain{
		name:   n.Name,
		isNode: true,
		gpus:   l.supplyOf(n, l.after.At(i)),
		// What moves or is evicted changes nodes that nobody of the request goes to.
		marked: len(l.pods[n.Name]) > 0 || n != l.after.At(i),
		room:   -1,
		pods:   l.pods[n.Name],
	}
}

// uplink returns that of the domain of a level that the node at position i is in.
func (l *layouter) uplink(level, i int) *uplink {
	at := l.before.DomainOf(level, i)
	if l.linksBefore == nil || at < 0 || l.linksBefore[level][at] < 0 {
		return nil
	}
	up := &uplink{free: l.linksBefore[level][at], after: l.linksAfter[level][at]}
	path := strings.Join(l.before.At(i).Path[:level+1], "/")
	for _, u := range l.q.Uplinks {
		if u.Level == l.q.Levels[level] && u.Domain == path {
			up.mbps = u.Mbps
		}
	}
	return up
}

// setRoom marks a domain that came nearest. Domains of other parents may have its name: the
// first counts.
func (l *layouter) setRoom(d *domain, key roomKey) {
	if room, ok := l.rooms[key]; ok {
		d.room, d.marked = room, true
		delete(l.rooms, key)
	}
}

package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// Cache remembers, by shape of pod, how many fit on each node and how good a strategy finds
// it, and brings that up to date only where nodes changed. Decisions with and without a Cache
// are the same. It is for one goroutine at a time; the zero value is ready to use.
type Cache struct {
	views []*view
	tick  uint64
	// scoring is what decisions without weights of their own go by.
	scoring *Scoring
	// work is the storage of the decision being made.
	work scratch
	// trial remembers what a search over several groups tried.
	trial *Cache
}

// The shapes that are remembered are bounded; the one not asked for the longest goes. One takes
// some 34 bytes a node, all of them no more than 36 MB, unless the fewest take that of more than
// 16,384 nodes.
const (
	fewestViews = 64
	viewedNodes = 1 << 20
)

// maxViews is how many shapes are remembered of a cluster of so many nodes.
func maxViews(nodes int) int { return max(fewestViews, viewedNodes/max(1, nodes)) }

// view is what a Cache knows of one shape.
type view struct {
	need need
	hash uint64
	at   *cluster.Snapshot
	used uint64

	// kinds is what filterKind says of each machine, reasons why no pod fits on a node.
	kinds, reasons []Reason
	// opinions is how good the shape's Rules find each machine, and weight what that counts; nil
	// where they have no scores.
	opinions []float64
	weight   float64
	room
	// vague are the nodes, by position, on which more pods may fit than room says; nil as long as
	// there are none.
	vague    map[int]bool
	rankings []*ranking
	counted  *census
}

// view returns what is known of the shape, up to date with s.
func (c *Cache) view(s *cluster.Snapshot, shape *Shape) *view {
	c.tick++
	hash := hashShape(shape)
	var v *view
	for _, known := range c.views {
		if known.hash == hash && sameShape(&known.need.Shape, shape) {
			v = known
			break
		}
	}
	if v == nil {
		v = c.add(hash, s.Len())
		v.need = newNeed(cloneShape(shape), s.Resources)
	}
	v.used = c.tick
	v.sync(s)
	return v
}

// add returns a new view, in the place of the one not used for the longest where there are
// too many.
func (c *Cache) add(hash uint64, nodes int) *view {
	v := &view{hash: hash}
	if len(c.views) < maxViews(nodes) {
		c.views = append(c.views, v)
		return v
	}
	oldest := 0
	for i, known := range c.views {
		if known.used < c.views[oldest].used {
			oldest = i
		}
	}
	c.views[oldest] = v
	return v
}

// sync brings the view up to date with s.
func (v *view) sync(s *cluster.Snapshot) {
	old := v.at
	v.at = s
	if old == s {
		return
	}
	if old == nil || !s.SameFrame(old) || s.Resources != old.Resources {
		v.rebuild(s)
		return
	}
	s.Changed(old, func(i int) {
		n := s.At(i)
		if n.Machine != old.At(i).Machine {
			v.kind(i, n.Machine)
		}
		v.take(s, i, n)
		for _, r := range v.rankings {
			r.update(v, i)
		}
		if v.counted != nil {
			v.counted.update(i, v.fits[i] > 0)
		}
	})
}

func (v *view) rebuild(s *cluster.Snapshot) {
	v.need = newNeed(&v.need.Shape, s.Resources)
	v.kinds = resized(v.kinds, s.Len())
	v.reasons = resized(v.reasons, s.Len())
	v.opinions = nil
	if v.weight = v.need.opinionWeight(); v.weight > 0 {
		v.opinions = make([]float64, s.Len())
	}
	v.room.reset(s)
	v.vague = nil
	v.rankings, v.counted = nil, nil
	for i, n := range s.Nodes() {
		v.kind(i, n.Machine)
		v.take(s, i, n)
	}
}

// kind judges what stays of the node at position i as work comes and goes.
func (v *view) kind(i int, m *cluster.Machine) {
	v.kinds[i] = v.need.filterKind(m)
	if v.opinions != nil && v.kinds[i] == Fits {
		v.opinions[i] = v.need.opinion(m)
	}
}

// opine tells the candidate what the Rules say of the node at position i.
func (v *view) opine(c *Candidate, i int) {
	if v.opinions != nil {
		c.Opinion, c.OpinionWeight = v.opinions[i], v.weight
	}
}

func (v *view) take(s *cluster.Snapshot, i int, n *cluster.Node) {
	fits, reason, exact := v.need.fits(n, v.kinds[i])
	v.reasons[i] = reason
	v.room.set(s, i, fits)
	switch {
	case exact:
		delete(v.vague, i)
	case v.vague == nil:
		v.vague = map[int]bool{i: true}
	default:
		v.vague[i] = true
	}
}

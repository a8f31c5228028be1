package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// untrue checks a refusal without the engine, and returns what is not so.
func untrue(s *cluster.Snapshot, r *Request, d *Decision) string {
	c := d.Why.Certificate
	if c == nil {
		return "a refusal without a certificate"
	}
	switch c.Kind {
	case NoDomainHolds:
		i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == c.Groups[0] })
		return untrueRoom(s, r, i, c)
	case TooMuchInAll, Exhausted, NoDomainHoldsEach:
		return untrueTogether(s, r, c)
	}
	return fmt.Sprintf("a certificate of kind %q", c.Kind)
}

// untrueRoom tries how much of one group each domain of the level takes: it must be the room
// that the certificate tells of the best, and less than is needed.
func untrueRoom(s *cluster.Snapshot, r *Request, i int, c *Certificate) string {
	alone := *r
	alone.Groups, alone.Sets = []Group{r.Groups[i]}, nil
	g := &alone.Groups[0]
	most, step := 0, 1
	if len(g.Slices) > 0 {
		step = g.Slices[0].Size
	}
	if level := g.Topology.Required; level >= 0 && c.Level != s.Levels[level].Name {
		return fmt.Sprintf("the certificate is about level %q", c.Level)
	}
	g.Count = 30
	b := newBrute(s, &alone)
	for size := step; size <= g.Count; size += step {
		found, known := b.fits([]int{size})
		if !known {
			return ""
		}
		if !found {
			break
		}
		most = size
	}
	if c.Room != most || c.Room >= c.Need || c.Need > r.Groups[i].Count {
		return fmt.Sprintf("room for %d and %d needed, they say, but there is room for %d", c.Room, c.Need, most)
	}
	return ""
}

// untrueTogether tries to place the groups that cannot be placed together.
func untrueTogether(s *cluster.Snapshot, r *Request, c *Certificate) string {
	of := *r
	of.Groups, of.Sets = nil, nil
	index := map[int]int{}
	for i := range r.Groups {
		if slices.Contains(c.Groups, r.Groups[i].Name) {
			index[i] = len(of.Groups)
			of.Groups = append(of.Groups, r.Groups[i])
		}
	}
	for _, set := range r.Sets {
		own := Set{Topology: set.Topology}
		for _, i := range set.Groups {
			if k, ok := index[i]; ok {
				own.Groups = append(own.Groups, k)
			}
		}
		if len(own.Groups) == len(set.Groups) {
			of.Sets = append(of.Sets, own)
		}
	}
	sizes := make([]int, len(of.Groups))
	for i := range sizes {
		sizes[i] = smallest(&of.Groups[i])
	}
	if found, _ := newBrute(s, &of).fits(sizes); found {
		return fmt.Sprintf("the groups %v fit together", c.Groups)
	}
	return ""
}

func TestRefusalsAreTrue(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 6, 3, 8)
	cases(t, 10000, func(t *rapid.T) {
		k.devices = chance(t, 3, "devices")
		s := k.world(t)
		if chance(t, 3, "links") {
			s = drawUplinks(t, s)
		}
		r := k.request(t, s)
		if chance(t, 2, "bandwidth") {
			drawMbps(t, r)
		}
		d, err := Plan(s, r, o)
		if err != nil {
			t.Fatal(err)
		}
		if d.Feasible || d.Undecided {
			return
		}
		if problem := untrue(s, r, &d); problem != "" {
			t.Fatalf("%s: %+v%s", problem, d.Why.Certificate, show(s, r))
		}
		count[string(d.Why.Certificate.Kind)]++
	})
	t.Log(count)
}

// What is said never to fit does not fit an empty cluster, and what is not might.
func TestNeverIsTrue(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 6, 1, 8)
	cases(t, 10000, func(t *rapid.T) {
		k.devices = chance(t, 3, "devices")
		s := k.world(t)
		r := k.request(t, s)
		r.Avoid = nil
		d, err := Plan(s, r, o)
		if err != nil || d.Feasible {
			return
		}
		var empty []*cluster.Node
		for _, n := range s.Nodes() {
			m := *n.Machine
			m.Ready, m.Cordoned, m.Broken = true, false, 0
			empty = append(empty, &cluster.Node{Machine: &m})
		}
		size, known := newBrute(s.Next(2, s.Resources, empty), r).largest()
		if known && d.Why.Never != (size == 0) {
			t.Fatalf("never %v, but %d of %d fit the empty cluster, not %d%s", d.Why.Never, size, r.Groups[0].Count, d.Why.RoomEmpty, show(s, r))
		}
	})
}

func TestFalseCertificatesAreFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 6, 2, 6)
	for name, falsify := range map[string]func(*Certificate){
		"too much room":    func(c *Certificate) { c.Room++ },
		"too little room":  func(c *Certificate) { c.Room-- },
		"another level":    func(c *Certificate) { c.Level = "rack" },
		"more than needed": func(c *Certificate) { c.Need += 100 },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			until(t, 333, &found, func(t *rapid.T) {
				s := k.world(t)
				r := k.request(t, s)
				d, err := Plan(s, r, o)
				if err == nil && d.Why.Certificate != nil && d.Why.Certificate.Kind == NoDomainHolds && untrue(s, r, &d) == "" {
					falsify(d.Why.Certificate)
					found = found || untrue(s, r, &d) != ""
				}
			})
			if !found {
				t.Error("a false certificate is let pass")
			}
		})
	}
}

// One more free node, wherever it is, never makes a plan impossible.
func TestMoreNodesNeverHurt(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 6, 1, 8)
	hurt := func(t *rapid.T, plan planFunc) bool {
		k.devices = rapid.Bool().Draw(t, "devices")
		s := k.world(t)
		if chance(t, 3, "links") {
			s = drawUplinks(t, s)
		}
		r := k.request(t, s)
		if len(r.Groups[0].Slices) == 0 {
			drawMbps(t, r)
		}
		before, err := plan(s, r, o)
		if err != nil {
			t.Fatal(err)
		}
		more := append(nodesOf(s), k.node(t, "more"))
		larger := cluster.NewSnapshot(2, s.Levels, s.Resources, more)
		if left := s.UplinksLeft(); left != nil {
			var uplinks []cluster.Uplink
			for level := range left {
				for i, d := range s.Domains(level) {
					if left[level][i] >= 0 {
						uplinks = append(uplinks, cluster.Uplink{Level: level, Path: s.At(d.First).Path[:level+1], Mbps: left[level][i]})
					}
				}
			}
			if larger, err = larger.WithUplinks(uplinks); err != nil {
				t.Fatal(err)
			}
		}
		after, err := plan(larger, r, o)
		if err != nil {
			t.Fatal(err)
		}
		return before.Feasible && (!after.Feasible || after.Size() < before.Size())
	}
	cases(t, 5000, func(t *rapid.T) {
		if hurt(t, Plan) {
			t.Fatal("a node more, and it does not fit any more")
		}
	})
	t.Run("fails for a planner that looks at half the nodes", func(t *testing.T) {
		found := false
		until(t, 666, &found, func(t *rapid.T) {
			found = found || hurt(t, func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
				limits := map[string]int{}
				for i, n := range s.Nodes() {
					if i >= s.Len()/2 {
						limits[n.Name] = 100
					}
				}
				copied := *r
				copied.Groups = slices.Clone(r.Groups)
				copied.Groups[0].Limits = limits
				return Plan(s, &copied, o)
			})
		})
		if !found {
			t.Error("the property holds for it")
		}
	})
}

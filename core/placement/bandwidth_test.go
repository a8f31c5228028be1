package placement

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// drawUplinks gives some domains of the world a capacity.
func drawUplinks(t *rapid.T, s *cluster.Snapshot) *cluster.Snapshot {
	var uplinks []cluster.Uplink
	for level := range s.Levels {
		for _, d := range s.Domains(level) {
			if rapid.Bool().Draw(t, "known") {
				uplinks = append(uplinks, cluster.Uplink{
					Level: level, Path: s.At(d.First).Path[:level+1], Mbps: int64(between(t, 0, 40, "capacity")),
				})
			}
		}
	}
	linked, err := s.WithUplinks(uplinks)
	if err != nil {
		t.Fatal(err)
	}
	return linked
}

// drawTraffic puts a workload with a promise on nodes of the world.
func drawTraffic(t *rapid.T, s *cluster.Snapshot) *cluster.Snapshot {
	w := &cluster.Workload{Name: "other", Mbps: int64(between(t, 1, 8, "promise"))}
	for range between(t, 0, 3, "its pods") {
		n := s.At(between(t, 0, s.Len()-1, "pod on"))
		s = s.Next(s.Generation+1, s.Resources, []*cluster.Node{n.With(&cluster.Pod{Workload: w})})
	}
	return s
}

func drawMbps(t *rapid.T, r *Request) {
	for i := range r.Groups {
		if len(r.Groups[i].Slices) == 0 {
			r.Groups[i].Mbps = oneOf[int64](t, "mbps", 10, 5, 1, 0)
		}
	}
}

func TestBandwidthIsKept(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 1, 7)
	cases(t, 8000, func(t *rapid.T) {
		s := drawTraffic(t, drawUplinks(t, k.world(t)))
		r := k.request(t, s)
		drawMbps(t, r)
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r), s.UplinksLeft())
		}
	})
	t.Log(count)
}

func TestBandwidthOfSeveralGroupsIsKept(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 3, 7)
	cases(t, 6000, func(t *rapid.T) {
		s := drawTraffic(t, drawUplinks(t, k.world(t)))
		r := k.request(t, s)
		drawMbps(t, r)
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r), s.UplinksLeft())
		}
	})
	t.Log(count)
}

// With slices and bandwidth what a domain takes is an estimate: every plan is sound, but not
// every plan is found.
func TestBandwidthOfSlicesIsKept(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 2, 7)
	cases(t, 5000, func(t *rapid.T) {
		s := drawTraffic(t, drawUplinks(t, k.world(t)))
		r := k.request(t, s)
		for i := range r.Groups {
			r.Groups[i].Mbps = oneOf[int64](t, "mbps", 10, 5, 1)
			r.Groups[i].MinCount = 0
		}
		problem := judged(s, r, Plan, o, count)
		if d, _ := Plan(s, r, o); problem != "" && d.Feasible {
			t.Fatal(problem, show(s, r), s.UplinksLeft())
		} else if problem != "" {
			count["missed"]++
		}
	})
	t.Log(count)
}

func TestIgnoringUplinksIsFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 7, 2, 7)
	for name, broken := range map[string]planFunc{
		"no bandwidth":   asking(func(g *Group) { g.Mbps = 0 }),
		"half of it":     asking(func(g *Group) { g.Mbps /= 2 }),
		"twice as much":  asking(func(g *Group) { g.Mbps *= 2 }),
		"other people's": seeing(func(n *cluster.Node) { n.Pods = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			until(t, 1000, &found, func(t *rapid.T) {
				s := drawTraffic(t, drawUplinks(t, k.world(t)))
				r := k.request(t, s)
				drawMbps(t, r)
				found = found || judged(s, r, broken, o, tally{}) != ""
			})
			if !found {
				t.Error("the property holds for it")
			}
		})
	}
}

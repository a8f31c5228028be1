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

// drawMbps gives the groups a bandwidth, but for those in slices, which are dear to judge.
func drawMbps(t *rapid.T, r *Request) {
	for i := range r.Groups {
		if len(r.Groups[i].Slices) == 0 {
			r.Groups[i].Mbps = oneOf[int64](t, "mbps", 10, 5, 1, 0)
		}
	}
}

// holdsBandwidth holds plans for drawn requests, of up to so many groups, in clusters with
// uplinks against trying everything: none that is found overloads an uplink, and none that there
// is goes unfound.
func holdsBandwidth(t *testing.T, groups, n int, ask func(*rapid.T, *Request)) {
	t.Helper()
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, groups, 7)
	cases(t, n, func(t *rapid.T) {
		s := drawTraffic(t, drawUplinks(t, k.world(t)))
		r := k.request(t, s)
		ask(t, r)
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r), s.UplinksLeft())
		}
	})
	t.Log(count)
}

func TestBandwidthIsKept(t *testing.T) { holdsBandwidth(t, 1, 8000, drawMbps) }

func TestBandwidthOfSeveralGroupsIsKept(t *testing.T) { holdsBandwidth(t, 3, 6000, drawMbps) }

// With slices what a domain takes is an estimate; what it cannot tell is searched for.
func TestBandwidthOfSlicesIsKept(t *testing.T) {
	holdsBandwidth(t, 2, 5000, func(t *rapid.T, r *Request) {
		for i := range r.Groups {
			r.Groups[i].Mbps = oneOf[int64](t, "mbps", 10, 5, 1)
		}
	})
}

func TestIgnoringUplinksIsFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 5, 1, 5)
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

package placement

import (
	"testing"

	"pgregory.net/rapid"
)

func TestKeptMembersAndNewOnesAreTogether(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 1, 6)
	k.plain = true
	cases(t, 4000, func(t *rapid.T) {
		k.devices = rapid.Bool().Draw(t, "devices")
		s := k.world(t)
		r := k.request(t, s)
		drawKept(t, s, &r.Groups[0], 5)
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
}

func TestKeptMembersAndNewOnesFormSlices(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 1, 6)
	cases(t, 6000, func(t *rapid.T) {
		k.plain = chance(t, 4, "plain")
		k.devices = rapid.Bool().Draw(t, "devices")
		s := k.world(t)
		r := k.request(t, s)
		g := &r.Groups[0]
		drawKept(t, s, g, 5)
		g.KeptInSlices = true
		if len(g.Slices) == 0 {
			g.Slices = drawSlices(t, g)
		}
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
}

func TestSlicesAreRejoinedBesideOtherGroups(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 6, 2, 7)
	cases(t, 5000, func(t *rapid.T) {
		k.plain = chance(t, 2, "plain")
		k.devices = chance(t, 3, "devices")
		s := k.world(t)
		r := k.request(t, s)
		g := &r.Groups[0]
		drawKept(t, s, g, 4)
		g.KeptInSlices, g.MinCount = true, 0
		if len(g.Slices) == 0 {
			g.Slices = drawSlices(t, g)
		}
		if problem := judged(s, r, Plan, o, count); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	})
	t.Log(count)
}

func TestMistakesInRejoiningAreFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 6, 1, 6)
	k.plain = true
	for name, broken := range map[string]planFunc{
		"forgets who stays":       asking(func(g *Group) { g.Kept = nil }),
		"slices the new pods":     asking(func(g *Group) { g.KeptInSlices = false }),
		"forgets one who stays":   asking(func(g *Group) { g.Kept = g.Kept[:max(0, len(g.Kept)-1)] }),
		"ignores inner slices":    asking(func(g *Group) { g.Slices = g.Slices[:min(1, len(g.Slices))] }),
		"ignores slices entirely": asking(func(g *Group) { g.Slices = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			until(t, 1000, &found, func(t *rapid.T) {
				s := k.world(t)
				r := k.request(t, s)
				g := &r.Groups[0]
				drawKept(t, s, g, 5)
				g.KeptInSlices, g.Slices = true, drawSlices(t, g)
				found = judged(s, r, broken, o, tally{}) != ""
			})
			if !found {
				t.Error("the property holds for it")
			}
		})
	}
}

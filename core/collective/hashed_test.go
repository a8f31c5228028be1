package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// alike is a number of uplinks that are crossed with the same flows.
type alike struct{ own, others, links, uplinks float64 }

// countFunc tells how many flows are expected on the fullest link with own flows. Broken variants
// can be put in the place of counted.
type countFunc func(all ...alike) float64

func counted(all ...alike) float64 {
	f := fullest{scale: 1}
	for _, a := range all {
		t := newTrunk(a.own, a.links)
		f.crowded(&t, a.others)
	}
	for _, a := range all {
		t := newTrunk(a.own, a.links)
		f.add(&t, a.others, a.uplinks)
	}
	return f.expected()
}

func TestFullestLinkByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []alike
		want float64
	}{
		{"one flow", []alike{{1, 0, 8, 1}}, 1},
		{"one flow on each of many uplinks", []alike{{1, 0, 8, 100}}, 1},
		// Whatever link it is on, it meets 3/4 of a flow there.
		{"one flow among others", []alike{{1, 3, 4, 1}}, 1.75},
		{"one flow and half another", []alike{{1, .5, 4, 1}}, 1.125},
		{"one link", []alike{{5, 3, 1, 1}}, 8},
		{"one link and a part of a flow", []alike{{5, .25, 1, 9}}, 5.25},
		{"half a link", []alike{{2, 1, .5, 1}}, 6},
		// A link with own flows has one of them with (1/2*1/2+1/2*1/2)/(3/4), and there are 3/2 such links.
		{"two flows on two links", []alike{{2, 0, 2, 1}}, 2 - math.Pow(2./3, 1.5)},
		// The other flow is elsewhere with 1/2, on both uplinks with 1/4.
		{"one and another on two uplinks of two links", []alike{{1, 1, 2, 2}}, 2 - 1./4},
		{"the same, told one by one", []alike{{1, 1, 2, 1}, {1, 1, 2, 1}}, 2 - 1./4},
		// 3/2 flows for sure, 2 unless both are elsewhere.
		{"with a slow uplink", []alike{{1, 1, 2, 2}, {1, .5, 1, 1}}, 1.5 + .5*3./4},
		{"a slow uplink is all that counts", []alike{{1, 1, 2, 2}, {4, 0, .5, 1}}, 8},
	} {
		near(t, c.name, counted(c.all...), c.want)
	}
}

// throwing is what throwing flows on links tells of the fullest one.
type throwing struct {
	alike
	fullest float64
	// allowed is how much a count may be off. Of few links, one has what the others have not, which the
	// model overlooks.
	allowed float64
}

// thrown throws flows on links, again and again.
func thrown(r *rand.Rand, a alike) throwing {
	throws := int(min(10_000, max(800, 500_000/(a.own+a.others)/a.uplinks)))
	links, sum := int(a.links), 0
	mine, all := make([]int, links), make([]int, links)
	for range throws {
		most := 0
		for range int(a.uplinks) {
			clear(mine)
			clear(all)
			for flow := range int(a.own + a.others) {
				l := r.IntN(links)
				if all[l]++; flow < int(a.own) {
					mine[l]++
				}
			}
			for l := range all {
				if mine[l] > 0 {
					most = max(most, all[l])
				}
			}
		}
		sum += most
	}
	t := throwing{alike: a, fullest: float64(sum) / float64(throws), allowed: .05}
	switch {
	case links < 8:
		t.allowed = .10
	case links < 32:
		t.allowed = .075
	}
	return t
}

func throwings() []throwing {
	r := rand.New(rand.NewPCG(7, 11))
	var all []throwing
	for _, links := range []float64{2, 4, 8, 32, 128} {
		for _, own := range []float64{1, 2, 8, 16, 128} {
			for _, others := range []float64{0, 3, 32, 100} {
				for _, uplinks := range []float64{1, 4, 16} {
					all = append(all, thrown(r, alike{own, others, links, uplinks}))
				}
			}
		}
	}
	return all
}

// offFrom returns how far a count is at most from throwing, in parts of what is allowed.
func offFrom(throwings []throwing, count countFunc) (worst float64, where string) {
	for _, t := range throwings {
		got := count(t.alike)
		if off := math.Abs(got/t.fullest-1) / t.allowed; off > worst {
			worst, where = off, fmt.Sprintf("%+v: got %.3f, by throwing %.3f", t.alike, got, t.fullest)
		}
	}
	return worst, where
}

func TestFullestLinkIsThatOfThrownFlows(t *testing.T) {
	all := throwings()
	if worst, where := offFrom(all, counted); worst > 1 {
		t.Error(where)
	}
	for mistake, broken := range map[string]countFunc{
		"divides evenly": func(all ...alike) float64 {
			return max(1, (all[0].own+all[0].others)/all[0].links)
		},
		"takes the average of others": func(all ...alike) float64 {
			a := all[0]
			return counted(alike{a.own, 0, a.links, a.uplinks}) + a.others/a.links
		},
		"takes links without own flows too": func(all ...alike) float64 {
			a := all[0]
			return counted(alike{a.own + a.others, 0, a.links, a.uplinks})
		},
		"takes the average of the uplinks": func(all ...alike) float64 {
			a := all[0]
			return counted(alike{a.own, a.others, a.links, 1})
		},
		"throws once for all uplinks": func(all ...alike) float64 {
			a := all[0]
			return counted(alike{a.own * a.uplinks, a.others * a.uplinks, a.links * a.uplinks, a.uplinks})
		},
		"counts a link more": func(all ...alike) float64 {
			all[0].links++
			return counted(all...)
		},
	} {
		if worst, _ := offFrom(all, broken); worst <= 1 {
			t.Errorf("who %s is right as well", mistake)
		}
	}
}

func drawAlike(t *rapid.T) alike {
	links := number(t, .1, 3, "links")
	if rapid.Bool().Draw(t, "many links") {
		links = number(t, 3, 5000, "links")
	}
	// No more than a crowd: there, flows are counted by the handful.
	most := int(min(500, crowd*max(1, links)/2))
	return alike{
		own: float64(integer(t, 1, most, "own")), others: float64(integer(t, 0, most, "others")),
		links: links, uplinks: float64(integer(t, 1, 20, "uplinks")),
	}
}

// countProperties draw uplinks and tell what is wrong with their count, "" if nothing.
func countProperties() map[string]func(t *rapid.T, count countFunc) string {
	grows := func(edit func(t *rapid.T, a *alike)) func(*rapid.T, countFunc) string {
		return func(t *rapid.T, count countFunc) string {
			a, other := drawAlike(t), drawAlike(t)
			more := a
			edit(t, &more)
			before, after := count(a, other), count(more, other)
			if after < before*(1-1e-6) {
				return fmt.Sprintf("%v became %v, of %+v and %+v, and %+v", before, after, a, more, other)
			}
			return ""
		}
	}
	return map[string]func(*rapid.T, countFunc) string{
		"own flows add":   grows(func(t *rapid.T, a *alike) { a.own += float64(integer(t, 1, 50, "more")) }),
		"others add":      grows(func(t *rapid.T, a *alike) { a.others += float64(integer(t, 1, 50, "more")) }),
		"uplinks add":     grows(func(t *rapid.T, a *alike) { a.uplinks += float64(integer(t, 1, 50, "more")) }),
		"fewer links add": grows(func(t *rapid.T, a *alike) { a.links /= number(t, 1, 4, "fewer") }),
		"parts of others add": func(t *rapid.T, count countFunc) string {
			a := drawAlike(t)
			a.links, a.others = max(a.links, 1.5), number(t, 0, 20, "others")
			more := a
			more.others += number(t, 0, 1, "more")
			before, after := count(a), count(more)
			if after < before*(1-1e-6) {
				return fmt.Sprintf("%v became %v, of %+v and %+v", before, after, a, more)
			}
			return ""
		},
		"never below the average": func(t *rapid.T, count countFunc) string {
			a := drawAlike(t)
			a.others *= number(t, 0, 1, "part")
			if got, mean := count(a), (a.own+a.others)/a.links; got < mean*(1-1e-6) || got < 1 {
				return fmt.Sprintf("%v, on the average %v, of %+v", got, mean, a)
			}
			return ""
		},
	}
}

func TestCountProperties(t *testing.T) {
	edited := func(edit func(a *alike)) countFunc {
		return func(all ...alike) float64 {
			for i := range all {
				edit(&all[i])
			}
			return counted(all...)
		}
	}
	mistakes := map[string]map[string]countFunc{
		"own flows add":   {"counts own flows of a byte": edited(func(a *alike) { a.own = 1 + math.Mod(a.own, 256) })},
		"others add":      {"lets others go first": edited(func(a *alike) { a.own = max(1, a.own-a.others) })},
		"uplinks add":     {"shares the others out": edited(func(a *alike) { a.others /= a.uplinks })},
		"fewer links add": {"rounds links up": edited(func(a *alike) { a.own = max(1, a.own*(math.Ceil(a.links)-a.links)) })},
		"parts of others add": {
			"shows a flow once it is half there": edited(func(a *alike) { a.others = math.Floor(a.others) + math.Abs(math.Mod(a.others, 1)-.5) }),
		},
		"never below the average": {
			"rounds others down": edited(func(a *alike) { a.others = math.Floor(a.others) }),
			"counts a link more": edited(func(a *alike) { a.links++ }),
		},
	}
	for name, holds := range countProperties() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if wrong := holds(t, counted); wrong != "" {
					t.Fatal(wrong)
				}
			})
			if len(mistakes[name]) == 0 {
				t.Error("no mistake to find")
			}
			for mistake, broken := range mistakes[name] {
				found := false
				until(t, &found, func(t *rapid.T) { found = holds(t, broken) != "" })
				if !found {
					t.Errorf("it holds for what %s", mistake)
				}
			}
		})
	}
}

// However many flows there are, counting comes to an end, and near what it was just before.
func TestCrowdsAreCountedByTheHandful(t *testing.T) {
	for _, links := range []float64{1.0001, 1.5, 2, 64, 1e6} {
		less := counted(alike{8, (crowd - 9) * links, links, 4})
		more := counted(alike{8, (crowd + 9) * links, links, 4})
		if crowdedFar := counted(alike{8, 1e6 * links, links, 4}); more < less || more > 1.1*less || crowdedFar < 1e6 || crowdedFar > 2e6 {
			t.Errorf("%v links: %v became %v, and of a million a link %v", links, less, more, crowdedFar)
		}
	}
}

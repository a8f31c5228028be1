package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

type standingsFunc func(*cluster.Snapshot, *Request, Options) ([]Standing, error)

// misjudged draws a single pod and returns a node of which the survey says other than Plan, asked
// about this node alone; and where the best node is not the one that Plan takes of all.
func misjudged(t *rapid.T, k *kit, survey standingsFunc, o Options) string {
	s, r := k.world(t), (*Request)(nil)
	r = k.request(t, s)
	g := &r.Groups[0]
	r.Groups, r.Sets = r.Groups[:1], nil
	g.Count, g.MinCount, g.Slices, g.Kept, g.Limits = 1, 0, nil, nil, nil
	g.Topology.Preferred = AnyLevel
	o.Cache = &Cache{}
	standings, err := survey(s, r, o)
	if err != nil || len(standings) != s.Len() {
		return fmt.Sprintf("%d standings of %d nodes, %v%s", len(standings), s.Len(), err, show(s, r))
	}
	best := -1
	for i, n := range s.Nodes() {
		alone := *r
		alone.Groups = []Group{*g}
		alone.Groups[0].Limits = map[string]int{n.Name: 1}
		d, err := Plan(s, &alone, o)
		if err != nil {
			return err.Error()
		}
		if fits := standings[i].Reason == Fits; fits != d.Feasible {
			return fmt.Sprintf("node %s: the survey says %v, a plan there %v%s", n.Name, standings[i].Reason, d.Feasible, show(s, r))
		}
		if standings[i].Reason == Fits && (best < 0 || standings[i].Score > standings[best].Score) {
			best = i
		}
	}
	d, err := Plan(s, r, o)
	switch {
	case err != nil:
		return err.Error()
	case r.Strategy == "random":
		return "" // It picks by number, not by score.
	case best >= 0 && (!d.Feasible || d.Nodes()[0] != s.At(best).Name):
		return fmt.Sprintf("the best is %s, the plan %v%s", s.At(best).Name, d.Nodes(), show(s, r))
	}
	return ""
}

func TestStandingsAgreeWithPlans(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 8, 1, 1)
	k.devices = true
	cases(t, 1000, func(t *rapid.T) {
		if problem := misjudged(t, k, Standings, o); problem != "" {
			t.Fatal(problem)
		}
	})
}

// A survey that misses what the request, and not the pod, keeps nodes out for, and one that does
// not score, are found.
func TestStandingsPropertyFindsMistakes(t *testing.T) {
	o := Options{Strategies: registry(t)}
	for name, broken := range map[string]standingsFunc{
		"the request's own limits": func(s *cluster.Snapshot, r *Request, o Options) ([]Standing, error) {
			own := *r
			own.Avoid = nil
			own.Groups = []Group{r.Groups[0]}
			own.Groups[0].Topology = NoTopology()
			return Standings(s, &own, o)
		},
		"scores": func(s *cluster.Snapshot, r *Request, o Options) ([]Standing, error) {
			standings, err := Standings(s, r, o)
			for i := range standings {
				standings[i].Score = 0
			}
			return standings, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, found := newKit(t, 8, 1, 1), false
			until(t, 1000, &found, func(t *rapid.T) { found = misjudged(t, k, broken, o) != "" })
			if !found {
				t.Error("the property holds for a survey that forgets")
			}
		})
	}
}

func TestStandingsSayWhatWouldHelp(t *testing.T) {
	s := world(
		nodeSpec{name: "full", gpus: 8, used: 8},
		nodeSpec{name: "small", gpus: 2},
		nodeSpec{name: "cordoned", gpus: 8, edit: func(n *cluster.Node) { n.Cordoned = true }},
		nodeSpec{name: "free", gpus: 8},
	)
	standings, err := Standings(s, ask(1, 4), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Reason{"full": GPUsTaken, "small": NodeTooSmall, "cordoned": IsCordoned, "free": Fits} {
		if got := standings[s.IndexOf(name)].Reason; got != want || got.Taken() != (name == "full") {
			t.Errorf("%s: %v, taken %v", name, got, got.Taken())
		}
	}
	if _, err := Standings(s, &Request{Strategy: "leastLoaded", Groups: []Group{{Count: 1}, {Count: 1}}}, Options{}); err == nil {
		t.Error("several groups are answered")
	}
}

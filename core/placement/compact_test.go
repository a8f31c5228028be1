package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// domainsUsed counts the domains of each level that the nodes are in, widest first.
func domainsUsed(s *cluster.Snapshot, nodes []string) []int {
	counts := make([]int, len(s.Levels))
	for level := range counts {
		seen := map[string]bool{}
		for _, name := range nodes {
			seen[key(s.Node(name), level)] = true
		}
		counts[level] = len(seen)
	}
	return counts
}

// fewest returns the fewest domains of each level in which the group may be at the given size,
// where fewer of a wider level come first.
func (b *brute) fewest(size int) []int {
	var best []int
	b.visit = func() bool {
		if used := domainsUsed(b.s, b.nodesOf(0)); best == nil || slices.Compare(used, best) < 0 {
			best = used
		}
		return false
	}
	b.fits([]int{size})
	if b.steps >= bruteSteps {
		return nil
	}
	return best
}

func packers() []Strategy {
	return slices.DeleteFunc(Builtin(), func(s Strategy) bool {
		p, ok := s.(Packer)
		return !ok || !p.Packs()
	})
}

// few plans a drawn request of a packer and returns how many domains of each level it is in, and
// how many would do; nil if there is no plan.
func few(t *rapid.T, k *kit, plan planFunc, o Options) (s *cluster.Snapshot, r *Request, used, best []int) {
	s = k.world(t)
	r = k.request(t, s)
	r.Strategy = packers()[between(t, 0, len(packers())-1, "packer")].Name()
	r.Groups[0].Topology.Preferred = between(t, r.Groups[0].Topology.Required, host, "preferred")
	d, err := plan(s, r, o)
	if err != nil || !d.Feasible {
		return s, r, nil, nil
	}
	if best = newBrute(s, r).fewest(d.Size()); best == nil {
		return s, r, nil, nil
	}
	return s, r, domainsUsed(s, d.Groups[0].Nodes), best
}

// firstWorse is the widest level of which more domains are used than would do, -1 for none.
func firstWorse(used, best []int) int {
	for level := range used {
		if used[level] != best[level] {
			return level
		}
	}
	return -1
}

// Packing strategies use as few domains of the widest level as can be, and nearly always as few
// of the others. With a short last slice they may use one more: it goes where it costs no whole
// slice, whatever domain that is in.
func TestPackersUseFewDomains(t *testing.T) {
	o, count := Options{Strategies: registry(t)}, tally{}
	k := newKit(t, 7, 1, 8)
	k.plain = true
	cases(t, 10000, func(t *rapid.T) {
		s, r, used, best := few(t, k, Plan, o)
		if used == nil {
			return
		}
		count["all"]++
		level := firstWorse(used, best)
		if level < 0 {
			return
		}
		count["more "+s.Levels[level].Name+"s than needed"]++
		g := &r.Groups[0]
		if short := len(g.Slices) > 0 && g.Count%g.Slices[0].Size > 0; short {
			count["of them with a short slice"]++
		} else if level <= max(spine, g.Topology.Required+1) {
			t.Fatalf("in %v domains, %v would do%s", used, best, show(s, r))
		}
	})
	worse := 0
	for _, level := range testLevels() {
		worse += count["more "+level.Name+"s than needed"]
	}
	t.Log(count)
	if worse*50 > count["all"] {
		t.Errorf("%d of %d plans use more domains than needed", worse, count["all"])
	}
}

func TestSpreadingIsFound(t *testing.T) {
	o := Options{Strategies: registry(t)}
	k := newKit(t, 7, 1, 8)
	k.plain = true
	found := false
	until(t, 500, &found, func(t *rapid.T) {
		_, _, used, best := few(t, k, func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			copied := *r
			copied.Strategy = "leastLoaded"
			return Plan(s, &copied, o)
		}, o)
		found = used != nil && firstWorse(used, best) >= 0
	})
	if !found {
		t.Error("spreading was never found out")
	}
}

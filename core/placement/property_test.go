package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// planFunc is what the properties are about, so that broken variants can be put in its place.
type planFunc func(*cluster.Snapshot, *Request, Options) (Decision, error)

// drawWorld draws a small cluster and a request, small enough to search by brute force.
func drawWorld(t *rapid.T) (*cluster.Snapshot, *Request) {
	specs := make([]nodeSpec, rapid.IntRange(1, 7).Draw(t, "nodes"))
	for i := range specs {
		gpus := rapid.Int64Range(0, 8).Draw(t, "gpus")
		specs[i] = nodeSpec{
			name:  fmt.Sprintf("n%d", i),
			spine: rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "spine"),
			leaf:  rapid.SampledFrom([]string{"l1", "l2", "l3", ""}).Draw(t, "leaf"),
			gpus:  gpus,
			used:  rapid.Int64Range(0, gpus).Draw(t, "used"),
		}
		ready := rapid.IntRange(0, 9).Draw(t, "ready") > 0
		isCheap := rapid.Bool().Draw(t, "cheap")
		specs[i].edit = func(n *cluster.Node) {
			n.Ready = ready
			if isCheap {
				cheap(n)
			}
		}
	}
	r := ask(rapid.IntRange(1, 6).Draw(t, "count"), rapid.Int64Range(1, 4).Draw(t, "gpus a pod"))
	r.Strategy = rapid.SampledFrom([]string{"leastLoaded", "random", "costOptimized"}).Draw(t, "strategy")
	r.Seed = rapid.Uint64().Draw(t, "seed")
	r.Groups[0].MinCount = rapid.IntRange(0, r.Groups[0].Count).Draw(t, "least")
	r.Groups[0].Topology.Required = rapid.IntRange(AnyLevel, host).Draw(t, "required")
	r.Groups[0].Topology.Preferred = rapid.IntRange(AnyLevel, host).Draw(t, "preferred")
	if size := rapid.IntRange(1, 3).Draw(t, "slice"); r.Groups[0].Count%size == 0 && rapid.Bool().Draw(t, "sliced") {
		r.Groups[0].Slices = []Slice{{rapid.IntRange(max(spine, r.Groups[0].Topology.Required), host).Draw(t, "slice level"), size}}
	}
	return world(specs...), r
}

// checkPlan returns what is wrong with the plan of a drawn world, "" if nothing.
func checkPlan(t *rapid.T, plan planFunc, o Options) string {
	s, r := drawWorld(t)
	d, err := plan(s, r, o)
	if err != nil {
		return err.Error()
	}
	best := largestGang(s, r)
	switch {
	case !d.Feasible && best >= r.Groups[0].least():
		return fmt.Sprintf("refused (%s), but %d pods fit", d.Why.Sentence, best)
	case !d.Feasible:
		return ""
	case len(d.Nodes()) < r.Groups[0].least() || len(d.Nodes()) > r.Groups[0].Count:
		return fmt.Sprintf("%d pods placed, between %d and %d were asked for", len(d.Nodes()), r.Groups[0].least(), r.Groups[0].Count)
	case len(d.Nodes()) < best:
		return fmt.Sprintf("%d pods placed, %d fit", len(d.Nodes()), best)
	}
	return checkWorld(s, r, d.Nodes())
}

// checkWorld judges a placement by the world alone: nothing oversold, nothing on a node out of
// service, the gang in one domain, each slice in one domain.
func checkWorld(s *cluster.Snapshot, r *Request, nodes []string) string {
	taken := map[string]int64{}
	for _, name := range nodes {
		taken[name] += r.Groups[0].Pod.GPUs
	}
	for name, gpus := range taken {
		n := s.Node(name)
		if n == nil || !n.Ready {
			return fmt.Sprintf("placed on %s, which is not in service", name)
		}
		if free := n.Allocatable[gpuResource] - n.Used[gpuResource]; gpus > free {
			return fmt.Sprintf("%d GPUs planned on %s, %d are free", gpus, name, free)
		}
	}
	if !together(s, nodes, r.Groups[0].Topology.Required) {
		return "the gang is not in one domain of the required level"
	}
	for _, sl := range r.Groups[0].Slices {
		for i := 0; i < len(nodes); i += sl.Size {
			if !together(s, nodes[i:min(i+sl.Size, len(nodes))], sl.Level) {
				return fmt.Sprintf("slice %d is torn", i/sl.Size)
			}
		}
	}
	return ""
}

func together(s *cluster.Snapshot, nodes []string, level int) bool {
	if level < 0 {
		return true
	}
	for _, name := range nodes {
		if key(s.Node(name), level) == "" || key(s.Node(name), level) != key(s.Node(nodes[0]), level) {
			return false
		}
	}
	return true
}

// key names a domain by its whole path, "" for a node in none.
func key(n *cluster.Node, level int) string {
	if n.Path[level] == "" {
		return ""
	}
	return fmt.Sprint(n.Path[:level+1])
}

// largestGang finds, the slow way, the most pods of the request that fit: per domain of the
// required level, pods per part in which a slice must be whole.
func largestGang(s *cluster.Snapshot, r *Request) int {
	size, sliceLevel := 1, AnyLevel
	for _, sl := range r.Groups[0].Slices {
		size, sliceLevel = sl.Size, sl.Level
	}
	byDomain := map[string]map[string]int{}
	for _, n := range s.Nodes() {
		domain, part := "all", "all"
		if r.Groups[0].Topology.Required >= 0 {
			domain = key(n, r.Groups[0].Topology.Required)
		}
		if sliceLevel >= 0 {
			part = key(n, sliceLevel)
		}
		if !n.Ready || domain == "" || part == "" {
			continue
		}
		if byDomain[domain] == nil {
			byDomain[domain] = map[string]int{}
		}
		byDomain[domain][part] += int((n.Allocatable[gpuResource] - n.Used[gpuResource]) / r.Groups[0].Pod.GPUs)
	}
	best := 0
	for _, parts := range byDomain {
		room := 0
		for _, n := range parts {
			room += n / size * size
		}
		best = max(best, min(room, r.Groups[0].Count))
	}
	return best
}

func TestPlansAreSoundAndComplete(t *testing.T) {
	o := Options{Strategies: registry(t)}
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkPlan(t, Plan, o); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestPlanPropertyFindsMistakes(t *testing.T) {
	o := Options{Strategies: registry(t)}
	edited := func(edit func(*Request)) planFunc {
		return func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			copied := *r
			copied.Groups = slices.Clone(r.Groups)
			copied.Groups[0].Pod.Resources = r.Groups[0].Pod.Resources.Clone()
			edit(&copied)
			return Plan(s, &copied, o)
		}
	}
	for name, broken := range map[string]planFunc{
		"ignores the required level": edited(func(r *Request) { r.Groups[0].Topology.Required = AnyLevel }),
		"ignores slices":             edited(func(r *Request) { r.Groups[0].Slices = nil }),
		"ignores the minimum":        edited(func(r *Request) { r.Groups[0].MinCount = 1 }),
		"never elastic":              edited(func(r *Request) { r.Groups[0].MinCount = 0 }),
		"oversells by one GPU":       edited(func(r *Request) { r.Groups[0].Pod.GPUs--; r.Groups[0].Pod.Resources[gpuResource]-- }),
		"forgets what is used": func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			nodes := make([]*cluster.Node, s.Len())
			for i, n := range s.Nodes() {
				copied := *n
				copied.Used = nil
				nodes[i] = &copied
			}
			return Plan(cluster.NewSnapshot(1, s.Levels, s.Resources, nodes), r, o)
		},
		"gives up too early": func(s *cluster.Snapshot, r *Request, o Options) (Decision, error) {
			if s.Len() > 4 {
				return Decision{}, nil
			}
			return Plan(s, r, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			// A hundred draws miss a rare mistake now and then; a thousand do not.
			for range 10 {
				rapid.Check(t, func(t *rapid.T) {
					found = found || checkPlan(t, broken, o) != ""
				})
			}
			if !found {
				t.Error("the property holds for a broken planner")
			}
		})
	}
}

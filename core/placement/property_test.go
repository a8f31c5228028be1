package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// planFunc is what the properties are about, so that broken variants can be put in its place.
type planFunc func(*cluster.Snapshot, *Request, *Registry) (Decision, error)

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
	r.MinCount = rapid.IntRange(0, r.Count).Draw(t, "least")
	r.Topology.Required = rapid.IntRange(AnyLevel, host).Draw(t, "required")
	r.Topology.Preferred = rapid.IntRange(AnyLevel, host).Draw(t, "preferred")
	if size := rapid.IntRange(1, 3).Draw(t, "slice"); r.Count%size == 0 && rapid.Bool().Draw(t, "sliced") {
		r.Topology.SliceLevel, r.Topology.SliceSize = rapid.IntRange(spine, host).Draw(t, "slice level"), size
	}
	return world(specs...), r
}

// checkPlan returns what is wrong with the plan of a drawn world, "" if nothing.
func checkPlan(t *rapid.T, plan planFunc, strategies *Registry) string {
	s, r := drawWorld(t)
	d, err := plan(s, r, strategies)
	if err != nil {
		return err.Error()
	}
	best := largestGang(s, r)
	switch {
	case !d.Feasible && best >= r.least():
		return fmt.Sprintf("refused (%s), but %d pods fit", d.Why.Sentence, best)
	case !d.Feasible:
		return ""
	case len(d.Nodes) < r.least() || len(d.Nodes) > r.Count:
		return fmt.Sprintf("%d pods placed, between %d and %d were asked for", len(d.Nodes), r.least(), r.Count)
	case len(d.Nodes) < best:
		return fmt.Sprintf("%d pods placed, %d fit", len(d.Nodes), best)
	}
	return checkWorld(s, r, d.Nodes)
}

// checkWorld judges a placement by the world alone: nothing oversold, nothing on a node out of
// service, the gang in one domain, each slice in one domain.
func checkWorld(s *cluster.Snapshot, r *Request, nodes []string) string {
	taken := map[string]int64{}
	for _, name := range nodes {
		taken[name] += r.Pod.GPUs
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
	if !together(s, nodes, r.Topology.Required) {
		return "the gang is not in one domain of the required level"
	}
	if size := r.Topology.SliceSize; r.Topology.SliceLevel >= 0 {
		for i := 0; i+size <= len(nodes); i += size {
			if !together(s, nodes[i:i+size], r.Topology.SliceLevel) {
				return fmt.Sprintf("slice %d is torn", i/size)
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
	size := max(r.Topology.SliceSize, 1)
	if r.Topology.SliceLevel < 0 {
		size = 1
	}
	byDomain := map[string]map[string]int{}
	for _, n := range s.Nodes {
		domain, part := "all", "all"
		if r.Topology.Required >= 0 {
			domain = key(n, r.Topology.Required)
		}
		if r.Topology.SliceLevel >= 0 {
			part = key(n, r.Topology.SliceLevel)
		}
		if !n.Ready || domain == "" || part == "" {
			continue
		}
		if byDomain[domain] == nil {
			byDomain[domain] = map[string]int{}
		}
		byDomain[domain][part] += int((n.Allocatable[gpuResource] - n.Used[gpuResource]) / r.Pod.GPUs)
	}
	best := 0
	for _, parts := range byDomain {
		room := 0
		for _, n := range parts {
			room += n / size * size
		}
		best = max(best, min(room, r.Count))
	}
	return best
}

func TestPlansAreSoundAndComplete(t *testing.T) {
	strategies := registry(t)
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkPlan(t, Plan, strategies); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: each of these mistakes is found.
func TestPlanPropertyFindsMistakes(t *testing.T) {
	strategies := registry(t)
	edited := func(edit func(*Request)) planFunc {
		return func(s *cluster.Snapshot, r *Request, reg *Registry) (Decision, error) {
			copied := *r
			edit(&copied)
			return Plan(s, &copied, reg)
		}
	}
	for name, broken := range map[string]planFunc{
		"ignores the required level": edited(func(r *Request) { r.Topology.Required = AnyLevel }),
		"ignores slices":             edited(func(r *Request) { r.Topology.SliceLevel = AnyLevel }),
		"ignores the minimum":        edited(func(r *Request) { r.MinCount = 1 }),
		"never elastic":              edited(func(r *Request) { r.MinCount = 0 }),
		"oversells by one GPU":       edited(func(r *Request) { r.Pod.GPUs--; r.Pod.Resources[gpuResource]-- }),
		"forgets what is used": func(s *cluster.Snapshot, r *Request, reg *Registry) (Decision, error) {
			nodes := make([]*cluster.Node, len(s.Nodes))
			for i, n := range s.Nodes {
				copied := *n
				copied.Used = nil
				nodes[i] = &copied
			}
			return Plan(cluster.NewSnapshot(1, s.Levels, s.Resources, nodes), r, reg)
		},
		"gives up too early": func(s *cluster.Snapshot, r *Request, reg *Registry) (Decision, error) {
			if len(s.Nodes) > 4 {
				return Decision{}, nil
			}
			return Plan(s, r, reg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				found = found || checkPlan(t, broken, strategies) != ""
			})
			if !found {
				t.Error("the property holds for a broken planner")
			}
		})
	}
}

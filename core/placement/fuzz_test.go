package placement

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// script reads what is to be tried from bytes; beyond the end it reads zeros.
type script struct{ bytes []byte }

func (c *script) next() int {
	if len(c.bytes) == 0 {
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return int(b)
}

func (c *script) upTo(n int) int { return c.next() % n }

// number is mostly small, and sometimes absurd.
func (c *script) number() int64 {
	switch b := c.next(); {
	case b < 240:
		return int64(b % 12)
	default:
		return []int64{-1, math.MinInt64, math.MaxInt64, 1 << 60, 1<<60 + 1, 1 << 31, 1 << 20, 1<<20 + 1, 1 << 30, -5, 1000, 64, 65, 100, 1 << 40, 0}[b-240]
	}
}

func (c *script) float() float64 {
	return []float64{1, 0, 40, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-300}[c.upTo(9)]
}

func (c *script) name() string {
	return []string{"n0", "n1", "", "n2", "gone", "a/b", "s1"}[c.upTo(7)]
}

func (k *kit) scripted(c *script) *cluster.Snapshot {
	nodes := make([]*cluster.Node, c.upTo(6))
	for i := range nodes {
		labels := map[string]string{"spine": c.name(), "leaf": c.name(), "host": fmt.Sprintf("n%d", i)}
		n := &cluster.Node{Machine: &cluster.Machine{
			Name: fmt.Sprintf("n%d", i), Ready: c.upTo(8) > 0, Cordoned: c.upTo(8) == 7,
			Labels: labels, Path: cluster.PathOf(testLevels(), labels),
		}}
		for range c.upTo(7) {
			n.Allocatable = append(n.Allocatable, c.number())
			n.Used = append(n.Used, c.number())
		}
		n.GPU.Replicas = int(c.number())
		n.Board = k.boards[c.upTo(5)]
		n.Broken, n.Taken = gpu.Mask(c.next()), gpu.Mask(c.next())
		if c.upTo(2) == 1 {
			n.Geometry = k.geometry
		}
		for range c.upTo(4) {
			n.Shares = append(n.Shares, int16(c.number()))
			n.Instances = append(n.Instances, gpu.Instance{
				GPU: c.upTo(5), Profile: k.profile(c), Start: c.upTo(9), Size: c.upTo(9), Used: c.upTo(2) == 1,
			})
		}
		nodes[i] = n
	}
	return cluster.NewSnapshot(1, testLevels(), drawnResources(), nodes)
}

func (k *kit) profile(c *script) string {
	return []string{"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb", "", "9g.1gb"}[c.upTo(6)]
}

func (k *kit) scriptedShape(c *script) Shape {
	names := []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "", "x"}
	q := Shape{GPUResource: int(c.number()), GPUResourceName: names[c.upTo(5)], GPUs: c.number(), Milli: int(c.number())}
	for range c.upTo(8) {
		q.Resources = append(q.Resources, c.number())
	}
	if c.upTo(2) == 0 && q.GPUs >= 0 && q.GPUs < 100 {
		q.count("nvidia.com/gpu", gpuResource, int(q.GPUs))
	}
	for range c.upTo(4) {
		q.MIG = append(q.MIG, k.profile(c))
	}
	q.Include = gpu.Mask(c.next() / 32)
	q.Prefer = []Preference{AnyGPUs, PreferNVLink, PreferNUMA, PreferPCIe, "x"}[c.upTo(5)]
	if c.upTo(5) == 4 {
		q.Likes = []Like{{Term: cluster.Term{{Key: "leaf", Operator: cluster.Exists}}, Weight: int(c.number())}}
	}
	return q
}

func scriptedTopology(c *script) Topology {
	level := func() int { return []int{AnyLevel, spine, leaf, host, AnyLevel, 3, -2, 99}[c.upTo(8)] }
	return Topology{Required: level(), Preferred: level()}
}

func (k *kit) scriptedRequest(c *script) *Request {
	names := []string{"leastLoaded", "random", "costOptimized", "binPack", "topologyAware", "fragmentationAware", "", "x"}
	r := &Request{Strategy: names[c.upTo(8)], Seed: uint64(c.next())}
	for range c.upTo(5) {
		g := Group{Name: c.name(), Count: int(c.number()), MinCount: int(c.number()) - 1, Pod: k.scriptedShape(c), Topology: scriptedTopology(c)}
		if c.upTo(3) > 0 {
			g.MinCount = 0
		}
		for range c.upTo(3) {
			g.Slices = append(g.Slices, Slice{Level: c.upTo(5) - 1, Size: int(c.number())})
		}
		if c.upTo(4) == 3 {
			g.Mbps = c.number()
		}
		for range c.upTo(3) {
			g.Kept = append(g.Kept, c.name())
		}
		g.KeptInSlices = c.upTo(4) == 3
		if c.upTo(4) == 3 {
			g.Limits = map[string]int{c.name(): int(c.number()), c.name(): int(c.number())}
		}
		r.Groups = append(r.Groups, g)
	}
	for range c.upTo(3) {
		set := Set{Topology: scriptedTopology(c)}
		for range c.upTo(4) {
			set.Groups = append(set.Groups, c.upTo(5)-c.upTo(2))
		}
		r.Sets = append(r.Sets, set)
	}
	for range c.upTo(3) {
		r.Avoid = append(r.Avoid, c.name())
	}
	return r
}

func scriptedScoring(c *script) *Scoring {
	if c.upTo(2) == 0 {
		return nil
	}
	return &Scoring{
		Node:    NodeWeights{Topology: c.float(), Resources: c.float(), Balance: c.float(), Hint: c.float()},
		Domain:  DomainWeights{Availability: c.float(), Alignment: c.float(), Utilization: c.float(), History: c.float()},
		History: map[string]float64{"s1": c.float(), "": c.float()},
		Hint:    map[string]float64{"n0": c.float(), "": c.float()},
		Mix:     []Expected{{GPUs: int(c.number()), Milli: int(c.number()), Weight: c.float(), Resources: cluster.Vector{c.number(), c.number()}}},
	}
}

// tries plans what the bytes say and returns what is wrong with the answer.
func (k *kit) tries(t testing.TB, data []byte) {
	c := &script{bytes: data}
	s := k.scripted(c)
	if c.upTo(3) == 2 {
		var uplinks []cluster.Uplink
		for _, d := range s.Domains(leaf) {
			uplinks = append(uplinks, cluster.Uplink{Level: leaf, Path: s.At(d.First).Path[:leaf+1], Mbps: c.number()})
		}
		linked, err := s.WithUplinks(uplinks)
		if err != nil {
			t.Fatal(err)
		}
		s = linked
	}
	r := k.scriptedRequest(c)
	o := Options{Scoring: scriptedScoring(c), Explain: c.upTo(2) == 1, Budget: int(c.number())}
	start := time.Now()
	d, err := Plan(s, r, o)
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("took %v%s", took, show(s, r))
	}
	if err != nil || !d.Feasible {
		return
	}
	pods := d.Placements(r, &cluster.Workload{Name: "w"})
	if len(pods) == 0 {
		t.Fatal("a plan without pods")
	}
	if err := s.Begin().Place(pods...); err != nil {
		t.Fatalf("%v%s", err, show(s, r))
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if n := len(d.Groups[i].Nodes); n < minimum(g) || n > g.Count {
			t.Fatalf("%d pods of group %d%s", n, i, show(s, r))
		}
		if slices.ContainsFunc(g.Kept, func(name string) bool { return s.Node(name) == nil }) || g.KeptInSlices {
			continue // Where members on lost nodes count is not said.
		}
		if problem := wrongPlaces(s, g, d.Groups[i].Nodes); problem != "" {
			t.Fatal(problem, show(s, r))
		}
	}
}

// FuzzPlan plans absurd requests over absurd worlds: whatever is asked, there is no panic, no
// endless search, and no plan that a Txn does not take.
func FuzzPlan(f *testing.F) {
	k := newKit(f, 6, 3, 6)
	for seed := range 200 {
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(mix(uint64(seed*1000+i)) % 251)
			if seed%2 == 0 {
				data[i] %= 240
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { k.tries(t, data) })
}

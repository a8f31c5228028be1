package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

func TestStrategiesChooseTheirNode(t *testing.T) {
	s := world(
		nodeSpec{name: "a", gpus: 8, used: 6},
		nodeSpec{name: "b", gpus: 8, used: 2},
		nodeSpec{name: "c", gpus: 8, used: 5, edit: cheap},
		nodeSpec{name: "d", gpus: 8, used: 4, edit: cheap},
		nodeSpec{name: "e", gpus: 8, used: 2},
	)
	for _, c := range []struct {
		strategy string
		gpus     int64
		want     string
	}{
		{"leastLoaded", 1, "b"},   // most free; the tie with e goes to the first
		{"costOptimized", 1, "d"}, // cheap, and the emptier of the cheap ones
		{"costOptimized", 6, "b"}, // no cheap node fits: leastLoaded
	} {
		d := plan(t, s, ask(1, c.gpus, func(r *Request) { r.Strategy = c.strategy }))
		if !d.Feasible || d.Nodes()[0] != c.want {
			t.Errorf("%s with %d GPUs: got %v, want %s", c.strategy, c.gpus, d.Nodes(), c.want)
		}
	}
}

func TestRandomIsRepeatableAndFair(t *testing.T) {
	s := world(nodeSpec{name: "a", gpus: 8}, nodeSpec{name: "b", gpus: 8}, nodeSpec{name: "c", gpus: 8}, nodeSpec{name: "d", gpus: 8, used: 8})
	count := map[string]int{}
	for seed := range uint64(3000) {
		r := ask(1, 1, func(r *Request) { r.Strategy, r.Seed = "random", seed })
		first, again := plan(t, s, r).Nodes()[0], plan(t, s, r).Nodes()[0]
		if first != again {
			t.Fatalf("seed %d gave %s and then %s", seed, first, again)
		}
		count[first]++
	}
	for _, name := range []string{"a", "b", "c"} {
		// Expected 1,000, standard deviation 26: five of them either way.
		if count[name] < 870 || count[name] > 1130 {
			t.Errorf("random chose %s %d times of 3000", name, count[name])
		}
	}
	if count["d"] > 0 {
		t.Error("random chose a full node")
	}
}

func TestUnknownStrategyNamesTheKnownOnes(t *testing.T) {
	_, err := Plan(world(nodeSpec{name: "a", gpus: 8}), ask(1, 1, func(r *Request) { r.Strategy = "best" }), Options{Strategies: registry(t)})
	if err == nil || !strings.Contains(err.Error(), `"best"`) || !strings.Contains(err.Error(), strings.Join(registry(t).Names(), ", ")) {
		t.Errorf("got %v", err)
	}
}

func TestTwoStrategiesOfOneNameAreRefused(t *testing.T) {
	if _, err := NewRegistry(LeastLoaded{}, LeastLoaded{}); err == nil {
		t.Error("registering leastLoaded twice went well")
	}
}

// Each filter keeps a node out, is counted, and is named in the sentence.
func TestFilters(t *testing.T) {
	for _, c := range []struct {
		name   string
		edit   func(*cluster.Node)
		ask    func(*Request)
		reason Reason
		says   string
	}{
		{"not ready", func(n *cluster.Node) { n.Ready = false }, nil, NotReady, "1 is not ready"},
		{"cordoned", func(n *cluster.Node) { n.Cordoned = true }, nil, IsCordoned, "1 is cordoned"},
		{"tainted", func(n *cluster.Node) { n.Taints = []cluster.Taint{{Key: "x", Effect: cluster.NoSchedule}} }, nil, Tainted, "taints"},
		{"not selected", nil, func(r *Request) { r.Groups[0].Pod.Selector.Labels = map[string]string{"disk": "nvme"} }, NotSelected, "nodeSelector"},
		{"no such GPU", func(n *cluster.Node) { n.Allocatable[gpuResource] = 0 }, nil, NoSuchGPU, "no node has nvidia.com/gpu"},
		{"product", func(n *cluster.Node) { n.GPU.Product = "A100" }, func(r *Request) { r.Groups[0].Pod.GPU.Product = "H100" }, WrongProduct, "H100"},
		{"architecture", func(n *cluster.Node) { n.GPU.Architecture = "ampere" }, func(r *Request) { r.Groups[0].Pod.GPU.Architecture = "hopper" }, WrongArchitecture, "hopper"},
		{"memory", func(n *cluster.Node) { n.GPU.MemoryMiB = 40960 }, func(r *Request) { r.Groups[0].Pod.GPU.MemoryMiB = 81920 }, MemoryTooSmall, "81920 MiB"},
		{"share", func(n *cluster.Node) { n.GPU.Replicas = 4 }, func(r *Request) { r.Groups[0].Pod.Milli = 300 }, ShareTooSmall, "300/1000"},
		{"GPUs taken", func(n *cluster.Node) { n.Used[gpuResource] = 7 }, nil, GPUsTaken, "most free: 1"},
		{"CPU taken", func(n *cluster.Node) { n.Used[cluster.CPU] = 63500 }, nil, OthersTaken, "too little CPU"},
		{"pods taken", func(n *cluster.Node) { n.Used[cluster.Pods] = 110 }, nil, OthersTaken, "too little CPU"},
		{"not located", nil, func(r *Request) { r.Groups[0].Slices = []Slice{{leaf, 1}} }, NotLocated, "could take 0 of 1"},
		{"avoided", nil, func(r *Request) { r.Avoid = []string{"bad"} }, Avoided, "refused a pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ask(1, 2)
			if c.ask != nil {
				c.ask(r)
			}
			// A node too small even when empty stands beside it, so that a sentence about
			// "no node at all" is not the only thing there is to say.
			d := plan(t, world(nodeSpec{name: "bad", gpus: 8, edit: c.edit}), r)
			if d.Feasible {
				t.Fatalf("placed on %v", d.Nodes())
			}
			if d.Why.Removed[c.reason] != 1 {
				t.Errorf("removed by reason: %v, want one %d", d.Why.Removed, c.reason)
			}
			if !strings.Contains(d.Why.Sentence, c.says) {
				t.Errorf("the sentence %q does not say %q", d.Why.Sentence, c.says)
			}
		})
	}
}

func TestNodesThatPassFilters(t *testing.T) {
	n := nodeSpec{name: "good", gpus: 8, edit: func(n *cluster.Node) {
		n.Taints = []cluster.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: cluster.NoSchedule}}
		n.GPU = cluster.GPUFacts{Product: "H100", Architecture: "hopper", MemoryMiB: 81920, Replicas: 4}
		n.Labels["zone"], n.Labels["slot"] = "z1", "7"
	}}
	d := plan(t, world(n), ask(1, 8, func(r *Request) {
		r.Groups[0].Pod.Tolerations = []cluster.Toleration{{Key: "nvidia.com/gpu", Exists: true}}
		r.Groups[0].Pod.GPU = cluster.GPUFacts{Product: "H100", Architecture: "Hopper", MemoryMiB: 81920}
		r.Groups[0].Pod.Milli = 250
		r.Groups[0].Pod.Selector.Terms = []cluster.Term{
			{{Key: "zone", Operator: cluster.In, Values: []string{"z2"}}},
			{{Key: "slot", Operator: cluster.Gt, Values: []string{"6"}}, {Key: "metadata.name", Field: true, Operator: cluster.In, Values: []string{"good"}}},
		}
	}))
	if !d.Feasible {
		t.Error(d.Why.Sentence)
	}
}

func TestGangInOneLeaf(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s", leaf: "a", gpus: 8},
		nodeSpec{name: "a2", spine: "s", leaf: "a", gpus: 8, used: 1},
		nodeSpec{name: "b1", spine: "s", leaf: "b", gpus: 8},
		nodeSpec{name: "b2", spine: "s", leaf: "b", gpus: 8},
		nodeSpec{name: "c1", spine: "s", leaf: "c", gpus: 8},
		nodeSpec{name: "c2", spine: "s", leaf: "c", gpus: 8},
		nodeSpec{name: "c3", spine: "s", leaf: "c", gpus: 8},
	)
	in := func(level int) func(*Request) { return func(r *Request) { r.Groups[0].Topology.Required = level } }
	// Leaf b holds exactly two; c would be broken up.
	d := plan(t, s, ask(2, 8, in(leaf)))
	if !slices.Equal(d.Nodes(), []string{"b1", "b2"}) || d.Domain != "b" || d.Level != "leaf" {
		t.Errorf("got %v in %s %s", d.Nodes(), d.Level, d.Domain)
	}
	// Four fit in the cluster but in no leaf.
	d = plan(t, s, ask(4, 8, in(leaf)))
	if d.Feasible || !d.Why.Never || d.Why.RoomEmpty != 3 {
		t.Errorf("got %v, never %v, empty room %d", d.Nodes(), d.Why.Never, d.Why.RoomEmpty)
	}
	if !strings.Contains(d.Why.Sentence, "the largest leaf could take 3 of 4 pods") {
		t.Error(d.Why.Sentence)
	}
	if d = plan(t, s, ask(4, 8)); !d.Feasible {
		t.Error(d.Why.Sentence)
	}
	if d = plan(t, s, ask(6, 8, in(spine))); !d.Feasible {
		t.Error(d.Why.Sentence)
	}
	// Busy, not impossible: leaf a could hold two if nothing ran there.
	d = plan(t, world(nodeSpec{name: "a1", leaf: "a", gpus: 8, used: 8}, nodeSpec{name: "a2", leaf: "a", gpus: 8}), ask(2, 8, in(leaf)))
	if d.Feasible || d.Why.Never || !strings.Contains(d.Why.Sentence, "the best, a, has room for 1") {
		t.Error(d.Why.Sentence)
	}
}

func TestPreferredLevelWidensStepByStep(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", spine: "s1", leaf: "a", gpus: 8},
		nodeSpec{name: "b1", spine: "s1", leaf: "b", gpus: 8},
		nodeSpec{name: "c1", spine: "s2", leaf: "c", gpus: 8},
		nodeSpec{name: "c2", spine: "s2", leaf: "c", gpus: 8},
	)
	prefer := func(r *Request) { r.Groups[0].Topology.Preferred = leaf }
	if d := plan(t, s, ask(2, 8, prefer)); d.Level != "leaf" || d.Domain != "c" {
		t.Errorf("2 pods: %s %s", d.Level, d.Domain)
	}
	s = world(
		nodeSpec{name: "a1", spine: "s1", leaf: "a", gpus: 8},
		nodeSpec{name: "b1", spine: "s1", leaf: "b", gpus: 8},
		nodeSpec{name: "c1", spine: "s2", leaf: "c", gpus: 8},
	)
	if d := plan(t, s, ask(2, 8, prefer)); d.Level != "spine" || d.Domain != "s1" {
		t.Errorf("2 pods over leaves: %s %s", d.Level, d.Domain)
	}
	if d := plan(t, s, ask(3, 8, prefer)); !d.Feasible || d.Level != "" {
		t.Errorf("3 pods: %v %s", d.Nodes(), d.Level)
	}
}

func TestElasticGangTakesWhatThereIs(t *testing.T) {
	s := world(nodeSpec{name: "a", gpus: 8}, nodeSpec{name: "b", gpus: 8, used: 3})
	elastic := func(least int) func(*Request) { return func(r *Request) { r.Groups[0].MinCount = least } }
	if d := plan(t, s, ask(8, 4, elastic(2))); len(d.Nodes()) != 3 {
		t.Errorf("got %v", d.Nodes())
	}
	if d := plan(t, s, ask(8, 4, elastic(4))); d.Feasible {
		t.Errorf("got %v, only 3 fit", d.Nodes())
	}
	if d := plan(t, s, ask(2, 4, elastic(1))); len(d.Nodes()) != 2 {
		t.Errorf("got %v, 2 were wanted and fit", d.Nodes())
	}
}

func TestSlicesStayWhole(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", leaf: "a", gpus: 8}, nodeSpec{name: "a2", leaf: "a", gpus: 8}, nodeSpec{name: "a3", leaf: "a", gpus: 8},
		nodeSpec{name: "b1", leaf: "b", gpus: 8}, nodeSpec{name: "b2", leaf: "b", gpus: 8}, nodeSpec{name: "b3", leaf: "b", gpus: 8},
	)
	sliced := func(r *Request) { r.Groups[0].Slices = []Slice{{leaf, 2}} }
	d := plan(t, s, ask(4, 8, sliced))
	if !d.Feasible {
		t.Fatal(d.Why.Sentence)
	}
	for i := 0; i < 4; i += 2 {
		if d.Nodes()[i][0] != d.Nodes()[i+1][0] {
			t.Errorf("slice %d is torn: %v", i/2, d.Nodes())
		}
	}
	// Six nodes are free, but only two whole slices.
	if d := plan(t, s, ask(6, 8, sliced)); d.Feasible {
		t.Errorf("placed three slices of 2 on %v", d.Nodes())
	}
}

func TestReplacementJoinsThoseThatStay(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", leaf: "a", gpus: 8, used: 8}, nodeSpec{name: "a2", leaf: "a", gpus: 8, used: 4},
		nodeSpec{name: "b1", leaf: "b", gpus: 8},
	)
	d := plan(t, s, ask(1, 4, func(r *Request) {
		r.Groups[0].Topology.Required = leaf
		r.Groups[0].Kept = []string{"a1"}
	}))
	if !d.Feasible || d.Nodes()[0] != "a2" {
		t.Errorf("got %v", d.Nodes())
	}
	d = plan(t, s, ask(1, 8, func(r *Request) {
		r.Groups[0].Topology.Required = leaf
		r.Groups[0].Kept = []string{"a1"}
	}))
	if d.Feasible {
		t.Errorf("placed on %v, away from the gang's leaf", d.Nodes())
	}
}

func TestCostOptimizedPrefersTheCheapLeaf(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", leaf: "a", gpus: 8}, nodeSpec{name: "a2", leaf: "a", gpus: 8},
		nodeSpec{name: "b1", leaf: "b", gpus: 8, edit: cheap}, nodeSpec{name: "b2", leaf: "b", gpus: 8, edit: cheap}, nodeSpec{name: "b3", leaf: "b", gpus: 8},
	)
	d := plan(t, s, ask(2, 8, func(r *Request) { r.Strategy, r.Groups[0].Topology.Required = "costOptimized", leaf }))
	if !slices.Equal(d.Nodes(), []string{"b1", "b2"}) {
		t.Errorf("got %v", d.Nodes())
	}
}

func TestRefusalsSayWhatToChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *cluster.Snapshot
		ask   *Request
		says  string
	}{
		{"no nodes", world(), ask(1, 1), "no nodes"},
		{"more than any node has", world(nodeSpec{name: "a", gpus: 8}), ask(1, 16), "lower gpuCount, or spread over more pods with parallelism"},
		{"more CPU than any node has", world(nodeSpec{name: "a", gpus: 8}), ask(1, 1, func(r *Request) { r.Groups[0].Pod.Resources[cluster.CPU] = 5000000 }), "asks for 5000 cores of cpu, but the largest suitable node (a) has 64 cores: lower the template's requests"},
		{"level nobody carries", world(nodeSpec{name: "a", gpus: 8}), ask(1, 1, func(r *Request) { r.Groups[0].Topology.Required = spine }), `no node carries level "spine" (label spine); levels of this cluster: host`},
		{"more than the cluster has", world(nodeSpec{name: "a", gpus: 8}), ask(3, 8), "the cluster could take 1 of 3 pods"},
		{"busy", world(nodeSpec{name: "a", gpus: 8, used: 5}, nodeSpec{name: "b", gpus: 8, used: 6}), ask(1, 4), "most free: 3, on a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := plan(t, c.world, c.ask)
			if d.Feasible || !strings.Contains(d.Why.Sentence, c.says) {
				t.Errorf("feasible %v: %s", d.Feasible, d.Why.Sentence)
			}
		})
	}
}

func TestMalformedRequestsAreErrors(t *testing.T) {
	s := world(nodeSpec{name: "a", gpus: 8})
	for name, r := range map[string]*Request{
		"no pods":            ask(0, 1),
		"negative pods":      ask(-1, 1),
		"level out of range": ask(1, 1, func(r *Request) { r.Groups[0].Topology.Required = 9 }),
		"slices of nothing":  ask(1, 1, func(r *Request) { r.Groups[0].Slices = []Slice{{Level: leaf}} }),
	} {
		if d, err := Plan(s, r, Options{Strategies: registry(t)}); err == nil {
			t.Errorf("%s: planned %v", name, d.Nodes())
		}
	}
}

func cheap(n *cluster.Node) { n.Labels[CheapNodeLabel] = "true" }

// The last part of a split goes where it leaves the least room.
func TestWhatIsLeftOverGoesIntoTheTightestLeaf(t *testing.T) {
	s := world(
		nodeSpec{name: "a1", leaf: "a", gpus: 8}, nodeSpec{name: "a2", leaf: "a", gpus: 8}, nodeSpec{name: "a3", leaf: "a", gpus: 8}, nodeSpec{name: "a4", leaf: "a", gpus: 8},
		nodeSpec{name: "b1", leaf: "b", gpus: 8}, nodeSpec{name: "b2", leaf: "b", gpus: 8},
	)
	for _, strategy := range []string{"leastLoaded", "topologyAware"} {
		d := plan(t, s, ask(2, 8, func(r *Request) { r.Strategy, r.Groups[0].Slices = strategy, []Slice{{leaf, 2}} }))
		if !slices.Equal(d.Nodes(), []string{"b1", "b2"}) {
			t.Errorf("%s: got %v", strategy, d.Nodes())
		}
	}
}

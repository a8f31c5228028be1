package telemetry

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// world is a cluster that a test writes down.
type world struct {
	mu       sync.Mutex
	snapshot *cluster.Snapshot
	heard    time.Time
	pending  map[string]int
}

func (w *world) Snapshot() *cluster.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

func (w *world) Heard() time.Time        { return w.heard }
func (w *world) Pending() map[string]int { return maps.Clone(w.pending) }

func levels() []cluster.Level {
	return []cluster.Level{{Name: "spine"}, {Name: "leaf"}, {Name: "host"}}
}

// node has allocatable and used amounts of the resources after cpu, memory and pods.
func node(path string, product string, allocatable, used cluster.Vector) *cluster.Node {
	base := cluster.Vector{64000, 1 << 40, 110}
	return &cluster.Node{
		Machine: &cluster.Machine{
			Name: path, Ready: true, Path: strings.Split(path, "/"), GPU: cluster.GPUFacts{Product: product},
			Allocatable: append(base.Clone(), allocatable...),
		},
		Used: append(cluster.Vector{0, 0, 0}, used...),
	}
}

// smallCluster has two leaves of two nodes with 8 GPUs each, and one machine of another vendor
// that is in no leaf.
func smallCluster() *cluster.Snapshot {
	stray := node("//amd", "MI300X", cluster.Vector{0, 4}, cluster.Vector{0, 1})
	return cluster.NewSnapshot(7, levels(), cluster.NewResources("nvidia.com/gpu", "amd.com/gpu"), []*cluster.Node{
		node("s1/l1/a", "H100", cluster.Vector{8}, cluster.Vector{8}),
		node("s1/l1/b", "H100", cluster.Vector{8}, cluster.Vector{4}),
		node("s1/l2/c", "H100", cluster.Vector{8}, nil),
		node("s2/l3/d", "A100", cluster.Vector{8}, cluster.Vector{2}),
		stray,
	})
}

func gauges(w *world) Gauges {
	return Gauges{World: w, Levels: []string{"spine", "leaf"}, MaxDomains: 100, Now: func() time.Time { return time.Unix(130, 0) }}
}

func scrape(t *testing.T, g Gauges, names []string, want string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCluster(g))
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestGaugesShowTheClusterAsItIs(t *testing.T) {
	w := &world{snapshot: smallCluster(), heard: time.Unix(100, 0), pending: map[string]int{"NoRoom": 3, "Invalid": 0}}
	scrape(t, gauges(w), []string{
		"topology_domain_utilization_ratio", "topology_gpu_allocation_ratio", "topology_idle_gpus", "topology_domains",
		"topology_pending_workloads", "topology_snapshot_generation", "topology_snapshot_age_seconds",
	}, `
# HELP topology_domain_utilization_ratio Share of the GPUs of a topology domain that pods or plans hold, by level and domain; above 1 where more is held than is there. Of more domains than `+"`metrics.maxDomains`"+` the rest is one, named others.
# TYPE topology_domain_utilization_ratio gauge
topology_domain_utilization_ratio{domain="l1",level="leaf"} 0.75
topology_domain_utilization_ratio{domain="l2",level="leaf"} 0
topology_domain_utilization_ratio{domain="l3",level="leaf"} 0.25
topology_domain_utilization_ratio{domain="s1",level="spine"} 0.5
topology_domain_utilization_ratio{domain="s2",level="spine"} 0.25
# HELP topology_domains Domains of a topology level, shown one by one or not.
# TYPE topology_domains gauge
topology_domains{level="leaf"} 3
topology_domains{level="spine"} 2
# HELP topology_gpu_allocation_ratio Share of the cluster's GPUs that pods or plans hold, by resource and product.
# TYPE topology_gpu_allocation_ratio gauge
topology_gpu_allocation_ratio{product="A100",resource="nvidia.com/gpu"} 0.25
topology_gpu_allocation_ratio{product="H100",resource="nvidia.com/gpu"} 0.5
topology_gpu_allocation_ratio{product="MI300X",resource="amd.com/gpu"} 0.25
# HELP topology_idle_gpus GPUs of nodes in service that nobody holds any part of, and what is left of those that are shared, by resource and product.
# TYPE topology_idle_gpus gauge
topology_idle_gpus{product="A100",resource="nvidia.com/gpu"} 6
topology_idle_gpus{product="H100",resource="nvidia.com/gpu"} 12
topology_idle_gpus{product="MI300X",resource="amd.com/gpu"} 3
# HELP topology_pending_workloads GPUWorkloads that wait, by reason.
# TYPE topology_pending_workloads gauge
topology_pending_workloads{reason="Invalid"} 0
topology_pending_workloads{reason="NoRoom"} 3
# HELP topology_snapshot_age_seconds Time since the API server last told of a change of any node, pod or GPUWorkload.
# TYPE topology_snapshot_age_seconds gauge
topology_snapshot_age_seconds 30
# HELP topology_snapshot_generation Generation of the snapshot that decisions are made on. It grows with every change of the cluster that placement sees, and begins anew with the process.
# TYPE topology_snapshot_generation gauge
topology_snapshot_generation 7
`)
}

// The figures are worked out by hand from the default mix: 1/2, 1, 2, 4 and 8 GPUs, each size
// bringing as many GPUs, so that their shares of all pods are 16, 8, 4, 2 and 1 of 31.
func TestFragmentationIsWhatTheExpectedWorkCannotUse(t *testing.T) {
	resources := cluster.NewResources("nvidia.com/gpu")
	for what, c := range map[string]struct {
		used cluster.Vector
		want float64
	}{
		// The half takes half of each GPU; nothing else is lost.
		"idle":     {nil, 16. / 31 * .5},
		"full":     {cluster.Vector{8}, 0},
		"4 of 8":   {cluster.Vector{4}, 16./31*.5 + 1./31},
		"5 of 8":   {cluster.Vector{5}, 16./31*.5 + (1.+2)/31},
		"7 of 8":   {cluster.Vector{7}, 16./31*.5 + (1.+2+4)/31},
		"oversold": {cluster.Vector{9}, 0},
	} {
		s := cluster.NewSnapshot(1, levels(), resources, []*cluster.Node{node("s/l/n", "H100", cluster.Vector{8}, c.used)})
		counted := take(s, nil, 10, placement.DefaultScoring())
		if got := counted.kinds[kind{"nvidia.com/gpu", "H100"}].fragmented(); !near(got, c.want) {
			t.Errorf("%s: %.4f, want %.4f", what, got, c.want)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// A node that nobody may use has GPUs, and none that are idle.
func TestNodesOutOfServiceHaveNothingIdle(t *testing.T) {
	n := node("s/l/n", "H100", cluster.Vector{8}, cluster.Vector{2})
	n.Cordoned = true
	counted := take(cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu"), []*cluster.Node{n}), nil, 10, placement.DefaultScoring())
	a := counted.kinds[kind{"nvidia.com/gpu", "H100"}]
	if a.total != 8 || a.used != 2 || a.idle != 0 || a.unusable != 0 {
		t.Errorf("%+v", *a)
	}
}

// GPUs are counted as physical ones, however their nodes offer them.
func TestLentAndCutGPUsCountAsWhatTheyAre(t *testing.T) {
	lent := node("s/l/lent", "T4", cluster.Vector{16}, cluster.Vector{4})
	lent.GPU.Replicas = 4
	cut := node("s/l/cut", "H100", cluster.Vector{0, 14, 2, 8, 7000}, cluster.Vector{0, 7, 0, 0, 0})
	s := cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
		"nvidia.com/mig-3g.40gb", "nvidia.com/gpumem", "gpu.intel.com/millicores"), []*cluster.Node{lent, cut})
	counted := take(s, []string{"leaf"}, 10, placement.DefaultScoring())
	if len(counted.kinds) != 3 {
		t.Errorf("memory of GPUs and millicores are no GPUs: %v", counted.sortedKinds())
	}
	for k, want := range map[kind]amounts{
		{"nvidia.com/gpu.shared", "T4"}:    {total: 4, used: 1},
		{"nvidia.com/mig-1g.10gb", "H100"}: {total: 2, used: 1},
		{"nvidia.com/mig-3g.40gb", "H100"}: {total: 6. / 7},
	} {
		if got := counted.kinds[k]; got == nil || !near(got.total, want.total) || !near(got.used, want.used) {
			t.Errorf("%v: %+v, want %+v", k, got, want)
		}
	}
	if got := counted.levels["leaf"][0].inUse(); !near(got, 2/(4+2+6./7)) {
		t.Errorf("the leaf is in use to %f", got)
	}
	if idle := counted.kinds[kind{"nvidia.com/gpu.shared", "T4"}].idle; !near(idle, 3) {
		t.Errorf("%f of 4 GPUs are idle with a quarter of their replicas held", idle)
	}
}

// Prometheus refuses a whole scrape in which two series are the same.
func TestDomainsOfOneNameAreToldApart(t *testing.T) {
	s := cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu"), []*cluster.Node{
		node("s1/l1/a", "H100", cluster.Vector{8}, cluster.Vector{8}),
		node("s2/l1/b", "H100", cluster.Vector{8}, nil),
		node("s2/l2/c", "H100", cluster.Vector{8}, cluster.Vector{4}),
		node("s2/others/d", "H100", cluster.Vector{8}, cluster.Vector{2}),
	})
	g := gauges(&world{snapshot: s})
	g.Levels = []string{"leaf", "no such level"}
	scrape(t, g, []string{"topology_domain_utilization_ratio"}, `
# HELP topology_domain_utilization_ratio Share of the GPUs of a topology domain that pods or plans hold, by level and domain; above 1 where more is held than is there. Of more domains than `+"`metrics.maxDomains`"+` the rest is one, named others.
# TYPE topology_domain_utilization_ratio gauge
topology_domain_utilization_ratio{domain="s1/l1",level="leaf"} 1
topology_domain_utilization_ratio{domain="s2/l1",level="leaf"} 0
topology_domain_utilization_ratio{domain="l2",level="leaf"} 0.5
topology_domain_utilization_ratio{domain="s2/others",level="leaf"} 0.25
`)
}

func TestWhatIsBeyondTheLimitIsOneSeries(t *testing.T) {
	var nodes []*cluster.Node
	for i := range 10 {
		nodes = append(nodes, node(fmt.Sprintf("s/l%d/n%d", i, i), fmt.Sprintf("model-%d", i), cluster.Vector{8}, cluster.Vector{int64(i % 8)}))
	}
	w := &world{snapshot: cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu"), nodes)}
	g := gauges(w)
	g.Levels, g.MaxDomains = []string{"leaf"}, 2
	scrape(t, g, []string{"topology_domain_utilization_ratio", "topology_domains", "topology_gpu_allocation_ratio"}, `
# HELP topology_domain_utilization_ratio Share of the GPUs of a topology domain that pods or plans hold, by level and domain; above 1 where more is held than is there. Of more domains than `+"`metrics.maxDomains`"+` the rest is one, named others.
# TYPE topology_domain_utilization_ratio gauge
topology_domain_utilization_ratio{domain="l0",level="leaf"} 0
topology_domain_utilization_ratio{domain="l1",level="leaf"} 0.125
topology_domain_utilization_ratio{domain="others",level="leaf"} 0.4375
# HELP topology_domains Domains of a topology level, shown one by one or not.
# TYPE topology_domains gauge
topology_domains{level="leaf"} 10
# HELP topology_gpu_allocation_ratio Share of the cluster's GPUs that pods or plans hold, by resource and product.
# TYPE topology_gpu_allocation_ratio gauge
topology_gpu_allocation_ratio{product="model-0",resource="nvidia.com/gpu"} 0
topology_gpu_allocation_ratio{product="model-1",resource="nvidia.com/gpu"} 0.125
topology_gpu_allocation_ratio{product="others",resource="nvidia.com/gpu"} 0.4375
`)
}

func TestNothingIsToldOfAClusterThatIsNotKnownYet(t *testing.T) {
	synced := false
	g := gauges(&world{snapshot: smallCluster(), pending: map[string]int{"NoRoom": 1}})
	g.Synced = func() bool { return synced }
	c := NewCluster(g)
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series of half a cluster", n)
	}
	synced = true
	if n := testutil.CollectAndCount(c); n == 0 {
		t.Error("no series of a cluster that is known")
	}
}

func TestAScrapeShowsTheSnapshotOfNow(t *testing.T) {
	w := &world{snapshot: smallCluster()}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCluster(gauges(w)))
	for generation := range uint64(3) {
		old := w.Snapshot()
		n := *old.Node("s1/l2/c")
		n.Used = append(cluster.Vector{0, 0, 0}, int64(2*generation))
		w.mu.Lock()
		w.snapshot = old.Next(old.Generation+generation, old.Resources, []*cluster.Node{&n})
		w.mu.Unlock()
		for range 2 {
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == "topology_domain_utilization_ratio" && m.GetLabel()[0].GetValue() == "l2" && m.GetGauge().GetValue() != float64(generation)/4 {
						t.Errorf("generation %d: %v", generation, m)
					}
				}
			}
		}
	}
}

func TestScrapesAtTheSameTime(t *testing.T) {
	w := &world{snapshot: smallCluster()}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCluster(gauges(w)))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := r.Gather(); err != nil {
					t.Error(err)
				}
				w.mu.Lock()
				w.snapshot = w.snapshot.Next(w.snapshot.Generation+1, w.snapshot.Resources, nil)
				w.mu.Unlock()
			}
		})
	}
	all.Wait()
}

// largeCluster is 1,024 nodes with 8 GPUs, 16 nodes a leaf, 32 leaves a spine.
func largeCluster() *cluster.Snapshot {
	var nodes []*cluster.Node
	for i := range 1024 {
		nodes = append(nodes, node(fmt.Sprintf("spine-%02d/leaf-%03d/node-%04d", i/512, i/16, i), "NVIDIA-H100-80GB-HBM3",
			cluster.Vector{8}, cluster.Vector{int64(i % 9)}))
	}
	return cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu"), nodes)
}

// One scrape after a change of the cluster: the census, and what Prometheus' registry makes of it.
func BenchmarkScrapeAfterChange(b *testing.B) {
	w := &world{snapshot: largeCluster()}
	r := prometheus.NewRegistry()
	r.MustRegister(NewCluster(gauges(w)))
	b.ReportAllocs()
	for b.Loop() {
		w.snapshot = w.snapshot.Next(w.snapshot.Generation+1, w.snapshot.Resources, nil)
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// One scrape of a cluster that is as it was at the last one.
func BenchmarkScrapeWithoutChange(b *testing.B) {
	w := &world{snapshot: largeCluster()}
	r := prometheus.NewRegistry()
	r.MustRegister(NewCluster(gauges(w)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

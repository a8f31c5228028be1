package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// World is what the gauges of the cluster are read from at every scrape. It must be safe for
// concurrent use.
type World interface {
	// Snapshot is the cluster as it is now.
	Snapshot() *cluster.Snapshot
	// Heard is when the API server last told anything; zero if it never did.
	Heard() time.Time
	// Pending counts the workloads that wait, by reason. Reasons are few and fixed; one that
	// nobody waits for is there with 0.
	Pending() map[string]int
}

// Gauges says what a Cluster shows.
type Gauges struct {
	World World
	// Synced tells whether the world is complete; before, nothing is shown. nil is always.
	Synced func() bool
	// Levels are the topology levels, by name, of which domains are shown. A level that the
	// cluster does not have shows nothing.
	Levels []string
	// MaxDomains is how many domains of a level, and kinds of GPUs, are shown one by one; what
	// is beyond it is one series with the value Others.
	MaxDomains int
	// Scoring says what work is expected, for fragmentation; nil means placement.DefaultScoring.
	Scoring *placement.Scoring
	// Now is the clock.
	Now func() time.Time
}

// Cluster collects the gauges of the cluster. It computes them when it is scraped, and nothing
// when it is not; as long as the cluster does not change, a scrape repeats the last one's.
type Cluster struct {
	Gauges
	utilization, allocation, idle, fragmentation *prometheus.Desc
	domains, pending, generation, age            *prometheus.Desc

	mu    sync.Mutex
	at    uint64
	known bool
	made  []prometheus.Metric
}

// NewCluster returns a collector. It is not registered yet.
func NewCluster(g Gauges) *Cluster {
	if g.Scoring == nil {
		g.Scoring = placement.DefaultScoring()
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &Cluster{
		Gauges: g,
		utilization: desc("topology_domain_utilization_ratio",
			"Share of the GPUs of a topology domain that pods or plans hold, by level and domain; above 1 where more is held than is there. Of more domains than `metrics.maxDomains` the rest is one, named others.",
			"level", "domain"),
		allocation: desc("topology_gpu_allocation_ratio",
			"Share of the cluster's GPUs that pods or plans hold, by resource and product.",
			"resource", "product"),
		idle: desc("topology_idle_gpus",
			"GPUs of nodes in service that nobody holds any part of, and what is left of those that are shared, by resource and product.",
			"resource", "product"),
		fragmentation: desc("topology_fragmentation_ratio",
			"Share of the idle GPUs of nodes in service that pods of the expected sizes could not use, by resource and product (docs/strategies.md#fragmentation); 0 if none is idle.",
			"resource", "product"),
		domains: desc("topology_domains",
			"Domains of a topology level, shown one by one or not.",
			"level"),
		pending: desc("topology_pending_workloads",
			"GPUWorkloads that wait, by reason.",
			"reason"),
		generation: desc("topology_snapshot_generation",
			"Generation of the snapshot that decisions are made on. It grows with every change of the cluster that placement sees, and begins anew with the process."),
		age: desc("topology_snapshot_age_seconds",
			"Time since the API server last told of a change of any node, pod or GPUWorkload."),
	}
}

// Describe implements prometheus.Collector.
func (c *Cluster) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.utilization, c.allocation, c.idle, c.fragmentation, c.domains, c.pending, c.generation, c.age,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Cluster) Collect(out chan<- prometheus.Metric) {
	if c.Synced != nil && !c.Synced() {
		return
	}
	for _, m := range c.ofSnapshot() {
		out <- m
	}
	for reason, n := range c.World.Pending() {
		out <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, float64(n), reason)
	}
	if heard := c.World.Heard(); !heard.IsZero() {
		out <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, c.Now().Sub(heard).Seconds())
	}
}

// ofSnapshot returns the series of the current snapshot: those of the last scrape if it is the
// same one still. Several scrapers at once cost one census.
func (c *Cluster) ofSnapshot() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.World.Snapshot()
	if c.known && c.at == s.Generation {
		return c.made
	}
	counted := take(s, c.Levels, c.MaxDomains, c.Scoring)
	var made []prometheus.Metric
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		made = append(made, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	tell(c.generation, float64(s.Generation))
	for _, k := range counted.sortedKinds() {
		a := counted.kinds[k]
		tell(c.allocation, a.inUse(), k.resource, k.product)
		if whole(k.resource) {
			tell(c.idle, a.idle, k.resource, k.product)
			tell(c.fragmentation, a.fragmented(), k.resource, k.product)
		}
	}
	for level, domains := range counted.levels {
		tell(c.domains, float64(counted.counts[level]), level)
		for i := range domains {
			tell(c.utilization, domains[i].inUse(), level, domains[i].name)
		}
	}
	c.at, c.known, c.made = s.Generation, true, made
	return made
}

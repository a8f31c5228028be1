package replay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/collective"
)

// Result is what one policy did.
type Result struct {
	Cluster string `json:"cluster"`
	Policy  string `json:"policy"`
	// Runs is how many replays it is of: one for each seed, where the policy leaves anything to
	// chance. All that follows is of all of them together, or their mean.
	Runs int `json:"runs"`
	// Jobs is how many ran to their end in each run; Events counts arrivals and ends.
	Jobs   int `json:"jobs"`
	Events int `json:"events"`
	// Hours is from the first arrival to the last end.
	Hours float64 `json:"hours"`
	// GPUUse is the mean share of the GPUs in use, in percent; GPUUseWaiting the same over the
	// time in which somebody waited, WaitingTime the share of that time.
	GPUUse        float64 `json:"gpuUse"`
	GPUUseWaiting float64 `json:"gpuUseWaiting"`
	WaitingTime   float64 `json:"waitingTime"`
	// Fragmentation is the mean share of the GPUs, in percent, that were idle on nodes in part in
	// use.
	Fragmentation float64 `json:"fragmentation"`
	Preemptions   int     `json:"preemptions"`
	Moves         int     `json:"moves"`
	All           Class   `json:"all"`
	Sizes         []Class `json:"sizes"`
	// Spread is of several runs the least and the greatest that any of them had.
	Spread *Spread `json:"spread,omitempty"`
}

// Spread is how much differs from run to run.
type Spread struct {
	// WaitingP95 is in seconds, OneLeaf in percent of the gangs.
	WaitingP95 Range `json:"waitingP95"`
	OneLeaf    Range `json:"oneLeaf"`
}

// Range is from the least to the greatest.
type Range struct {
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// Class is the jobs of one range of sizes. Times are in seconds.
type Class struct {
	// GPUs is the range: "5-8"; "all" for all of them.
	GPUs       string       `json:"gpus"`
	Jobs       int          `json:"jobs"`
	Waiting    Distribution `json:"waiting"`
	Completion Distribution `json:"completion"`
	// Gangs is how often one of several pods started; OneLeaf and OneSpine how many of those were
	// in one leaf, and in one spine: -1 where the cluster has none. Over all runs.
	Gangs    int `json:"gangs"`
	OneLeaf  int `json:"oneLeaf"`
	OneSpine int `json:"oneSpine"`
	// SlowdownAlone and Slowdown are of the gangs how many times as long their all-reduces took as
	// at the ideal place, by the model of core/collective: with the network for itself, and beside
	// the gangs that ran at the same time. Iteration is the mean of what that makes of iterations.
	// Nothing of it is said where there are no gangs.
	SlowdownAlone Distribution `json:"slowdownAlone,omitzero"`
	Slowdown      Distribution `json:"slowdown,omitzero"`
	Iteration     float64      `json:"iteration,omitzero"`
	raw           *class
}

// Distribution is of a time, by the nearest-rank method.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func (m *measures) result(r *Replay) *Result {
	hours := (r.now - m.begin).Hours()
	capacity := float64(m.total) * hours
	out := &Result{
		Cluster: r.cluster, Policy: r.policy.Name, Runs: 1, Jobs: len(m.all.waits), Events: r.events, Hours: hours,
		GPUUse: percent(m.used, capacity), GPUUseWaiting: percent(m.usedWaiting, float64(m.total)*m.waited),
		WaitingTime: percent(m.waited, hours), Fragmentation: percent(m.strandedHours, capacity),
		Preemptions: m.preempted, Moves: m.moved,
	}
	for _, c := range append(slices.Collect(maps.Values(m.sizes)), m.all) {
		if r.shapes.leaf < 0 {
			c.oneLeaf = -1
		}
		if r.shapes.spine < 0 {
			c.oneSpine = -1
		}
	}
	out.All = m.all.result(r.options.Share)
	for _, most := range slices.Sorted(maps.Keys(m.sizes)) {
		out.Sizes = append(out.Sizes, m.sizes[most].result(r.options.Share))
	}
	return out
}

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

func (c *class) result(share float64) Class {
	slowdown, iteration := distribution(c.loaded), 0.0
	if c.gangs > 0 {
		iteration = collective.IterationSlowdown(share, slowdown.Mean)
	}
	return Class{
		GPUs: c.name(), Jobs: len(c.waits), Waiting: distribution(c.waits), Completion: distribution(c.completions),
		Gangs: c.gangs, OneLeaf: c.oneLeaf, OneSpine: c.oneSpine, raw: c,
		SlowdownAlone: distribution(c.alone), Slowdown: slowdown, Iteration: iteration,
	}
}

func (c *class) name() string {
	switch least := c.most/2 + 1; {
	case c.most == 0:
		return "all"
	case least >= c.most:
		return fmt.Sprint(c.most)
	default:
		return fmt.Sprintf("%d-%d", least, c.most)
	}
}

// distribution sorts the values.
func distribution(values []float32) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	at := func(q float64) float64 { return float64(values[rank(q, len(values))]) }
	return Distribution{Mean: sum / float64(len(values)), P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: float64(values[len(values)-1])}
}

package packing

import (
	"math"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Column is the state of a cluster when so many percent of its GPUs have been asked for.
type Column struct {
	// Arrived is the percentage. Allocated and Unallocated are percentages of all GPUs.
	Arrived     int     `json:"arrived"`
	Allocated   float64 `json:"allocated"`
	Unallocated float64 `json:"unallocated"`
	// Fragmentation is what typical pods cannot use of the GPUs, in percent of all GPUs;
	// FragmentationRate is the same in percent of those that are idle.
	Fragmentation     float64 `json:"fragmentation"`
	FragmentationRate float64 `json:"fragmentationRate"`
}

// curve collects columns. What is noted after each pod goes to the column of the percentage that
// has been asked for, rounded; a column is the mean of what went to it.
type curve struct {
	capacity float64
	sums     []columnSum
	start    columnSum
}

// columnSum is the sum of so many states, and the last of them.
type columnSum struct {
	count                 float64
	allocated             float64
	fragmentation, rate   float64
	lastAllocated         float64
	lastFragmented, lastR float64
}

func newCurve(capacity int64, tune, fragmentation float64) *curve {
	c := &curve{capacity: float64(capacity), sums: make([]columnSum, int(math.Round(100*tune))+1)}
	c.start.add(0, 100*fragmentation/c.capacity, 100*fragmentation/c.capacity)
	return c
}

func (s *columnSum) add(allocated, fragmentation, rate float64) {
	s.count++
	s.allocated += allocated
	s.fragmentation += fragmentation
	s.rate += rate
	s.lastAllocated, s.lastFragmented, s.lastR = allocated, fragmentation, rate
}

// note takes down the state after a pod: thousandths of GPUs that were asked for, that are in
// use, and that typical pods cannot use.
func (c *curve) note(arrived, used int64, fragmentation float64) {
	// Divided twice as the published figures were: the last digit decides how it is rounded.
	gpus := c.capacity / cluster.Full
	at := int(math.RoundToEven(float64(arrived) / gpus / 10))
	if at >= len(c.sums) {
		return
	}
	rate := 0.0
	if idle := c.capacity - float64(used); idle > 0 {
		rate = 100 * fragmentation / idle
	}
	c.sums[at].add(hundredths(float64(used)/gpus/10), 100*fragmentation/c.capacity, rate)
}

// hundredths rounds a percentage as the published ones are rounded.
func hundredths(x float64) float64 { return math.RoundToEven(x*100) / 100 }

// columns returns the means. Where nothing went to a column, what went to both beside it stands
// in; where nothing went there either, the cluster was as after the last pod before.
func (c *curve) columns() []Column {
	columns := make([]Column, len(c.sums))
	last := c.start
	for k := range c.sums {
		s := c.sums[k]
		if s.count == 0 {
			for _, beside := range []int{k - 1, k + 1} {
				if beside >= 0 && beside < len(c.sums) {
					s.merge(&c.sums[beside])
				}
			}
		}
		if s.count == 0 {
			s.add(last.lastAllocated, last.lastFragmented, last.lastR)
		}
		if c.sums[k].count > 0 {
			last = c.sums[k]
		}
		allocated := hundredths(s.allocated / s.count)
		columns[k] = Column{
			Arrived: k, Allocated: allocated, Unallocated: hundredths(100 - allocated),
			Fragmentation: hundredths(s.fragmentation / s.count), FragmentationRate: hundredths(s.rate / s.count),
		}
	}
	return columns
}

func (s *columnSum) merge(o *columnSum) {
	s.count += o.count
	s.allocated += o.allocated
	s.fragmentation += o.fragmentation
	s.rate += o.rate
}

package placement

import (
	"math"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// demand is the expected work made ready for scoring.
type demand struct {
	groups []demandGroup
	// weight is the sum of the weights of all kinds.
	weight float64
	// perCPU and perMemory are how many thousandths of a GPU the expected work takes for each
	// unit of CPU and memory; infinite if it takes none of them.
	perCPU, perMemory float64
}

// demandGroup are the kinds that may run on the same products; none means any.
type demandGroup struct {
	products []string
	kinds    []kind
}

// kind is a kind of pod that is expected. Kinds that are equal are one.
type kind struct {
	weight float64
	// gpus is the number of whole GPUs; 0 for a share of one, of milli thousandths.
	gpus, milli float64
	cpu, memory float64
	// rest is what it takes of other resources.
	rest []claim
}

type claim struct {
	index int
	want  float64
}

// minSupply bounds how scarce a kind of node can be: a share of the cluster below it counts as
// it, so that one odd node does not outweigh all others.
const minSupply = 1e-3

// ready returns the expected work of the scoring, made ready at its first use.
func (s *Scoring) ready() *demand {
	s.once.Do(func() {
		expected := s.Mix
		if len(expected) == 0 {
			expected = DefaultMix()
		}
		s.demand = newDemand(expected)
	})
	return s.demand
}

// newDemand drops what wants no GPU, as it can use none wherever it goes, and what has no weight.
func newDemand(expected []Expected) *demand {
	d := &demand{perCPU: math.Inf(1), perMemory: math.Inf(1)}
	largest := 0.0
	for i := range expected {
		largest = max(largest, expected[i].weight())
	}
	if largest == 0 {
		return d
	}
	var total, gpus, cpu, memory float64
	for i := range expected {
		e := &expected[i]
		w := e.weight() / largest
		if w == 0 {
			continue
		}
		k := e.kind()
		total += w
		gpus += w * k.size()
		cpu += w * k.cpu
		memory += w * k.memory
		k.weight = w
		if e.Supply > 0 && e.Supply < 1 {
			k.weight /= max(e.Supply, minSupply)
		}
		d.add(e.Product, k)
	}
	for g := range d.groups {
		for i := range d.groups[g].kinds {
			k := &d.groups[g].kinds[i]
			k.weight /= total
			d.weight += k.weight
		}
	}
	if cpu > 0 {
		d.perCPU = gpus / cpu
	}
	if memory > 0 {
		d.perMemory = gpus / memory
	}
	return d
}

// weight returns the weight of a kind that wants a GPU, 0 of any other.
func (e *Expected) weight() float64 {
	if e.GPUs <= 0 && e.Milli <= 0 || !(e.Weight > 0) || math.IsInf(e.Weight, 1) {
		return 0
	}
	return e.Weight
}

func (e *Expected) kind() kind {
	k := kind{gpus: min(float64(e.GPUs), maxUnits)}
	if e.GPUs <= 0 {
		k.gpus, k.milli = 0, float64(e.Milli)
		if e.Milli >= cluster.Full {
			k.gpus, k.milli = 1, 0
		}
	}
	for i, want := range e.Resources {
		switch {
		case want <= 0:
		case i == cluster.CPU:
			k.cpu = float64(want)
		case i == cluster.Memory:
			k.memory = float64(want)
		default:
			k.rest = append(k.rest, claim{index: i, want: float64(want)})
		}
	}
	return k
}

// size is what a pod of the kind takes, in thousandths of a GPU.
func (k *kind) size() float64 { return k.gpus*cluster.Full + k.milli }

// same tells whether two kinds take the same.
func (k *kind) same(other *kind) bool {
	return k.gpus == other.gpus && k.milli == other.milli && k.cpu == other.cpu && k.memory == other.memory &&
		slices.Equal(k.rest, other.rest)
}

// add adds a kind, to an equal one if there is one.
func (d *demand) add(product string, k kind) {
	var products []string
	if product != "" {
		products = strings.Split(product, "|")
		slices.Sort(products)
		products = slices.Compact(products)
	}
	g := slices.IndexFunc(d.groups, func(g demandGroup) bool { return slices.Equal(g.products, products) })
	if g < 0 {
		g = len(d.groups)
		d.groups = append(d.groups, demandGroup{products: products})
	}
	kinds := &d.groups[g].kinds
	if i := slices.IndexFunc(*kinds, func(other kind) bool { return k.same(&other) }); i >= 0 {
		(*kinds)[i].weight += k.weight
		return
	}
	*kinds = append(*kinds, k)
}

// runsOn tells whether the group's kinds may run on GPUs of the product.
func (g *demandGroup) runsOn(product string) bool {
	if len(g.products) == 0 {
		return true
	}
	for _, p := range g.products {
		if p == product {
			return true
		}
	}
	return false
}

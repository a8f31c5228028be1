package placement

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// fragmentation is how many thousandths of the idle GPUs of a node the expected work cannot
// use. It has two parts, of equal weight:
//
//   - what CPU and memory are not left for, at the rate at which the expected work as a whole
//     takes them;
//   - for each kind of pod, weighted by its share of the expected work: what is idle less what
//     pods of that kind could use of it. Those with whole GPUs can use all that are whole, if
//     one such pod fits; those with a share can use that share of every GPU that has it.
//
// The second is F_n(M) of FGD (Weng et al., USENIX ATC'23) with two changes. There a pod with
// a share can use all that is left of a GPU. And here a kind that only some nodes can take
// weighs more, by Expected.Supply: the work for them has nowhere else to go. The first part is
// new: GPUs without a CPU beside them are as useless as fragments, and a node runs out of one
// of the two long before the last pod fits no more.
func (d *demand) fragmentation(s *stock) float64 {
	idle := s.idle()
	if idle == 0 {
		return 0
	}
	f := d.weight * idle
	for i := range d.groups {
		g := &d.groups[i]
		if !g.runsOn(s.c.Node.GPU.Product) {
			continue
		}
		for j := range g.kinds {
			k := &g.kinds[j]
			f -= k.weight * k.usable(s)
		}
	}
	// Of a mix that takes no CPU, perCPU is infinite: then 0 CPUs make no number, and no limit.
	fed := idle
	if most := s.cpu * d.perCPU; most < fed {
		fed = most
	}
	if most := s.memory * d.perMemory; most < fed {
		fed = most
	}
	return f + idle - fed
}

// usable returns how many thousandths of the idle GPUs pods of the kind could use.
func (k *kind) usable(s *stock) float64 {
	if k.cpu > s.cpu || k.memory > s.memory || !k.restFits(s) {
		return 0
	}
	if k.gpus > 0 {
		if s.whole < k.gpus {
			return 0
		}
		return s.whole * s.unit
	}
	pods := 0.0
	if k.milli <= s.unit {
		pods = s.whole
	}
	milli := int16(k.milli)
	for _, free := range s.parts[:s.shared] {
		if free >= milli {
			pods++
		}
	}
	return pods * k.milli
}

// restFits tells whether what is left of other resources is enough for a pod of the kind.
func (k *kind) restFits(s *stock) bool {
	for _, r := range k.rest {
		if r.index != s.c.Pod.GPUResource && r.want > s.left(r.index) {
			return false
		}
	}
	return true
}

// Fragmentation returns how many GPUs of the node are idle, and how many of these, in the mean
// over the scoring's expected work, that work cannot use. GPUs are counted as units of resource
// i. A kind of node that only some of the work can use counts as Expected.Supply says, so that
// the second can be more than the first.
func Fragmentation(n *cluster.Node, i int, scoring *Scoring) (idle, unusable float64) {
	c := Candidate{Node: n, Pod: &Shape{GPUResource: i}, FreeGPUs: n.Free(i), Scoring: scoring}
	if n.Board != nil {
		c.Whole = n.WholeGPUs()
	}
	var s stock
	s.read(&c)
	return s.idle() / cluster.Full, scoring.ready().fragmentation(&s) / cluster.Full
}

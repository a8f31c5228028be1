package placement

import (
	"math"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// filterKind tests what does not change as work comes and goes: the kind of machine and its
// health.
func (q *need) filterKind(m *cluster.Machine) Reason {
	switch {
	case !m.Ready:
		return NotReady
	case m.Cordoned && !q.toleratesCordon():
		return IsCordoned
	}
	if reason := q.suits(m); reason != Fits {
		return reason
	}
	switch {
	case m.FitsEmpty(q.Resources, 1) < 1:
		return NodeTooSmall
	case q.Include&^m.EmptyGPUs() != 0:
		return GPUsBroken
	case q.whole && m.Board != nil && int64(m.EmptyGPUs().Count()) < q.GPUs:
		return GPUsBroken
	}
	return Fits
}

// suits is filterKind for a machine in service. Rules come last: they may be dear.
func (q *need) suits(m *cluster.Machine) Reason {
	reason := q.matches(m)
	if q.Rules != nil && reason == Fits && q.refusal(m) != "" {
		return ByPolicy
	}
	return reason
}

// refusal is why the request's Rules keep pods off the machine, "" if they do not.
func (q *need) refusal(m *cluster.Machine) string {
	if q.Rules == nil {
		return ""
	}
	return q.Rules.Judge(m, q.resources).Refusal
}

// opinion is how good the request's Rules find the machine, 0 to 100.
func (q *need) opinion(m *cluster.Machine) float64 {
	score := q.Rules.Judge(m, q.resources).Score
	if math.IsNaN(score) {
		return neutral
	}
	return within(score, 0, 100)
}

// opinionWeight is what opinions count beside the terms of a node's score, 0 for nothing.
func (q *need) opinionWeight() float64 {
	if q.Rules == nil {
		return 0
	}
	t := Term{Weight: q.Rules.Weight()}
	return weight(&t)
}

// matches is suits as far as the pod says it itself.
func (q *need) matches(m *cluster.Machine) Reason {
	switch {
	case q.GPUs > 0 && m.Allocatable.At(q.GPUResource) == 0:
		return NoSuchGPU
	case q.Missing != "":
		return NoSuchResource
	}
	if !q.Selector.Matches(m) {
		return NotSelected
	}
	if _, tainted := m.Untolerated(q.Tolerations); tainted {
		return Tainted
	}
	switch {
	case q.GPU.Product != "" && q.GPU.Product != m.GPU.Product:
		return WrongProduct
	case q.GPU.Architecture != "" && !strings.EqualFold(q.GPU.Architecture, m.GPU.Architecture):
		return WrongArchitecture
	case q.GPU.MemoryMiB > q.memoryMiB(m):
		return MemoryTooSmall
	case q.Milli > 0 && q.GPUs > 0 && replicaMilli(m) < q.Milli:
		return ShareTooSmall
	case q.Milli > 0 && q.GPUs == 0:
		return q.offersShares(m)
	case len(q.MIG) > 0 && !q.partitions(m):
		return NoMIG
	case q.Include != 0 && m.Board == nil:
		return InsideUnknown
	}
	return Fits
}

// memoryMiB returns the memory of what one unit of the pod's GPU resource gives it: a GPU's,
// or that of a MIG instance of it.
func (q *need) memoryMiB(m *cluster.Machine) int64 {
	name, isMIG := strings.CutPrefix(q.GPUResourceName, migPrefix)
	if !isMIG || m.Geometry == nil {
		return m.GPU.MemoryMiB
	}
	p, ok := m.Geometry.Profile(strings.TrimSuffix(name, sharedSuffix))
	if !ok {
		return m.GPU.MemoryMiB
	}
	return m.GPU.MemoryMiB * int64(p.Memory) / int64(m.Geometry.MemorySlices())
}

// partitions tells whether the machine could hold the pod's MIG instances if nothing ran, as far
// as that can be told.
func (q *need) partitions(m *cluster.Machine) bool {
	if m.Geometry == nil || m.Board == nil {
		return false
	}
	n, exact := m.Geometry.Fits(nil, m.EmptyGPUs(), q.MIG, 1)
	return n > 0 || !exact
}

// toleratesCordon tells whether the pod goes to nodes taken out of service by their operator.
func (q *need) toleratesCordon() bool {
	cordon := cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: cluster.NoSchedule}
	for _, t := range q.Tolerations {
		if t.Tolerates(cordon) {
			return true
		}
	}
	return false
}

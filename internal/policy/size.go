package policy

import (
	"fmt"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// Resize tells how many nodes the cluster has now, and judges by it what the policies cost that
// were not in force before: those that a process took in before it knew the nodes, and those that
// were too costly for a larger cluster. It reports whether decisions may come out otherwise than
// before.
func (b *Book) Resize(nodes int) (changed bool) {
	b.mu.Lock()
	if b.nodes == nodes {
		b.mu.Unlock()
		return false
	}
	b.nodes = nodes
	var names []string
	for name, p := range b.policies {
		if b.weigh(p, nodes) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		b.rank()
	}
	told := b.told
	b.mu.Unlock()
	for _, name := range names {
		for _, tell := range told {
			tell(name)
		}
	}
	return len(names) > 0
}

// weigh puts the policy's spec in force unless it is too costly for so many nodes: then what was
// in force before it is. The caller holds the lock.
func (b *Book) weigh(p *entry, nodes int) (changed bool) {
	if p.own == nil || p.trusted && p.inForce == p.own {
		return false
	}
	was := p.inForce
	p.inForce, p.problem = p.own, nil
	if !p.trusted {
		if p.problem = b.tooCostly(p.own, nodes); p.problem != nil {
			p.inForce = p.before
		}
	}
	return p.inForce != was
}

// tooCostly says how far the expressions cost more than they may on so many nodes, nil if they
// do not.
func (b *Book) tooCostly(e *edition, nodes int) *Problem {
	if e.rules == nil {
		return nil
	}
	most := b.config.Budget.PerDecision / uint64(max(nodes, 1))
	cost := e.rules.CostPerNode()
	if cost <= most {
		return nil
	}
	return &Problem{Reason: gpuv1alpha1.PolicyTooCostly, Sentence: fmt.Sprintf(
		"the expressions may cost up to %d units on one node; on the %d nodes of this cluster at most %d are given, as a decision is given %d: look at fewer labels or taints, or compare instead of matching patterns",
		cost, nodes, most, b.config.Budget.PerDecision)}
}

package placement

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Plan decides where the pods of the request go.
//
// It returns an error only for a request that is malformed: an unknown strategy, no pods, a
// level the snapshot does not have. No room is not an error: the decision says why.
//
// The answer is exact: for a gang of equal pods, Plan finds a plan if there is one, and a
// decision that is not Feasible means that there is none in this snapshot. It takes one pass
// over the nodes, and O(log n) a pod.
func Plan(s *cluster.Snapshot, r *Request, strategies *Registry) (Decision, error) {
	strategy, err := strategies.Get(r.Strategy)
	if err != nil {
		return Decision{}, fmt.Errorf("planning %s: %w", r.Name, err)
	}
	if err := check(s, r); err != nil {
		return Decision{}, fmt.Errorf("planning %s: %w", r.Name, err)
	}
	p := &planner{snapshot: s, request: r, strategy: strategy}
	p.survey()
	domain, ok := p.choose()
	if !ok {
		return Decision{Why: p.explain()}, nil
	}
	d := Decision{Feasible: true, Nodes: p.assign(domain), Why: p.why}
	if domain.Level >= 0 {
		d.Domain, d.Level = s.DomainName(domain.Domain), s.Levels[domain.Level].Name
	}
	d.Why.Sentence = describe(&d, r)
	return d, nil
}

func check(s *cluster.Snapshot, r *Request) error {
	if r.Count < 1 {
		return fmt.Errorf("%d pods asked for, at least 1 is needed", r.Count)
	}
	t := r.Topology
	for _, level := range []int{t.Required, t.Preferred, t.SliceLevel} {
		if level >= len(s.Levels) {
			return fmt.Errorf("level %d asked for, the snapshot has %d", level, len(s.Levels))
		}
	}
	if t.SliceLevel >= 0 && t.SliceSize < 1 {
		return fmt.Errorf("slices of %d pods asked for, at least 1 is needed", t.SliceSize)
	}
	return nil
}

// planner holds what one Plan works with.
type planner struct {
	snapshot *cluster.Snapshot
	request  *Request
	strategy Strategy
	// fits is how many pods each node takes now, sums its prefix sums: the room of a range of
	// nodes is one subtraction.
	fits, sums []int32
	why        Explanation
}

// survey counts, in one pass, what fits on every node and what keeps the others out.
func (p *planner) survey() {
	nodes := p.snapshot.Nodes
	p.fits = make([]int32, len(nodes))
	p.sums = make([]int32, len(nodes)+1)
	p.why.Nodes = len(nodes)
	shape := &p.request.Pod
	for i, n := range nodes {
		reason := filter(n, shape)
		switch {
		case reason != Fits:
		case !p.located(n):
			reason = NotLocated
		case slices.Contains(p.request.Avoid, n.Name):
			reason = Avoided
		}
		if reason == Fits {
			p.fits[i] = int32(n.Fits(shape.Resources, int64(p.request.Count)))
		} else {
			p.why.Removed[reason]++
		}
		p.sums[i+1] = p.sums[i] + p.fits[i]
	}
}

// located tells whether the node is in a domain of every level that the request insists on.
func (p *planner) located(n *cluster.Node) bool {
	t := p.request.Topology
	return (t.Required < 0 || n.Path[t.Required] != "") && (t.SliceLevel < 0 || n.Path[t.SliceLevel] != "")
}

// room returns how many pods of the request the domain takes now, in whole slices.
func (p *planner) room(d cluster.Domain) int {
	return p.slices(d, func(first, end int) int { return int(p.sums[end] - p.sums[first]) })
}

// slices sums count over the parts of the domain in which a slice must be whole, each rounded
// down to whole slices.
func (p *planner) slices(d cluster.Domain, count func(first, end int) int) int {
	t := p.request.Topology
	if t.SliceLevel < 0 || t.SliceLevel <= d.Level {
		return roundDown(count(d.First, d.End), p.request.step())
	}
	total := 0
	for _, part := range p.parts(d) {
		total += roundDown(count(part.First, part.End), t.SliceSize)
	}
	return total
}

// parts returns the domains of the slice level inside d.
func (p *planner) parts(d cluster.Domain) []cluster.Domain {
	return within(p.snapshot.Domains(p.request.Topology.SliceLevel), d)
}

// within returns those of the ordered domains that are inside d. Both come in topology order,
// so they are one run.
func within(domains []cluster.Domain, d cluster.Domain) []cluster.Domain {
	first := 0
	for first < len(domains) && domains[first].First < d.First {
		first++
	}
	end := first
	for end < len(domains) && domains[end].End <= d.End {
		end++
	}
	return domains[first:end]
}

func roundDown(n, step int) int { return n - n%step }

package sim

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// DefaultStrategy is the one for scenarios: they are asked about topology most often.
const DefaultStrategy = "topologyAware"

// Options is what an answer depends on beside its scenario.
type Options struct {
	// Strategy is for scenarios that name none; "" is DefaultStrategy.
	Strategy string
	// Explain asks for scores beside the plan, which takes the engine longer.
	Explain bool
	// Clock measures the engine; nil leaves ElapsedMicros zero.
	Clock func() time.Time
}

// Strategies are the names that Options.Strategy and request.strategy may have.
func Strategies() []string { return strategies() }

// Place answers a scenario that Read has returned. An error is a fault of ours: whatever can be
// wrong with a scenario, Read has refused.
func Place(s *Scenario, o Options) (*Result, error) {
	if o.Strategy == "" {
		o.Strategy = DefaultStrategy
	}
	if s.Request.Strategy != "" {
		o.Strategy = s.Request.Strategy
	}
	r := &Result{Strategy: o.Strategy, Answer: Answer{
		Name:      s.Name,
		Placement: map[string]map[string]int{},
		GPUs:      map[string][][]int{},
		MIG:       []MIGChoice{},
		Victims:   []string{},
	}}
	defer r.compare(s.Expect)
	if s.Contradiction != "" {
		r.Reason = "the request contradicts itself: " + s.Contradiction
		return r, nil
	}
	w, err := newWorld(s)
	if err != nil {
		return nil, fmt.Errorf("answering %s: %w", s.Name, err)
	}
	q := w.ask(o.Strategy)
	c := caller{options: placement.Options{Scoring: s.scoring(w), Explain: o.Explain}, clock: o.Clock}
	d, asked, err := c.plan(q)
	if err == nil && s.Defragment != nil && !d.Feasible {
		r.moves, err = c.defragment(q, asked, &d)
	}
	if err != nil {
		return nil, fmt.Errorf("answering %s: %w", s.Name, err)
	}
	r.Moves = movesOf(r.moves)
	if s.Reservation && !d.Feasible {
		if r.Reservation, err = c.reserve(q, asked); err != nil {
			return nil, fmt.Errorf("answering %s: %w", s.Name, err)
		}
	}
	r.ElapsedMicros = c.elapsed.Microseconds()
	r.take(q, &d, asked)
	if !o.Explain {
		return r, nil
	}
	r.Explanation = explain(q, &d, asked)
	if r.tree, err = layout(q, &d, asked, r.moves); err != nil {
		return nil, fmt.Errorf("answering %s: %w", s.Name, err)
	}
	return r, nil
}

// caller asks the engine and takes the time.
type caller struct {
	options placement.Options
	clock   func() time.Time
	elapsed time.Duration
	// peaceful asks without evictions.
	peaceful bool
}

func (c *caller) ask(q *question, without []int) (placement.Decision, *asking, error) {
	asked := q.request(without)
	asked.request.Preempts = asked.request.Preempts && !c.peaceful
	if len(asked.parts) == 0 {
		d := placement.Decision{Feasible: true}
		d.Why.Sentence = "nothing is to be placed: what runs already is what is asked for"
		if len(without) > 0 {
			d.Why.Sentence = "nothing is placed: what runs already is enough, and there is no room for more"
		}
		return d, asked, nil
	}
	if c.clock == nil {
		d, err := placement.Plan(q.snapshot, asked.request, c.options)
		return d, asked, err
	}
	start := c.clock()
	d, err := placement.Plan(q.snapshot, asked.request, c.options)
	c.elapsed += c.clock().Sub(start)
	return d, asked, err
}

// maxOptional bounds the groups of which each may be left out, as all ways to do so are tried.
const maxOptional = 6

// plan asks for everything, and then without the groups that have enough already, as few of
// them as possible.
func (c *caller) plan(q *question) (placement.Decision, *asking, error) {
	if q.Request.Preemption == "lowerPriority" && slices.ContainsFunc(q.parts, func(p part) bool { return p.least == 0 }) {
		// Nobody makes way for what is only welcome: first without evictions, in every way.
		c.peaceful = true
		d, asked, err := c.planWays(q)
		if err != nil || d.Feasible {
			return d, asked, err
		}
		c.peaceful = false
	}
	return c.planWays(q)
}

func (c *caller) planWays(q *question) (placement.Decision, *asking, error) {
	first, asked, err := c.ask(q, nil)
	if err != nil || first.Feasible {
		return first, asked, err
	}
	var optional []int
	for i, p := range q.parts {
		if p.least == 0 && len(optional) < maxOptional {
			optional = append(optional, i)
		}
	}
	ways := make([]int, 1<<len(optional))
	for i := range ways {
		ways[i] = i
	}
	slices.SortStableFunc(ways, func(a, b int) int { return bits.OnesCount(uint(a)) - bits.OnesCount(uint(b)) })
	for _, way := range ways[1:] {
		var without []int
		for k, i := range optional {
			if way&(1<<k) != 0 {
				without = append(without, i)
			}
		}
		d, rest, err := c.ask(q, without)
		if err != nil {
			return d, nil, err
		}
		if d.Feasible {
			if len(rest.parts) > 0 {
				d.Why.Sentence += "; no room for more of " + q.names(without)
			}
			return d, rest, nil
		}
	}
	return first, asked, nil
}

// names lists the groups of some parts.
func (q *question) names(parts []int) string {
	var names []string
	for _, i := range parts {
		names = append(names, q.parts[i].Name)
	}
	return strings.Join(names, " and ")
}

// scoring returns the scenario's weights, nil for the defaults.
func (s *Scenario) scoring(w *world) *placement.Scoring {
	if s.Scoring == nil {
		return nil
	}
	scoring := placement.DefaultScoring()
	if n := s.Scoring.Node; n != nil {
		scoring.Node = placement.NodeWeights(*n)
	}
	if d := s.Scoring.Domain; d != nil {
		scoring.Domain = placement.DomainWeights(*d)
	}
	scoring.History, scoring.Hint = s.Scoring.History, s.Scoring.Hint
	for _, e := range s.Scoring.Mix {
		scoring.Mix = append(scoring.Mix, placement.Expected{
			Resources: w.vector(e.Requests), GPUs: e.GPUs, Milli: e.GPUMilli, Product: e.Product, Weight: e.Weight,
		})
	}
	// A mix says what will be asked for; how much of the cluster can serve it, the scenario's
	// nodes do.
	scoring.Mix = placement.WithSupply(scoring.Mix, w.snapshot, w.snapshot.Resources.Index(gpuResource))
	return scoring
}

// take puts the decision into the answer.
func (r *Result) take(q *question, d *placement.Decision, asked *asking) {
	r.Feasible, r.Undecided, r.Reason = d.Feasible, d.Undecided, d.Why.Sentence
	if !d.Feasible {
		r.MaxFeasible, r.Removed = d.Why.Room, removed(&d.Why)
		r.Reason = asked.refusal(&d.Why, len(q.Request.Groups))
		if i := slices.IndexFunc(asked.parts, func(p part) bool { return p.Name == d.Why.Group }); i >= 0 && len(q.Request.Replaces) == 0 {
			r.MaxFeasible += len(asked.parts[i].kept)
		}
		return
	}
	if len(q.Request.Replaces) == 0 {
		for i := range q.Request.Groups {
			if g := &q.Request.Groups[i]; q.keepsAll(g) {
				r.Placement[g.Name] = maps.Clone(g.Previous)
			}
		}
	}
	for _, v := range d.Victims {
		r.Victims = append(r.Victims, v.Workload)
	}
	for i := range d.Groups {
		r.takeGroup(&d.Groups[i], &asked.parts[i])
		if beside := besideText(len(d.Groups[i].Nodes), &asked.parts[i]); beside != "" {
			r.Reason += "; " + beside
		}
	}
	r.forgetUnknown(q)
	for _, nodes := range r.Placement {
		for _, n := range nodes {
			r.MaxFeasible += n
		}
	}
}

func (r *Result) takeGroup(a *placement.Assignment, p *part) {
	nodes := r.Placement[p.Name]
	if nodes == nil {
		nodes = map[string]int{}
		r.Placement[p.Name] = nodes
	}
	for rank, name := range a.Nodes {
		nodes[name]++
		if a.GPUs != nil && a.GPUs[rank] != 0 {
			r.GPUs[name] = append(r.GPUs[name], a.GPUs[rank].Indexes())
		}
		if a.Instances == nil {
			continue
		}
		for k, instance := range a.Instances[rank] {
			r.MIG = append(r.MIG, MIGChoice{Node: name, GPU: instance.GPU, Profile: p.MIG[k], Start: instance.Start})
		}
	}
}

// forgetUnknown leaves out the GPUs of nodes of which not every pod's are known: a list for some
// of the pods says nothing of which is whose.
func (r *Result) forgetUnknown(q *question) {
	for node, lists := range r.GPUs {
		pods := 0
		for i := range q.Request.Groups {
			if g := &q.Request.Groups[i]; g.Requests[gpuResource] > 0 || g.GPUMilli > 0 {
				pods += r.Placement[g.Name][node]
			}
		}
		if len(lists) != pods {
			delete(r.GPUs, node)
		}
	}
}

// compare says whether the answer is what the scenario expects.
func (r *Result) compare(e *Expect) {
	if e != nil && e.Feasible != nil {
		r.Expectation = &Expectation{Feasible: *e.Feasible, Agrees: *e.Feasible == r.Feasible && !r.Undecided}
	}
}

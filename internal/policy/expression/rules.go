package expression

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// neutral is the score of a node of which an expression has nothing to say.
const neutral = 50

// Set is the expressions of one edition of a policy. It is safe for concurrent use.
type Set struct {
	policy          string
	compiler        *Compiler
	filters, scores []compiled
	weight          float64
	cost            uint64
	// reads are the fields of the workload that the expressions read.
	reads []workloadField

	mu sync.Mutex
	// byFacts has the rules by what is read of the workload, used by when.
	byFacts map[string]*Rules
	tick    uint64
	// nodes is how many the cluster had when a decision began last.
	nodes int
	// tell is called when a decision has used up its budget; exhausted says that one has.
	tell      func()
	exhausted bool
}

// CostPerNode implements policy.Ruleset.
func (s *Set) CostPerNode() uint64 { return s.cost }

// Exhausted implements policy.Ruleset.
func (s *Set) Exhausted(tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell = tell
}

// What is remembered is bounded: judgements of machines, over all kinds of workload that the
// expressions tell apart. One takes some 100 bytes.
const (
	fewestKinds  = 8
	mostJudgings = 1 << 18
)

// Begin implements policy.Ruleset.
func (s *Set) Begin(w *policy.Workload, nodes int) cluster.Rules {
	key := factsOf(w, s.reads)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = nodes
	r, ok := s.byFacts[key]
	if !ok {
		r = &Rules{set: s, key: key, workload: workloadValue(w, s.reads)}
		s.remember(r)
	}
	s.use(r)
	r.begin(nodes)
	return r
}

// recall returns the rules of the same kind that are remembered, for some that were forgotten
// while somebody holds them still: these again, unless others took their place.
func (s *Set) recall(r *Rules) *Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok := s.byFacts[r.key]
	if !ok {
		now = r
		s.remember(r)
	}
	s.use(now)
	return now
}

func (s *Set) use(r *Rules) {
	s.tick++
	r.used = s.tick
}

// remember makes room for the judgements of one more kind of workload.
func (s *Set) remember(r *Rules) {
	for len(s.byFacts) >= max(fewestKinds, mostJudgings/max(s.nodes, 1)) {
		s.forgetOldest()
	}
	r.mu.Lock()
	r.known, r.spent = make(map[string]*judged), 0
	r.mu.Unlock()
	s.byFacts[r.key] = r
}

func (s *Set) forgetOldest() {
	oldest, at := "", uint64(math.MaxUint64)
	for key, r := range s.byFacts {
		if r.used < at {
			oldest, at = key, r.used
		}
	}
	r := s.byFacts[oldest]
	delete(s.byFacts, oldest)
	// Whoever holds the rules does not keep what they remembered.
	r.mu.Lock()
	r.known = nil
	r.mu.Unlock()
}

// exhaust tells, once, that a decision has used up its budget.
func (s *Set) exhaust() {
	s.mu.Lock()
	tell := s.tell
	if s.exhausted {
		tell = nil
	}
	s.exhausted = true
	s.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// Failures implements policy.Ruleset. It tells of what is remembered: of nodes that changed, how
// it is now.
func (s *Set) Failures() []policy.Failure {
	s.mu.Lock()
	rules := make([]*Rules, 0, len(s.byFacts))
	for _, r := range s.byFacts {
		rules = append(rules, r)
	}
	s.mu.Unlock()
	nodes := map[string]map[string]string{}
	for _, r := range rules {
		r.failures(nodes)
	}
	var all []policy.Failure
	for name, why := range nodes {
		f := policy.Failure{Expression: name, Nodes: len(why)}
		for node, text := range why {
			if f.Node == "" || node < f.Node {
				f.Node, f.Why = node, text
			}
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b policy.Failure) int { return cmp.Compare(a.Expression, b.Expression) })
	return all
}

// Rules are the expressions as they are for one kind of workload. It implements cluster.Rules.
type Rules struct {
	set *Set
	// key is what is read of the workload.
	key      string
	workload map[string]any
	used     uint64

	mu sync.Mutex
	// known is what was judged, by the machine's name; nil once the rules are forgotten.
	known map[string]*judged
	// spent is what the decision has cost so far.
	spent uint64
}

// judged is a machine with what was said of it.
type judged struct {
	machine   *cluster.Machine
	judgement cluster.Judgement
	// failed are the expressions that could not be evaluated, nil for none.
	failed []failure
}

type failure struct{ expression, why string }

// begin gives the next decision its budget.
func (r *Rules) begin(nodes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = 0
	if len(r.known) > 2*nodes+fewestKinds {
		clear(r.known) // Most of them are gone from the cluster.
	}
}

// Weight implements cluster.Rules.
func (r *Rules) Weight() float64 { return r.set.weight }

// Judge implements cluster.Rules. A machine is evaluated once; asked again, it is looked up.
func (r *Rules) Judge(m *cluster.Machine, resources *cluster.Resources) cluster.Judgement {
	r.mu.Lock()
	if r.known == nil {
		r.mu.Unlock()
		r = r.set.recall(r)
		r.mu.Lock()
	}
	known, ok := r.known[m.Name]
	if ok && known.machine == m {
		r.mu.Unlock()
		return known.judgement
	}
	ran := false
	if r.spent < r.set.compiler.budget.PerDecision {
		known = r.evaluate(m, resources)
	} else {
		known, ran = r.unjudged(m), true
	}
	if r.known != nil { // They may be forgotten again already.
		r.known[m.Name] = known
	}
	r.mu.Unlock()
	if ran {
		r.set.exhaust()
	}
	return known.judgement
}

// unjudged is what is said of a machine for which nothing of the budget is left.
func (r *Rules) unjudged(m *cluster.Machine) *judged {
	j := &judged{machine: m, judgement: cluster.Judgement{Score: neutral}}
	if len(r.set.filters) > 0 {
		j.judgement.Refusal = fmt.Sprintf("policy %s, whose expressions cost more than the %d units that a decision is given",
			r.set.policy, r.set.compiler.budget.PerDecision)
	}
	return j
}

// scope is the variables of one evaluation.
type scope struct{ node, workload map[string]any }

// ResolveName implements cel.Activation.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case nodeVar:
		return s.node, true
	case workloadVar:
		return s.workload, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (s *scope) Parent() cel.Activation { return nil }

// evaluate judges a machine. All expressions together get no more than one node may cost. The
// caller holds the lock.
func (r *Rules) evaluate(m *cluster.Machine, resources *cluster.Resources) *judged {
	variables := &scope{node: nodeValue(m, resources, r.set.compiler.levels), workload: r.workload}
	j := &judged{machine: m}
	left := r.set.compiler.budget.PerNode
	for i := range r.set.filters {
		f := &r.set.filters[i]
		value, err := r.run(f, variables, &left)
		switch passes, isBool := value.(bool); {
		case err == nil && isBool && passes:
		case err == nil && isBool:
			if j.judgement.Refusal == "" {
				j.judgement.Refusal = f.message
			}
		default:
			why := j.fail(f, err)
			if j.judgement.Refusal == "" {
				j.judgement.Refusal = fmt.Sprintf("policy %s, whose %s cannot be evaluated there: %s", r.set.policy, f.name, why)
			}
		}
		if j.judgement.Refusal != "" {
			return j
		}
	}
	sum := 0.0
	for i := range r.set.scores {
		f := &r.set.scores[i]
		value, err := r.run(f, variables, &left)
		score := float64(neutral)
		switch v := value.(type) {
		case int64:
			score = float64(v)
		case float64:
			score = v
		}
		if err != nil || math.IsNaN(score) {
			score = neutral
			j.fail(f, cmp.Or(err, errNotANumber))
		}
		sum += f.weight * min(max(score, 0), 100)
	}
	if r.set.weight > 0 {
		j.judgement.Score = sum / r.set.weight
	}
	return j
}

// run evaluates one expression and takes what it cost from what is left for the node.
func (r *Rules) run(f *compiled, variables *scope, left *uint64) (any, error) {
	value, details, err := f.program.Eval(variables)
	cost := r.set.compiler.budget.PerNode // Of what failed it may not be known.
	if actual := details.ActualCost(); actual != nil {
		cost = *actual
	}
	r.spent = sum(r.spent, cost)
	if cost > *left {
		*left = 0
		return nil, fmt.Errorf("the expressions cost more than the %d units that one node is given", r.set.compiler.budget.PerNode)
	}
	*left -= cost
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		return float64(v), nil
	}
	return nil, errUnknownResult
}

// fail notes that an expression could not be evaluated, and words why.
func (j *judged) fail(f *compiled, err error) string {
	why := "no result"
	if err != nil {
		why = strings.Join(strings.Fields(err.Error()), " ")
	}
	j.failed = append(j.failed, failure{expression: f.name, why: why})
	return why
}

// failures adds the nodes on which expressions failed, by expression and node.
func (r *Rules) failures(nodes map[string]map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, j := range r.known {
		for _, f := range j.failed {
			if nodes[f.expression] == nil {
				nodes[f.expression] = map[string]string{}
			}
			nodes[f.expression][name] = f.why
		}
	}
}

package expression

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// Compiler compiles the expressions of policies.
type Compiler struct {
	env    *cel.Env
	sizes  sizes
	levels []string
	budget policy.Budget
}

// NewCompiler returns a Compiler for a cluster with these topology levels, outermost first.
func NewCompiler(levels []cluster.Level, budget policy.Budget) (*Compiler, error) {
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	c := &Compiler{env: env, sizes: sizes{node: nodeType(), workload: workloadType()}, budget: budget}
	for _, l := range levels {
		c.levels = append(c.levels, l.Name)
	}
	return c, nil
}

// compiled is one expression.
type compiled struct {
	// name is "filter liquid-cooled", message what its refusal says.
	name, message string
	weight        float64
	program       cel.Program
}

// Compile implements policy.Compiler.
func (c *Compiler) Compile(name string, spec *gpuv1alpha1.PlacementPolicySpec) (policy.Ruleset, error) {
	s := &Set{policy: name, compiler: c, byFacts: make(map[string]*Rules)}
	reads := map[string]bool{}
	for i := range spec.Filters {
		f := &spec.Filters[i]
		program, cost, err := c.compile(fmt.Sprintf("filters[%s].expression", f.Name), f.Expression, reads, cel.BoolType)
		if err != nil {
			return nil, err
		}
		message := f.Message
		if message == "" {
			message = strings.Join(strings.Fields(f.Expression), " ")
		}
		s.filters = append(s.filters, compiled{
			name:    "filter " + f.Name,
			message: fmt.Sprintf("policy %s, filter %s: %s", name, f.Name, message),
			program: program,
		})
		s.cost = sum(s.cost, cost)
	}
	for i := range spec.Scores {
		f := &spec.Scores[i]
		program, cost, err := c.compile(fmt.Sprintf("scores[%s].expression", f.Name), f.Expression, reads, cel.IntType, cel.DoubleType)
		if err != nil {
			return nil, err
		}
		s.scores = append(s.scores, compiled{name: "score " + f.Name, weight: float64(f.Weight), program: program})
		s.weight += float64(f.Weight)
		s.cost = sum(s.cost, cost)
	}
	if s.cost > c.budget.PerNode {
		return nil, &policy.Problem{Reason: gpuv1alpha1.PolicyTooCostly, Sentence: fmt.Sprintf(
			"the expressions may cost %s on one node, and at most %d are given: look at fewer labels or taints, or compare instead of matching patterns", units(s.cost), c.budget.PerNode)}
	}
	s.reads = slices.DeleteFunc(workloadFields(), func(f workloadField) bool { return !reads[f.name] })
	return s, nil
}

// compile makes one expression ready, and notes the fields of the workload that it reads. CEL's
// own estimate is short by up to a third for loops over what a node has (TestEstimatesAreUpperBounds), so half
// as much again is added to it.
func (c *Compiler) compile(field, text string, reads map[string]bool, results ...*cel.Type) (cel.Program, uint64, error) {
	tree, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return nil, 0, c.invalid(field, issues)
	}
	if !slices.ContainsFunc(results, tree.OutputType().IsExactType) {
		return nil, 0, &policy.Problem{Reason: gpuv1alpha1.PolicyInvalidExpression, Sentence: fmt.Sprintf(
			"%s is %s, and must be %s", field, typeWord(tree.OutputType()), typeWords(results))}
	}
	estimate, err := c.env.EstimateCost(tree, &library.CostEstimator{SizeEstimator: c.sizes})
	if err != nil {
		return nil, 0, fmt.Errorf("estimating the cost of %s: %w", field, err)
	}
	program, err := c.env.Program(tree, cel.CostLimit(c.budget.PerNode), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, 0, &policy.Problem{Reason: gpuv1alpha1.PolicyInvalidExpression, Sentence: field + ": " + err.Error()}
	}
	noteReads(tree, reads)
	return program, sum(estimate.Max, estimate.Max/2), nil
}

// invalid words what the compiler says, on one line.
func (c *Compiler) invalid(field string, issues *cel.Issues) error {
	var said []string
	for _, e := range issues.Errors() {
		text := fmt.Sprintf("%s, line %d, column %d: %s", field, e.Location.Line(), e.Location.Column()+1, strings.Join(strings.Fields(e.Message), " "))
		if strings.Contains(e.Message, "undefined field") {
			text += fmt.Sprintf(" (node has %s; workload has %s)", fieldsOf(c.sizes.node), fieldsOf(c.sizes.workload))
		}
		said = append(said, text)
	}
	const most = 3
	if len(said) > most {
		said = append(said[:most], fmt.Sprintf("and %d more", len(said)-most))
	}
	if len(said) == 0 {
		said = append(said, field+": "+issues.String())
	}
	return &policy.Problem{Reason: gpuv1alpha1.PolicyInvalidExpression, Sentence: strings.Join(said, "; ")}
}

// noteReads notes which fields of the workload an expression reads: all of them where it takes
// the workload as a whole.
func noteReads(tree *cel.Ast, reads map[string]bool) {
	root := ast.NavigateAST(tree.NativeRep())
	for _, e := range ast.MatchDescendants(root, ast.KindMatcher(ast.IdentKind)) {
		if e.AsIdent() != workloadVar {
			continue
		}
		if above, ok := e.Parent(); ok && above.Kind() == ast.SelectKind {
			reads[above.AsSelect().FieldName()] = true
			continue
		}
		for _, f := range workloadFields() {
			reads[f.name] = true
		}
	}
}

// sum adds costs that may be without bound.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// units words a cost.
func units(cost uint64) string {
	if cost == math.MaxUint64 {
		return "any amount"
	}
	return fmt.Sprintf("up to %d units", cost)
}

func typeWord(t *cel.Type) string {
	switch t.Kind() {
	case cel.BoolKind:
		return "true or false"
	case cel.IntKind:
		return "a whole number"
	case cel.DoubleKind:
		return "a number with a fraction"
	case cel.StringKind:
		return "a text"
	case cel.DynKind:
		return "of a type that is only known when it is evaluated"
	}
	return "of type " + t.String()
}

func typeWords(types []*cel.Type) string {
	var words []string
	for _, t := range types {
		words = append(words, typeWord(t))
	}
	return strings.Join(words, " or ")
}

var (
	// errUnknownResult is no expression's fault: its type was checked.
	errUnknownResult = errors.New("the result is neither a truth value nor a number")
	errNotANumber    = errors.New("the result is not a number")
)

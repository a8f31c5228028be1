package policy

import (
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Compiler makes the expressions of a policy ready to be evaluated. An error is a *Problem where
// the policy must change.
type Compiler interface {
	// Compile is given the policy's name, for messages, and its spec, which has an expression
	// at least.
	Compile(name string, spec *gpuv1alpha1.PlacementPolicySpec) (Ruleset, error)
}

// Ruleset is the expressions of one edition of a policy.
type Ruleset interface {
	// CostPerNode is the most that evaluating all of them on one node can cost.
	CostPerNode() uint64
	// Begin begins a decision about a workload in a cluster of so many nodes: its rules have a
	// fresh budget. Workloads of which the expressions see no difference share their Rules.
	Begin(w *Workload, nodes int) cluster.Rules
	// Exhausted sets what is called, once, when a decision has used up its budget. From then on
	// filters refuse what they have not judged yet, and scores have no opinion of it.
	Exhausted(tell func())
	// Failures lists the expressions that could not be evaluated on some node.
	Failures() []Failure
}

// Failure is an expression that could not be evaluated on some nodes.
type Failure struct {
	// Expression names it: "filter liquid-cooled".
	Expression string
	// Nodes is on how many, Node one of them, and Why what happened there.
	Nodes int
	Node  string
	Why   string
}

// Workload is what expressions, and selectors, may know of a workload.
type Workload struct {
	Namespace, Name string
	Labels          map[string]string
	// GPUCount is the number of GPUs of each pod, in units of Resource; Parallelism the number
	// of pods.
	GPUCount, Parallelism int64
	// Priority is low, medium, high or critical.
	Priority string
	// Strategy is what the workload names, or "": then the policy's default, where it is told
	// to expressions.
	Strategy string
	// Resource is what a GPU is called, Model what the workload calls what it runs.
	Resource, Model string
}

// Budget bounds what expressions may cost, in units of CEL's cost: a comparison of short texts
// is a few of them. A million takes 0.1 to 0.2 s (BenchmarkUnits in package expression).
type Budget struct {
	// PerNode bounds the estimate of all expressions of a policy for one node, and what
	// evaluating them there may really cost.
	PerNode uint64
	// PerDecision bounds what they cost over all nodes of one decision, by the estimate when a
	// policy comes and in truth ever after.
	PerDecision uint64
}

// DefaultBudget lets a decision over 1,000 nodes spend 4,000 units on each, over 10,000 nodes
// 400: four million in all, which is less than a second, and is spent once for an edition and
// not once for a decision.
func DefaultBudget() Budget { return Budget{PerNode: 4_000, PerDecision: 4_000_000} }

// Problem is why a policy cannot be carried out as written.
type Problem struct {
	// Reason is one of the reasons of the condition Ready.
	Reason string
	// Sentence says what is wrong, where, and what to do.
	Sentence string
}

// Error implements error.
func (p *Problem) Error() string { return p.Sentence }

// Package expression compiles the CEL expressions of placement policies and evaluates them over
// machines. It bounds what they cost: when they are compiled by an estimate, on each node by a
// limit, and over the nodes of a decision by a budget.
//
// An expression is a function of the machine and of what it reads of the workload, so each
// result is kept until the machine changes. It sees nothing that comes and goes with the work
// on a node, and no time.
package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The two variables of every expression.
const (
	nodeVar     = "node"
	workloadVar = "workload"
)

// What estimates take to be the largest there is. Nodes have had a hundred labels and more.
const (
	mostLabels    = 256
	labelKey      = 317
	labelValue    = 63
	mostTaints    = 32
	mostResources = 64
	mostLevels    = 16
	objectName    = 253
)

func text(size int64) *apiservercel.DeclType {
	t := *apiservercel.StringType
	t.MaxElements = size
	return &t
}

func object(name string, types map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	fields := make(map[string]*apiservercel.DeclField, len(types))
	for field, t := range types {
		fields[field] = apiservercel.NewDeclField(field, t, true, nil, nil)
	}
	return apiservercel.NewObjectType(name, fields)
}

func labelsType() *apiservercel.DeclType {
	return apiservercel.NewMapType(text(labelKey), text(labelValue), mostLabels)
}

// gpuType is node.gpu: what the node tells of its GPUs, empty or zero where it does not.
func gpuType() *apiservercel.DeclType {
	return object("warp.GPU", map[string]*apiservercel.DeclType{
		"product":      text(labelValue),
		"architecture": text(labelValue),
		"memoryMiB":    apiservercel.IntType,
		"replicas":     apiservercel.IntType,
		"sharing":      text(labelValue),
	})
}

func taintType() *apiservercel.DeclType {
	return object("warp.Taint", map[string]*apiservercel.DeclType{
		"key":    text(labelKey),
		"value":  text(labelValue),
		"effect": text(labelValue),
	})
}

// nodeType is what an expression knows of a node. Who adds to it tells nodeValue and
// docs/policies.md.
func nodeType() *apiservercel.DeclType {
	return object("warp.Node", map[string]*apiservercel.DeclType{
		"name":        text(objectName),
		"labels":      labelsType(),
		"taints":      apiservercel.NewListType(taintType(), mostTaints),
		"allocatable": apiservercel.NewMapType(text(labelKey), apiservercel.IntType, mostResources),
		"topology":    apiservercel.NewMapType(text(labelValue), text(labelValue), mostLevels),
		"gpu":         gpuType(),
		"ready":       apiservercel.BoolType,
		"cordoned":    apiservercel.BoolType,
	})
}

// workloadType is what an expression knows of a workload. Who adds to it tells workloadFields
// and docs/policies.md.
func workloadType() *apiservercel.DeclType {
	return object("warp.Workload", map[string]*apiservercel.DeclType{
		"name":        text(objectName),
		"namespace":   text(objectName),
		"labels":      labelsType(),
		"gpuCount":    apiservercel.IntType,
		"parallelism": apiservercel.IntType,
		"priority":    text(labelValue),
		"strategy":    text(labelValue),
		"resource":    text(labelKey),
		"model":       text(objectName),
	})
}

// newEnvironment returns the language: that of Kubernetes' own expressions as of 1.34, with our two
// variables. It does not depend on the API server: expressions are compiled and evaluated here, so
// older ones, back to 1.30, store what they could not compile themselves.
func newEnvironment() (*cel.Env, error) {
	node, workload := nodeType(), workloadType()
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 34)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(nodeVar, node.CelType()), cel.Variable(workloadVar, workload.CelType())},
		DeclTypes:         []*apiservercel.DeclType{node, workload},
	})
	if err != nil {
		return nil, fmt.Errorf("declaring node and workload to CEL: %w", err)
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	return env, nil
}

// fieldsOf lists the fields of a variable, for messages.
func fieldsOf(t *apiservercel.DeclType) string {
	return strings.Join(slices.Sorted(maps.Keys(t.Fields)), ", ")
}

// sizes tells the estimate how large things may be.
type sizes struct{ node, workload *apiservercel.DeclType }

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	at := map[string]*apiservercel.DeclType{nodeVar: s.node, workloadVar: s.workload}[path[0]]
	if at == nil {
		return nil
	}
	for _, step := range path[1:] {
		if at = within(at, step); at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(max(at.MaxElements, 1))}
}

// within returns the type one step further down a path, nil where there is none. What follows a
// map is one of its keys, of whatever name.
func within(t *apiservercel.DeclType, step string) *apiservercel.DeclType {
	switch {
	case step == "@keys":
		return t.KeyType
	case step == "@items", step == "@values", t.IsMap():
		return t.ElemType
	}
	if field, ok := t.Fields[step]; ok {
		return field.Type
	}
	return nil
}

// EstimateCallCost implements checker.CostEstimator: no function here is ours.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

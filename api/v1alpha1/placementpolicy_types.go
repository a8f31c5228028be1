package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PlacementPolicy says how the workloads that it selects are placed: by
// which strategy and how close together where they do not say it
// themselves, on which nodes at all (filters), on which rather than on others
// (scores), and what counts how much.
//
// The shortest useful one is a default for the whole cluster:
//
//	apiVersion: gpu.warp.dev/v1alpha1
//	kind: PlacementPolicy
//	metadata: {name: default}
//	spec: {defaults: {schedulingStrategy: topologyAware}}
//
// Exactly one policy holds for a workload: of those that select it the one
// with the highest spec.priority, of equals the one whose name comes first.
// What is planned already stays where it is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ppol
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Workloads",type=integer,JSONPath=`.status.workloads`,description="unfinished workloads that it holds for"
// +kubebuilder:printcolumn:name="Cost",type=integer,JSONPath=`.status.costPerNode`,description="most that its expressions cost on one node"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says for whom the policy is and what it asks.
	// +required
	Spec PlacementPolicySpec `json:"spec"`

	// Status says whether the policy is in force. The controller writes it.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementPolicy `json:"items"`
}

// PlacementPolicySpec says for whom a policy is and what it asks.
type PlacementPolicySpec struct {
	// Priority decides between policies that select the same workload: the
	// highest holds, of equals the one whose name comes first. From -1000000 to
	// 1000000; default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority"`

	// ClassName names the gpu-orchestrator installation that the policy is for,
	// where several share a cluster. Left out, the one without a class.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="className must be lower-case letters, digits and '-', with a letter or digit at both ends: leave it out for the installation without a class"
	ClassName string `json:"className,omitempty"`

	// NamespaceSelector selects workloads by the labels of their namespace; every
	// namespace has kubernetes.io/metadata.name. Left out, or empty, all of them.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// WorkloadSelector selects workloads by their own labels. Left out, or empty,
	// all of them. With both selectors, a workload must match both.
	// +optional
	WorkloadSelector *metav1.LabelSelector `json:"workloadSelector,omitempty"`

	// Defaults hold for workloads that do not say it themselves.
	// +optional
	Defaults *PlacementDefaults `json:"defaults,omitempty"`

	// Weights are what the terms of a score count. Strategy topologyAware goes by
	// them.
	// +optional
	Weights *ScoreWeights `json:"weights,omitempty"`

	// Filters are CEL expressions over node and workload, each of which must be
	// true: a node for which one is not takes no pod of the workload. One that
	// cannot be evaluated on a node, such as one that reads a label that the node
	// has not, keeps pods off it. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Filters []PlacementFilter `json:"filters,omitempty"`

	// Scores are CEL expressions over node and workload, each from 0 (worst) to
	// 100 (best). Strategy topologyAware weighs them together with its own terms;
	// with any other their weighted mean decides first, and the strategy between
	// nodes that have the same. One that cannot be evaluated on a node is 50
	// there. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Scores []PlacementScore `json:"scores,omitempty"`
}

// PlacementDefaults hold for workloads that do not say it themselves.
type PlacementDefaults struct {
	// SchedulingStrategy is the strategy of workloads that name none: one that is
	// registered, such as leastLoaded, binPack or topologyAware.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9.-]*$')",message="schedulingStrategy must be the name of a strategy, for example leastLoaded: a letter, then letters, digits, '-' and '.'"
	SchedulingStrategy string `json:"schedulingStrategy,omitempty"`

	// Topology is how close together the pods of workloads are that name neither
	// a required nor a preferred level.
	// +optional
	Topology *DefaultTopology `json:"topology,omitempty"`
}

// DefaultTopology is how close together the pods of a gang must be that
// does not say it itself.
type DefaultTopology struct {
	// Required is the level of which one domain must hold the whole gang.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Required string `json:"required,omitempty"`

	// Preferred is the level of which one domain should hold the whole gang. If
	// none can, the next wider level is tried, and so on.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Preferred string `json:"preferred,omitempty"`
}

// ScoreWeights are what the terms of a score count. Only their proportions
// matter.
type ScoreWeights struct {
	// Node weighs the terms of a node's score.
	// +optional
	Node *NodeScoreWeights `json:"node,omitempty"`

	// Domain weighs the terms of the score of a topology domain.
	// +optional
	Domain *DomainScoreWeights `json:"domain,omitempty"`
}

// NodeScoreWeights weigh the terms of a node's score.
//
// +kubebuilder:validation:XValidation:rule="self.topology + self.resources + self.balance + self.hint > 0",message="weights.node must have a weight above 0, or every node scores the same: leave it out for 40, 35, 25 and 0"
type NodeScoreWeights struct {
	// Topology is how well the GPUs that the pod would get are connected. From 0
	// to 1000; default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Topology *int32 `json:"topology,omitempty"`

	// Resources is how little is left unused of what the pod touches. From 0 to
	// 1000; default: 35.
	// +optional
	// +kubebuilder:default=35
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Resources *int32 `json:"resources,omitempty"`

	// Balance is how evenly CPU, memory and GPUs of the node are in use. From 0
	// to 1000; default: 25.
	// +optional
	// +kubebuilder:default=25
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Balance *int32 `json:"balance,omitempty"`

	// Hint is a predictor's opinion of the node, neutral where there is none.
	// From 0 to 1000; default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Hint *int32 `json:"hint,omitempty"`
}

// DomainScoreWeights weigh the terms of a domain's score.
//
// +kubebuilder:validation:XValidation:rule="self.availability + self.alignment + self.utilization + self.history > 0",message="weights.domain must have a weight above 0, or every domain scores the same: leave it out for 40, 30, 20 and 10"
type DomainScoreWeights struct {
	// Availability is how much of the gang the domain has room for. From 0 to
	// 1000; default: 40.
	// +optional
	// +kubebuilder:default=40
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Availability *int32 `json:"availability,omitempty"`

	// Alignment is in how few domains of the next level the gang would be. From 0
	// to 1000; default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Alignment *int32 `json:"alignment,omitempty"`

	// Utilization is the share of the domain's GPUs in use once the gang runs.
	// From 0 to 1000; default: 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Utilization *int32 `json:"utilization,omitempty"`

	// History is how well work went in the domain, neutral where nothing is
	// known. From 0 to 1000; default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	History *int32 `json:"history,omitempty"`
}

// PlacementFilter is a test that a node must pass.
type PlacementFilter struct {
	// Name names the filter in messages. Unique among the filters.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower-case letters, digits and '-', with a letter or digit at both ends, for example liquid-cooled"
	Name string `json:"name"`

	// Expression is CEL over node and workload; true lets pods onto the node:
	// node.labels[?'cooling'].orValue('') == 'liquid'.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`

	// Message is what people read of nodes that it keeps pods off, for example
	// "the GPUs of this team must be liquid cooled". Left out, the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="message must be one line of text"
	Message string `json:"message,omitempty"`
}

// PlacementScore is an opinion on nodes.
type PlacementScore struct {
	// Name names the score in messages. Unique among the scores.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower-case letters, digits and '-', with a letter or digit at both ends, for example liquid-cooled"
	Name string `json:"name"`

	// Expression is CEL over node and workload with an int or a double as its
	// result, from 0 to 100; what is beyond counts as the nearest of the two:
	// node.gpu.architecture == 'hopper' ? 100 : 20.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`

	// Weight is what the score counts beside the others, and with topologyAware
	// beside weights.node. From 1 to 1000; default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`
}

// Condition types of a PlacementPolicy.
const (
	// PolicyReady is True when the policy as it is written is in force, False when
	// it is not; the reason says why.
	PolicyReady = "Ready"
	// PolicyConflict is True when another policy goes before this one for
	// workloads that both select.
	PolicyConflict = "Conflict"
	// PolicyEvaluates is False when an expression could not be evaluated on some
	// node.
	PolicyEvaluates = "Evaluates"
)

// Reasons of the condition Ready.
const (
	// PolicyInForce is the reason of Ready being True.
	PolicyInForce = "InForce"
	// PolicyInvalidExpression means that an expression does not compile, or has
	// another result than its kind asks for.
	PolicyInvalidExpression = "InvalidExpression"
	// PolicyInvalidSelector means that a selector cannot be read.
	PolicyInvalidSelector = "InvalidSelector"
	// PolicyTooCostly means that the expressions may cost, or did cost, more than
	// a decision is given.
	PolicyTooCostly = "TooCostly"
	// PolicyUnknownStrategy means that there is no such strategy.
	PolicyUnknownStrategy = "UnknownStrategy"
	// PolicyUnknownLevel means that there is no such topology level.
	PolicyUnknownLevel = "UnknownLevel"
)

// PlacementPolicyStatus says whether a policy is in force.
type PlacementPolicyStatus struct {
	// Conditions: Ready, Conflict, Evaluates.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status speaks
	// of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// InForce is the edition of the policy that decisions go by. It is absent
	// while there is none: then the policy holds for nobody.
	// +optional
	InForce *PolicyEdition `json:"inForce,omitempty"`

	// CostPerNode is the most that the expressions can cost on one node, in units
	// of CEL's cost.
	// +optional
	CostPerNode int64 `json:"costPerNode,omitempty"`

	// Workloads is the number of unfinished GPUWorkloads that the policy holds
	// for.
	// +optional
	Workloads int32 `json:"workloads"`

	// Overruled is the number of unfinished GPUWorkloads that the policy selects
	// and another one holds for.
	// +optional
	Overruled int32 `json:"overruled,omitempty"`
}

// PolicyEdition is a spec that a policy has, or had.
type PolicyEdition struct {
	// Generation is the generation of the policy that had this spec.
	Generation int64 `json:"generation"`

	// Spec is the spec, where it is not the policy's own any more: the last good
	// one stays in force until there is a better one.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

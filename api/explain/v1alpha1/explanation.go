package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The group, its version, and the kinds.
const (
	GroupName = "explain.gpu.warp.dev"
	Version   = "v1alpha1"

	ExplanationKind  = "Explanation"
	DecisionListKind = "DecisionList"
	ScenarioKind     = "Scenario"
)

// APIVersion is what the kinds of this group say of themselves.
const APIVersion = GroupName + "/" + Version

// The verdicts of an Explanation.
const (
	VerdictPlaced = "PLACED"
	VerdictWait   = "WAIT"
	VerdictChange = "CHANGE"
	VerdictAsk    = "ASK"
	VerdictBroken = "BROKEN"
	// VerdictEnded: it has succeeded or failed, and nothing more will happen.
	VerdictEnded = "ENDED"
)

// Explanation says why a workload, a pod or a gang waits, or is where it is.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names what was asked about. Its creationTimestamp is when.
	metav1.ObjectMeta `json:"metadata"`

	// Subject is what was asked about: "gpuworkload", "pod" or "gang". Workload is the GPUWorkload
	// behind it, "" if there is none.
	Subject  string `json:"subject"`
	Workload string `json:"workload,omitempty"`
	// Verdict says whose turn it is: PLACED, WAIT, CHANGE, ASK, BROKEN or ENDED.
	Verdict string `json:"verdict"`
	// Reason is the one that dominates, in one word; Message its evidence, in one sentence.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Runs is true if it has its places, or has ended; false if it waits.
	Runs bool `json:"runs"`
	// Snapshot is the generation of the cluster that was asked.
	Snapshot uint64 `json:"snapshot"`
	// Notes are what else has to be known to read the answer.
	Notes []string `json:"notes,omitempty"`
	// Misses are the domains that come nearest, wider ones first.
	Misses []Miss `json:"misses,omitempty"`
	// Remedies would let it start. The engine has tried each; the cheapest comes first.
	Remedies []Remedy `json:"remedies,omitempty"`
	// Placement is where it is.
	Placement *Placement `json:"placement,omitempty"`
	// History is what was decided about it, the oldest first, as far as it is remembered.
	History []Decision `json:"history,omitempty"`
	// Try is the plan that the remedy that was named leads to.
	Try *Trial `json:"try,omitempty"`
}

// Miss is a domain that comes near.
type Miss struct {
	// Level is the topology level, "" for the whole cluster.
	Level  string `json:"level,omitempty"`
	Domain string `json:"domain"`
	// Room is how many pods it takes now, Empty how many it would if nothing ran and all of it
	// were in service, and Need how many it has to take.
	Room  int `json:"room"`
	Empty int `json:"empty"`
	Need  int `json:"need"`
	// Holders hold GPUs there, Nodes are out of service; MoreHolders and MoreNodes are not named.
	Holders     []Holder    `json:"holders,omitempty"`
	Nodes       []NodeIssue `json:"nodes,omitempty"`
	MoreHolders int         `json:"moreHolders,omitempty"`
	MoreNodes   int         `json:"moreNodes,omitempty"`
}

// Holder is a workload that holds GPUs. Name is "namespace/name" of a GPUWorkload,
// "namespace/Kind/name" of what else owns pods, and hides the name where whoever asks may not see
// that namespace.
type Holder struct {
	Name     string `json:"name"`
	Priority int32  `json:"priority"`
	GPUs     int64  `json:"gpus"`
	Nodes    int    `json:"nodes"`
}

// NodeIssue is a node that cannot be used, and why.
type NodeIssue struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Remedy is something that would let the workload start.
type Remedy struct {
	// Number is what to give to try.
	Number int `json:"number"`
	// Kind is wait, change, mend, move or ask.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	// Starts is "now", a duration as "1h10m0s", or "unknown"; Latest is the same if what is waited
	// for takes long.
	Starts string `json:"starts"`
	Latest string `json:"latest,omitempty"`
	Cost   Cost   `json:"cost"`
	// Subjects are the workloads, or the nodes, that it is about.
	Subjects []string `json:"subjects,omitempty"`
	// Commands carry it out, in this order. Empty where there is none to carry it out with.
	Commands []string `json:"commands,omitempty"`
}

// Cost is what a remedy costs.
type Cost struct {
	// Summary says it in words.
	Summary string `json:"summary"`
	// PodsEvicted stop for good, PodsMoved start elsewhere.
	PodsEvicted int `json:"podsEvicted,omitempty"`
	PodsMoved   int `json:"podsMoved,omitempty"`
	// GPUHoursLost is null if that is not known.
	GPUHoursLost *float64 `json:"gpuHoursLost"`
	// GPUsGivenUp the workload does without, LevelsWider it spreads, MbpsGivenUp a pod.
	GPUsGivenUp int64 `json:"gpusGivenUp,omitempty"`
	LevelsWider int   `json:"levelsWider,omitempty"`
	MbpsGivenUp int64 `json:"mbpsGivenUp,omitempty"`
	// NodesToMend are how many nodes somebody has to see to.
	NodesToMend int `json:"nodesToMend,omitempty"`
}

// Trial is what a remedy leads to.
type Trial struct {
	Number  int    `json:"number"`
	Message string `json:"message"`
	// Nodes says which ranks go where: "0-3,7".
	Nodes []NodeRanks `json:"nodes"`
}

// NodeRanks are the members of a gang on one node.
type NodeRanks struct {
	Node  string `json:"node"`
	Ranks string `json:"ranks"`
	// Domain is the node's value at the level in question, "" for none.
	Domain string `json:"domain,omitempty"`
}

// Placement is where a workload is, and why there.
type Placement struct {
	Nodes []NodeRanks `json:"nodes"`
	// Planned is when, in which attempt, by which strategy.
	Planned  *metav1.Time `json:"planned,omitempty"`
	Attempt  int32        `json:"attempt"`
	Strategy string       `json:"strategy,omitempty"`
	// Message is what was said of the plan when it was made.
	Message string `json:"message,omitempty"`
	// Scores are those of the nodes and domains as the engine judges them now, without what the
	// workload itself holds: the one it would choose, and the next best.
	Scores []Score `json:"scores,omitempty"`
	// Again is whether it would go to the same nodes if it were planned now.
	Again *bool `json:"again,omitempty"`
}

// Score is how good a node or a domain is found, by its terms.
type Score struct {
	What   string  `json:"what"`
	Name   string  `json:"name"`
	Score  float64 `json:"score"`
	Chosen bool    `json:"chosen"`
	Terms  []Term  `json:"terms,omitempty"`
}

// Term is one part of a score: a value of 0 to 100 with its weight.
type Term struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Weight float64 `json:"weight"`
}

// Scenario is the question about a workload as a file that `warp sim place` reads.
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// File is the text of the file.
	File string `json:"file"`
}

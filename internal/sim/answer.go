package sim

import "github.com/reyisjones/gpu-orchestrator/core/placement"

// Answer is the answer to a scenario, in the form that shared conformance tools read.
type Answer struct {
	Name     string `json:"name"`
	Feasible bool   `json:"feasible"`
	// Undecided is true if the search ran out of its budget: whether there is room is not known.
	Undecided bool `json:"undecided,omitempty"`
	// Reason says in a sentence why.
	Reason string `json:"reason"`
	// MaxFeasible is how many pods are placed, or, where there is no plan, how many of the
	// group in the way would have fitted.
	MaxFeasible int `json:"maxFeasible"`
	// Removed is, without a plan, how many nodes cannot take a pod of the group in the way, by
	// why.
	Removed map[string]int `json:"removed,omitempty"`
	// Placement is the number of pods by group and node.
	Placement map[string]map[string]int `json:"placement"`
	// GPUs are, by node, the GPUs of each pod on it, as far as they are known.
	GPUs map[string][][]int `json:"gpus"`
	MIG  []MIGChoice        `json:"mig"`
	// Victims are the workloads to evict.
	Victims []string `json:"victims"`
	// Reservation is when and where it could start, if that was asked for and it cannot now.
	Reservation *Reservation `json:"reservation,omitempty"`
	// Moves are the workloads that move first, in the order in which they do.
	Moves []WorkloadMove `json:"moves,omitempty"`
	// ElapsedMicros is how long the engine took.
	ElapsedMicros int64 `json:"elapsedMicros"`
}

// MIGChoice is a MIG instance of a plan.
type MIGChoice struct {
	Node string `json:"node"`
	GPU  int    `json:"gpu"`
	// Profile is the name as it was asked for.
	Profile string `json:"profile"`
	Start   int    `json:"start"`
}

// WorkloadMove is a workload of which pods move.
type WorkloadMove struct {
	Workload string `json:"workload"`
	// Cost is what is lost, in GPU-hours.
	Cost float64   `json:"cost"`
	Pods []PodMove `json:"pods"`
}

// PodMove is a pod that moves, with the GPUs that it gets where they are known.
type PodMove struct {
	Pod  string `json:"pod"`
	From string `json:"from"`
	To   string `json:"to"`
	GPUs []int  `json:"gpus,omitempty"`
}

// Result is an answer with everything that led to it.
type Result struct {
	Answer
	Strategy    string       `json:"strategy"`
	Explanation *Explanation `json:"explanation,omitempty"`
	// Expectation compares the answer with what the scenario expects; nil if it expects nothing.
	Expectation *Expectation `json:"expectation,omitempty"`

	// tree is the cluster with who goes where.
	tree *domain
	// moves are Moves as the engine tells them.
	moves []placement.Move
}

// Expectation is whether an answer is what the scenario expects.
type Expectation struct {
	Feasible bool `json:"feasible"`
	Agrees   bool `json:"agrees"`
}

// Explanation is why an answer came out as it did.
type Explanation struct {
	// Group is the group that the rest is about.
	Group string `json:"group,omitempty"`
	// Nodes is how many nodes there are, Removed how many of them cannot take a pod, by why.
	Nodes   int            `json:"nodes"`
	Removed map[string]int `json:"removed,omitempty"`
	// Room is how many pods the best domain could take now, RoomEmpty if nothing ran.
	Room      int    `json:"room"`
	RoomEmpty int    `json:"roomEmpty,omitempty"`
	Best      string `json:"best,omitempty"`
	// Never is true if it would not fit even if nothing ran.
	Never       bool         `json:"never,omitempty"`
	Certificate *Certificate `json:"certificate,omitempty"`
	// Misses are the domains with the most room, level by level.
	Misses []Miss `json:"misses,omitempty"`
	// Changes are edits of the request that would be met now.
	Changes      []Change     `json:"changes,omitempty"`
	Chosen       *NodeScore   `json:"chosen,omitempty"`
	Next         *NodeScore   `json:"next,omitempty"`
	ChosenDomain *DomainScore `json:"chosenDomain,omitempty"`
	NextDomain   *DomainScore `json:"nextDomain,omitempty"`
	// Missed are the preferred levels that the plan does not keep to.
	Missed []Preference `json:"missedPreferences,omitempty"`

	// groups is how many groups the request has; placed is how many pods of Group the plan
	// places, and kept how many it has already.
	groups, placed, kept int
}

// several tells whether it must be said which group something is about.
func (e *Explanation) several() bool { return e.groups > 1 }

// Preference is a preferred level of which the groups take several domains.
type Preference struct {
	Groups  []string `json:"groups"`
	Level   string   `json:"level"`
	Domains int      `json:"domains"`
	// Instead is the narrowest wider domain that holds them all; nil for the cluster.
	Instead *Within `json:"instead,omitempty"`
}

// Within is a domain with its level.
type Within struct {
	Level  string `json:"level"`
	Domain string `json:"domain"`
}

// Certificate is what a refusal rests on.
type Certificate struct {
	Kind   string   `json:"kind"`
	Groups []string `json:"groups"`
	Level  string   `json:"level,omitempty"`
	Domain string   `json:"domain,omitempty"`
	Room   int      `json:"room"`
	Need   int      `json:"need"`
}

// Miss is the domain of a level with the most room.
type Miss struct {
	// Level is "" for the whole cluster.
	Level  string `json:"level,omitempty"`
	Domain string `json:"domain"`
	Room   int    `json:"room"`
}

// Change is an edit of a request. Field "replaces" is not one of the file: To is how many of the
// lost pods could be placed.
type Change struct {
	// Group is the group to change, where there are several.
	Group string `json:"group,omitempty"`
	Field string `json:"field"`
	To    string `json:"to"`
}

// NodeScore is a node's score and its terms.
type NodeScore struct {
	Node  string  `json:"node"`
	Score float64 `json:"score"`
	Terms []Term  `json:"terms,omitempty"`
}

// DomainScore is a domain's score and its terms.
type DomainScore struct {
	Level  string  `json:"level"`
	Domain string  `json:"domain"`
	Score  float64 `json:"score"`
	Terms  []Term  `json:"terms,omitempty"`
}

// Term is a part of a score: a value of 0 to 100 with its weight.
type Term struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Weight float64 `json:"weight"`
}

package sim

import "github.com/reyisjones/gpu-orchestrator/core/gpu"

// Scenario is one placement question with the facts it depends on. docs/scenario.md describes
// every field.
type Scenario struct {
	Name    string    `yaml:"name"`
	Source  string    `yaml:"source"`
	Levels  []string  `yaml:"levels"`
	Nodes   []Node    `yaml:"nodes"`
	Uplinks []Uplink  `yaml:"uplinks"`
	Running []Running `yaml:"running"`
	Request Request   `yaml:"request"`
	Scoring *Scoring  `yaml:"scoring"`
	Policy  *Policy   `yaml:"policy"`
	Expect  *Expect   `yaml:"expect"`
	// Defragment asks for moves where there is no room.
	Defragment *Defragment `yaml:"defragment"`
	Skip       string      `yaml:"skip"`
	// Reservation asks when and where the request could start if it does not fit now.
	Reservation bool `yaml:"reservation"`

	// Contradiction is what is wrong with the request of a scenario that says so of itself
	// (expect.invalid); "" for all others.
	Contradiction string

	src *source
}

// Node is a node and what is inside it.
type Node struct {
	Name          string            `yaml:"name"`
	Labels        map[string]string `yaml:"labels"`
	Allocatable   Amounts           `yaml:"allocatable"`
	Taints        []Taint           `yaml:"taints"`
	Ready         *bool             `yaml:"ready"`
	Unschedulable bool              `yaml:"unschedulable"`
	GPUs          *GPUs             `yaml:"gpus"`

	// geometry is how the node's GPUs are cut; nil where that is not known.
	geometry *gpu.Geometry
}

// Taint keeps pods off a node unless they tolerate it.
type Taint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
	Effect string `yaml:"effect"`
}

// GPUs is what is inside a node.
type GPUs struct {
	Product      string                `yaml:"product"`
	Architecture string                `yaml:"architecture"`
	MemoryMiB    int64                 `yaml:"memoryMiB"`
	Links        [][]int               `yaml:"links"`
	PCIe         [][]string            `yaml:"pcie"`
	NUMA         []int                 `yaml:"numa"`
	Used         []int                 `yaml:"used"`
	Broken       []int                 `yaml:"broken"`
	MIG          []MIGInstance         `yaml:"mig"`
	MIGProfiles  map[string]MIGProfile `yaml:"migProfiles"`
	Milli        []int                 `yaml:"milli"`
	Replicas     int                   `yaml:"replicas"`
	Sharing      string                `yaml:"sharing"`
	// Opaque says that nobody looked inside: number and kind of the GPUs are all that is known.
	Opaque bool `yaml:"opaque"`
}

// MIGInstance is a MIG instance that exists, in use unless it says otherwise.
type MIGInstance struct {
	GPU     int    `yaml:"gpu"`
	Profile string `yaml:"profile"`
	Start   int    `yaml:"start"`
	Used    *bool  `yaml:"used"`
}

// MIGProfile says where instances of a profile may start, and how many memory slices they take.
type MIGProfile struct {
	Starts []int `yaml:"starts"`
	Size   int   `yaml:"size"`
}

// Uplink is the capacity of the link between a domain and what is outside it.
type Uplink struct {
	Level  string `yaml:"level"`
	Domain string `yaml:"domain"`
	Mbps   int64  `yaml:"mbps"`
}

// Running is a pod that is already placed.
type Running struct {
	Name          string  `yaml:"name"`
	Workload      string  `yaml:"workload"`
	Group         string  `yaml:"group"`
	Priority      int32   `yaml:"priority"`
	Node          string  `yaml:"node"`
	Requests      Amounts `yaml:"requests"`
	Preemptible   *bool   `yaml:"preemptible"`
	GPUs          []int   `yaml:"gpus"`
	GPUMilli      int     `yaml:"gpuMilli"`
	Phase         string  `yaml:"phase"`
	BandwidthMbps int64   `yaml:"bandwidthMbps"`
	// Ends is how long it runs in all, Elapsed how long it has.
	Ends    *Runtime `yaml:"ends"`
	Elapsed Duration `yaml:"elapsed"`
	// What is needed to place it again.
	Movable      bool              `yaml:"movable"`
	Level        string            `yaml:"level"`
	Cost         float64           `yaml:"cost"`
	NodeSelector map[string]string `yaml:"nodeSelector"`
	Tolerations  []Toleration      `yaml:"tolerations"`
}

// Defragment is how much may move to make room.
type Defragment struct {
	MaxMoves int      `yaml:"maxMoves"`
	Moved    []string `yaml:"moved"`
}

// Request is the question.
type Request struct {
	Name       string   `yaml:"name"`
	Priority   int32    `yaml:"priority"`
	Preemption string   `yaml:"preemption"`
	Strategy   string   `yaml:"strategy"`
	Groups     []Group  `yaml:"groups"`
	Sets       []Set    `yaml:"sets"`
	Replaces   []string `yaml:"replaces"`
	// Runtime is how long it runs once it starts.
	Runtime *Runtime `yaml:"runtime"`
}

// Group is a number of equal pods.
type Group struct {
	Name          string            `yaml:"name"`
	Count         int               `yaml:"count"`
	MinCount      *int              `yaml:"minCount"`
	Requests      Amounts           `yaml:"requests"`
	GPUMilli      int               `yaml:"gpuMilli"`
	GPU           GPUKind           `yaml:"gpu"`
	GPUsInclude   []int             `yaml:"gpusInclude"`
	MIG           []string          `yaml:"mig"`
	Prefer        string            `yaml:"prefer"`
	BandwidthMbps int64             `yaml:"bandwidthMbps"`
	NodeSelector  map[string]string `yaml:"nodeSelector"`
	Affinity      Affinity          `yaml:"affinity"`
	Tolerations   []Toleration      `yaml:"tolerations"`
	Topology      Topology          `yaml:"topology"`
	Slice         Slices            `yaml:"slice"`
	Together      string            `yaml:"together"`
	Previous      map[string]int    `yaml:"previous"`
}

// GPUKind narrows the kind of GPU; what is absent does not.
type GPUKind struct {
	Product      string `yaml:"product"`
	Architecture string `yaml:"architecture"`
	MinMemoryMiB int64  `yaml:"minMemoryMiB"`
}

// Affinity is a Kubernetes NodeAffinity.
type Affinity struct {
	Required  *NodeSelector   `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []PreferredTerm `yaml:"preferredDuringSchedulingIgnoredDuringExecution"`
}

// NodeSelector holds if one of its terms holds.
type NodeSelector struct {
	Terms []SelectorTerm `yaml:"nodeSelectorTerms"`
}

// PreferredTerm makes nodes that match it better by Weight.
type PreferredTerm struct {
	Weight     int          `yaml:"weight"`
	Preference SelectorTerm `yaml:"preference"`
}

// SelectorTerm holds if all its requirements hold.
type SelectorTerm struct {
	Expressions []Requirement `yaml:"matchExpressions"`
	Fields      []Requirement `yaml:"matchFields"`
}

// Requirement is one test of a node's labels, or of its name.
type Requirement struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values"`
}

// Toleration lets a pod on nodes with matching taints.
type Toleration struct {
	Key      string `yaml:"key"`
	Operator string `yaml:"operator"`
	Value    string `yaml:"value"`
	Effect   string `yaml:"effect"`
	// Seconds is read and has no effect: it says how long a pod may stay, not where it goes.
	Seconds *int64 `yaml:"tolerationSeconds"`
}

// Topology says how close together the pods of a group must, or should, be.
type Topology struct {
	Required  string `yaml:"required"`
	Preferred string `yaml:"preferred"`
}

// Slice is Size consecutive pods in one domain of Level.
type Slice struct {
	Size  int    `yaml:"size"`
	Level string `yaml:"level"`
}

// Slices are written as one slice or as a list, outermost first.
type Slices []Slice

// Set is several groups whose pods keep together.
type Set struct {
	Groups    []string `yaml:"groups"`
	Required  string   `yaml:"required"`
	Preferred string   `yaml:"preferred"`
}

// Scoring is how good nodes and domains are judged; what is absent keeps its default.
type Scoring struct {
	Node    *NodeWeights       `yaml:"node"`
	Domain  *DomainWeights     `yaml:"domain"`
	History map[string]float64 `yaml:"history"`
	Hint    map[string]float64 `yaml:"hint"`
	Mix     []Expected         `yaml:"mix"`
}

// NodeWeights are the parts that the terms have in a node's score.
type NodeWeights struct {
	Topology  float64 `yaml:"topology"`
	Resources float64 `yaml:"resources"`
	Balance   float64 `yaml:"balance"`
	Hint      float64 `yaml:"hint"`
}

// DomainWeights are the parts that the terms have in a domain's score.
type DomainWeights struct {
	Availability float64 `yaml:"availability"`
	Alignment    float64 `yaml:"alignment"`
	Utilization  float64 `yaml:"utilization"`
	History      float64 `yaml:"history"`
}

// Expected is a kind of pod that is expected to come.
type Expected struct {
	Requests Amounts `yaml:"requests"`
	GPUs     int     `yaml:"gpus"`
	GPUMilli int     `yaml:"gpuMilli"`
	Product  string  `yaml:"product"`
	Weight   float64 `yaml:"weight"`
}

// Expect is what the source of the scenario says the answer is.
type Expect struct {
	Feasible    *bool                     `yaml:"feasible"`
	Placement   map[string]map[string]int `yaml:"placement"`
	Domains     map[string]map[string]int `yaml:"domains"`
	Nodes       []string                  `yaml:"nodes"`
	MaxFeasible *int                      `yaml:"maxFeasible"`
	Victims     []string                  `yaml:"victims"`
	GPUs        map[string]GPUIndexes     `yaml:"gpus"`
	MIG         []ExpectedMIG             `yaml:"mig"`
	Reason      string                    `yaml:"reason"`
	Policy      string                    `yaml:"policy"`
	Gates       []string                  `yaml:"gates"`
	Invalid     bool                      `yaml:"invalid"`
}

// ExpectedMIG is a MIG instance that the source says is chosen.
type ExpectedMIG struct {
	Node    string `yaml:"node"`
	GPU     int    `yaml:"gpu"`
	Profile string `yaml:"profile"`
	Start   int    `yaml:"start"`
}

// GPUIndexes are the GPUs chosen on a node, written as one list or as a list for each pod.
type GPUIndexes []int

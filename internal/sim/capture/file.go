package capture

// The file as docs/scenario.md describes it, as far as a live cluster fills it. internal/sim has
// the types that read it; those keep amounts as numbers, and write every field there is.

type file struct {
	Name    string    `yaml:"name"`
	Source  string    `yaml:"source,omitempty"`
	Levels  []string  `yaml:"levels,omitempty,flow"`
	Nodes   []node    `yaml:"nodes"`
	Running []running `yaml:"running,omitempty"`
	Request request   `yaml:"request"`
	Scoring *scoring  `yaml:"scoring,omitempty"`
	Policy  *policy   `yaml:"policy,omitempty"`
}

type amounts map[string]string

type node struct {
	Name          string            `yaml:"name"`
	Labels        map[string]string `yaml:"labels,omitempty"`
	Allocatable   amounts           `yaml:"allocatable,flow"`
	Taints        []taint           `yaml:"taints,omitempty"`
	Ready         *bool             `yaml:"ready,omitempty"`
	Unschedulable bool              `yaml:"unschedulable,omitempty"`
	GPUs          *gpus             `yaml:"gpus,omitempty,flow"`
}

type taint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value,omitempty"`
	Effect string `yaml:"effect"`
}

type gpus struct {
	Opaque       bool       `yaml:"opaque,omitempty"`
	Product      string     `yaml:"product,omitempty"`
	Architecture string     `yaml:"architecture,omitempty"`
	MemoryMiB    int64      `yaml:"memoryMiB,omitempty"`
	Replicas     int        `yaml:"replicas,omitempty"`
	Sharing      string     `yaml:"sharing,omitempty"`
	Links        [][]int    `yaml:"links,omitempty"`
	PCIe         [][]string `yaml:"pcie,omitempty"`
	NUMA         []int      `yaml:"numa,omitempty"`
	Used         []int      `yaml:"used,omitempty"`
	Broken       []int      `yaml:"broken,omitempty"`
}

type running struct {
	Name         string            `yaml:"name"`
	Workload     string            `yaml:"workload"`
	Priority     int32             `yaml:"priority,omitempty"`
	Node         string            `yaml:"node"`
	Requests     amounts           `yaml:"requests,flow"`
	GPUs         []int             `yaml:"gpus,omitempty,flow"`
	Preemptible  bool              `yaml:"preemptible"`
	Movable      bool              `yaml:"movable,omitempty"`
	Level        string            `yaml:"level,omitempty"`
	Cost         float64           `yaml:"cost,omitempty"`
	NodeSelector map[string]string `yaml:"nodeSelector,omitempty"`
	Tolerations  []toleration      `yaml:"tolerations,omitempty"`
}

type request struct {
	Name       string  `yaml:"name"`
	Priority   int32   `yaml:"priority,omitempty"`
	Preemption string  `yaml:"preemption"`
	Strategy   string  `yaml:"strategy"`
	Groups     []group `yaml:"groups"`
}

type group struct {
	Name         string            `yaml:"name"`
	Count        int               `yaml:"count"`
	MinCount     int               `yaml:"minCount,omitempty"`
	Requests     amounts           `yaml:"requests,flow"`
	GPUMilli     int               `yaml:"gpuMilli,omitempty"`
	GPU          *gpuKind          `yaml:"gpu,omitempty,flow"`
	Prefer       string            `yaml:"prefer,omitempty"`
	NodeSelector map[string]string `yaml:"nodeSelector,omitempty"`
	Affinity     *affinity         `yaml:"affinity,omitempty"`
	Tolerations  []toleration      `yaml:"tolerations,omitempty"`
	Topology     topology          `yaml:"topology,omitempty,flow"`
	Slice        []slice           `yaml:"slice,omitempty"`
}

type gpuKind struct {
	Product      string `yaml:"product,omitempty"`
	Architecture string `yaml:"architecture,omitempty"`
	MinMemoryMiB int64  `yaml:"minMemoryMiB,omitempty"`
}

type affinity struct {
	Required  *selector   `yaml:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []preferred `yaml:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

type selector struct {
	Terms []term `yaml:"nodeSelectorTerms"`
}

type preferred struct {
	Weight     int  `yaml:"weight"`
	Preference term `yaml:"preference"`
}

type term struct {
	Expressions []requirement `yaml:"matchExpressions,omitempty"`
	Fields      []requirement `yaml:"matchFields,omitempty"`
}

type requirement struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values,omitempty"`
}

type toleration struct {
	Key      string `yaml:"key,omitempty"`
	Operator string `yaml:"operator"`
	Value    string `yaml:"value,omitempty"`
	Effect   string `yaml:"effect,omitempty"`
}

type topology struct {
	Required  string `yaml:"required,omitempty"`
	Preferred string `yaml:"preferred,omitempty"`
}

type slice struct {
	Size  int    `yaml:"size"`
	Level string `yaml:"level"`
}

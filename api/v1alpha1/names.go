package v1alpha1

// Labels, annotations and other names that the product writes on objects of others. They are
// part of the API: dashboards, policies and people's scripts select by them.
const (
	// WorkloadLabel carries the name of the GPUWorkload on its Job and pods.
	WorkloadLabel = "gpu.warp.dev/workload"
	// WorkloadUIDLabel carries the UID of the GPUWorkload on its Job and pods. Names are used
	// again after a deletion; UIDs never are, so everything that decides selects by this one.
	WorkloadUIDLabel = "gpu.warp.dev/workload-uid"
	// AttemptLabel carries the number of the attempt, from 0, on a Job and its pods.
	AttemptLabel = "gpu.warp.dev/attempt"
	// ModelAnnotation carries spec.modelName, which need not be a legal label value.
	ModelAnnotation = "gpu.warp.dev/model-name"
	// PlannedNodeAnnotation carries, on a pod, the node that the plan gave it.
	PlannedNodeAnnotation = "gpu.warp.dev/planned-node"

	// GangLabel names, on plain pods, the gang that they belong to: pods of one namespace with the
	// same name are placed together or not at all. GangSizeLabel is how many there are.
	GangLabel     = "gpu.warp.dev/gang"
	GangSizeLabel = "gpu.warp.dev/gang-size"
	// GangMinSizeAnnotation makes a gang elastic: the least number of pods that will do.
	GangMinSizeAnnotation = "gpu.warp.dev/gang-min-size"
	// RequiredLevelAnnotation and PreferredLevelAnnotation say how close together the pods of a
	// gang must and should be: the name of a topology level, or the node label behind it.
	RequiredLevelAnnotation  = "gpu.warp.dev/required-level"
	PreferredLevelAnnotation = "gpu.warp.dev/preferred-level"
	// SliceAnnotation cuts a gang into groups of consecutive ranks that stay together: "16/leaf".
	SliceAnnotation = "gpu.warp.dev/slice"
	// RankAnnotation is the rank of a pod in its gang, where neither a Job nor a StatefulSet
	// numbers it.
	RankAnnotation = "gpu.warp.dev/rank"
	// StrategyAnnotation names the rule that picks among the nodes that fit.
	StrategyAnnotation = "gpu.warp.dev/strategy"
	// PreferenceAnnotation says what the GPUs of the pod should have in common: none, nvlink, numa
	// or pcie.
	PreferenceAnnotation = "gpu.warp.dev/gpu-preference"

	// SchedulingGate holds a pod back from every scheduler until the plan of its gang is made.
	SchedulingGate = "gpu.warp.dev/plan"
	// Finalizer keeps a GPUWorkload until its Job and pods are gone.
	Finalizer = "gpu.warp.dev/workload-cleanup"

	// CheapNodeLabel marks, with the value "true", the nodes that strategy costOptimized prefers.
	CheapNodeLabel = "gpu-orchestrator/cheap-node"
	// SpineLabel and LeafLabel place a node in the network.
	SpineLabel = "gpu.warp.dev/spine"
	// LeafLabel names the leaf switch of a node; see SpineLabel.
	LeafLabel = "gpu.warp.dev/leaf"

	// DefaultResourceName is what a GPU is called where nothing else is said.
	DefaultResourceName = "nvidia.com/gpu"
	// SharedResourceName is one replica of a GPU that its node shares by time-slicing or MPS.
	SharedResourceName = "nvidia.com/gpu.shared"
	// DefaultStrategy places a workload that names no strategy.
	DefaultStrategy = "leastLoaded"
)

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPUWorkload is a GPU job: one pod or a gang of pods that are placed
// together, in one decision, and run to completion.
//
// The shortest useful one names a model and a number of GPUs:
//
//	apiVersion: gpu.warp.dev/v1alpha1
//	kind: GPUWorkload
//	metadata: {name: llama2}
//	spec: {modelName: llama2, gpuCount: 2}
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gpuw,categories=all
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.modelName`
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=`.spec.gpuCount`,description="GPUs of each pod"
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.spec.parallelism`,description="pods of the gang"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.assignedNode`,description="node of the gang's first pod; -o wide shows all"
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.status.retryCount`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Priority",type=string,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.schedulingStrategy`,priority=1
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.status.jobName`,priority=1
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.assignedNodes`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, because it becomes a label value on the pods: choose a shorter name"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || self.spec.modelName == oldSelf.spec.modelName",message="spec.modelName cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.modelName"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || self.spec.gpuCount == oldSelf.spec.gpuCount",message="spec.gpuCount cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.gpuCount"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || self.spec.parallelism == oldSelf.spec.parallelism",message="spec.parallelism cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.parallelism"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.minParallelism) == has(oldSelf.spec.minParallelism) && (!has(self.spec.minParallelism) || self.spec.minParallelism == oldSelf.spec.minParallelism))",message="spec.minParallelism cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.minParallelism"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.schedulingStrategy) == has(oldSelf.spec.schedulingStrategy) && (!has(self.spec.schedulingStrategy) || self.spec.schedulingStrategy == oldSelf.spec.schedulingStrategy))",message="spec.schedulingStrategy cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.schedulingStrategy"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || self.spec.restartPolicy == oldSelf.spec.restartPolicy",message="spec.restartPolicy cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.restartPolicy"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.gpu) == has(oldSelf.spec.gpu) && (!has(self.spec.gpu) || self.spec.gpu == oldSelf.spec.gpu))",message="spec.gpu cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.gpu"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.topology) == has(oldSelf.spec.topology) && (!has(self.spec.topology) || self.spec.topology == oldSelf.spec.topology))",message="spec.topology cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.topology"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.schedulerName) == has(oldSelf.spec.schedulerName) && (!has(self.spec.schedulerName) || self.spec.schedulerName == oldSelf.spec.schedulerName))",message="spec.schedulerName cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.schedulerName"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.jobName) || (has(self.spec.priorityClassName) == has(oldSelf.spec.priorityClassName) && (!has(self.spec.priorityClassName) || self.spec.priorityClassName == oldSelf.spec.priorityClassName))",message="spec.priorityClassName cannot be changed once the workload is planned: suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another",reason=FieldValueForbidden,fieldPath=".spec.priorityClassName"
type GPUWorkload struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to run and what it needs. Once the workload is planned,
	// only suspend, priority, preemptionPolicy, preemptible, movable, retryPolicy,
	// template, ttlSecondsAfterFinished, activeDeadlineSeconds and
	// expectedDuration can be changed; the rest while it waits or is suspended;
	// className never.
	// +required
	Spec GPUWorkloadSpec `json:"spec"`

	// Status says where the workload stands. The controller writes it.
	// +optional
	Status GPUWorkloadStatus `json:"status,omitempty"`
}

// GPUWorkloadList is a list of GPUWorkloads.
//
// +kubebuilder:object:root=true
type GPUWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GPUWorkload `json:"items"`
}

// GPUWorkloadSpec says what to run and what it needs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minParallelism) || self.minParallelism <= self.parallelism",message="minParallelism must not be larger than parallelism: lower minParallelism or raise parallelism",fieldPath=".minParallelism"
// +kubebuilder:validation:XValidation:rule="!has(self.gpu) || !has(self.gpu.milli) || self.gpuCount == 1",message="gpuCount must be 1 with gpu.milli, which asks for a share of one GPU: set gpuCount to 1 or leave gpu.milli out",fieldPath=".gpuCount"
// +kubebuilder:validation:XValidation:rule="!has(self.topology) || !has(self.topology.slice) || self.topology.slice.size < 1 || self.parallelism % self.topology.slice.size == 0",message="parallelism must be a multiple of topology.slice.size, so that every slice is whole: change one of the two",fieldPath=".parallelism"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || size(self.template.spec.containers) > 0",message="template.spec.containers must have at least one container: add one, or leave template out to run the default image",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || self.template.spec.containers.filter(c, has(c.resources) && has(c.resources.limits) && (has(self.gpu) ? self.gpu.resourceName : 'nvidia.com/gpu') in c.resources.limits).size() <= 1",message="template.spec.containers must have at most one container with a limit of GPUs, because gpuCount is for one: take the limit out of the others",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || has(self.template.spec)",message="template.spec is missing: write the pod to run there, or leave template out to run the default image",fieldPath=".template.spec"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.restartPolicy) || self.template.spec.restartPolicy in ['Never', 'OnFailure']",message="template.spec.restartPolicy must be Never or OnFailure: a GPUWorkload runs to completion",fieldPath=".template.spec.restartPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.nodeName) || size(self.template.spec.nodeName) == 0",message="template.spec.nodeName must be empty: placing the pods is what the controller is for; use template.spec.nodeSelector to narrow the choice",fieldPath=".template.spec.nodeName"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.schedulerName) || !has(self.schedulerName) || self.template.spec.schedulerName == self.schedulerName",message="template.spec.schedulerName differs from schedulerName: set only schedulerName",fieldPath=".template.spec.schedulerName"
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.priorityClassName) || !has(self.priorityClassName) || self.template.spec.priorityClassName == self.priorityClassName",message="template.spec.priorityClassName differs from priorityClassName: set only priorityClassName",fieldPath=".template.spec.priorityClassName"
// +kubebuilder:validation:XValidation:rule="has(self.className) == has(oldSelf.className) && (!has(self.className) || self.className == oldSelf.className)",message="className cannot be changed: delete the workload and create it with the other class",reason=FieldValueForbidden,fieldPath=".className"
type GPUWorkloadSpec struct {
	// ModelName names what runs, for people, metrics and cost reports, for
	// example "llama2-70b". Containers see it as the environment variable
	// MODEL_NAME.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[[:space:]]|[[:space:]]$|[[:cntrl:]]')",message="modelName must be one line of text without spaces around it, for example llama2-70b"
	ModelName string `json:"modelName"`

	// GPUCount is the number of GPUs of each pod, in units of gpu.resourceName.
	// The whole workload holds gpuCount x parallelism. From 1 (the default) to
	// 1024.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	GPUCount int32 `json:"gpuCount,omitempty"`

	// Priority orders workloads that wait: higher ones are planned first. By
	// itself it evicts nobody; see preemptionPolicy. Default: medium.
	// +optional
	// +kubebuilder:default=medium
	Priority WorkloadPriority `json:"priority,omitempty"`

	// PreemptionPolicy says what happens if there is no room: Never (the
	// default) waits; PreemptLowerPriority has workloads of lower priority make
	// way, as few as possible. What those have computed since their last
	// checkpoint is lost, which is why it has to be asked for.
	// +optional
	// +kubebuilder:default=Never
	PreemptionPolicy PreemptionPolicy `json:"preemptionPolicy,omitempty"`

	// Preemptible says whether the workload may be evicted for one of higher
	// priority that asks for it. An evicted workload is not failed and uses up no
	// retry: its pods end within their grace period, and it waits and starts
	// anew. Default: true.
	// +optional
	// +kubebuilder:default=true
	Preemptible *bool `json:"preemptible,omitempty"`

	// Movable says that the workload may be stopped and started elsewhere to make
	// room for one that waits, of whatever priority, if there is another place
	// for it. Default: false.
	// +optional
	// +kubebuilder:default=false
	Movable bool `json:"movable,omitempty"`

	// SchedulingStrategy names the rule that picks among the nodes that fit. Left
	// out, the one of the PlacementPolicy that holds for the workload, or else
	// leastLoaded. There are leastLoaded (most free GPUs first; spreads), random,
	// costOptimized (nodes labelled gpu-orchestrator/cheap-node=true first),
	// binPack (fewest free GPUs first), topologyAware (best links, best fit,
	// fewest domains), fragmentationAware (keeps idle GPUs useful to others).
	// The set is open: an installation can register more; a name that is not
	// registered is refused with the list of those that are.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9.-]*$')",message="schedulingStrategy must be the name of a strategy, for example leastLoaded: a letter, then letters, digits, '-' and '.'"
	SchedulingStrategy string `json:"schedulingStrategy,omitempty"`

	// RetryPolicy says how often and how soon a failed workload is started
	// again. The n-th retry (from 0) comes after backoffSeconds x 2^n plus 0-10
	// % jitter, at most 5 minutes.
	// +optional
	// +kubebuilder:default={}
	RetryPolicy RetryPolicy `json:"retryPolicy,omitempty"`

	// Template is the pod to run. Left out, it is one container of the
	// controller's default image. gpuCount is given to the one container that
	// asks for GPUs, or else to the first; the controller adds a scheduling gate
	// and, once the gang is planned, the chosen node. A change to the template
	// of a planned workload takes effect with its next attempt.
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`

	// Parallelism is the number of pods of the gang. All of them are placed in
	// one decision and start together. Each pod finds its rank in
	// JOB_COMPLETION_INDEX. From 1 (the default) to 10000.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Parallelism int32 `json:"parallelism,omitempty"`

	// MinParallelism makes the gang elastic: if parallelism pods do not fit, the
	// largest number that does, but no fewer than this, is started. Left out, it
	// is all or nothing.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinParallelism *int32 `json:"minParallelism,omitempty"`

	// GPU says which GPUs will do. Left out, any NVIDIA GPU.
	// +optional
	GPU *GPURequirements `json:"gpu,omitempty"`

	// Topology says how close together the pods of the gang must be. A level is
	// a name from the controller's configuration (by default, from the outside
	// in: region, zone, core, spine, leaf, rack, nvlink, nvlink-subdomain, host)
	// or the node label key behind it. Left out, as the PlacementPolicy says that
	// holds for the workload, or else anywhere.
	// +optional
	Topology *TopologyRequirements `json:"topology,omitempty"`

	// RestartPolicy says what a failed pod takes with it. "gang" (the default)
	// stops and starts the whole gang, as collective communication needs it;
	// "member" replaces the failed pod alone.
	// +optional
	// +kubebuilder:default=gang
	RestartPolicy GangRestartPolicy `json:"restartPolicy,omitempty"`

	// ClassName names the gpu-orchestrator installation that takes care of this
	// workload, where several share a cluster. Left out, the one without a
	// class.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="className must be lower-case letters, digits and '-', with a letter or digit at both ends: leave it out for the installation without a class"
	ClassName string `json:"className,omitempty"`

	// SchedulerName is the scheduler that binds the pods. Left out, the
	// cluster's default scheduler.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="schedulerName must be the name of a scheduler, in lower-case letters, digits, '-' and '.': leave it out for the default one"
	SchedulerName string `json:"schedulerName,omitempty"`

	// PriorityClassName is the Kubernetes PriorityClass of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be the name of a PriorityClass, in lower-case letters, digits, '-' and '.': leave it out for none"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Suspend stops the workload: its pods end and its GPUs are free for others.
	// Set back to false (the default), it is planned and started anew. A
	// suspension is not a retry.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend"`

	// TTLSecondsAfterFinished deletes the workload, with its Job and pods, this
	// many seconds after it succeeded or failed. Left out, it stays.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// ActiveDeadlineSeconds fails the workload this many seconds after its pods
	// were first all bound, whatever it does then; retries share the one
	// allowance, time spent suspended counts.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ExpectedDuration is how long the workload usually runs, for example 1h30m.
	// It stops nothing; activeDeadlineSeconds does, and bounds it. With it a
	// workload may use room that is reserved for others until they need it, and
	// those that wait learn when there will be room.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$') && size(self) > 0 && duration(self) >= duration('1s')",message="expectedDuration must be at least 1s, in hours, minutes and seconds: write it like 36h or 1h30m"
	ExpectedDuration *metav1.Duration `json:"expectedDuration,omitempty"`
}

// WorkloadPriority orders workloads that wait.
//
// +kubebuilder:validation:Enum=low;medium;high;critical
type WorkloadPriority string

// The priorities, least first.
const (
	PriorityLow      WorkloadPriority = "low"
	PriorityMedium   WorkloadPriority = "medium"
	PriorityHigh     WorkloadPriority = "high"
	PriorityCritical WorkloadPriority = "critical"
)

// GangRestartPolicy says what a failed pod takes with it.
//
// +kubebuilder:validation:Enum=gang;member
type GangRestartPolicy string

const (
	// RestartGang stops and starts the whole gang.
	RestartGang GangRestartPolicy = "gang"
	// RestartMember replaces the failed pod alone.
	RestartMember GangRestartPolicy = "member"
)

// RetryPolicy says how often and how soon a failed workload is started
// again.
type RetryPolicy struct {
	// MaxRetries is how many times the workload is started again after a
	// failure: gang restarts, or with restartPolicy "member" replaced pods. From
	// 0, which fails at the first failure, to 1000; default: 3. Waiting for free
	// GPUs uses up no retry.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// BackoffSeconds is the pause before the first retry; it doubles with each
	// one. From 1 to 300; default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	BackoffSeconds *int32 `json:"backoffSeconds,omitempty"`
}

// GPURequirements says which GPUs will do.
//
// +kubebuilder:validation:XValidation:rule="!has(self.milli) || self.resourceName == 'nvidia.com/gpu'",message="gpu.resourceName must be nvidia.com/gpu with gpu.milli, which asks for a share of one: leave one of the two out",fieldPath=".resourceName"
type GPURequirements struct {
	// ResourceName is what the pods ask their node for: nvidia.com/gpu (the
	// default), a MIG instance such as nvidia.com/mig-1g.10gb, amd.com/gpu,
	// gpu.intel.com/i915.
	// +optional
	// +kubebuilder:default="nvidia.com/gpu"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="gpu.resourceName must be a resource with its domain, for example nvidia.com/gpu, nvidia.com/mig-1g.10gb or amd.com/gpu"
	ResourceName string `json:"resourceName,omitempty"`

	// Product is the GPU's product name as the node's label
	// nvidia.com/gpu.product tells it, for example NVIDIA-H100-80GB-HBM3.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="gpu.product is compared with the node label nvidia.com/gpu.product, which has letters, digits, '-', '_' and '.' and no spaces: write it as the label does, for example NVIDIA-H100-80GB-HBM3"
	Product string `json:"product,omitempty"`

	// Architecture is the GPU's family as the node's label nvidia.com/gpu.family
	// tells it, for example hopper. Upper and lower case are the same.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="gpu.architecture is compared with the node label nvidia.com/gpu.family, which has letters, digits, '-', '_' and '.' and no spaces: write it as the label does, for example hopper"
	Architecture string `json:"architecture,omitempty"`

	// MinMemory is the least memory of each GPU, for example 40Gi. From 1Mi to
	// 1Pi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|k|M|G|T|P|[KMGTP]i|[eE][0-9]{1,2})?$') && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi"
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`

	// Milli asks for a share of one GPU, in thousandths, on a node that shares
	// its GPUs by time-slicing or MPS (resource nvidia.com/gpu.shared). A node
	// with r replicas a GPU offers shares of 1000/r; the pod gets one replica on
	// a node whose share is enough. From 1 to 999; gpuCount must be 1 with it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=999
	Milli *int32 `json:"milli,omitempty"`

	// TopologyPreference says which GPUs of one node should go together: none
	// (the default), nvlink, numa or pcie. It is a preference: it never keeps a
	// workload from running. Strategy topologyAware goes by it, where it is known
	// how a node's GPUs are wired.
	// +optional
	// +kubebuilder:default=none
	TopologyPreference TopologyPreference `json:"topologyPreference,omitempty"`
}

// TopologyPreference says which GPUs of one node should go together.
//
// +kubebuilder:validation:Enum=none;nvlink;numa;pcie
type TopologyPreference string

// The preferences inside one node.
const (
	TopologyNone   TopologyPreference = "none"
	TopologyNVLink TopologyPreference = "nvlink"
	TopologyNUMA   TopologyPreference = "numa"
	TopologyPCIe   TopologyPreference = "pcie"
)

// TopologyRequirements says how close together the pods of a gang must be.
type TopologyRequirements struct {
	// Required is the level of which one domain must hold the whole gang: "leaf"
	// puts all pods under one leaf switch, or the workload waits.
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

	// Slice cuts the gang into equal groups of pods with consecutive ranks, each
	// of which must be inside one domain: {size: 16, level: leaf} keeps ranks
	// 0-15 under one leaf, 16-31 under one leaf, and so on.
	// +optional
	Slice *TopologySlice `json:"slice,omitempty"`
}

// TopologySlice cuts a gang into groups of size pods with consecutive ranks,
// each inside one domain of level.
type TopologySlice struct {
	// Size is the number of pods of a slice. parallelism must be a multiple of
	// it.
	// +required
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size"`

	// Level is the level of which one domain must hold a whole slice.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Level string `json:"level"`
}

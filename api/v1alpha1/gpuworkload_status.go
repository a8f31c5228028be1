package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkloadPhase is where a GPUWorkload stands, in one word.
//
// +kubebuilder:validation:Enum=Pending;Scheduling;Scheduled;Running;Failed;Succeeded
type WorkloadPhase string

const (
	// PhasePending means that no plan is made: the workload waits for room, for
	// its next retry, or is suspended. The message says which.
	PhasePending WorkloadPhase = "Pending"
	// PhaseScheduling means that the gang is planned and its pods are on their
	// way to their nodes.
	PhaseScheduling WorkloadPhase = "Scheduling"
	// PhaseScheduled means that every pod of the gang is bound.
	PhaseScheduled WorkloadPhase = "Scheduled"
	// PhaseRunning means that every pod of the gang runs or has already
	// succeeded.
	PhaseRunning WorkloadPhase = "Running"
	// PhaseFailed means that the workload failed for good.
	PhaseFailed WorkloadPhase = "Failed"
	// PhaseSucceeded means that every pod of the gang ended well.
	PhaseSucceeded WorkloadPhase = "Succeeded"
)

// Finished tells whether nothing more will happen in this phase.
func (p WorkloadPhase) Finished() bool { return p == PhaseFailed || p == PhaseSucceeded }

// Condition types of a GPUWorkload.
const (
	// ConditionAccepted is False when the spec cannot be carried out as written.
	ConditionAccepted = "Accepted"
	// ConditionPlanned is True while a plan for the gang stands, False while
	// none can be made.
	ConditionPlanned = "Planned"
	// ConditionScheduled is True when every pod of the gang is bound.
	ConditionScheduled = "Scheduled"
	// ConditionFinished is True when the workload succeeded or failed; the
	// reason says which.
	ConditionFinished = "Finished"
	// ConditionSuspended is True while spec.suspend keeps the workload from
	// running.
	ConditionSuspended = "Suspended"
	// ConditionPreempted is True from when the workload made way for another
	// until it is planned again.
	ConditionPreempted = "Preempted"
)

// GPUWorkloadStatus says where a workload stands.
type GPUWorkloadStatus struct {
	// Phase is where the workload stands: Pending, Scheduling, Scheduled (every
	// pod is bound), Running, Failed or Succeeded.
	// +optional
	Phase WorkloadPhase `json:"phase,omitempty"`

	// Message is one sentence for people: why it waits, where it runs, how it
	// ended.
	// +optional
	Message string `json:"message,omitempty"`

	// AssignedNode is the node of the gang's first pod.
	// +optional
	AssignedNode string `json:"assignedNode,omitempty"`

	// AssignedNodes are the nodes of the gang, each named once, in order of
	// rank.
	// +optional
	// +listType=atomic
	AssignedNodes []string `json:"assignedNodes,omitempty"`

	// Placement is the plan: which ranks go to which node. It is written before
	// the Job is made, so that a controller that stops in between finds its own
	// promise again.
	// +optional
	// +listType=atomic
	Placement []NodePlacement `json:"placement,omitempty"`

	// Preempting are the workloads that have to make way for the plan, until all
	// of them have. No pod of this workload is sent to its node before.
	// +optional
	// +listType=atomic
	Preempting []Victim `json:"preempting,omitempty"`

	// Pods counts the pods of the current attempt.
	// +optional
	Pods PodCounts `json:"pods,omitempty"`

	// JobName is the Job of the current attempt, or of the last one.
	// +optional
	JobName string `json:"jobName,omitempty"`

	// JobUID is the UID of that Job, once it was seen.
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`

	// Attempt numbers the Jobs made for this workload, from 0: retries,
	// resumptions and renewed plans each make a new one.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// RetryCount is how many retries of retryPolicy.maxRetries are used up.
	// +optional
	RetryCount int32 `json:"retryCount"`

	// NextRetryTime is when the next retry starts, while one waits for its
	// back-off.
	// +optional
	NextRetryTime *metav1.Time `json:"nextRetryTime,omitempty"`

	// LastScheduleTime is when a gang of this workload was last planned.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// StartTime is when all pods of a gang of this workload were first bound.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the workload succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// ObservedGeneration is the generation of the spec that this status speaks
	// of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Accepted, Planned, Scheduled, Finished, Suspended, Preempted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodePlacement says which members of a gang one node takes.
type NodePlacement struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Indexes are the ranks, in the form of a Job's completedIndexes: "0-3,7".
	Indexes string `json:"indexes"`
}

// PodCounts counts the pods of the current attempt.
type PodCounts struct {
	// Desired is the size of the gang as planned: parallelism, or less for an
	// elastic gang.
	// +optional
	Desired int32 `json:"desired,omitempty"`
	// Bound counts pods that have their node, finished ones included.
	// +optional
	Bound int32 `json:"bound,omitempty"`
	// Running counts pods that run.
	// +optional
	Running int32 `json:"running,omitempty"`
	// Succeeded counts pods that ended well.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// Failed counts pods that failed.
	// +optional
	Failed int32 `json:"failed,omitempty"`
}

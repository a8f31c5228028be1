package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// PreemptionPolicy says whether a workload may take the place of others. The
// values are those of a Kubernetes PriorityClass.
//
// +kubebuilder:validation:Enum=Never;PreemptLowerPriority
type PreemptionPolicy string

const (
	// PreemptNever waits for room.
	PreemptNever PreemptionPolicy = "Never"
	// PreemptLowerPriority evicts workloads of lower priority, if there is no
	// room otherwise.
	PreemptLowerPriority PreemptionPolicy = "PreemptLowerPriority"
)

// Victim is a workload that has to make way for a plan. It is named with its
// attempt, so that a list that is out of date evicts nobody: once the victim
// has made way, it is on its next attempt.
type Victim struct {
	// Namespace and Name are the workload's.
	Namespace string `json:"namespace"`
	// Name of the workload.
	Name string `json:"name"`
	// UID of the workload.
	UID types.UID `json:"uid"`
	// Attempt that holds the room.
	Attempt int32 `json:"attempt"`
	// Move says that the workload moves to another place, and goes only once it
	// has one.
	// +optional
	Move bool `json:"move,omitempty"`
}

// Evicts tells whether the workload may take the place of others.
func (w *GPUWorkload) Evicts() bool { return w.Spec.PreemptionPolicy == PreemptLowerPriority }

// Evictable tells whether the workload may be evicted for one of higher
// priority.
func (w *GPUWorkload) Evictable() bool { return w.Spec.Preemptible == nil || *w.Spec.Preemptible }

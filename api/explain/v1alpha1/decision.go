package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DecisionList is what was decided about the workloads of a namespace.
type DecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	// Items are the oldest first. One manager decides at a time and remembers: what an earlier one
	// decided is in events and log lines.
	Items []Decision `json:"items"`
}

// Decision is one decision about a workload, however often it was repeated.
type Decision struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Attempt   int32  `json:"attempt"`
	// Time is when it was made, Last when the same was decided for the last time, Count how often.
	Time  metav1.Time `json:"time"`
	Last  metav1.Time `json:"last"`
	Count int         `json:"count"`
	// By is who decided: planned (the GPUWorkload controller) or scheduler.
	By string `json:"by"`
	// Outcome is Planned, Refused, Undecided, Invalid, Evicted or Moved.
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Strategy string `json:"strategy,omitempty"`
	Policy   string `json:"policy,omitempty"`
	// Pods went to Nodes nodes; FirstNode is that of rank 0.
	Pods      int    `json:"pods,omitempty"`
	Nodes     int    `json:"nodes,omitempty"`
	FirstNode string `json:"firstNode,omitempty"`
	// Took is how long the engine needed, Snapshot the generation of the cluster it was asked.
	Took     metav1.Duration `json:"took"`
	Snapshot uint64          `json:"snapshot"`
	// Victims make way for this workload, For is the one that this workload makes way for.
	Victims []string `json:"victims,omitempty"`
	For     string   `json:"for,omitempty"`
}

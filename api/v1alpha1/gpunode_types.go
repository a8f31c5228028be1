package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPUNode is what is inside a GPU node: its GPUs, how they are wired, and
// which pods hold which of them. It has the name of its Node. The node's agent
// writes it; nobody has to. Where there is none, labels and allocatable of the
// Node say what there is, and no decision looks inside.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=gpun
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.status.driverVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GPUNode struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status is what the node's agent found.
	// +optional
	Status GPUNodeStatus `json:"status,omitempty"`
}

// GPUNodeList is a list of GPUNodes.
//
// +kubebuilder:object:root=true
type GPUNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GPUNode `json:"items"`
}

// ConditionReady of a GPUNode is True while what it says may be relied on. It
// is False, with the reason, when the agent is silent or found something that
// it cannot tell; then placement goes by the Node's labels and allocatable.
const ConditionReady = "Ready"

// GPUNodeStatus is what an agent found on its node.
type GPUNodeStatus struct {
	// DriverVersion is the version of the GPU driver.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DriverVersion string `json:"driverVersion,omitempty"`

	// GPUs are the node's GPUs by their index, from 0 without a gap.
	// +optional
	// +listType=map
	// +listMapKey=index
	GPUs []GPUDevice `json:"gpus,omitempty"`

	// Holders are the pods that hold GPUs of the node, as the kubelet tells it.
	// +optional
	// +listType=map
	// +listMapKey=podUID
	// +kubebuilder:validation:MaxItems=1024
	Holders []GPUHolder `json:"holders,omitempty"`

	// Conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GPUDevice is one GPU of a node.
type GPUDevice struct {
	// Index is the number of the GPU on its node, as the driver counts: 0 to
	// 63.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Index int32 `json:"index"`

	// UUID is the GPU's own name, for example
	// GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77.
	// +optional
	// +kubebuilder:validation:MaxLength=96
	UUID string `json:"uuid,omitempty"`

	// Product is the product name as the label nvidia.com/gpu.product would
	// tell it, for example NVIDIA-H100-80GB-HBM3.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Product string `json:"product,omitempty"`

	// Architecture is the family, for example hopper.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Architecture string `json:"architecture,omitempty"`

	// MemoryMiB is the memory of the GPU in MiB.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741824
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// Problem says why the GPU must not be used, for example "XID 79: fallen off
	// the bus". Empty, it is healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Problem string `json:"problem,omitempty"`

	// MIG says that the GPU is in MIG mode: pods can have its instances, and
	// nobody the whole of it.
	// +optional
	MIG bool `json:"mig,omitempty"`

	// NUMANode is the NUMA node that the GPU is attached to. Left out, it is
	// not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	NUMANode *int32 `json:"numaNode,omitempty"`

	// NVLinks is how many NVLinks lead to each GPU of the node, by its index; 0
	// for the GPU itself. Through NVSwitches it is the number of its links.
	// Left out, it is not known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=64
	NVLinks []int32 `json:"nvlinks,omitempty"`

	// PCIe is the class of the path to each GPU of the node, by its index, in
	// the words of `nvidia-smi topo`: SELF for the GPU itself, then PIX, PXB,
	// PHB, NODE and SYS, or unknown. Left out, none is known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	PCIe []PCIePath `json:"pcie,omitempty"`
}

// PCIePath is the class of a path between two GPUs.
//
// +kubebuilder:validation:Enum=SELF;PIX;PXB;PHB;NODE;SYS;unknown
type PCIePath string

// GPUHolder is a pod with the GPUs that it holds.
type GPUHolder struct {
	// PodUID is the pod's UID.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID"`

	// GPUs are the indexes of the GPUs that it holds, whole or in part.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	GPUs []int32 `json:"gpus"`
}

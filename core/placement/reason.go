package placement

import "fmt"

// Reason says why a node cannot take even one pod of a group.
type Reason uint8

// The reasons, in the order in which nodes are tested for them: the first that holds is
// counted.
const (
	Fits Reason = iota
	NotReady
	IsCordoned
	Tainted
	NotSelected
	NoSuchGPU
	NoSuchResource
	WrongProduct
	WrongArchitecture
	MemoryTooSmall
	NoShares
	ShareTooSmall
	NoMIG
	InsideUnknown
	ByPolicy
	NodeTooSmall
	GPUsBroken
	GPUsTaken
	MIGTaken
	OthersTaken
	NotLocated
	Avoided
	Limited
	reasonCount
)

// String returns the reason's name in machine-readable answers: "gpusTaken".
func (r Reason) String() string {
	names := [reasonCount]string{
		"fits", "notReady", "cordoned", "tainted", "notSelected", "noSuchGPU", "noSuchResource",
		"wrongProduct", "wrongArchitecture", "memoryTooSmall", "noShares", "shareTooSmall", "noMIG",
		"insideUnknown", "byPolicy",
		"nodeTooSmall", "gpusBroken", "gpusTaken", "migTaken", "othersTaken", "notLocated",
		"avoided", "limited",
	}
	return names[r]
}

// say words the reason for n nodes: "3 are not ready".
func (r Reason) say(n int, shape *Shape) string {
	is, has := "is", "has"
	if n != 1 {
		is, has = "are", "have"
	}
	switch r {
	case NotReady:
		return is + " not ready"
	case IsCordoned:
		return is + " cordoned"
	case Tainted:
		return has + " taints the template does not tolerate"
	case NotSelected:
		return "not selected by the template's nodeSelector or affinity"
	case NoSuchGPU:
		return "without " + shape.GPUResourceName
	case NoSuchResource:
		return "without " + shape.Missing
	case WrongProduct:
		return "with another product than " + shape.GPU.Product
	case WrongArchitecture:
		return "of another architecture than " + shape.GPU.Architecture
	case MemoryTooSmall:
		return fmt.Sprintf("with less than %d MiB a GPU", shape.GPU.MemoryMiB)
	case NoShares:
		return "not sharing GPUs in any known way"
	case ShareTooSmall:
		return fmt.Sprintf("sharing GPUs in parts below %d/1000", shape.Milli)
	case NoMIG:
		return "without the MIG profiles asked for"
	case InsideUnknown:
		return "not telling which GPUs they have"
	case ByPolicy:
		return is + " refused by policy"
	case NodeTooSmall:
		return "too small even when empty"
	case GPUsBroken:
		return has + " too few healthy GPUs"
	case GPUsTaken:
		return has + " too few free GPUs"
	case MIGTaken:
		return has + " no room for the MIG instances"
	case OthersTaken:
		return has + " the GPUs but too little CPU, memory or other resources free"
	case NotLocated:
		return has + " no label for the topology level asked for"
	case Limited:
		return "not among the nodes this group is limited to"
	case Avoided:
		return "refused a pod of this workload a short while ago"
	}
	return "suitable"
}

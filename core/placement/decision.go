package placement

import "github.com/reyisjones/gpu-orchestrator/core/cluster"

// Decision is the answer to a Request: where every pod goes, or why there is no room.
type Decision struct {
	// Feasible tells whether Nodes is a plan.
	Feasible bool
	// Nodes names the node of each rank, in order of rank. Its length is the gang's size:
	// Count, or less for an elastic gang.
	Nodes []string
	// Domain is the narrowest domain that was asked for and holds the gang, with its level:
	// "leaf-003" and "leaf". Both are empty where none was asked for.
	Domain, Level string
	// Why explains the decision.
	Why Explanation
}

// Reason says why a node cannot take even one pod of the request.
type Reason int

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
	ShareTooSmall
	NodeTooSmall
	GPUsTaken
	OthersTaken
	NotLocated
	Avoided
	reasonCount
)

// Explanation is why a decision came out as it did, as data.
type Explanation struct {
	// Nodes is how many nodes there are; Removed counts, by Reason, those that cannot take a pod.
	Nodes   int
	Removed [reasonCount]int
	// Room is how many pods the best domain of the asked level could take now, Best its name;
	// RoomEmpty is how many the best one could take if nothing ran.
	Room, RoomEmpty int
	Best            string
	// MostFree is the largest number of free GPUs on one node that is otherwise suitable, and
	// Largest the largest number of GPUs a node of the right kind has at all.
	MostFree, Largest         int64
	MostFreeNode, LargestNode string
	// Never is true if the request would not fit even if nothing ran: it must change, or the
	// cluster must.
	Never bool
	// Sentence says it all to a person.
	Sentence string
}

// domainView is one domain with what the request could do with it.
type domainView struct {
	cluster.Domain
	// room is how many pods fit now, in whole slices; size is how many of them the plan would use.
	room, size int
}

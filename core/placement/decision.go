package placement

import (
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Decision is the answer to a Request: where every pod goes, or why there is no room.
type Decision struct {
	// Generation is that of the snapshot that was asked about.
	Generation uint64
	// Feasible tells whether Groups is a plan.
	Feasible bool
	// Undecided is true if the search ran out of its budget, or more MIG instances may fit than
	// could be counted: whether there is a plan is not known. A decision that is neither Feasible nor Undecided is a proof that there is none,
	// and Why.Certificate says what it rests on.
	Undecided bool
	// Groups is where the pods go, in the order of the request's groups.
	Groups []Assignment
	// Victims are the workloads that have to make way first, in the order of their names.
	Victims []Victim
	// Domain is the narrowest domain that was asked for and holds the gang, with its level:
	// "leaf-003" and "leaf". Both are empty where none was asked for.
	Domain, Level string
	// Why explains the decision.
	Why Explanation
}

// Victim is a workload that loses pods to a plan.
type Victim struct {
	// Workload is its name, Priority its priority, Cost what is lost in GPU-hours.
	Workload string
	Priority int32
	Cost     float64
	// Evicted is what leaves. Whole is false if the workload goes on with what it keeps.
	Evicted []cluster.Placement
	Whole   bool
}

// Assignment is where the pods of one group go.
type Assignment struct {
	Name string
	// Nodes names the node of each rank, in order of rank. Its length is the group's size:
	// Count, or less for an elastic one. At holds their positions in the snapshot.
	Nodes []string
	At    []int32
	// GPUs are, for each rank, the GPUs of its node; nil where no node's inside is known. The
	// device plugin has the last word on them unless devices are claimed (DRA).
	GPUs []gpu.Mask
	// Instances are, for each rank, its MIG instances; nil where none were asked for. New says
	// of each whether it has yet to be made.
	Instances [][]Instance
	// Offers say, for each rank, how its node gives it a share of a GPU; nil where no share
	// was asked for.
	Offers []Offer
}

// Instance is a MIG instance of a plan.
type Instance struct {
	gpu.Instance
	// New is true if the instance has yet to be made.
	New bool
}

// Offer is how a node gives a share of a GPU: Amount of Resource. Resource is "" where shares
// are dealt out by thousandths of a GPU that the assignment names.
type Offer struct {
	Resource string
	Amount   int64
	// use is what the pod takes of the node for it, beside its other requests.
	use cluster.Vector
}

// Size returns the number of pods placed.
func (d Decision) Size() int {
	n := 0
	for i := range d.Groups {
		n += len(d.Groups[i].Nodes)
	}
	return n
}

// Nodes returns the nodes of all ranks of all groups, one entry a pod.
func (d Decision) Nodes() []string {
	if len(d.Groups) == 1 {
		return d.Groups[0].Nodes
	}
	var names []string
	for i := range d.Groups {
		names = append(names, d.Groups[i].Nodes...)
	}
	return names
}

// Placements returns the plan as pods for a Txn, in the order of groups and ranks. The
// decision must be feasible, and r the request that it answers.
func (d Decision) Placements(r *Request, w *cluster.Workload) []cluster.Placement {
	placements := make([]cluster.Placement, 0, d.Size())
	for i := range d.Groups {
		a, shape := &d.Groups[i], &r.Groups[i].Pod
		for rank, at := range a.At {
			placements = append(placements, cluster.Placement{Node: int(at), Pod: a.pod(rank, shape, w)})
		}
	}
	return placements
}

// pod returns what the rank holds once it runs.
func (a *Assignment) pod(rank int, shape *Shape, w *cluster.Workload) *cluster.Pod {
	p := &cluster.Pod{Workload: w, Group: a.Name, Use: shape.Resources}
	if a.GPUs != nil {
		p.GPUs = a.GPUs[rank]
	}
	if a.Offers != nil {
		if o := a.Offers[rank]; o.Resource == "" {
			p.Milli = shape.Milli
		} else {
			p.Use = p.Use.Clone().Add(o.use)
		}
	}
	if a.Instances != nil {
		for _, i := range a.Instances[rank] {
			p.Instances = append(p.Instances, i.Instance)
		}
	}
	return p
}

// Explanation is why a decision came out as it did, as data.
type Explanation struct {
	// Sentence says it all to a person.
	Sentence string
	// Group is the name of the group that the rest is about: the one that stands in the way.
	Group string
	// Nodes is how many nodes there are; Removed counts, by Reason, those that cannot take a
	// pod.
	Nodes   int
	Removed [reasonCount]int
	// Refusals says of the nodes removed ByPolicy why, each reason once, in the order in which
	// nodes have them first.
	Refusals []Refusal
	// Certificate is what a refusal rests on; nil for a plan, and for what is undecided.
	Certificate *Certificate
	// Room is how many pods the best domain of the asked level could take now, Best its name;
	// RoomEmpty is how many the best one could take if nothing ran.
	Room, RoomEmpty int
	Best            string
	// Misses is, for each level from the outermost to the innermost, the domain with the most
	// room. The first entry is the whole cluster.
	Misses []Miss
	// MostFree is the largest number of free GPUs on one node that is otherwise suitable, and
	// Largest the largest number of GPUs a node of the right kind has at all.
	MostFree, Largest         int64
	MostFreeNode, LargestNode string
	// FreeGPUs is how many GPUs are free on suitable nodes in service, on all of them together, and
	// NeedGPUs how many the group needs at least.
	FreeGPUs, NeedGPUs int64
	// NoLevel is true if no node has a value for the level that is required.
	NoLevel bool
	// Suitable is how many nodes are of the right kind, whatever runs there.
	Suitable int
	// LinksBind is true if nodes have the room and it is their uplinks that do not carry the
	// bandwidth asked for.
	LinksBind bool
	// Never is true if the request would not fit even if nothing ran: it must change, or the
	// cluster must.
	Never bool
	// Changes are edits of the request that would be met now. The engine tried each of them.
	Changes []Change
	// Chosen and Next are the node of the first pod and the best of the same domain that was
	// not used, with what their scores are made of. Both are nil unless Options.Explain was
	// set.
	Chosen, Next *NodeScore
	// ChosenDomain is the score of the domain, where one was asked for and the strategy scores
	// domains; NextDomain that of the best other one that would have held as much. Both are
	// nil unless Options.Explain was set.
	ChosenDomain, NextDomain *DomainScore
}

// Certificate is why a request cannot be met by this snapshot, in a form that can be checked
// without the search that found it.
type Certificate struct {
	// Kind says which argument it is.
	Kind CertificateKind
	// Group is the group, or the groups, that cannot be placed.
	Groups []string
	// Level and Domain name the best domain, Room the most pods that it, and so any domain of
	// the level, takes; Need is the least that would do.
	Level, Domain string
	Room, Need    int
}

// CertificateKind names the argument of a Certificate.
type CertificateKind string

// The arguments.
const (
	// NoDomainHoldsEach: no domain of the level has room for each of the groups by itself.
	NoDomainHoldsEach CertificateKind = "noDomainHoldsEach"
	// NoDomainHolds: the domain with the most room of the level has too little.
	NoDomainHolds CertificateKind = "noDomainHolds"
	// TooMuchInAll: the groups together ask for more of one resource than any domain has free.
	TooMuchInAll CertificateKind = "tooMuchInAll"
	// Exhausted: every way to place the groups was tried.
	Exhausted CertificateKind = "exhausted"
	// TooManyMoves: more moves are needed than are allowed, Need and Room.
	TooManyMoves CertificateKind = "tooManyMoves"
)

// Refusal is why Rules keep pods off some nodes.
type Refusal struct {
	Why   string
	Nodes int
}

// Miss is the domain of a level that comes nearest.
type Miss struct {
	// Level is the name of the level, "" for the whole cluster; Domain the name of its domain
	// with the most room, and Room how many pods of the group that is.
	Level, Domain string
	Room          int
}

// Change is an edit of a request that the engine tried and found to be met now.
type Change struct {
	// Group is the group to change, "" where there is one only; of a set its groups, joined by
	// "+".
	Group string
	// Field is what to change: topology.required, sets.required, slices, bandwidth, count or
	// gpus; To is the value that works.
	Field, To string
}

// NodeScore is a node's score and its terms. Affinity is the sum of the weights of preferred
// node affinity that the node matches; it counts before the score.
type NodeScore struct {
	Node     string
	Score    float64
	Affinity int
	// Opinion is how good the request's Rules find the machine, 0 to 100; 0 where they have no
	// scores. It counts before the score but after affinity, or is one of the Terms.
	Opinion float64
	Terms   []Term
}

// DomainScore is a domain's score and its terms.
type DomainScore struct {
	Level, Domain string
	Score         float64
	Terms         []Term
}

// Term is one part of a score: Value of 0 to 100 with its Weight.
type Term struct {
	Name          string
	Value, Weight float64
}

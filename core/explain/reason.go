package explain

import "github.com/reyisjones/gpu-orchestrator/core/placement"

// Reason names why a workload stands where it does, for programs.
type Reason string

// The reasons. Those up to Undecided are the engine's, the rest are of the workload's life.
const (
	RoomIsThere       Reason = "RoomIsThere"
	VictimsLeave      Reason = "VictimsLeave"
	NoNodes           Reason = "NoNodes"
	LevelNotCarried   Reason = "LevelNotCarried"
	NoSuitableNode    Reason = "NoSuitableNode"
	NeverFits         Reason = "NeverFits"
	NodesOutOfService Reason = "NodesOutOfService"
	Fragmented        Reason = "Fragmented"
	NotEnoughGPUs     Reason = "NotEnoughGPUs"
	OthersTaken       Reason = "OtherResourcesTaken"
	LinksFull         Reason = "LinksFull"
	NodesAvoided      Reason = "NodesAvoided"
	Undecided         Reason = "Undecided"

	InvalidSpec    Reason = "InvalidSpec"
	Suspended      Reason = "Suspended"
	Retrying       Reason = "Retrying"
	Outranked      Reason = "Outranked"
	Finished       Reason = "Finished"
	Planned        Reason = "Planned"
	Running        Reason = "Running"
	EndingPrevious Reason = "EndingPreviousAttempt"
	Evicted        Reason = "Evicted"
	OtherScheduler Reason = "OtherScheduler"
)

// ReasonOf reads the dominant reason off a decision.
func ReasonOf(r *placement.Request, d *placement.Decision) Reason {
	why := &d.Why
	group := &r.Groups[0]
	for i := range r.Groups {
		if r.Groups[i].Name == why.Group {
			group = &r.Groups[i]
		}
	}
	need := int64(group.Count)
	if c := why.Certificate; c != nil && c.Need > 0 {
		need = int64(c.Need)
	} else if group.MinCount > 0 {
		need = int64(group.MinCount)
	}
	switch {
	case d.Feasible && len(d.Victims) > 0:
		return VictimsLeave
	case d.Feasible:
		return RoomIsThere
	case d.Undecided:
		return Undecided
	case why.Nodes == 0:
		return NoNodes
	case group.Topology.Required >= 0 && why.Best == "" && len(group.Kept) == 0 && len(why.Misses) > 0:
		return LevelNotCarried
	case why.Suitable == 0 && why.Never:
		return NoSuitableNode
	case why.LinksBind:
		return LinksFull
	case why.Never:
		return NeverFits
	case why.Removed[placement.Avoided] > 0 && why.FreeGPUs >= need*group.Pod.GPUs && why.Removed[placement.GPUsTaken]+why.Removed[placement.OthersTaken] == 0:
		return NodesAvoided
	case group.Pod.GPUs > 0 && why.FreeGPUs < need*group.Pod.GPUs:
		return NotEnoughGPUs
	case why.Removed[placement.OthersTaken] > 0 && why.Removed[placement.GPUsTaken] == 0:
		return OthersTaken
	}
	return Fragmented
}

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
	Withheld       Reason = "RoomIsHeld"
	Finished       Reason = "Finished"
	Planned        Reason = "Planned"
	Running        Reason = "Running"
	EndingPrevious Reason = "EndingPreviousAttempt"
	Evicted        Reason = "Evicted"
	OtherScheduler Reason = "OtherScheduler"
)

// ReasonOf reads the dominant reason off a decision.
func ReasonOf(d *placement.Decision) Reason {
	why := &d.Why
	taken := why.Removed[placement.GPUsTaken] + why.Removed[placement.OthersTaken]
	switch {
	case d.Feasible && len(d.Victims) > 0:
		return VictimsLeave
	case d.Feasible:
		return RoomIsThere
	case d.Undecided:
		return Undecided
	case why.Nodes == 0:
		return NoNodes
	case why.NoLevel:
		return LevelNotCarried
	case why.Suitable == 0:
		return NoSuitableNode
	case why.LinksBind:
		return LinksFull
	case why.Never:
		return NeverFits
	case why.Removed[placement.Avoided] > 0 && why.FreeGPUs >= why.NeedGPUs && taken == 0:
		return NodesAvoided
	case why.FreeGPUs < why.NeedGPUs:
		return NotEnoughGPUs
	case why.Removed[placement.OthersTaken] > 0 && why.Removed[placement.GPUsTaken] == 0:
		return OthersTaken
	}
	return Fragmented
}

package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// group is a PodGroup with what the engine said of it.
type group struct {
	refusal string
}

func (g *group) refused(*desk) refused { return refused{} }

func (d *desk) tendGroups(time.Time) {}

// GeneratePlacements implements fwk.PlacementGeneratePlugin.
func (p *Plugin) GeneratePlacements(_ context.Context, _ fwk.PodGroupCycleState, _ fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	return &fwk.GeneratePlacementsResult{Placements: []*fwk.Placement{parent}}, nil
}

func (p *Plugin) preFilterGroup(fwk.CycleState, *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Skip)
}

func (p *Plugin) refusedGroup(*corev1.Pod, string) {}

var _ types.UID

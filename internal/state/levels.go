package state

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// TopologyLevel names a level and the node labels that carry it; the first that a node has
// counts.
type TopologyLevel struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
}

// DefaultLevels knows the labels of the clouds, of GPU feature discovery, and of topograph in
// the three generations that are about. Its third counts the tiers of the fabric from the node
// outwards: tier 0 is the switch that the node hangs on (its "Node Labels" reference).
func DefaultLevels() []TopologyLevel {
	return []TopologyLevel{
		{Name: "region", Labels: []string{"topology.kubernetes.io/region"}},
		{Name: "zone", Labels: []string{"topology.kubernetes.io/zone"}},
		{Name: "core", Labels: []string{"gpu.warp.dev/core", "network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter", "fabric.topograph.run/tier-2"}},
		{Name: "spine", Labels: []string{"gpu.warp.dev/spine", "network.topology.nvidia.com/spine", "fabric.topograph.run/tier-1"}},
		{Name: "leaf", Labels: []string{"gpu.warp.dev/leaf", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block", "fabric.topograph.run/tier-0"}},
		{Name: "rack", Labels: []string{"gpu.warp.dev/rack", "topology.kubernetes.io/rack"}},
		{Name: "nvlink", Labels: []string{"gpu.warp.dev/nvlink-domain", "nvidia.com/gpu.clique", "network.topology.nvidia.com/accelerator", "accelerator.topograph.run/domain"}},
		{Name: "nvlink-subdomain", Labels: []string{"accelerator.topograph.run/sub-domain"}},
		{Name: "host", Labels: []string{"kubernetes.io/hostname"}},
	}
}

// Levels translates topology levels, outermost first, into those of snapshots.
func Levels(list []TopologyLevel) []cluster.Level {
	levels := make([]cluster.Level, len(list))
	for i, l := range list {
		levels[i] = cluster.Level(l)
	}
	return levels
}

// ValidateLevels returns everything that is wrong with a list of topology levels at the path.
func ValidateLevels(at *field.Path, list []TopologyLevel) field.ErrorList {
	var errs field.ErrorList
	name := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	seen := make(map[string]bool)
	for i, l := range list {
		path := at.Index(i)
		switch {
		case !name.MatchString(l.Name):
			errs = append(errs, field.Invalid(path.Child("name"), l.Name, "must be lower-case letters, digits and '-'"))
		case seen[l.Name]:
			errs = append(errs, field.Duplicate(path.Child("name"), l.Name))
		}
		seen[l.Name] = true
		if len(l.Labels) == 0 {
			errs = append(errs, field.Required(path.Child("labels"), "a level is read from node labels"))
		}
	}
	return errs
}

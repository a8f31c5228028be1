package manager

import (
	"slices"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// at returns what the levels read of a node's labels, by name of the level.
func at(levels []cluster.Level, labels map[string]string) map[string]string {
	path := map[string]string{}
	for i, value := range cluster.PathOf(levels, labels) {
		if value != "" {
			path[levels[i].Name] = value
		}
	}
	return path
}

// Nodes are found in the network whichever generation of topograph labelled them. Its third
// counts tiers from the node outwards.
func TestLevelsReadEveryGenerationOfTopograph(t *testing.T) {
	config := DefaultConfig()
	want := map[string]string{"core": "c", "spine": "s", "leaf": "l", "nvlink": "a"}
	for name, labels := range map[string]map[string]string{
		"first": {
			"network.topology.nvidia.com/accelerator": "a", "network.topology.nvidia.com/block": "l",
			"network.topology.nvidia.com/spine": "s", "network.topology.nvidia.com/datacenter": "c",
		},
		"second": {
			"network.topology.nvidia.com/accelerator": "a", "network.topology.nvidia.com/leaf": "l",
			"network.topology.nvidia.com/spine": "s", "network.topology.nvidia.com/core": "c",
		},
		"third": {
			"accelerator.topograph.run/domain": "a", "fabric.topograph.run/tier-0": "l",
			"fabric.topograph.run/tier-1": "s", "fabric.topograph.run/tier-2": "c",
		},
		"ours, beside the third": {
			"accelerator.topograph.run/domain": "a", "gpu.warp.dev/leaf": "l", "fabric.topograph.run/tier-0": "other",
			"gpu.warp.dev/spine": "s", "fabric.topograph.run/tier-1": "other", "gpu.warp.dev/core": "c",
		},
		"the GPU operator's clique": {
			"nvidia.com/gpu.clique": "a", "fabric.topograph.run/tier-0": "l", "fabric.topograph.run/tier-1": "s", "fabric.topograph.run/tier-2": "c",
		},
	} {
		got := at(config.levels(), labels)
		for level, value := range want {
			if got[level] != value {
				t.Errorf("%s: %s is %q, want %q", name, level, got[level], value)
			}
		}
	}
	inside := at(config.levels(), map[string]string{"accelerator.topograph.run/domain": "a", "accelerator.topograph.run/sub-domain": "b"})
	if inside["nvlink-subdomain"] != "b" {
		t.Errorf("got %v", inside)
	}
}

// Levels go from the outside in, whatever the labels are called.
func TestDefaultLevelsAreInOrder(t *testing.T) {
	var names []string
	for _, l := range state.DefaultLevels() {
		names = append(names, l.Name)
	}
	if want := []string{"region", "zone", "core", "spine", "leaf", "rack", "nvlink", "nvlink-subdomain", "host"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// An installation may read any keys, such as a fourth tier or one of its own.
func TestConfiguredLevelsAreRead(t *testing.T) {
	config, err := LoadConfig(write(t, `topologyLevels:
- {name: hall, labels: [fabric.topograph.run/tier-3, example.com/hall]}
- {name: leaf, labels: [example.com/switch, network.topology.nvidia.com/block]}
- {name: host, labels: [kubernetes.io/hostname]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{
		{"fabric.topograph.run/tier-3": "h", "network.topology.nvidia.com/block": "l", "kubernetes.io/hostname": "n"},
		{"example.com/hall": "h", "example.com/switch": "l", "network.topology.nvidia.com/block": "other", "kubernetes.io/hostname": "n"},
	} {
		if got := at(config.levels(), labels); len(got) != 3 || got["hall"] != "h" || got["leaf"] != "l" || got["host"] != "n" {
			t.Errorf("%v: got %v", labels, got)
		}
	}
}

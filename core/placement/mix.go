package placement

import (
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// DefaultMix returns the work that is expected where nobody said: pods with 8, 4, 2 and 1
// GPUs and with half of one, each kind bringing the same number of GPUs in all. These are the
// sizes of which public traces have most (Philly: 93 % of the jobs have 1 GPU, and 2, 4 and 8
// about 2 % each; Alibaba: half of the pods share a GPU). With equal numbers of GPUs none of
// the sizes is forgotten, and what breaks up a whole node is charged for. A pod takes a core
// and 4 GiB for each GPU, which no process that feeds a GPU does without.
func DefaultMix() []Expected {
	mix := []Expected{{Milli: 500, Weight: 16, Resources: cluster.Vector{cluster.CPU: 1000, cluster.Memory: 4 << 30}}}
	for _, gpus := range []int{1, 2, 4, 8} {
		mix = append(mix, Expected{
			GPUs:      gpus,
			Weight:    8 / float64(gpus),
			Resources: cluster.Vector{cluster.CPU: 1000 * int64(gpus), cluster.Memory: int64(gpus) << 32},
		})
	}
	return mix
}

// WithSupply returns the mix with the Supply of each kind in the cluster: the share of its
// GPUs, counted as resource i, on machines in service that could take a pod of the kind if
// nothing ran. It depends on machines alone, so that it need not follow every pod.
func WithSupply(mix []Expected, s *cluster.Snapshot, i int) []Expected {
	mix = slices.Clone(mix)
	all := 0.0
	able := make([]float64, len(mix))
	for _, n := range s.Nodes() {
		gpus := float64(max(0, n.Allocatable.At(i)))
		if !n.Ready || n.Cordoned || gpus == 0 {
			continue
		}
		all += gpus
		for k := range mix {
			if mix[k].fitsEmpty(n.Machine, i) {
				able[k] += gpus
			}
		}
	}
	for k := range mix {
		mix[k].Supply = 0
		if all > 0 {
			mix[k].Supply = able[k] / all
		}
	}
	return mix
}

// fitsEmpty tells whether the machine could take the pod if nothing ran.
func (e *Expected) fitsEmpty(m *cluster.Machine, gpuResource int) bool {
	if e.Product != "" && !slices.Contains(strings.Split(e.Product, "|"), m.GPU.Product) {
		return false
	}
	for i, want := range e.Resources {
		if i != gpuResource && want > m.Allocatable.At(i) {
			return false
		}
	}
	return int64(e.GPUs) <= m.Allocatable.At(gpuResource)
}

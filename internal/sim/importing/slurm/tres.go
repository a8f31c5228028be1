package slurm

import (
	"strconv"
	"strings"
)

// The GPUs among trackable resources (slurm.conf, AccountingStorageTRES).
const (
	tresGPU   = "gres/gpu"
	tresShard = "gres/shard"
	tresMPS   = "gres/mps"
)

// resources are the parts of a list of trackable resources that matter here.
type resources struct {
	// gpus counts all GPUs, types those of each type where the list tells.
	gpus  int
	types map[string]int
	// nodes is 0 if the list does not tell.
	nodes int
	// parts says that GPUs are shared: shards or MPS.
	parts bool
}

// parseTRES reads "cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=500G,node=1". Where only types are
// accounted for, their sum is what there is. The second result is what cannot be read, "" if
// nothing.
func parseTRES(text string) (r resources, wrong string) {
	total, typed := -1, 0
	for item := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		kind, isType := strings.CutPrefix(name, tresGPU+":")
		if !ok || name != tresGPU && name != tresShard && name != tresMPS && name != "node" && !isType {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return resources{}, item
		}
		switch {
		case name == tresGPU:
			total = int(n)
		case name == "node":
			r.nodes = int(n)
		case !isType:
			r.parts = r.parts || n > 0
		case n > 0:
			if r.types == nil {
				r.types = map[string]int{}
			}
			r.types[strings.Clone(strings.TrimSpace(kind))] += int(n)
			typed += int(n)
		}
	}
	if r.gpus = typed; total >= 0 {
		r.gpus = total
	}
	return r, ""
}

// model returns the type of the GPUs if all are of one.
func (r resources) model() string {
	if len(r.types) != 1 {
		return ""
	}
	for kind, n := range r.types {
		if n == r.gpus {
			return kind
		}
	}
	return ""
}

package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Where nvidia.com/gpu counts something else than GPUs.
const (
	vGPUSlot   = "vGPU slot"
	gpuReplica = "GPU replica"
)

// gpuKind is something that nodes count GPUs, or parts of them, in.
type gpuKind struct {
	name     string
	resource int
	// parts is what the resource counts on these nodes, "" for what its name says.
	parts string
	// asked tells whether the request asks for it, only whether for no other GPUs.
	asked, only bool
}

// supply is how much of a kind there is, and how much is free before and after the plan.
type supply struct {
	kind               *gpuKind
	total, free, after int64
}

// gpuKinds lists the kinds in a cluster, those first that the request asks for.
func (q *question) gpuKinds() []*gpuKind {
	var asked []string
	ask := func(name string) {
		if !slices.Contains(asked, name) {
			asked = append(asked, name)
		}
	}
	for i := range q.Request.Groups {
		g := &q.Request.Groups[i]
		if name := gpuResourceOf(g); g.Requests[name] > 0 || g.GPUMilli > 0 || len(g.MIG) > 0 {
			ask(name)
		}
		if g.GPUMilli > 0 {
			ask(sharedResource)
		}
	}
	if len(asked) == 0 {
		ask(gpuResource)
	}
	var kinds []*gpuKind
	add := func(name string, isAsked bool) {
		k := &gpuKind{name: name, resource: q.resources.Index(name), asked: isAsked}
		k.only = isAsked && !slices.ContainsFunc(asked, func(other string) bool { return other != name && other != sharedResource })
		kinds = append(kinds, k)
		for _, parts := range []string{vGPUSlot, gpuReplica} {
			if name == gpuResource {
				inParts := *k
				inParts.parts = parts
				kinds = append(kinds, &inParts)
			}
		}
	}
	for _, name := range asked {
		add(name, true)
	}
	for i := range q.resources.Len() {
		if name := q.resources.Name(i); countsGPUs(name) && !slices.Contains(asked, name) {
			add(name, false)
		}
	}
	if !slices.ContainsFunc(kinds, func(k *gpuKind) bool { return k.name == gpuResource }) {
		add(gpuResource, false) // nodes may have GPUs inside that they do not offer
	}
	return kinds
}

// supplyOf counts what a node has, before the plan and after.
func (l *layouter) supplyOf(n, after *cluster.Node) []supply {
	all := make([]supply, len(l.kinds))
	for i, k := range l.kinds {
		all[i] = supply{kind: k}
		if k.name != gpuResource || k.parts == l.partsOf(n) {
			all[i].total, all[i].free = k.count(n)
			_, all[i].after = k.count(after)
		}
	}
	return all
}

// partsOf tells what nvidia.com/gpu counts on a node whose inside is not known.
func (l *layouter) partsOf(n *cluster.Node) string {
	switch {
	case n.Board != nil:
		return ""
	case n.Allocatable.At(l.q.resources.Index(coresResource)) > 0:
		return vGPUSlot
	case n.GPU.Replicas > 1:
		return gpuReplica
	}
	return ""
}

func (k *gpuKind) count(n *cluster.Node) (total, free int64) {
	total, free = n.Allocatable.At(k.resource), n.Free(k.resource)
	if n.Board != nil && k.name == gpuResource {
		whole := int64(n.WholeGPUs().Count())
		if total == 0 {
			free = whole
		}
		total, free = int64(n.Board.Count()), min(whole, free)
	}
	if !n.Ready {
		free = 0
	}
	return total, max(0, free)
}

// of names so many of the kind: "GPUs" where no other kind is asked for.
func (k *gpuKind) of(total int64) string {
	switch {
	case k.parts != "":
		return plural(k.parts, int(total))
	case k.only && strings.HasSuffix(k.name, "/gpu"):
		return plural("GPU", int(total))
	}
	return k.name
}

// addSupplies adds up what several domains have.
func addSupplies(sum, more []supply) []supply {
	if sum == nil {
		return slices.Clone(more)
	}
	for i, s := range more {
		sum[i].total, sum[i].free, sum[i].after = sum[i].total+s.total, sum[i].free+s.free, sum[i].after+s.after
	}
	return sum
}

// suppliesText says what there is of the kinds that are asked for, or else which others there
// are: "8 → 4 of 8 GPUs free", "8 amd.com/gpu".
func suppliesText(all []supply) string {
	var asked, others []string
	for _, s := range all {
		switch {
		case s.total == 0:
		case s.kind.asked:
			asked = append(asked, fmt.Sprintf("%s of %d %s", change(s.free, s.after), s.total, s.kind.of(s.total)))
		default:
			others = append(others, fmt.Sprintf("%d %s", s.total, s.kind.of(s.total)))
		}
	}
	if len(asked) > 0 {
		return strings.Join(asked, ", ") + " free"
	}
	return strings.Join(others, ", ")
}

package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// explain fills in why there is no plan. It walks the nodes and domains a second time, which
// only a refusal pays for.
func (p *planner) explain() Explanation {
	why := p.why
	r := p.request
	for _, n := range p.snapshot.Nodes {
		if filterKind(n, &r.Pod) != Fits {
			continue
		}
		if all := n.Allocatable.At(r.Pod.GPUResource); all > why.Largest {
			why.Largest, why.LargestNode = all, n.Name
		}
		if free := n.Free(r.Pod.GPUResource); n.Ready && !n.Cordoned && free > why.MostFree {
			why.MostFree, why.MostFreeNode = free, n.Name
		}
	}
	empty := p.emptySums()
	for _, d := range p.snapshot.Domains(r.Topology.Required) {
		if !p.holdsKept(d) {
			continue
		}
		if room := p.room(d); room > why.Room || why.Best == "" {
			why.Room, why.Best = room, p.snapshot.DomainName(d)
		}
		room := p.slices(d, func(first, end int) int { return empty[end] - empty[first] })
		why.RoomEmpty = max(why.RoomEmpty, room)
	}
	why.Never = why.RoomEmpty < r.least()
	why.Sentence = why.refusal(p.snapshot, r)
	return why
}

// emptySums are prefix sums of how many pods each node could take if nothing ran and all
// nodes were in service.
func (p *planner) emptySums() []int {
	sums := make([]int, len(p.snapshot.Nodes)+1)
	for i, n := range p.snapshot.Nodes {
		sums[i+1] = sums[i]
		if filterKind(n, &p.request.Pod) == Fits && p.located(n) {
			sums[i+1] += int(n.FitsEmpty(p.request.Pod.Resources, int64(p.request.Count)))
		}
	}
	return sums
}

// refusal is the sentence of a decision without a plan: what is missing, and what to change.
func (why *Explanation) refusal(s *cluster.Snapshot, r *Request) string {
	level := r.Topology.Required
	switch {
	case why.Nodes == 0:
		return "the cluster has no nodes"
	case level >= 0 && len(s.Domains(level)) == 0:
		return fmt.Sprintf("no node carries level %q (label %s); levels of this cluster: %s",
			s.Levels[level].Name, strings.Join(s.Levels[level].Labels, " or "), strings.Join(s.CarriedLevels(), ", "))
	case len(r.Kept) > 0 && level >= 0:
		return fmt.Sprintf("room for %d pods is needed in %s %s, where the rest of the gang stays, and there is room for %d",
			r.least(), s.Levels[level].Name, why.Best, why.Room)
	case why.Largest == 0 && why.Removed[NoSuchGPU] == why.Nodes:
		return fmt.Sprintf("no node has %s", r.Pod.GPUResourceName)
	case r.Pod.Missing != "":
		return fmt.Sprintf("no node has %s, which the template asks for", r.Pod.Missing)
	case why.Largest == 0:
		return fmt.Sprintf("no node has the %s asked for: %s%s", r.Pod.GPUResourceName, why.counts(&r.Pod), products(s, r))
	case why.Never && why.Largest < r.Pod.GPUs:
		return fmt.Sprintf("each pod asks for %d %s, but the largest suitable node (%s) has %d: lower gpuCount, or spread over more pods with parallelism",
			r.Pod.GPUs, r.Pod.GPUResourceName, why.LargestNode, why.Largest)
	case why.Never && tooLarge(s, r) != "":
		return tooLarge(s, r)
	case why.Never:
		return fmt.Sprintf("%s cannot fit even when nothing else runs: %s could take %d of %d pods; ask for fewer pods, a wider topology level, or add nodes",
			gang(r), where(s, level), why.RoomEmpty, r.least())
	case r.least() == 1:
		return fmt.Sprintf("no node has room for a pod with %d %s (%s); %s",
			r.Pod.GPUs, r.Pod.GPUResourceName, why.mostFree(), why.counts(&r.Pod))
	case level < 0:
		return fmt.Sprintf("%s needs room for %d pods and there is room for %d; %s",
			gang(r), r.least(), why.Room, why.counts(&r.Pod))
	}
	return fmt.Sprintf("%s needs one %s with room for %d pods; the best, %s, has room for %d; %s",
		gang(r), s.Levels[level].Name, r.least(), why.Best, why.Room, why.counts(&r.Pod))
}

// counts lists what keeps nodes out: "of 12 nodes 3 are not ready, 9 have too few free GPUs".
func (why *Explanation) counts(shape *Shape) string {
	var parts []string
	for reason, n := range why.Removed {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Reason(reason).say(n, shape)))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("all %d nodes take at least one pod", why.Nodes)
	}
	return fmt.Sprintf("of %d nodes %s", why.Nodes, strings.Join(parts, ", "))
}

// say words the reason for n nodes.
func (r Reason) say(n int, shape *Shape) string {
	is, has := "is", "has"
	if n != 1 {
		is, has = "are", "have"
	}
	switch r {
	case NotReady:
		return is + " not ready"
	case IsCordoned:
		return is + " cordoned"
	case Tainted:
		return has + " taints the template does not tolerate"
	case NotSelected:
		return "not selected by the template's nodeSelector or affinity"
	case NoSuchGPU:
		return "without " + shape.GPUResourceName
	case NoSuchResource:
		return "without " + shape.Missing
	case WrongProduct:
		return "with another product than " + shape.GPU.Product
	case WrongArchitecture:
		return "of another architecture than " + shape.GPU.Architecture
	case MemoryTooSmall:
		return fmt.Sprintf("with less than %d MiB a GPU", shape.GPU.MemoryMiB)
	case ShareTooSmall:
		return fmt.Sprintf("sharing GPUs in parts below %d/1000", shape.Milli)
	case NodeTooSmall:
		return "too small even when empty"
	case GPUsTaken:
		return has + " too few free GPUs"
	case OthersTaken:
		return has + " the GPUs but too little CPU, memory or other resources free"
	case NotLocated:
		return has + " no label for the topology level asked for"
	case Fits:
		return "suitable"
	}
	return "refused a pod of this workload a short while ago"
}

// describe is the sentence of a plan.
func describe(d *Decision, r *Request) string {
	nodes := 0
	for i, n := range d.Nodes {
		if i == 0 || n != d.Nodes[i-1] {
			nodes++
		}
	}
	text := fmt.Sprintf("placed on %s by %s", d.Nodes[0], r.Strategy)
	if len(d.Nodes) > 1 {
		text = fmt.Sprintf("%d pods placed on %s by %s", len(d.Nodes), plural(nodes, "node"), r.Strategy)
	}
	if d.Domain != "" {
		text += fmt.Sprintf(", all in %s %s", d.Level, d.Domain)
	}
	if len(d.Nodes) < r.Count {
		text += fmt.Sprintf("; room for %d of the %d wanted", len(d.Nodes), r.Count)
	}
	return text
}

func gang(r *Request) string {
	if r.Count == 1 {
		return fmt.Sprintf("a pod with %d %s", r.Pod.GPUs, r.Pod.GPUResourceName)
	}
	text := fmt.Sprintf("a gang of %d pods with %d %s each", r.Count, r.Pod.GPUs, r.Pod.GPUResourceName)
	if t := r.Topology; t.SliceLevel >= 0 {
		text += fmt.Sprintf(" in whole slices of %d", t.SliceSize)
	}
	return text
}

func where(s *cluster.Snapshot, level int) string {
	if level < 0 {
		return "the cluster"
	}
	return "the largest " + s.Levels[level].Name
}

// tooLarge names the resource of which a pod asks for more than any suitable node has at all.
func tooLarge(s *cluster.Snapshot, r *Request) string {
	for i, want := range r.Pod.Resources {
		most, where := int64(-1), ""
		for _, n := range s.Nodes {
			if have := n.Allocatable.At(i); have > most && filterKind(n, &r.Pod) == Fits {
				most, where = have, n.Name
			}
		}
		if where != "" && want > most {
			return fmt.Sprintf("each pod asks for %s of %s, but the largest suitable node (%s) has %s: lower the template's requests",
				amount(i, want), s.Resources.Name(i), where, amount(i, most))
		}
	}
	return ""
}

// amount writes an amount of a resource in the unit that people use.
func amount(resource int, v int64) string {
	switch resource {
	case cluster.CPU:
		return fmt.Sprintf("%g cores", float64(v)/1000)
	case cluster.Memory:
		return fmt.Sprintf("%.1f GiB", float64(v)/(1<<30))
	}
	return fmt.Sprint(v)
}

// mostFree says how near the nearest node comes.
func (why *Explanation) mostFree() string {
	if why.MostFree == 0 {
		return "none is free on any suitable node"
	}
	return fmt.Sprintf("most free: %d, on %s", why.MostFree, why.MostFreeNode)
}

// products lists what there is where the request names a product or architecture that is not.
func products(s *cluster.Snapshot, r *Request) string {
	if r.Pod.GPU.Product == "" && r.Pod.GPU.Architecture == "" {
		return ""
	}
	var kinds []string
	for _, n := range s.Nodes {
		kind := fmt.Sprintf("%s (%s)", n.GPU.Product, n.GPU.Architecture)
		if n.GPU.Product != "" && n.Allocatable.At(r.Pod.GPUResource) > 0 && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return "; no node tells its product"
	}
	slices.Sort(kinds)
	return "; there are " + strings.Join(kinds, ", ")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// refusal is the sentence of a decision without a plan: what is missing, and what to change.
func (g *gang) refusal(why *Explanation) string {
	s, group, pod := g.s, g.group, &g.group.Pod
	level, need := group.Topology.Required, group.leastWhole()
	switch {
	case why.Nodes == 0:
		return "the cluster has no nodes"
	case level >= 0 && len(s.Domains(level)) == 0:
		return fmt.Sprintf("no node carries level %q (label %s); levels of this cluster: %s",
			s.Levels[level].Name, strings.Join(s.Levels[level].Labels, " or "), strings.Join(s.CarriedLevels(), ", "))
	case len(group.Kept) > 0 && level >= 0 && why.Best == "":
		return fmt.Sprintf("the members that stay are in no %s together, so that none can hold the gang", s.Levels[level].Name)
	case len(group.Kept) > 0 && level >= 0:
		return fmt.Sprintf("room for %s is needed in %s %s, where the rest of the gang stays, and there is room for %d%s",
			plural(need, "pod"), s.Levels[level].Name, why.Best, why.Room, why.remedy())
	case pod.GPUs > 0 && why.Largest == 0 && why.Removed[NoSuchGPU] == why.Nodes:
		return fmt.Sprintf("no node has %s", pod.GPUResourceName)
	case pod.Missing != "":
		return fmt.Sprintf("no node has %s, which the template asks for", pod.Missing)
	case why.Suitable == 0:
		return fmt.Sprintf("no node suits %s: %s%s", podWords(pod), why.counts(pod), products(s, pod))
	case why.LinksBind:
		return fmt.Sprintf("%s needs %d Mbit/s a pod: nodes have room for %s, but their uplinks carry the traffic of %d%s",
			gangWords(s, group), group.Mbps, plural(need, "pod"), why.Room, why.remedy())
	case why.Never && why.Largest < pod.GPUs:
		return fmt.Sprintf("each pod asks for %d %s, but the largest suitable node (%s) has %d: lower gpuCount, or spread over more pods with parallelism",
			pod.GPUs, pod.GPUResourceName, why.LargestNode, why.Largest)
	case why.Never && g.tooLarge() != "":
		return g.tooLarge()
	case why.Never:
		return fmt.Sprintf("%s cannot fit even when nothing else runs: %s could take %d of %s; %s%s",
			gangWords(s, group), where(s, level), why.RoomEmpty, plural(need, "pod"), g.hint(why), why.remedy())
	case need == 1 && group.Count == 1:
		return fmt.Sprintf("no node has room for %s%s; %s%s", podWords(pod), why.mostFree(pod), why.counts(pod), why.remedy())
	case level < 0:
		return fmt.Sprintf("%s needs room for %s and there is room for %d; %s%s",
			gangWords(s, group), plural(need, "pod"), why.Room, why.counts(pod), why.remedy())
	}
	return fmt.Sprintf("%s needs one %s with room for %s; the best, %s, has room for %d; %s%s",
		gangWords(s, group), s.Levels[level].Name, plural(need, "pod"), why.Best, why.Room, why.counts(pod), why.remedy())
}

// hint says what usually helps a request that can never be met.
func (g *gang) hint(why *Explanation) string {
	if len(why.Changes) > 0 {
		return why.counts(&g.group.Pod)
	}
	return "ask for fewer pods, a wider topology level, or add nodes"
}

// remedy names the edits that the engine found to work.
func (why *Explanation) remedy() string {
	var parts []string
	for _, c := range why.Changes {
		parts = append(parts, c.words())
	}
	if len(parts) == 0 {
		return ""
	}
	return "; it would fit now " + strings.Join(parts, ", or ")
}

// words says the change as the end of "it would fit now …".
func (c *Change) words() string {
	text := ""
	n, _ := strconv.Atoi(c.To)
	switch {
	case c.Field == "sets.required" && c.To == "none":
		text = "without a level"
	case c.Field == "sets.required":
		text = "with " + c.To + " as the level"
	case c.Field == "topology.required" && c.To == "none":
		text = "without a required level"
	case c.Field == "topology.required":
		text = "with " + c.To + " as the required level"
	case c.Field == "slices":
		text = "without slices"
	case c.Field == "bandwidth":
		text = "with " + c.To + " Mbit/s a pod"
	case c.Field == "count":
		text = "with " + plural(n, "pod")
	case c.Field == "gpus":
		text = "with " + plural(n, "GPU") + " a pod"
	}
	if c.Group != "" {
		text += " for " + c.Group
	}
	return text
}

// counts lists what keeps nodes out: "of 12 nodes 3 are not ready, 9 have too few free GPUs".
func (why *Explanation) counts(shape *Shape) string {
	var parts []string
	for reason, n := range why.Removed {
		if n > 0 && Reason(reason) == ByPolicy {
			parts = append(parts, why.refusals(n)...)
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Reason(reason).say(n, shape)))
		}
	}
	if len(parts) == 0 {
		if why.Nodes == 1 {
			return "the only node takes at least one pod"
		}
		return fmt.Sprintf("all %d nodes take at least one pod", why.Nodes)
	}
	return fmt.Sprintf("of %d nodes %s", why.Nodes, strings.Join(parts, ", "))
}

// saidRefusals bounds how many different refusals a sentence names.
const saidRefusals = 3

// refusals lists why the Rules keep pods off n nodes.
func (why *Explanation) refusals(n int) []string {
	var parts []string
	for i, r := range why.Refusals {
		if i == saidRefusals && len(why.Refusals) > saidRefusals+1 {
			return append(parts, fmt.Sprintf("%d for %d more reasons of policy", n, len(why.Refusals)-i))
		}
		parts = append(parts, fmt.Sprintf("%d refused by %s", r.Nodes, r.Why))
		n -= r.Nodes
	}
	return parts
}

// describe is the sentence of a plan.
func describe(d *Decision, r *Request) string {
	first := d.Groups[0].Nodes[0]
	nodes, pods := d.countNodes(), d.Size()
	text := "placed on " + first + " by " + r.Strategy
	if pods > 1 {
		text = fmt.Sprintf("%d pods placed on %s by %s", pods, plural(nodes, "node"), r.Strategy)
	}
	if d.Domain != "" {
		text += ", all in " + d.Level + " " + d.Domain
	}
	if count, _ := r.size(); pods < count {
		text += fmt.Sprintf("; room for %d of the %d wanted", pods, count)
	}
	return text
}

// countNodes returns the number of different nodes of the plan.
func (d Decision) countNodes() int {
	if len(d.Groups) == 1 {
		// One group's ranks on a node are one run, but for a short last slice.
		n := 0
		for i, at := range d.Groups[0].At {
			if i == 0 || at != d.Groups[0].At[i-1] {
				n++
			}
		}
		return n
	}
	seen := map[int32]bool{}
	for i := range d.Groups {
		for _, at := range d.Groups[i].At {
			seen[at] = true
		}
	}
	return len(seen)
}

func gangWords(s *cluster.Snapshot, g *Group) string {
	if g.Count == 1 {
		return podWords(&g.Pod)
	}
	text := fmt.Sprintf("a gang of %d pods with %s each", g.Count, amountWords(&g.Pod))
	for _, sl := range g.Slices {
		text += fmt.Sprintf(" in whole slices of %d", sl.Size)
		if len(g.Slices) > 1 {
			text += " a " + s.Levels[sl.Level].Name
		}
	}
	return text
}

func podWords(q *Shape) string { return "a pod with " + amountWords(q) }

// amountWords says how much of a GPU a pod asks for.
func amountWords(q *Shape) string {
	switch {
	case len(q.MIG) > 0:
		return "MIG instances " + strings.Join(q.MIG, ", ")
	case q.Milli > 0 && q.GPUs == 0:
		return fmt.Sprintf("%d/1000 of a GPU", q.Milli)
	case q.GPUs == 0:
		return "no GPU"
	}
	return fmt.Sprintf("%d %s", q.GPUs, q.GPUResourceName)
}

func where(s *cluster.Snapshot, level int) string {
	if level < 0 {
		return "the cluster"
	}
	return "the largest " + s.Levels[level].Name
}

// tooLarge names the resource of which a pod asks for more than any suitable node has at all.
func (g *gang) tooLarge() string {
	for i, want := range g.group.Pod.Resources {
		most, where := int64(-1), ""
		for _, n := range g.s.Nodes() {
			if have := n.Allocatable.At(i); have > most && g.view.need.suits(n.Machine) == Fits {
				most, where = have, n.Name
			}
		}
		if where != "" && want > most {
			return fmt.Sprintf("each pod asks for %s of %s, but the largest suitable node (%s) has %s: lower the template's requests",
				sayAmount(i, want), g.s.Resources.Name(i), where, sayAmount(i, most))
		}
	}
	return ""
}

// sayAmount writes an amount of a resource in the unit that people use.
func sayAmount(resource int, v int64) string {
	switch resource {
	case cluster.CPU:
		return fmt.Sprintf("%g cores", float64(v)/1000)
	case cluster.Memory:
		return fmt.Sprintf("%.1f GiB", float64(v)/(1<<30))
	}
	return fmt.Sprint(v)
}

// mostFree says how near the nearest node comes.
func (why *Explanation) mostFree(pod *Shape) string {
	switch {
	case pod.GPUs == 0:
		return ""
	case why.MostFree == 0:
		return " (none is free on any suitable node)"
	}
	return fmt.Sprintf(" (most free: %d, on %s)", why.MostFree, why.MostFreeNode)
}

// products lists what there is where the request names a product or architecture that is not.
func products(s *cluster.Snapshot, pod *Shape) string {
	if pod.GPU.Product == "" && pod.GPU.Architecture == "" {
		return ""
	}
	var kinds []string
	for _, n := range s.Nodes() {
		kind := fmt.Sprintf("%s (%s)", n.GPU.Product, n.GPU.Architecture)
		if n.GPU.Product != "" && n.Allocatable.At(pod.GPUResource) > 0 && !slices.Contains(kinds, kind) {
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

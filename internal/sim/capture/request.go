package capture

import (
	"strconv"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func (w *writer) request(r *placement.Request) request {
	g := &r.Groups[0]
	out := request{Name: r.Name, Priority: r.Priority, Preemption: "never", Strategy: r.Strategy}
	if r.Preempts {
		out.Preemption = "lowerPriority"
	}
	main := group{
		Name:         "main",
		Count:        g.Count,
		MinCount:     g.MinCount,
		Requests:     w.amounts(g.Pod.Resources),
		GPUMilli:     g.Pod.Milli,
		Prefer:       string(g.Pod.Prefer),
		NodeSelector: g.Pod.Selector.Labels,
		Affinity:     affinityOf(&g.Pod),
		Tolerations:  tolerations(g.Pod.Tolerations),
		Topology:     topology{Required: w.levels.key[g.Topology.Required], Preferred: w.levels.key[w.levels.preferred]},
	}
	delete(main.Requests, "pods")
	// What no node has is in no vector.
	if g.Pod.Missing != "" {
		main.Requests[g.Pod.Missing] = "1"
	}
	if g.Pod.GPUs > 0 {
		main.Requests[g.Pod.GPUResourceName] = strconv.FormatInt(g.Pod.GPUs, 10)
	}
	if kind := g.Pod.GPU; kind != (cluster.GPUFacts{}) {
		main.GPU = &gpuKind{Product: kind.Product, Architecture: kind.Architecture, MinMemoryMiB: kind.MemoryMiB}
	}
	for _, s := range g.Slices {
		main.Slice = append(main.Slice, slice{Size: s.Size, Level: w.levels.key[s.Level]})
	}
	out.Groups = []group{main}
	return out
}

func affinityOf(p *placement.Shape) *affinity {
	if len(p.Selector.Terms) == 0 && len(p.Likes) == 0 {
		return nil
	}
	out := &affinity{}
	if len(p.Selector.Terms) > 0 {
		out.Required = &selector{}
		for _, t := range p.Selector.Terms {
			out.Required.Terms = append(out.Required.Terms, termOf(t))
		}
	}
	for _, like := range p.Likes {
		out.Preferred = append(out.Preferred, preferred{Weight: like.Weight, Preference: termOf(like.Term)})
	}
	return out
}

func termOf(t cluster.Term) term {
	var out term
	for _, r := range t {
		one := requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values}
		if r.Field {
			out.Fields = append(out.Fields, one)
		} else {
			out.Expressions = append(out.Expressions, one)
		}
	}
	return out
}

func tolerations(all []cluster.Toleration) []toleration {
	var out []toleration
	for _, t := range all {
		one := toleration{Key: t.Key, Operator: "Equal", Value: t.Value, Effect: string(t.Effect)}
		if t.Exists {
			one.Operator, one.Value = "Exists", ""
		}
		out = append(out, one)
	}
	return out
}

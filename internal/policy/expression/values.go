package expression

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// nodeValue is the variable node. Amounts are as placement counts them: CPU in thousandths of a
// core, memory in bytes, all else by number.
func nodeValue(m *cluster.Machine, resources *cluster.Resources, levels []string) map[string]any {
	labels := m.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	taints := make([]any, len(m.Taints))
	for i, t := range m.Taints {
		taints[i] = map[string]any{"key": t.Key, "value": t.Value, "effect": string(t.Effect)}
	}
	allocatable := make(map[string]int64, len(m.Allocatable))
	for i, amount := range m.Allocatable {
		if amount > 0 {
			allocatable[resources.Name(i)] = amount
		}
	}
	topology := make(map[string]string, len(m.Path))
	for i, value := range m.Path {
		if value != "" && i < len(levels) {
			topology[levels[i]] = value
		}
	}
	return map[string]any{
		"name":        m.Name,
		"labels":      labels,
		"taints":      taints,
		"allocatable": allocatable,
		"topology":    topology,
		"gpu": map[string]any{
			"product":      m.GPU.Product,
			"architecture": m.GPU.Architecture,
			"memoryMiB":    m.GPU.MemoryMiB,
			"replicas":     int64(m.GPU.Replicas),
			"sharing":      m.GPU.Sharing,
		},
		"ready":    m.Ready,
		"cordoned": m.Cordoned,
	}
}

// workloadField is a field of the variable workload.
type workloadField struct {
	name  string
	value func(*policy.Workload) any
}

func workloadFields() []workloadField {
	return []workloadField{
		{"name", func(w *policy.Workload) any { return w.Name }},
		{"namespace", func(w *policy.Workload) any { return w.Namespace }},
		{"labels", func(w *policy.Workload) any {
			if w.Labels == nil {
				return map[string]string{}
			}
			return w.Labels
		}},
		{"gpuCount", func(w *policy.Workload) any { return w.GPUCount }},
		{"parallelism", func(w *policy.Workload) any { return w.Parallelism }},
		{"priority", func(w *policy.Workload) any { return w.Priority }},
		{"strategy", func(w *policy.Workload) any { return w.Strategy }},
		{"resource", func(w *policy.Workload) any { return w.Resource }},
		{"model", func(w *policy.Workload) any { return w.Model }},
	}
}

// workloadValue is the variable workload, with the fields that are read.
func workloadValue(w *policy.Workload, fields []workloadField) map[string]any {
	value := make(map[string]any, len(fields))
	for _, f := range fields {
		v := f.value(w)
		if labels, ok := v.(map[string]string); ok {
			v = maps.Clone(labels) // The workload's owner may write to theirs.
		}
		value[f.name] = v
	}
	return value
}

// factsOf writes down what is read of a workload, so that those that differ in nothing else are
// one.
func factsOf(w *policy.Workload, fields []workloadField) string {
	if len(fields) == 0 {
		return ""
	}
	var b strings.Builder
	for _, f := range fields {
		switch v := f.value(w).(type) {
		case string:
			b.WriteString(strconv.Quote(v))
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case map[string]string:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				b.WriteString(strconv.Quote(key) + strconv.Quote(v[key]))
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}

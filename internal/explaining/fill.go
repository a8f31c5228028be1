package explaining

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/explain"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// filling is what an answer is written with.
type filling struct {
	ask      Ask
	question *explain.Question
	// workload is nil where pods were asked about, which cannot be changed once they are made.
	workload *gpuv1alpha1.GPUWorkload
}

// fill puts the engine's answer into the API's words.
func (e *Explainer) fill(answer *explainv1alpha1.Explanation, found *explain.Explanation, f *filling) {
	say(answer, string(found.Verdict), found.Reason, found.Sentence)
	answer.Snapshot = f.question.Snapshot.Generation
	for i := range found.Misses {
		answer.Misses = append(answer.Misses, miss(&found.Misses[i]))
	}
	for i := range found.Remedies {
		r := &found.Remedies[i]
		commands, possible := f.commands(r)
		if !possible {
			continue
		}
		answer.Remedies = append(answer.Remedies, explainv1alpha1.Remedy{
			Number:   len(answer.Remedies) + 1,
			Kind:     string(r.Kind),
			Message:  r.Sentence,
			Starts:   starts(r),
			Latest:   latest(r),
			Cost:     cost(r),
			Subjects: r.Subjects,
			Commands: commands,
		})
	}
	for i := range found.Remedies {
		if found.Remedies[i].Kind == explain.WaitFor && found.Remedies[i].Start.Known {
			answer.Notes = append(answer.Notes, "when things end is told by their deadlines (activeDeadlineSeconds): they may well end earlier")
			break
		}
	}
}

func miss(m *explain.Miss) explainv1alpha1.Miss {
	row := explainv1alpha1.Miss{
		Level: m.Level, Domain: m.Domain, Room: m.Room, Empty: m.Empty, Need: m.Need,
		MoreHolders: m.MoreHolders, MoreNodes: m.MoreNodes,
	}
	for _, h := range m.Holders {
		row.Holders = append(row.Holders, explainv1alpha1.Holder{Name: h.Workload, Priority: h.Priority, GPUs: h.GPUs, Nodes: h.Nodes})
	}
	for _, n := range m.Nodes {
		row.Nodes = append(row.Nodes, explainv1alpha1.NodeIssue{Name: n.Name, Reason: n.Why.String()})
	}
	return row
}

const (
	startsNow     = "now"
	startsUnknown = "unknown"
)

func starts(r *explain.Remedy) string {
	switch {
	case !r.Start.Known:
		return startsUnknown
	case r.Start.In <= 0:
		return startsNow
	}
	return r.Start.In.Round(time.Second).String()
}

func latest(r *explain.Remedy) string {
	switch {
	case !r.Start.Known || r.Start.Latest <= r.Start.In:
		return ""
	case r.Start.Latest == placement.Never:
		return startsUnknown
	}
	return r.Start.Latest.Round(time.Second).String()
}

func cost(r *explain.Remedy) explainv1alpha1.Cost {
	c := explainv1alpha1.Cost{
		PodsEvicted: r.Cost.Evicted, PodsMoved: r.Cost.Moved, GPUsGivenUp: r.Cost.GPUs, LevelsWider: r.Cost.Levels,
		MbpsGivenUp: r.Cost.Mbps, NodesToMend: r.Cost.Nodes,
	}
	if r.Cost.LostKnown {
		hours := math.Round(100*r.Cost.Lost) / 100
		c.GPUHoursLost = &hours
	}
	c.Summary = costWords(r)
	return c
}

func costWords(r *explain.Remedy) string {
	var parts []string
	add := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, "1 "+one)
		} else if n > 1 {
			parts = append(parts, strconv.Itoa(n)+" "+many)
		}
	}
	add(r.Cost.Evicted, "pod evicted", "pods evicted")
	add(r.Cost.Moved, "pod moved", "pods moved")
	if r.Cost.Evicted+r.Cost.Moved > 0 {
		if r.Cost.LostKnown {
			parts = append(parts, sayHours(r.Cost.Lost))
		} else {
			parts = append(parts, "GPU-hours lost: unknown")
		}
	}
	add(int(r.Cost.GPUs), "GPU less", "GPUs less")
	add(r.Cost.Levels, "level wider", "levels wider")
	add(int(r.Cost.Mbps), "Mbit/s a pod less", "Mbit/s a pod less")
	add(r.Cost.Nodes, "node to see to", "nodes to see to")
	if len(parts) == 0 {
		return "nothing but time"
	}
	return strings.Join(parts, ", ")
}

// sayHours writes the most that can be lost: what runs may have saved some of it.
func sayHours(hours float64) string {
	if hours < 0.01 {
		return "less than 0.01 GPU-hours lost"
	}
	return fmt.Sprintf("at most %.3g GPU-hours lost", hours)
}

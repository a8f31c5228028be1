package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
)

// kind is a way for a write to go wrong.
type kind struct {
	name   string
	action proxy.Action
	// kill and pause say what becomes of the process while the write is held.
	kill, pause bool
}

// kinds are all of them. What stands behind a letter of reliability tables: E1 409, E2 429,
// E3 500, E4 reset, E5 lose, K1 kill-before, K2 kill-after, P pause.
func kinds() []kind {
	return []kind{
		{name: "409", action: proxy.Action{Verb: proxy.Fail, Code: 409}},
		// The client library itself tries again after a Retry-After, and gives the error on without.
		{name: "429", action: proxy.Action{Verb: proxy.Fail, Code: 429, Times: 2}},
		{name: "500", action: proxy.Action{Verb: proxy.Fail, Code: 500}},
		// A server that timed out may have done it all the same.
		{name: "504", action: proxy.Action{Verb: proxy.CommitThenFail, Code: 504}},
		{name: "reset", action: proxy.Action{Verb: proxy.ResetBefore}},
		{name: "lose", action: proxy.Action{Verb: proxy.CommitThenLose}},
		{name: "kill-before", action: proxy.Action{Verb: proxy.HoldBefore}, kill: true},
		{name: "kill-after", action: proxy.Action{Verb: proxy.HoldAfter}, kill: true},
		{name: "pause", action: proxy.Action{Verb: proxy.HoldBefore}, pause: true},
	}
}

// faultPlans says, for each write that the product makes, which kinds of faults it is put
// through. A write that is not here has no fault plan, and fails the sweep: whoever adds a write
// to the product adds a row, or has the write fall under one.
func faultPlans() map[string][]string {
	var all []string
	for _, k := range kinds() {
		all = append(all, k.name)
	}
	// Nobody reads events back, and nothing waits for them.
	told := []string{"lose", "kill-before"}
	return map[string][]string{
		"update gpuworkloads.gpu.warp.dev/status": all,
		"patch gpuworkloads.gpu.warp.dev":         all,
		"delete gpuworkloads.gpu.warp.dev":        all,
		"create jobs.batch":                       all,
		"delete jobs.batch":                       all,
		"patch pods":                              all,
		"delete pods":                             all,
		"create events.events.k8s.io":             told,
		"patch events.events.k8s.io":              told,
		// Leader election tells with the older kind.
		"create events": told,
		"patch events":  told,
	}
}

// comeAndGo are the kinds that a write is put through which not every recording has: with -all it
// is put through every kind of its row.
func comeAndGo() []string { return []string{"lose", "kill-before"} }

// row is the row of faultPlans that a write falls under.
func row(r proxy.Record) string {
	name := r.Verb + " " + r.Resource
	if r.Sub != "" {
		name += "/" + r.Sub
	}
	return name
}

// label tells writes to the same resource apart by the step that makes them.
func label(w proxy.Write) string {
	switch w.Resource + "/" + w.Subresource {
	case "gpuworkloads/status":
		return statusLabel(w)
	case "gpuworkloads/":
		if w.Verb != "patch" {
			return ""
		}
		if metadata, ok := w.Body["metadata"].(map[string]any); ok && metadata["finalizers"] == nil {
			return "let go"
		}
		return "protect"
	case "pods/":
		if metadata, ok := w.Body["metadata"].(map[string]any); ok && w.Verb == "patch" {
			if _, untracked := metadata["finalizers"]; untracked {
				return "withdraw"
			}
			return "open gate"
		}
	case "jobs/":
		if attempt := w.Text("metadata", "labels", "gpu.warp.dev/attempt"); attempt != "" {
			return "attempt " + attempt
		}
	case "events/":
		return w.Text("reason")
	}
	return ""
}

func statusLabel(w proxy.Write) string {
	status, _ := w.Body["status"].(map[string]any)
	phase, _ := status["phase"].(string)
	reason := func(kind string) string {
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == kind {
				return fmt.Sprint(c["reason"])
			}
		}
		return ""
	}
	text := phase
	switch phase {
	case "Pending":
		if why := reason("Planned"); why != "" {
			text += " " + why
		} else {
			text += " " + reason("Accepted")
		}
	case "Scheduling":
		pods, _ := status["pods"].(map[string]any)
		switch {
		case pods["bound"] != nil && fmt.Sprint(pods["bound"]) != "0":
			text += " partly bound"
		case status["jobUID"] == nil:
			text += " planned"
		default:
			text += " Job made"
		}
	case "Failed":
		text += " " + reason("Finished")
	}
	if attempt := status["attempt"]; attempt != nil && fmt.Sprint(attempt) != "0" {
		text += fmt.Sprintf(", attempt %v", attempt)
	}
	return text
}

// progress tells whether a write says no more than how far the pods are: the status is written
// again in the same phase, which is done at most once a second, and so as often as time allows.
func progress(point string) bool {
	return strings.Contains(point, "/status [") && !strings.HasSuffix(point, " #1") || strings.Contains(point, "partly bound")
}

// plan is one fault in one run of one flow.
type plan struct {
	flow  string
	point string
	kind  kind
	// core says that every recording had the point; else it comes and goes with timing.
	core bool
}

func (p plan) String() string { return p.flow + " | " + p.point + " | " + p.kind.name }

// recording is the write points of a flow, in the order in which they were first seen, with the
// number of runs that had each.
type recording struct {
	flow   string
	runs   int
	points []string
	seen   map[string]int
	rows   map[string]string
}

// note adds one run of the flow: what was written in its namespace since the flow said that its
// own part begins.
func (r *recording) note(records []proxy.Record) {
	r.runs++
	for _, record := range records {
		if r.seen[record.Point] == 0 {
			r.points = append(r.points, record.Point)
			r.rows[record.Point] = row(record)
		}
		r.seen[record.Point]++
	}
}

// plans are all faults for all points of the recording, and the points that have none.
func (r *recording) plans() (all []plan, without []string) {
	for _, point := range r.points {
		names, ok := faultPlans()[r.rows[point]]
		if !ok {
			without = append(without, r.flow+" | "+point)
			continue
		}
		core := r.seen[point] == r.runs && !progress(point)
		for _, k := range kinds() {
			tried := core || *allArg || *planArg != "" || slices.Contains(comeAndGo(), k.name)
			if tried && slices.Contains(names, k.name) && chosen(*kindsArg, k.name) {
				all = append(all, plan{flow: r.flow, point: point, kind: k, core: core})
			}
		}
	}
	return all, without
}

// matches tells whether a plan is the one that -plan names, if it names one.
func (p plan) matches(text string) bool {
	if text == "" {
		return true
	}
	fields := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return fields(p.String()) == fields(text)
}

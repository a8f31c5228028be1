package faults

import (
	"slices"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
)

func newRecording() *recording {
	return &recording{flow: "run", seen: make(map[string]int), rows: make(map[string]string)}
}

func written(verb, resource, sub, point string) proxy.Record {
	return proxy.Record{Verb: verb, Resource: resource, Sub: sub, Point: point}
}

// A product that starts to write something new must not pass unseen.
func TestAWriteWithoutAFaultPlanIsFound(t *testing.T) {
	r := newRecording()
	r.note([]proxy.Record{
		written("create", "jobs.batch", "", "manager create jobs.batch [attempt 0] #1"),
		written("create", "configmaps", "", "manager create configmaps #1"),
		written("update", "pods", "status", "manager update pods/status #1"),
	})
	_, without := r.plans()
	want := []string{"run | manager create configmaps #1", "run | manager update pods/status #1"}
	if !slices.Equal(without, want) {
		t.Errorf("without a plan are %q, want %q", without, want)
	}
}

// Every write that all recordings have is put through every kind of its row, and has to come;
// one that comes and goes is put through some, and need not.
func TestPlansCoverEveryWrite(t *testing.T) {
	const (
		job      = "manager create jobs.batch [attempt 0] #1"
		status   = "manager update gpuworkloads.gpu.warp.dev/status [Running] #1"
		progress = "manager update gpuworkloads.gpu.warp.dev/status [Running] #2"
		event    = "manager create events.events.k8s.io [Planned] #1"
	)
	r := newRecording()
	first := []proxy.Record{
		written("create", "jobs.batch", "", job),
		written("update", "gpuworkloads.gpu.warp.dev", "status", status),
		written("update", "gpuworkloads.gpu.warp.dev", "status", progress),
		written("create", "events.events.k8s.io", "", event),
	}
	r.note(first)
	r.note(first[:3])
	plans, _ := r.plans()
	kindsOf := make(map[string]int)
	core := make(map[string]bool)
	for _, p := range plans {
		kindsOf[p.point]++
		core[p.point] = p.core
	}
	every := len(kinds())
	if kindsOf[job] != every || !core[job] || kindsOf[status] != every || !core[status] {
		t.Errorf("%d and %d of %d kinds for what is always written", kindsOf[job], kindsOf[status], every)
	}
	if kindsOf[progress] != len(comeAndGo()) || core[progress] || kindsOf[event] == 0 || core[event] {
		t.Errorf("%d and %d kinds for what comes and goes", kindsOf[progress], kindsOf[event])
	}
}

func TestEveryKindOfARowIsThere(t *testing.T) {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	for row, list := range faultPlans() {
		for _, name := range append(list, comeAndGo()...) {
			if !slices.Contains(names, name) {
				t.Errorf("%s is to be put through %q, which is no kind of fault", row, name)
			}
		}
	}
}

// The command of a red run names the run that was red.
func TestARedRunIsFoundAgain(t *testing.T) {
	p := plan{flow: "run", point: "manager create jobs.batch [attempt 0] #1", kind: kinds()[0]}
	command := again(p)
	_, rest, _ := strings.Cut(command, "-plan '")
	text, _, _ := strings.Cut(rest, "'")
	if !p.matches(text) || p.matches(text+"x") {
		t.Errorf("%s does not name %s", command, p)
	}
}

func TestLabels(t *testing.T) {
	status := func(s map[string]any) proxy.Write {
		return proxy.Write{Verb: "update", Resource: "gpuworkloads", Subresource: "status", Body: map[string]any{"status": s}}
	}
	condition := func(kind, reason string) []any {
		return []any{map[string]any{"type": kind, "reason": reason}}
	}
	metadata := func(resource string, m map[string]any) proxy.Write {
		return proxy.Write{Verb: "patch", Resource: resource, Body: map[string]any{"metadata": m}}
	}
	for want, w := range map[string]proxy.Write{
		"Scheduling planned":      status(map[string]any{"phase": "Scheduling"}),
		"Scheduling Job made":     status(map[string]any{"phase": "Scheduling", "jobUID": "x", "pods": map[string]any{"desired": int64(2)}}),
		"Scheduling partly bound": status(map[string]any{"phase": "Scheduling", "jobUID": "x", "pods": map[string]any{"bound": int64(1)}}),
		"Pending NoRoom":          status(map[string]any{"phase": "Pending", "conditions": condition("Planned", "NoRoom")}),
		"Pending InvalidSpec":     status(map[string]any{"phase": "Pending", "conditions": condition("Accepted", "InvalidSpec")}),
		"Running, attempt 1":      status(map[string]any{"phase": "Running", "attempt": int64(1)}),
		"Failed DeadlineExceeded": status(map[string]any{"phase": "Failed", "conditions": condition("Finished", "DeadlineExceeded")}),
		"protect":                 metadata("gpuworkloads", map[string]any{"finalizers": []any{"f"}}),
		"let go":                  metadata("gpuworkloads", map[string]any{"finalizers": nil}),
		"withdraw":                metadata("pods", map[string]any{"finalizers": nil}),
		"open gate":               metadata("pods", map[string]any{"annotations": map[string]any{}}),
		"attempt 3":               {Verb: "create", Resource: "jobs", Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"gpu.warp.dev/attempt": "3"}}}},
		"Planned":                 {Verb: "create", Resource: "events", Body: map[string]any{"reason": "Planned"}},
	} {
		if got := label(w); got != want {
			t.Errorf("%v is called %q, want %q", w.Body, got, want)
		}
	}
}

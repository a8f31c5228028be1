package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Reservation is when and where a request could start that does not fit now.
type Reservation struct {
	// Start is in how long it could, Latest if what it waits for takes long, End when it would
	// have ended; "" if that is not known.
	Start  string `json:"start,omitempty"`
	Latest string `json:"latest,omitempty"`
	End    string `json:"end,omitempty"`
	// Level and Domain are where, Placement the number of pods by group and node. Placement is
	// empty if it could never start.
	Level     string                    `json:"level,omitempty"`
	Domain    string                    `json:"domain,omitempty"`
	Placement map[string]map[string]int `json:"placement"`
	// Needs are the workloads that have to end first.
	Needs  []string `json:"needs"`
	Reason string   `json:"reason"`

	// there says who goes where, in the order of ranks.
	there []string
}

// reserve asks the engine when and where the request could start.
func (c *caller) reserve(q *question, asked *asking) (*Reservation, error) {
	h, ok, err := placement.Reserve(q.snapshot, asked.request, q.runs(), c.options)
	if err != nil {
		return nil, err
	}
	r := &Reservation{Placement: map[string]map[string]int{}, Needs: []string{}}
	if !ok {
		r.Reason = "it could not start even after everything that runs has ended"
		return r, nil
	}
	r.Level, r.Domain, r.Needs = h.Level, h.Domain, append(r.Needs, h.Needs...)
	for i := range h.Plan.Groups {
		nodes, order := map[string]int{}, []string{}
		for _, name := range h.Plan.Groups[i].Nodes {
			if nodes[name]++; nodes[name] == 1 {
				order = append(order, name)
			}
		}
		r.Placement[asked.parts[i].Name] = nodes
		r.there = append(r.there, asked.parts[i].Name+" "+onNodes(nodes, order))
	}
	if h.Sure {
		r.Start, r.Latest = h.Start.String(), h.Latest.String()
		if runs := q.Request.Runtime; runs != nil {
			r.End = (h.Start + time.Duration(runs.P50)).String()
			if runs.P50 == 0 {
				r.End = (h.Start + time.Duration(runs.P90)).String()
			}
		}
	}
	r.Reason = h.Words(kindOf(h.Level))
	return r, nil
}

// runs says how long each workload runs, by its pods' longest estimate.
func (w *world) runs() map[string]placement.Run {
	runs := map[string]placement.Run{}
	for i := range w.Running {
		r := &w.Running[i]
		if !r.holds(w.Scenario) {
			continue
		}
		run := runs[r.workload()]
		says := r.Ends.estimate()
		run.P50, run.P90 = max(run.P50, says.P50), max(run.P90, says.P90)
		run.Elapsed = max(run.Elapsed, time.Duration(r.Elapsed))
		runs[r.workload()] = run
	}
	return runs
}

// onNodes words how many pods are on which nodes: "2 on n1, n2 and 6 more, 1 on n9".
func onNodes(pods map[string]int, order []string) string {
	const most = 8
	var parts []string
	for len(order) > 0 {
		n := 1
		for n < len(order) && pods[order[n]] == pods[order[0]] {
			n++
		}
		text := fmt.Sprintf("%d on %s", pods[order[0]], strings.Join(order[:min(n, most)], ", "))
		if n > most {
			text += fmt.Sprintf(" and %d more", n-most)
		}
		parts = append(parts, text)
		order = order[n:]
	}
	return strings.Join(parts, "; ")
}

// couldStart words a reservation for the table.
func couldStart(r *Reservation) [][2]string {
	rows := [][2]string{{"later", r.Reason}}
	for _, text := range r.there {
		rows = append(rows, [2]string{"there", text})
	}
	return rows
}

package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// Rows writes a row for each policy and range of sizes.
func (r *Report) Rows(out *csv.Writer) error {
	header := []string{
		"cluster", "policy", "gpus", "jobs", "wait_mean_s", "wait_p50_s", "wait_p95_s", "wait_p99_s", "wait_max_s",
		"completion_mean_s", "completion_p50_s", "completion_p95_s", "completion_p99_s", "completion_max_s",
		"gangs", "one_leaf", "one_spine", "slowdown_alone", "slowdown", "slowdown_p95", "iteration",
		"gpu_use_percent", "gpu_use_waiting_percent", "fragmentation_percent", "preemptions", "moves",
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, one := range r.Results {
		for i, c := range append([]Class{one.All}, one.Sizes...) {
			row := []string{one.Cluster, one.Policy, c.GPUs, strconv.Itoa(c.Jobs)}
			for _, d := range []Distribution{c.Waiting, c.Completion} {
				for _, v := range []float64{d.Mean, d.P50, d.P95, d.P99, d.Max} {
					row = append(row, number(v, 1))
				}
			}
			row = append(row, c.gangs()...)
			whole := []string{"", "", "", "", ""}
			if i == 0 {
				whole = []string{number(one.GPUUse, 2), number(one.GPUUseWaiting, 2), number(one.Fragmentation, 2),
					strconv.Itoa(one.Preemptions), strconv.Itoa(one.Moves)}
			}
			if err := out.Write(append(row, whole...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Tables writes a row for each policy, and then by size.
func (r *Report) Tables(w io.Writer) error {
	fmt.Fprintf(w, "%s, run times told: %s\n", r.Trace, r.Estimates)
	for _, c := range r.Clusters {
		fmt.Fprintf(w, "%s: %d nodes with %d GPUs\n", c.Name, c.Nodes, c.GPUs)
		for _, n := range c.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
	fmt.Fprintln(w)
	header := []string{"policy", "jobs", "wait mean", "p50", "p95", "p99", "max", "done mean", "p95", "GPUs used", "idle in parts", "one leaf", "all-reduce"}
	room := slices.ContainsFunc(r.Results, func(one *Result) bool { return one.Preemptions+one.Moves > 0 })
	if room {
		header = append(header, "evicted", "moved")
	}
	var rows [][]string
	keys := r.keys()
	for i, one := range r.Results {
		a, name := &one.All, one.Policy
		if len(r.Clusters) > 1 {
			name = keys[i] + "  " + r.label(one)
		}
		row := []string{
			name, strconv.Itoa(one.Jobs), span(a.Waiting.Mean), span(a.Waiting.P50), span(a.Waiting.P95), span(a.Waiting.P99),
			span(a.Waiting.Max), span(a.Completion.Mean), span(a.Completion.P95), fmt.Sprintf("%.1f %%", one.GPUUse),
			fmt.Sprintf("%.1f %%", one.Fragmentation), share(a.OneLeaf, a.Gangs), times(a),
		}
		if room {
			row = append(row, strconv.Itoa(one.Preemptions), strconv.Itoa(one.Moves))
		}
		rows = append(rows, row)
	}
	if err := table.Write(w, header, rows...); err != nil {
		return err
	}
	r.chance(w)
	fmt.Fprintln(w, "\nby GPUs of a job:")
	return r.bySize(w)
}

// chance says by how much results differ from seed to seed.
func (r *Report) chance(w io.Writer) {
	said := false
	for i, one := range r.Results {
		s := one.Spread
		if s == nil {
			continue
		}
		if !said {
			fmt.Fprintf(w, "\nleft to chance, from run to run of %d:\n", one.Runs)
			said = true
		}
		fmt.Fprintf(w, "  %s: wait p95 %s to %s", r.keys()[i], span(s.WaitingP95.Least), span(s.WaitingP95.Greatest))
		if one.All.Gangs > 0 && one.All.OneLeaf >= 0 {
			fmt.Fprintf(w, ", one leaf %.1f to %.1f %%", s.OneLeaf.Least, s.OneLeaf.Greatest)
		}
		fmt.Fprintln(w)
	}
}

// bySize has a row for each range of sizes and, under each measure, a column for each policy.
func (r *Report) bySize(w io.Writer) error {
	measures := []struct {
		name string
		// gangs says that it is of gangs alone.
		gangs bool
		of    func(*Class) string
	}{
		{name: "wait p95", of: func(c *Class) string { return span(c.Waiting.P95) }},
		{name: "one leaf", gangs: true, of: func(c *Class) string { return share(c.OneLeaf, c.Gangs) }},
		{name: "one spine", gangs: true, of: func(c *Class) string { return share(c.OneSpine, c.Gangs) }},
		{name: "all-reduce", gangs: true, of: times},
	}
	for _, m := range measures {
		header := append([]string{m.name, "jobs"}, r.keys()...)
		var rows [][]string
		for i, c := range r.Results[0].Sizes {
			if m.gangs && c.Gangs == 0 {
				continue
			}
			row := []string{c.GPUs, strconv.Itoa(c.Jobs)}
			for _, one := range r.Results {
				row = append(row, m.of(&one.Sizes[i]))
			}
			rows = append(rows, row)
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := table.Write(w, header, rows...); err != nil {
			return err
		}
	}
	return nil
}

// gangs are the figures of gangs as CSV; empty where there are none, or no leaves or spines.
func (c *Class) gangs() []string {
	row := []string{strconv.Itoa(c.Gangs), "", "", "", "", "", ""}
	if c.Gangs == 0 {
		return row
	}
	for i, n := range []int{c.OneLeaf, c.OneSpine} {
		if n >= 0 {
			row[1+i] = strconv.Itoa(n)
		}
	}
	for i, v := range []float64{c.SlowdownAlone.Mean, c.Slowdown.Mean, c.Slowdown.P95, c.Iteration} {
		row[3+i] = number(v, 4)
	}
	return row
}

func number(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// times says how many times as long all-reduces take as at the ideal place.
func times(c *Class) string {
	if c.Gangs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", c.Slowdown.Mean)
}

func share(part, whole int) string {
	if whole == 0 || part < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", percent(float64(part), float64(whole)))
}

// span writes seconds for people: two units at most.
func span(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Second:
		return "0"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	default:
		return fmt.Sprintf("%.1f d", d.Hours()/24)
	}
}

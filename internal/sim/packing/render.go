package packing

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// Format is a form in which results are written.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	CSV   Format = "csv"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{string(Table), string(JSON), string(CSV)} }

// Render writes the results.
func (r *Results) Render(out io.Writer, format Format) error {
	switch format {
	case JSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	case CSV:
		return r.csv(out)
	}
	_, err := io.WriteString(out, r.Text())
	return err
}

// csv writes a line for each run and column.
func (r *Results) csv(out io.Writer) error {
	var b strings.Builder
	b.WriteString("workload,policy,seed,arrived,allocated,unallocated,fragmentation\n")
	for _, run := range r.Runs {
		workload := quoted(run.Workload)
		for _, c := range run.Columns {
			fmt.Fprintf(&b, "%s,%s,%d,%d,%.2f,%.2f,%.2f\n", workload, run.Policy, run.Seed, c.Arrived, c.Allocated, c.Unallocated, c.Fragmentation)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// quoted is a value of a CSV file.
func quoted(text string) string {
	if strings.ContainsAny(text, ",\"\n\r") {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// Text is the results as tables.
func (r *Results) Text() string {
	var b strings.Builder
	seeds := "1 seed"
	if n := len(r.Seeds); n > 1 {
		seeds = fmt.Sprintf("means of %d seeds and their standard deviation", n)
	}
	fmt.Fprintf(&b, "%d nodes with %d GPUs, filled until the pods have asked for %d %% of them; %s.\n", r.Nodes, r.GPUs, r.End, seeds)
	for _, w := range r.Workloads {
		fmt.Fprintf(&b, "\n%s: %d pods of %d kinds\n", w.Name, w.Pods, w.Kinds)
		t := [][]string{{"POLICY", fmt.Sprintf("UNALLOCATED AT %d %%", r.Judged), fmt.Sprintf("AT %d %%", r.End), fmt.Sprintf("FRAGMENTED AT %d %%", r.Judged), "PODS REFUSED"}}
		for _, s := range r.of(w.Name) {
			t = append(t, []string{s.Policy, r.show(s.Unallocated, 2), r.show(s.UnallocatedAtEnd, 2), r.show(s.Fragmentation, 2), r.show(s.Refused, 0)})
		}
		write(&b, t)
	}
	if r.Published != nil {
		r.comparison(&b)
	}
	return b.String()
}

// show writes a mean, and its spread where there are several seeds.
func (r *Results) show(s Spread, digits int) string {
	if len(r.Seeds) == 1 {
		return fmt.Sprintf("%.*f", digits, s.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, s.Mean, digits, s.SD)
}

// comparison writes what was found beside what was published.
func (r *Results) comparison(b *strings.Builder) {
	c := r.Published
	if len(c.Reproduced) > 0 {
		fmt.Fprintf(b, "\nFound again: GPUs unallocated at %d %%, found and published; ≠ where they differ by more than two standard deviations.\n", r.Judged)
		t := [][]string{{"WORKLOAD"}}
		columns := map[string]int{}
		for _, one := range c.Reproduced {
			if _, known := columns[one.Policy]; !known {
				t[0] = append(t[0], one.Policy)
				columns[one.Policy] = len(t[0]) - 1
			}
		}
		for _, one := range c.Reproduced {
			if last := t[len(t)-1]; last[0] != one.Workload {
				t = append(t, make([]string, len(t[0])))
				t[len(t)-1][0] = one.Workload
			}
			sign := " "
			if !one.Near {
				sign = "≠"
			}
			t[len(t)-1][columns[one.Policy]] = fmt.Sprintf("%.2f %s%.2f", one.Found, sign, one.Published.Mean)
		}
		write(b, t)
		fmt.Fprintf(b, "%d of %d are within two standard deviations.\n", len(c.Reproduced)-c.Missed, len(c.Reproduced))
	}
	if len(c.Margins) == 0 {
		return
	}
	fmt.Fprintf(b, "\nAgainst FGD: GPUs unallocated at %d %%.\n", r.Judged)
	t := [][]string{{"WORKLOAD", "FGD, PUBLISHED", strings.ToUpper(ours), "FEWER"}}
	for _, m := range c.Margins {
		t = append(t, []string{m.Workload, fmt.Sprintf("%.2f", m.Published), fmt.Sprintf("%.2f", m.Found), fmt.Sprintf("%.2f", m.Margin)})
	}
	write(b, t)
	fmt.Fprintf(b, "%.2f %% of the GPUs fewer in the mean; as few or fewer on %d of %d workloads.\n", c.Average, len(c.Margins)-c.Worse, len(c.Margins))
}

// write writes a table whose first row is its header.
func write(b *strings.Builder, rows [][]string) {
	// A string builder takes everything.
	_ = table.Write(b, rows[0], rows[1:]...)
}

package packing

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// Rows writes a line for each run and column.
func (r *Results) Rows(out *csv.Writer) error {
	if err := out.Write([]string{"workload", "policy", "seed", "arrived", "allocated", "unallocated", "fragmentation"}); err != nil {
		return err
	}
	percent := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	for _, run := range r.Runs {
		for _, c := range run.Columns {
			row := []string{run.Workload, run.Policy, strconv.FormatInt(run.Seed, 10), strconv.Itoa(c.Arrived), percent(c.Allocated), percent(c.Unallocated), percent(c.Fragmentation)}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// Tables writes the results as tables.
func (r *Results) Tables(out io.Writer) error {
	_, err := io.WriteString(out, r.Text())
	return err
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
		if w.Hopeless > 0 {
			fmt.Fprintf(&b, "%d of them fit no node, even an empty one: they ask for GPUs all the same\n", w.Hopeless)
		}
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

package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/table"
)

// ReadReport reads a report that was rendered as JSON. The error is a problem.Problems where the
// file is none.
func ReadReport(name string, in io.Reader) (*Report, error) {
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	var r Report
	err := d.Decode(&r)
	if err != nil || len(r.Results) == 0 || len(r.Clusters) == 0 {
		return nil, problem.Problems{{File: name, Text: "is no report of this version; expected what warp sim jobs -o json printed"}}
	}
	return &r, r.check(name)
}

// check tells whether every result has the same sizes, which tables rely on.
func (r *Report) check(name string) error {
	for _, one := range r.Results {
		if one == nil || len(one.Sizes) != len(r.Results[0].Sizes) {
			return problem.Problems{{File: name, Text: "has results of different jobs; expected what warp sim jobs -o json printed"}}
		}
	}
	return nil
}

// Summary writes what several reports come to: for each the waiting and the locality by policy,
// and whether the first policy is as good as the others.
func Summary(w io.Writer, reports ...*Report) error {
	first := reports[0].Results
	same := func(a, b *Result) bool { return a.Policy == b.Policy }
	for _, r := range reports {
		if len(r.Clusters) > 1 || !slices.EqualFunc(r.Results, first, same) {
			return fmt.Errorf("%s has other policies than %s, or several clusters: expected one cluster and the same policies in each", r.Trace, reports[0].Trace)
		}
	}
	for _, m := range []struct {
		name string
		of   func(*Class) string
	}{
		{"waiting p95", func(c *Class) string { return span(c.Waiting.P95) }},
		{"longest waiting", func(c *Class) string { return span(c.Waiting.Max) }},
		{"gangs in one leaf", func(c *Class) string { return share(c.OneLeaf, c.Gangs) }},
		{"all-reduce", times},
	} {
		header := []string{m.name, "jobs"}
		for _, one := range first {
			header = append(header, one.Policy)
		}
		var rows [][]string
		for _, r := range reports {
			row := []string{path.Base(r.Trace) + " on " + r.Clusters[0].Name, strconv.Itoa(r.Results[0].Jobs)}
			for _, one := range r.Results {
				row = append(row, m.of(&one.All))
			}
			rows = append(rows, row)
		}
		if err := table.Write(w, header, rows...); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return verdict(w, reports)
}

// verdict compares the first policy with all others.
func verdict(w io.Writer, reports []*Report) error {
	soon, near, gangs := 0, 0, 0
	for _, r := range reports {
		ours := &r.Results[0].All
		sooner, nearer := 1, 1
		for _, one := range r.Results[1:] {
			if ours.Waiting.P95 > one.All.Waiting.P95 {
				sooner = 0
			}
			if ours.OneLeaf < 0 || ours.OneLeaf*one.All.Gangs <= one.All.OneLeaf*ours.Gangs {
				nearer = 0
			}
		}
		soon += sooner
		if ours.Gangs > 0 {
			gangs++
			near += nearer
		}
	}
	_, err := fmt.Fprintf(w, "%s: p95 of waiting no longer than by any other on %d of %d; a larger share of gangs in one leaf on %d of the %d that have gangs\n",
		reports[0].Results[0].Policy, soon, len(reports), near, gangs)
	return err
}

// Locality writes by how much longer all-reduces, and iterations, take by the other policies than
// by the first, for gangs of each size.
func Locality(w io.Writer, reports ...*Report) error {
	for _, r := range reports {
		ours := r.Results[0]
		if len(r.Results) == 1 {
			return fmt.Errorf("%s has results of %s only: expected another policy to compare it with", r.Trace, ours.Policy)
		}
		ranks := ""
		if r.Sorted {
			ranks = ", ranks in the order of the topology"
		}
		fmt.Fprintf(w, "%s on %s%s: longer than by %s\n", path.Base(r.Trace), r.Clusters[0].Name, ranks, ours.Policy)
		header := []string{"GPUs", "gangs", ours.Policy}
		for _, one := range r.Results[1:] {
			header = append(header, one.Policy, "iterations")
		}
		var rows [][]string
		classes := func(one *Result) []Class { return append([]Class{one.All}, one.Sizes...) }
		for i, c := range classes(ours) {
			if c.Gangs == 0 {
				continue
			}
			row := []string{c.GPUs, strconv.Itoa(c.Gangs), times(&c)}
			for _, one := range r.Results[1:] {
				other := classes(one)[i]
				row = append(row, longer(other.Slowdown.Mean, c.Slowdown.Mean), longer(other.Iteration, c.Iteration))
			}
			rows = append(rows, row)
		}
		if err := table.Write(w, header, rows...); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// longer says by how many percent a time is longer than another.
func longer(than, ours float64) string {
	if ours == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*(than/ours-1))
}

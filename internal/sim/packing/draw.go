package packing

import (
	"fmt"
	"io"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/chart"
)

// zoom is where the picture of what stays idle begins, in percent asked for: before it all
// policies place everything.
const zoom = 80

// Draw draws the results in the form that the file's name asks for: curves of one workload, or
// bars for several.
func (r *Results) Draw(out io.Writer, file string) error {
	charts := r.curves()
	if len(r.Workloads) > 1 {
		charts = []*chart.Chart{r.bars()}
	}
	return chart.Write(out, file, chart.Page{Title: "GPUs that stay idle", Text: r.Text()}, charts...)
}

func (r *Results) curves() []*chart.Chart {
	name := r.Workloads[0].Name
	idle := &chart.Chart{Title: name + ": GPUs that stay idle", X: "asked for, % of the GPUs", Y: "unallocated, % of the GPUs"}
	fragments := &chart.Chart{Title: name + ": GPUs that typical pods cannot use", X: idle.X, Y: "fragmented, % of the GPUs"}
	from := zoom
	if r.End <= zoom {
		from = 0
	}
	for _, i := range r.drawn() {
		s, runs := r.Summary[i], r.Runs[i*len(r.Seeds):(i+1)*len(r.Seeds)]
		idle.Lines = append(idle.Lines, line(s.Policy, runs, from, func(c *Column) float64 { return c.Unallocated }))
		fragments.Lines = append(fragments.Lines, line(s.Policy, runs, 0, func(c *Column) float64 { return c.Fragmentation }))
	}
	return []*chart.Chart{idle, fragments}
}

// drawn returns where the policies of the first workload are in the summary, fragmentationAware
// first: a chart draws the first line boldest.
func (r *Results) drawn() []int {
	var at []int
	for i, s := range r.Summary[:len(r.Summary)/len(r.Workloads)] {
		if s.Policy == ours {
			at = slices.Insert(at, 0, i)
			continue
		}
		at = append(at, i)
	}
	return at
}

// line is the mean of runs that differ in their seed, from a column on.
func line(name string, runs []*Run, from int, value func(*Column) float64) chart.Line {
	l := chart.Line{Name: name}
	for k := from; k < len(runs[0].Columns); k++ {
		mean := 0.0
		for _, run := range runs {
			mean += value(&run.Columns[k]) / float64(len(runs))
		}
		l.X, l.Y = append(l.X, float64(k)), append(l.Y, mean)
	}
	return l
}

func (r *Results) bars() *chart.Chart {
	c := &chart.Chart{Title: fmt.Sprintf("GPUs that stay idle when %d %% have been asked for", r.Judged), Y: "unallocated, % of the GPUs"}
	for _, w := range r.Workloads {
		c.Groups = append(c.Groups, w.Name)
	}
	for _, i := range r.drawn() {
		b := chart.Bars{Name: r.Summary[i].Policy}
		for _, w := range r.Workloads {
			s, _ := r.summary(w.Name, b.Name)
			b.Values = append(b.Values, s.Unallocated.Mean)
			b.Errors = append(b.Errors, s.Unallocated.SD)
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

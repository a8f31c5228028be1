package replay

import (
	"io"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/chart"
)

// Draw draws the report into a file: who waited how long, and how gangs of each size fared.
func (r *Report) Draw(out io.Writer, file string) error {
	var text strings.Builder
	if err := r.Tables(&text); err != nil {
		return err
	}
	charts := []*chart.Chart{r.waiting(), r.bars("Waiting, p95", "hours", 1, false, func(c *Class) float64 { return c.Waiting.P95 / 3600 })}
	if r.gangs() {
		charts = append(charts,
			r.bars("Gangs within one leaf", "% of the gangs", 100, true, func(c *Class) float64 { return percent(float64(max(0, c.OneLeaf)), float64(c.Gangs)) }),
			r.bars("All-reduces, beside the other gangs", "% longer than at the ideal place", 10, true, func(c *Class) float64 { return 100 * (c.Slowdown.Mean - 1) }),
		)
	}
	return chart.Write(out, file, chart.Page{Title: r.Trace, Text: text.String()}, charts...)
}

// gangs tells whether any job has several pods.
func (r *Report) gangs() bool { return r.Results[0].All.Gangs > 0 }

// waiting has for each policy which share of the jobs waited for at most so long.
func (r *Report) waiting() *chart.Chart {
	c := &chart.Chart{Title: "Jobs that had started after waiting for so long", X: "hours, logarithmic from a minute on", Y: "% of the jobs", LogX: true, Share: true}
	for _, one := range r.Results {
		// Half a thousand steps are as fine as the picture.
		const steps = 500
		waits := one.All.raw.waits
		l := chart.Line{Name: r.label(one)}
		for i := range steps + 1 {
			k := min(i*len(waits)/steps, len(waits)-1)
			if k < 0 {
				continue
			}
			l.X = append(l.X, max(float64(waits[k]), 60)/3600)
			l.Y = append(l.Y, 100*float64(k+1)/float64(len(waits)))
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// bars has a group for each range of sizes, and a bar for each policy.
func (r *Report) bars(title, y string, least float64, gangs bool, of func(*Class) float64) *chart.Chart {
	c := &chart.Chart{Title: title, X: "GPUs of a job", Y: y, Least: least, Share: least == 100}
	for i := range r.Results[0].Sizes {
		if size := &r.Results[0].Sizes[i]; !gangs || size.Gangs > 0 {
			c.Groups = append(c.Groups, size.GPUs)
		}
	}
	for _, one := range r.Results {
		b := chart.Bars{Name: r.label(one)}
		for i := range one.Sizes {
			if !gangs || one.Sizes[i].Gangs > 0 {
				b.Values = append(b.Values, of(&one.Sizes[i]))
			}
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// Package chart draws what the simulator found, as a picture file or as a page with the pictures
// in it. It knows lines and bars and nothing of what they mean.
package chart

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is one picture: lines, or bars in groups.
type Chart struct {
	Title, X, Y string
	// Lines are drawn over a numeric axis.
	Lines []Line
	// Groups name the groups of bars from left to right; Bars has one value for each.
	Groups []string
	Bars   []Bars
	// Share says that Y is a share in percent: the axis goes from 0 to 100.
	Share bool
	// Least is the least that the vertical axis goes up to, so that next to nothing looks like it.
	Least float64
	// LogX makes the horizontal axis logarithmic; all X must be above zero then.
	LogX bool
}

// Line is a curve. The first of a chart is drawn boldest: it is the one to be seen.
type Line struct {
	Name string
	X, Y []float64
}

// Bars are the bars of one colour, with one value a group and, where Errors is not nil, a
// whisker of that length to each side.
type Bars struct {
	Name           string
	Values, Errors []float64
}

// Formats are the endings of the files that can be written.
func Formats() []string { return []string{".png", ".svg", ".html"} }

// Supported tells whether a file's ending is one of Formats.
func Supported(file string) error {
	if ending := strings.ToLower(filepath.Ext(file)); !slices.Contains(Formats(), ending) {
		return fmt.Errorf("cannot draw %q: expected a file that ends in %s", file, strings.Join(Formats(), ", "))
	}
	return nil
}

// colour returns the colour of series i: the palette of Okabe and Ito, which people who do not
// see all colours can tell apart (https://jfly.uni-koeln.de/color/).
func colour(i int) color.Color {
	palette := []color.RGBA{
		{R: 213, G: 94, B: 0, A: 255}, {R: 0, G: 114, B: 178, A: 255}, {R: 0, G: 158, B: 115, A: 255},
		{R: 204, G: 121, B: 167, A: 255}, {R: 86, G: 180, B: 233, A: 255}, {R: 230, G: 159, B: 0, A: 255},
		{R: 120, G: 120, B: 120, A: 255}, {R: 0, G: 0, B: 0, A: 255},
	}
	return palette[i%len(palette)]
}

// draw makes the plot of a chart.
func (c *Chart) draw() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.TextStyle.Font.Size = vg.Points(15)
	p.Title.Padding = vg.Points(8)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(3)
	p.Legend.TextStyle.Font.Size = vg.Points(11)
	p.Add(grid(len(c.Bars) == 0))
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, l := range c.Lines {
		if err := addLine(p, i, l); err != nil {
			return nil, fmt.Errorf("drawing the line %s: %w", l.Name, err)
		}
	}
	if c.LogX && p.X.Max <= p.X.Min {
		// A range of one value is widened by the library, to both sides and past zero.
		p.X.Max = 10 * p.X.Min
	}
	if len(c.Bars) > 0 {
		if err := c.addBars(p); err != nil {
			return nil, err
		}
	}
	p.Y.Max = max(p.Y.Max, c.Least)
	if c.Share {
		p.Y.Min, p.Y.Max = 0, 100
		p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 25}, {Value: 50, Label: "50"}, {Value: 75}, {Value: 100, Label: "100"}}
	}
	return p, nil
}

// grid draws faint lines, the vertical ones where the axis is numeric.
func grid(vertical bool) *plotter.Grid {
	g := plotter.NewGrid()
	faint := draw.LineStyle{Color: color.Gray{Y: 225}, Width: vg.Points(0.5)}
	g.Horizontal, g.Vertical = faint, faint
	if !vertical {
		g.Vertical.Width = 0
	}
	return g
}

func addLine(p *plot.Plot, i int, l Line) error {
	points := make(plotter.XYs, len(l.X))
	for k := range points {
		points[k].X, points[k].Y = l.X[k], l.Y[k]
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour(i), vg.Points(1.4)
	if i == 0 {
		line.Width = vg.Points(2.6)
	}
	if round := i / 8; round > 0 {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(2 * float64(round))}
	}
	p.Add(line)
	p.Legend.Add(l.Name, line)
	return nil
}

func (c *Chart) addBars(p *plot.Plot) error {
	const groupWidth = 0.8
	each := groupWidth / float64(len(c.Bars))
	for i, b := range c.Bars {
		centre := -groupWidth/2 + each*(float64(i)+0.5)
		// Bars are drawn as polygons in data units, so that they keep apart at any size.
		swatch := &bars{values: b.Values, centre: centre, width: each * 0.9, fill: colour(i)}
		p.Add(swatch)
		p.Legend.Add(b.Name, swatch)
		if b.Errors == nil {
			continue
		}
		whiskers := whiskers{}
		for k, v := range b.Values {
			whiskers.XYs = append(whiskers.XYs, plotter.XY{X: float64(k) + centre, Y: v})
			whiskers.YErrors = append(whiskers.YErrors, struct{ Low, High float64 }{b.Errors[k], b.Errors[k]})
		}
		bar, err := plotter.NewYErrorBars(whiskers)
		if err != nil {
			return fmt.Errorf("drawing the bars %s: %w", b.Name, err)
		}
		bar.CapWidth = vg.Points(3)
		p.Add(bar)
	}
	p.NominalX(c.Groups...)
	p.Y.Min = min(0, p.Y.Min)
	if len(c.Groups) > 7 {
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = 0.6, draw.XRight, draw.YCenter
	}
	return nil
}

// whiskers are points with errors.
type whiskers struct {
	plotter.XYs
	plotter.YErrors
}

package chart

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of one chart.
const (
	width  = 9 * vg.Inch
	height = 4.5 * vg.Inch
	// legendLine is what an entry of a legend takes.
	legendLine = 16
)

// total is how high all charts are, with the legends below them.
func total(legends []vg.Length) vg.Length {
	sum := height * vg.Length(len(legends))
	for _, l := range legends {
		sum += l
	}
	return sum
}

// page holds the pictures as they are, so that the file needs nothing else to be looked at.
const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
pre { overflow-x: auto; font-size: 13px; line-height: 1.35 }
svg { max-width: 100%; height: auto }
</style>
<h1>{{.Title}}</h1>
{{range .Pictures}}<figure>{{.}}</figure>
{{end}}{{if .Text}}<pre>{{.Text}}</pre>
{{end}}</html>
`

// Page is what a file of several charts says beside them.
type Page struct {
	Title string
	// Text is a table in plain text; only pages show it.
	Text string
}

// Write draws the charts below one another in the form that the file's name asks for.
func Write(out io.Writer, file string, p Page, charts ...*Chart) error {
	plots, legends := make([]*plot.Plot, len(charts)), make([]vg.Length, len(charts))
	for i, c := range charts {
		if n := len(c.Lines) + len(c.Bars); n > 0 {
			legends[i] = legendLine*vg.Length(n) + 16
		}
		drawn, err := c.draw()
		if err != nil {
			return fmt.Errorf("drawing %q: %w", c.Title, err)
		}
		plots[i] = drawn
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".png":
		return writePNG(out, plots, legends)
	case ".svg":
		return writeSVG(out, plots, legends)
	case ".html":
		return writePage(out, p, plots, legends)
	}
	return Supported(file)
}

func writePNG(out io.Writer, plots []*plot.Plot, legends []vg.Length) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, total(legends)), vgimg.UseDPI(120), vgimg.UseBackgroundColor(color.White))
	tile(draw.New(canvas), plots, legends)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(out)
	return err
}

func writeSVG(out io.Writer, plots []*plot.Plot, legends []vg.Length) error {
	canvas := vgsvg.New(width, total(legends))
	tile(draw.New(canvas), plots, legends)
	_, err := canvas.WriteTo(out)
	return err
}

// tile draws the plots from the top down, each with its legend below it, where it hides nothing.
func tile(c draw.Canvas, plots []*plot.Plot, legends []vg.Length) {
	top := c.Max.Y
	for i, p := range plots {
		legend := p.Legend
		p.Legend = plot.NewLegend()
		p.Draw(part(c, top-height, top))
		p.Legend = legend
		top -= height
		if legends[i] > 0 {
			below := part(c, top-legends[i], top)
			below.Min.X += legendIndent
			legend.Draw(below)
			top -= legends[i]
		}
	}
}

// legendIndent is how far the legend is from the edge.
const legendIndent = 50

// part is a strip of the canvas with margins.
func part(c draw.Canvas, bottom, top vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: c.Min.X + 8, Y: bottom + 8}, Max: vg.Point{X: c.Max.X - 16, Y: top - 8},
	}}
}

func writePage(out io.Writer, p Page, plots []*plot.Plot, legends []vg.Length) error {
	content := struct {
		Page
		Pictures []template.HTML
	}{Page: p}
	for i, one := range plots {
		var picture bytes.Buffer
		if err := writeSVG(&picture, []*plot.Plot{one}, legends[i:i+1]); err != nil {
			return err
		}
		// An XML declaration has no place inside a page.
		_, body, _ := strings.Cut(picture.String(), "<svg")
		content.Pictures = append(content.Pictures, template.HTML("<svg"+body)) //nolint:gosec // it is ours
	}
	return template.Must(template.New("page").Parse(page)).Execute(out, content)
}

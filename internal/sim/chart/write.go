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
	height = 5 * vg.Inch
)

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
	plots := make([]*plot.Plot, len(charts))
	for i, c := range charts {
		drawn, err := c.draw()
		if err != nil {
			return fmt.Errorf("drawing %q: %w", c.Title, err)
		}
		plots[i] = drawn
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".png":
		return writePNG(out, plots)
	case ".svg":
		return writeSVG(out, plots)
	case ".html":
		return writePage(out, p, plots)
	}
	return Supported(file)
}

func writePNG(out io.Writer, plots []*plot.Plot) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height*vg.Length(len(plots))), vgimg.UseDPI(120), vgimg.UseBackgroundColor(color.White))
	tile(draw.New(canvas), plots)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(out)
	return err
}

func writeSVG(out io.Writer, plots []*plot.Plot) error {
	canvas := vgsvg.New(width, height*vg.Length(len(plots)))
	tile(draw.New(canvas), plots)
	_, err := canvas.WriteTo(out)
	return err
}

// tile draws the plots from the top down.
func tile(c draw.Canvas, plots []*plot.Plot) {
	for i, p := range plots {
		top := c.Max.Y - height*vg.Length(i)
		p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Min.X + 8, Y: top - height + 8}, Max: vg.Point{X: c.Max.X - 16, Y: top - 8},
		}})
	}
}

func writePage(out io.Writer, p Page, plots []*plot.Plot) error {
	content := struct {
		Page
		Pictures []template.HTML
	}{Page: p}
	for _, one := range plots {
		var picture bytes.Buffer
		if err := writeSVG(&picture, []*plot.Plot{one}); err != nil {
			return err
		}
		// An XML declaration has no place inside a page.
		_, body, _ := strings.Cut(picture.String(), "<svg")
		content.Pictures = append(content.Pictures, template.HTML("<svg"+body)) //nolint:gosec // it is ours
	}
	return template.Must(template.New("page").Parse(page)).Execute(out, content)
}

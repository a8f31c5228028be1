package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars draws one colour of grouped bars. The plotter of the library wants widths in points, so
// that groups overlap or drift apart with the size of the picture.
type bars struct {
	values []float64
	// centre is the middle of a bar beside that of its group, width its width, both in groups.
	centre, width float64
	fill          color.Color
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for k, v := range b.values {
		left, right := x(float64(k)+b.centre-b.width/2), x(float64(k)+b.centre+b.width/2)
		c.FillPolygon(b.fill, c.ClipPolygonXY([]vg.Point{{X: left, Y: y(0)}, {X: right, Y: y(0)}, {X: right, Y: y(v)}, {X: left, Y: y(v)}}))
	}
}

// DataRange implements plot.DataRanger.
func (b *bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, v := range b.values {
		ymin, ymax = min(ymin, v), max(ymax, v)
	}
	return -0.5, float64(len(b.values)) - 0.5, ymin, ymax
}

// Thumbnail implements plot.Thumbnailer.
func (b *bars) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.fill, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

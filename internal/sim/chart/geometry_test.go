package chart

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// TestBarsAreAsHighAsTheirValues reads off what is drawn: bars of 1 and 2 on an axis from 0 to 4.
func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	c := &Chart{Groups: []string{"a", "b"}, Bars: []Bars{{Name: "x", Values: []float64{1, 2}}, {Name: "y", Values: []float64{4, 0}}}}
	p, err := c.draw()
	if err != nil {
		t.Fatal(err)
	}
	var canvas recorder.Canvas
	area := draw.NewCanvas(&canvas, 100, 100)
	b := &bars{values: []float64{1, 2}, centre: -0.2, width: 0.36, fill: colour(0)}
	b.Plot(area, p)
	var tops, corners, lefts []vg.Length
	for _, action := range canvas.Actions {
		fill, ok := action.(*recorder.Fill)
		if !ok {
			continue
		}
		top, corner, left := vg.Length(0), vg.Length(100), vg.Length(100)
		for _, step := range fill.Path {
			if step.Type == vg.CloseComp {
				continue
			}
			top, left = max(top, step.Pos.Y), min(left, step.Pos.X)
			if step.Pos.Y > 0.01 {
				corner = min(corner, step.Pos.Y)
			}
		}
		tops, corners, lefts = append(tops, top), append(corners, corner), append(lefts, left)
	}
	// Groups are at 0 and 1 of an axis from -0.5 to 1.5: half of the width each.
	if len(tops) != 2 || corners[0] != tops[0] || corners[1] != tops[1] || !near(tops[0], 25) || !near(tops[1], 50) || !near(lefts[0], 6) || !near(lefts[1], 56) {
		t.Errorf("bars reach up to %v and begin at %v; want 25 and 50, 6 and 56", tops, lefts)
	}
}

func near(got vg.Length, want float64) bool {
	d := float64(got) - want
	return -0.01 < d && d < 0.01
}

// TestChartsAreBelowOneAnother reads the places of their titles.
func TestChartsAreBelowOneAnother(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, "x.svg", Page{}, charts()...); err != nil {
		t.Fatal(err)
	}
	place := func(title string) float64 {
		m := regexp.MustCompile(`y="(-?[0-9.]+)"[^>]*>` + title).FindSubmatch(out.Bytes())
		if m == nil {
			t.Fatalf("no title %s", title)
		}
		y, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	if apart := place("Slowdown") - place("Waiting"); apart < 300 {
		t.Errorf("the second chart is %v points below the first", apart)
	}
}

// TestSharesGoToAHundred whatever their values.
func TestSharesGoToAHundred(t *testing.T) {
	c := &Chart{Share: true, Lines: []Line{{Name: "a", X: []float64{0, 1}, Y: []float64{3, 7}}}}
	p, err := c.draw()
	if err != nil || p.Y.Min != 0 || p.Y.Max != 100 {
		t.Errorf("the axis is from %v to %v, %v", p.Y.Min, p.Y.Max, err)
	}
	c = &Chart{Least: 10, Groups: []string{"a"}, Bars: []Bars{{Name: "x", Values: []float64{0.1}}}}
	if p, err = c.draw(); err != nil || p.Y.Max != 10 || p.Y.Min != 0 {
		t.Errorf("the axis is from %v to %v, %v; want 0 to 10", p.Y.Min, p.Y.Max, err)
	}
}

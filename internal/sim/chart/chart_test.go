package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func charts() []*Chart {
	return []*Chart{
		{Title: "Waiting", X: "hours", Y: "jobs", Lines: []Line{
			{Name: "ours", X: []float64{1, 2, 3}, Y: []float64{1, 2, 2}}, {Name: "theirs <&>", X: []float64{1, 2, 3}, Y: []float64{1, 3, 5}},
		}},
		{Title: "Slowdown", X: "GPUs", Y: "times", Groups: []string{"8", "64"}, Bars: []Bars{
			{Name: "ours", Values: []float64{1, 1.1}}, {Name: "theirs", Values: []float64{1.2, 1.9}, Errors: []float64{0.1, 0.2}},
		}},
	}
}

func TestEveryFormatIsWhatItSays(t *testing.T) {
	for _, ending := range Formats() {
		var out bytes.Buffer
		if err := Write(&out, "x"+ending, Page{Title: "T & T", Text: "a table"}, charts()...); err != nil {
			t.Fatal(err)
		}
		if dir := os.Getenv("CHART_DIR"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "x"+ending), out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		switch ending {
		case ".png":
			picture, err := png.Decode(&out)
			if err != nil {
				t.Fatal(err)
			}
			if b := picture.Bounds(); b.Dx() < 800 || b.Dy() < b.Dx() {
				t.Errorf("two charts below one another are %v", b)
			}
		case ".svg":
			wellFormed(t, &out)
		case ".html":
			text := out.String()
			for _, want := range []string{"<title>T &amp; T</title>", "a table", "theirs &lt;&amp;&gt;"} {
				if !strings.Contains(text, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			if strings.Contains(text, "http://") && strings.Contains(text, "<script") || strings.Count(text, "<svg") != 2 {
				t.Error("a page has two pictures inside and loads nothing")
			}
		}
	}
}

func wellFormed(t *testing.T, in io.Reader) {
	t.Helper()
	d := xml.NewDecoder(in)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnUnknownEndingIsRefused(t *testing.T) {
	want := `cannot draw "x.gif": expected a file that ends in .png, .svg, .html`
	for _, err := range []error{Supported("x.gif"), Write(io.Discard, "x.gif", Page{}, charts()...)} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTheSameDrawingTwice(t *testing.T) {
	for _, ending := range Formats() {
		var a, b bytes.Buffer
		if err := errors.Join(Write(&a, "x"+ending, Page{}, charts()...), Write(&b, "x"+ending, Page{}, charts()...)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs", ending)
		}
	}
}

// TestOneValue draws lines of which all points are at one place.
func TestOneValue(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := &Chart{Lines: []Line{{Name: "a", X: []float64{0.02, 0.02}, Y: []float64{0, 100}}}, LogX: log, Share: true}
		if err := Write(io.Discard, "x.svg", Page{}, c); err != nil {
			t.Error(err)
		}
	}
}

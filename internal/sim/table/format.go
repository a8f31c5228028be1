package table

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
)

// Format is a form in which results are written.
type Format string

// The formats.
const (
	// Text is for people at a terminal.
	Text Format = "table"
	// JSON is everything.
	JSON Format = "json"
	// CSV is rows of figures.
	CSV Format = "csv"
)

// Formats are the names of all of them.
func Formats() []string { return []string{string(Text), string(JSON), string(CSV)} }

// Results can be written in every format.
type Results interface {
	// Tables writes them for people.
	Tables(out io.Writer) error
	// Rows writes the header and the rows of the CSV form.
	Rows(out *csv.Writer) error
}

// Render writes results in a format; as JSON they are what their fields say.
func Render(out io.Writer, f Format, r Results) error {
	switch f {
	case JSON:
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case CSV:
		w := csv.NewWriter(out)
		if err := r.Rows(w); err != nil {
			return err
		}
		w.Flush()
		return w.Error()
	case Text:
		return r.Tables(out)
	}
	return fmt.Errorf("there is no format %q", f)
}

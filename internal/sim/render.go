package sim

import (
	"encoding/json"
	"fmt"
	"io"
)

// Format is a form in which answers are written.
type Format string

// The formats.
const (
	// Table is for people at a terminal.
	Table Format = "table"
	// JSON is an array of answers with everything that led to them.
	JSON Format = "json"
	// JSONLines is an answer a line, without what led to it.
	JSONLines Format = "jsonl"
)

// Formats are all of them.
func Formats() []string { return []string{string(Table), string(JSON), string(JSONLines)} }

// Render writes the results to w. For JSONLines the results need not be explained.
func Render(w io.Writer, f Format, style Style, results ...*Result) error {
	switch f {
	case JSONLines:
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		for _, r := range results {
			if err := lines.Encode(r.Answer); err != nil {
				return err
			}
		}
		return nil
	case JSON:
		array := json.NewEncoder(w)
		array.SetEscapeHTML(false)
		array.SetIndent("", "  ")
		return array.Encode(results)
	case Table:
		for i, r := range results {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if _, err := io.WriteString(w, style.table(r)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("there is no format %q", f)
}

// Style is how a table looks.
type Style struct {
	// Color tells whether the terminal shows colours.
	Color bool
	// Width is the number of columns to keep to; 0 is 80.
	Width int
}

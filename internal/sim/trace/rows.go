package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// maxProblems ends the reading of a file: who has more has one mistake that shows everywhere.
const maxProblems = 100

// maxSeconds bounds times, so that sums of them stay exact in nanoseconds: a hundred years.
const maxSeconds = 100 * 365 * 24 * 3600

// Rows reads the rows of a CSV file by the names of its columns. Values that are not what was
// asked for are noted and read as zero, so that one pass finds everything that is wrong.
type Rows struct {
	file     string
	header   string
	csv      *csv.Reader
	columns  map[string]int
	record   []string
	problems problem.Problems
	fault    error
	count    int
}

// Form is how a file of rows with a header is written.
type Form struct {
	// Comma is what is between values; 0 is a comma.
	Comma rune
	// Bare says that its writer never quotes values: a quotation mark is a character like any
	// other, which is read as an apostrophe.
	Bare bool
}

// NewRows reads the header of a CSV file. Each of needs must be there; several names with |
// between them are names for the same column. Columns that nobody asks for are ignored.
func NewRows(file string, in io.Reader, needs ...string) *Rows {
	return NewRowsOf(Form{}, file, in, needs...)
}

// NewRowsOf is NewRows of a file that is written in another form.
func NewRowsOf(form Form, file string, in io.Reader, needs ...string) *Rows {
	if form.Bare {
		in = unquoted{in}
	}
	r := &Rows{file: file, csv: csv.NewReader(in), columns: map[string]int{}}
	if form.Comma != 0 {
		r.csv.Comma = form.Comma
	}
	r.csv.ReuseRecord = true
	r.csv.TrimLeadingSpace = true
	header, err := r.csv.Read()
	if err != nil {
		r.failed(err)
		return r
	}
	r.header = strings.Join(header, string(r.csv.Comma))
	for i, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, twice := r.columns[name]; twice {
			line, column := r.csv.FieldPos(i)
			r.note(problem.Problem{File: file, Line: line, Column: column, Text: fmt.Sprintf("column %q is there twice; expected each once", name)})
			continue
		}
		r.columns[name] = i
	}
	r.Need(needs...)
	return r
}

// Need notes columns that are not there. One with several names is known by all of them together
// from then on.
func (r *Rows) Need(columns ...string) {
	if r.fault != nil || len(r.columns) == 0 {
		return
	}
	for _, need := range columns {
		names := strings.Split(need, "|")
		i := slices.IndexFunc(names, r.Has)
		if i < 0 {
			r.note(problem.Problem{File: r.file, Line: 1, Text: fmt.Sprintf("there is no column %s; expected a header with %s, and read %s",
				strings.Join(names, " or "), strings.ReplaceAll(strings.Join(columns, ", "), "|", " or "), shortened(r.header))})
			continue
		}
		r.columns[need] = r.columns[names[i]]
	}
}

// Has tells whether the file has a column.
func (r *Rows) Has(column string) bool {
	_, ok := r.columns[column]
	return ok
}

// Count returns how many rows were read so far.
func (r *Rows) Count() int { return r.count }

// Line returns the line of the present row.
func (r *Rows) Line() int {
	line, _ := r.csv.FieldPos(0)
	return line
}

// Next goes to the next row; false at the end, at a row that is no CSV, or if too much is wrong.
func (r *Rows) Next() bool {
	if r.fault != nil || len(r.problems) >= maxProblems || r.count == 0 && len(r.problems) > 0 {
		return false
	}
	record, err := r.csv.Read()
	for err != nil {
		if errors.Is(err, io.EOF) && r.count > 0 {
			return false
		}
		if !errors.Is(err, csv.ErrFieldCount) {
			r.failed(err)
			return false
		}
		r.note(problem.Problem{File: r.file, Line: r.Line(), Text: fmt.Sprintf("has %d values; expected %d, as the header has", len(record), r.csv.FieldsPerRecord)})
		if r.count++; len(r.problems) >= maxProblems {
			return false
		}
		record, err = r.csv.Read()
	}
	r.record = record
	r.count++
	return true
}

// Err returns what is wrong with the file so far: problem.Problems, or the error of reading it.
func (r *Rows) Err() error {
	if r.fault != nil {
		return fmt.Errorf("reading %s: %w", r.file, r.fault)
	}
	if len(r.problems) > 0 {
		return r.problems
	}
	return nil
}

// Text returns a value without spaces around it; "" if there is no such column.
func (r *Rows) Text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(r.record[i])
}

// Int returns a whole number of least to most. An integer may be written as 8.0.
func (r *Rows) Int(column string, least, most int64) int64 {
	text := r.Text(column)
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if f, bad := strconv.ParseFloat(text, 64); bad == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			v, err = int64(f), nil
		}
	}
	switch {
	case err != nil:
		r.Bad(column, fmt.Sprintf("is %s; expected a whole number", shown(text)))
		return 0
	case v < least || v > most:
		r.Bad(column, fmt.Sprintf("is %d; expected %s", v, between(least, most)))
		return 0
	}
	return v
}

// Seconds returns a time that the file gives in seconds, not negative.
func (r *Rows) Seconds(column string) time.Duration {
	text := r.Text(column)
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v):
		r.Bad(column, fmt.Sprintf("is %s; expected a number of seconds", shown(text)))
		return 0
	case v < 0:
		r.Bad(column, fmt.Sprintf("is %s; expected seconds, not negative", text))
		return 0
	case v > maxSeconds:
		r.Bad(column, fmt.Sprintf("is %s; expected seconds, at most %d (a hundred years)", text, maxSeconds))
		return 0
	}
	return time.Duration(math.Round(v*1e6)) * time.Microsecond
}

// Bad notes a problem with a value of the present row.
func (r *Rows) Bad(column, text string) {
	line, at := r.Line(), 0
	if i, ok := r.columns[column]; ok {
		line, at = r.csv.FieldPos(i)
		column = r.name(i, column)
	}
	r.note(problem.Problem{File: r.file, Line: line, Column: at, Path: column, Text: text})
}

// name returns what the file itself calls column i.
func (r *Rows) name(i int, asked string) string {
	for _, one := range strings.Split(asked, "|") {
		if at, ok := r.columns[one]; ok && at == i {
			return one
		}
	}
	return asked
}

func (r *Rows) note(p problem.Problem) { r.problems = append(r.problems, p) }

// failed notes why a row could not be read: no CSV is the file's fault, the rest is not.
func (r *Rows) failed(err error) {
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF) && len(r.columns) == 0:
		r.note(problem.Problem{File: r.file, Text: "is empty; expected a header with the names of the columns"})
	case errors.Is(err, io.EOF):
		r.note(problem.Problem{File: r.file, Text: "has a header and no rows; expected at least one"})
	case errors.As(err, &syntax):
		r.note(problem.Problem{File: r.file, Line: syntax.Line, Column: syntax.Column, Text: "is no CSV: " + syntax.Err.Error()})
	default:
		r.fault = err
	}
}

// unquoted hides quotation marks from the CSV reader, which would take one at the beginning of a
// value for the beginning of a quotation that ends rows later. Bytes stay where they are, and so
// do the columns of messages.
type unquoted struct{ in io.Reader }

func (u unquoted) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	for i, c := range p[:n] {
		if c == '"' {
			p[i] = '\''
		}
	}
	return n, err
}

// shown quotes a value for a message.
func shown(text string) string {
	if text == "" {
		return "empty"
	}
	return strconv.Quote(shortened(text))
}

// shortened cuts what is too long for a message.
func shortened(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// between says what whole numbers are accepted.
func between(least, most int64) string {
	if most == math.MaxInt64 {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

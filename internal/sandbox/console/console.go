// Package console writes what a sandbox has to say to a person: in colour on a
// terminal, plain elsewhere and where NO_COLOR is set.
package console

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Console may be used from several goroutines: each call writes whole lines.
type Console struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
}

// New decides on colour by what out is.
func New(out io.Writer) *Console {
	file, ok := out.(*os.File)
	colour := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &Console{out: out, colour: colour}
}

// Style is an attribute of text.
type Style string

// The styles, as the parameters of the terminal's escape sequence.
const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint gives text a style where the console has any.
func (c *Console) Paint(style Style, text string) string {
	if !c.colour || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Printf writes one or more lines; the last newline is added.
func (c *Console) Printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A sandbox whose terminal has gone away goes on.
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}

// Done reports a step of the start and how long it took.
func (c *Console) Done(step string, took time.Duration) {
	c.Printf("%s %-24s %s", c.Paint(Green, "✓"), step, c.Paint(Dim, Seconds(took)))
}

// Failed reports a step that went wrong.
func (c *Console) Failed(step string) {
	c.Printf("%s %s", c.Paint(Red, "✗"), step)
}

// Seconds is a duration for people: tenths are enough.
func Seconds(d time.Duration) string {
	return fmt.Sprintf("%.1fs", d.Seconds())
}

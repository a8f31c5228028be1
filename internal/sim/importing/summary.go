package importing

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Summary says what was written, what was left out and what was decided, for a person.
func (f *Found) Summary(out io.Writer, paths []string) {
	fmt.Fprintf(out, "wrote %s: %s\n", strings.Join(paths, ", "), f.sizes())
	list(out, "left out:", f.Left)
	list(out, "changed on the way:", f.Changed)
}

func (f *Found) sizes() string {
	var parts []string
	if n := len(f.Nodes); n > 0 {
		gpus := 0
		for _, node := range f.Nodes {
			gpus += node.GPUs
		}
		parts = append(parts, fmt.Sprintf("%s with %s", counted(n, "node"), counted(gpus, "GPU")))
	}
	if n := len(f.Jobs); n > 0 {
		parts = append(parts, fmt.Sprintf("%s of %.1f GPU-hours, submitted over %s", counted(n, "job"), f.GPUHours(), span(f.Span())))
	}
	if n := len(f.Pods); n > 0 {
		parts = append(parts, counted(n, "pod"))
	}
	return strings.Join(parts, "; ")
}

func list(out io.Writer, heading string, notes Notes) {
	if len(notes) == 0 {
		return
	}
	fmt.Fprintln(out, heading)
	for _, n := range notes {
		fmt.Fprintf(out, "%8d  %s\n", n.Count, n.Text)
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// span shows a long time in days, which time.Duration does not.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

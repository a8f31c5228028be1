package process

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// tailLines is how much of a crashed child's log a person is shown: enough
	// for a panic's message and the frames that matter.
	tailLines = 20
	// tailBytes bounds what is read of a log that may be large.
	tailBytes = 64 << 10
)

// CrashError says that a child ended without having been asked to.
type CrashError struct {
	Name string
	// State is how it ended, as in "exit status 1" or "signal: killed".
	State   string
	LogFile string
	// Tail is the end of its log, oldest line first.
	Tail []string
}

func newCrashError(p *Process, wait error) *CrashError {
	state := "exit status 0"
	if wait != nil {
		state = wait.Error()
	}
	tail, err := tail(p.LogFile)
	if err != nil {
		tail = []string{err.Error()}
	}
	return &CrashError{Name: p.Name, State: state, LogFile: p.LogFile, Tail: tail}
}

func (e *CrashError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended unexpectedly (%s); the end of its log %s:", e.Name, e.State, e.LogFile)
	if len(e.Tail) == 0 {
		b.WriteString("\n  (the log is empty)")
	}
	for _, line := range e.Tail {
		b.WriteString("\n  ")
		b.WriteString(line)
	}
	return b.String()
}

// tail returns the last tailLines lines of a file.
func tail(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	from := max(0, info.Size()-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):], nil
}

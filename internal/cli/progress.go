package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows on a terminal how much of a long answer is done. Elsewhere it shows nothing.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress begins with none of total done; what names what is counted: "runs".
func newProgress(p Process, total int, what string) progress {
	out, ok := p.Err.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionFullWidth(),
	)}
}

// step counts one more; several may do so at a time.
func (p progress) step() { p.add(1) }

// add counts several more.
func (p progress) add(n int) {
	if p.bar != nil {
		// Whoever cannot be shown how far it is will see the answer.
		_ = p.bar.Add(n)
	}
}

// end takes the bar off the terminal.
func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

package cli

import (
	"os"

	"golang.org/x/term"

	"github.com/reyisjones/gpu-orchestrator/internal/sim"
)

// maxWidth is how wide a table gets on a wide terminal: longer lines are hard to read.
const maxWidth = 120

// style is how tables look where the output goes: in colour on a terminal, unless NO_COLOR says
// otherwise (no-color.org), and plain and 80 columns wide everywhere else.
func (p Process) style() sim.Style {
	out, ok := p.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return sim.Style{}
	}
	style := sim.Style{Color: true}
	if value, set := p.LookupVariable("NO_COLOR"); set && value != "" {
		style.Color = false
	}
	if value, _ := p.LookupVariable("TERM"); value == "dumb" {
		style.Color = false
	}
	if width, _, err := term.GetSize(int(out.Fd())); err == nil {
		style.Width = min(width, maxWidth)
	}
	return style
}

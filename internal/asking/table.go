package asking

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"charm.land/lipgloss/v2"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
)

// The colours of a terminal's own palette: they suit its background.
const (
	red    = "1"
	green  = "2"
	yellow = "3"
	cyan   = "6"
	grey   = "8"
)

// Style is how an answer looks.
type Style struct{ Color bool }

func (s Style) paint(text, color string, bold bool) string {
	if !s.Color || text == "" {
		return text
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Bold(bold).Render(text)
}

// Write writes the answer for a person: the verdict with its sentence, what is near, what helps.
func (s Style) Write(out io.Writer, e *explainv1alpha1.Explanation) error {
	var b strings.Builder
	color := map[string]string{
		explainv1alpha1.VerdictPlaced: green, explainv1alpha1.VerdictEnded: green, explainv1alpha1.VerdictWait: yellow,
		explainv1alpha1.VerdictBroken: red,
	}[e.Verdict]
	if color == "" {
		color = yellow
	}
	fmt.Fprintf(&b, "%s: %s\n", s.paint(e.Verdict, color, true), e.Message)
	fmt.Fprintf(&b, "%s\n", s.paint(fmt.Sprintf("%s %s/%s, %s, snapshot %d", e.Subject, e.Namespace, e.Name, e.Reason, e.Snapshot), grey, false))
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "%s\n", s.paint("note: "+note, grey, false))
	}
	s.placement(&b, e.Placement)
	s.misses(&b, e.Misses)
	s.remedies(&b, e)
	s.trial(&b, e.Try)
	s.history(&b, e.History)
	_, err := io.WriteString(out, b.String())
	return err
}

func (s Style) heading(b *strings.Builder, text string) {
	fmt.Fprintf(b, "\n%s\n", s.paint(text, cyan, true))
}

// longest is the most of a sentence that a row of a table has.
const longest = 100

func short(text string) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest]) + "…"
}

// columns writes rows side by side.
func columns(b *strings.Builder, rows [][]string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.StripEscape)
	for _, row := range rows {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	// It writes to memory.
	_ = w.Flush()
}

func (s Style) misses(b *strings.Builder, misses []explainv1alpha1.Miss) {
	if len(misses) == 0 {
		return
	}
	s.heading(b, "Nearest")
	rows := [][]string{{"LEVEL", "DOMAIN", "ROOM", "NEEDED", "IF EMPTY", "IN THE WAY"}}
	for i := range misses {
		m := &misses[i]
		level, domain := m.Level, m.Domain
		if level == "" {
			level, domain = "cluster", "-"
		}
		rows = append(rows, []string{level, domain, strconv.Itoa(m.Room), strconv.Itoa(m.Need), strconv.Itoa(m.Empty), inTheWay(m)})
	}
	columns(b, rows)
}

func inTheWay(m *explainv1alpha1.Miss) string {
	var parts []string
	for _, n := range m.Nodes {
		parts = append(parts, fmt.Sprintf("%s (%s)", n.Name, n.Reason))
	}
	if m.MoreNodes > 0 {
		parts = append(parts, fmt.Sprintf("%d more nodes", m.MoreNodes))
	}
	for _, h := range m.Holders {
		unit := "GPUs"
		if h.GPUs == 1 {
			unit = "GPU"
		}
		parts = append(parts, fmt.Sprintf("%s (%d %s)", h.Name, h.GPUs, unit))
	}
	if m.MoreHolders > 0 {
		parts = append(parts, fmt.Sprintf("%d more workloads", m.MoreHolders))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func (s Style) remedies(b *strings.Builder, e *explainv1alpha1.Explanation) {
	if len(e.Remedies) == 0 {
		if !e.Runs && len(e.Misses) > 0 {
			s.heading(b, "What would help")
			fmt.Fprintln(b, "  nothing that was tried: no edit, no move, nobody's leaving and no node's return makes room")
		}
		return
	}
	s.heading(b, "What would help (each was tried on this snapshot; the cheapest first)")
	for i := range e.Remedies {
		r := &e.Remedies[i]
		fmt.Fprintf(b, "  %d. %s\n", r.Number, r.Message)
		when := "starts " + r.Starts
		switch {
		case r.Starts != "now" && r.Starts != "unknown":
			when = "starts in " + r.Starts
		case r.Starts == "unknown":
			when = "when it starts is unknown"
		}
		if r.Latest != "" {
			when += ", at the latest in " + r.Latest
		}
		fmt.Fprintf(b, "     %s\n", s.paint(when+"; costs "+r.Cost.Summary, grey, false))
		for _, c := range r.Commands {
			fmt.Fprintf(b, "     %s\n", s.paint(c, cyan, false))
		}
	}
	if e.Try == nil {
		fmt.Fprintf(b, "  %s\n", s.paint("--try N shows where it would go", grey, false))
	}
}

func (s Style) trial(b *strings.Builder, t *explainv1alpha1.Trial) {
	if t == nil {
		return
	}
	s.heading(b, fmt.Sprintf("With remedy %d", t.Number))
	fmt.Fprintln(b, "  "+t.Message)
	nodes(b, t.Nodes)
}

func nodes(b *strings.Builder, all []explainv1alpha1.NodeRanks) {
	rows := [][]string{{"NODE", "RANKS", "DOMAIN"}}
	for _, n := range all {
		rows = append(rows, []string{n.Node, n.Ranks, n.Domain})
	}
	columns(b, rows)
}

func (s Style) placement(b *strings.Builder, p *explainv1alpha1.Placement) {
	if p == nil {
		return
	}
	s.heading(b, "Where it is")
	if p.Message != "" {
		text := p.Message
		if p.Planned != nil {
			text = fmt.Sprintf("%s (attempt %d, planned %s)", text, p.Attempt, p.Planned.UTC().Format("2006-01-02 15:04:05Z"))
		}
		fmt.Fprintln(b, "  "+text)
	}
	nodes(b, p.Nodes)
	if len(p.Scores) == 0 {
		return
	}
	s.heading(b, "Why there, as it is judged now")
	if p.Again != nil {
		text := "planned again now it would go to other nodes: the cluster has changed since"
		if *p.Again {
			text = "planned again now it would go to the same nodes"
		}
		fmt.Fprintln(b, "  "+text)
	}
	rows := [][]string{{"", "NAME", "SCORE", "TERMS"}}
	for _, score := range p.Scores {
		what := "next best " + score.What
		if score.Chosen {
			what = "best " + score.What
		}
		var terms []string
		for _, t := range score.Terms {
			terms = append(terms, fmt.Sprintf("%s %.4g × %.4g", t.Name, t.Value, t.Weight))
		}
		rows = append(rows, []string{what, score.Name, fmt.Sprintf("%.4g", score.Score), strings.Join(terms, ", ")})
	}
	columns(b, rows)
}

func (s Style) history(b *strings.Builder, all []explainv1alpha1.Decision) {
	if len(all) == 0 {
		return
	}
	s.heading(b, "What was decided")
	rows := [][]string{{"LAST", "TIMES", "OUTCOME", "REASON", "SENTENCE"}}
	for i := range all {
		d := &all[i]
		rows = append(rows, []string{d.Last.UTC().Format("2006-01-02 15:04:05Z"), strconv.Itoa(d.Count), d.Outcome, d.Reason, short(d.Message)})
	}
	columns(b, rows)
}

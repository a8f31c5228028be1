package sim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/tree"
)

// defaultWidth is that of a terminal that does not say.
const defaultWidth = 80

// The colours of a terminal's own palette: they suit its background.
const (
	red    = "1"
	green  = "2"
	yellow = "3"
	cyan   = "6"
	grey   = "8"
)

// paint colours a text, if there are colours.
func (s Style) paint(text, color string, bold bool) string {
	if !s.Color || text == "" {
		return text
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Bold(bold).Render(text)
}

func (s Style) width() int {
	if s.Width <= 0 {
		return defaultWidth
	}
	return s.Width
}

// table writes a result for a person.
func (s Style) table(r *Result) string {
	var b strings.Builder
	verdict, color := "INFEASIBLE", red
	switch {
	case r.Undecided:
		verdict, color = "UNDECIDED", yellow
	case r.Feasible:
		verdict, color = "FEASIBLE", green
	}
	how := r.Strategy
	if r.ElapsedMicros > 0 {
		how += fmt.Sprintf(", %.2f ms", float64(r.ElapsedMicros)/1000)
	}
	b.WriteString(s.paint(verdict, color, true) + "  " + r.Name + "  " + s.paint("("+how+")", grey, false) + "\n")
	for _, line := range wrap(sentence(r.Reason), s.width()) {
		b.WriteString(line + "\n")
	}
	if r.tree != nil && len(r.tree.children) > 0 {
		b.WriteString("\n")
		// The library makes the lines of a node equally long.
		for line := range strings.Lines(s.tree(r.tree, 0).String() + "\n") {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
	if rows := why(r); len(rows) > 0 {
		b.WriteString("\n" + s.rows(rows))
	}
	return b.String()
}

// maxShown is how many domains with something in them are shown of one parent, and fewUntouched
// how many others, beside them, are not worth folding.
const (
	maxShown     = 16
	fewUntouched = 3
)

// tree draws a domain, so many levels deep, with what is marked in it; the rest is counted.
func (s Style) tree(d *domain, depth int) *tree.Tree {
	t := tree.Root(s.line(d, depth))
	var hidden, folded []*domain
	untouched := 0
	for _, c := range d.children {
		if !c.marked {
			untouched++
		}
	}
	shown := 0
	for _, c := range foldRuns(d.children) {
		switch {
		case c.marked && shown < maxShown:
			shown++
			t.Child(s.tree(c, depth+1))
		case c.marked:
			hidden = append(hidden, c)
		case untouched <= fewUntouched:
			t.Child(s.line(c, depth+1))
		default:
			folded = append(folded, c)
		}
	}
	if len(hidden) > 0 {
		t.Child(s.paint(more(hidden, shown)+" with pods", grey, false))
	}
	if len(folded) > 0 {
		t.Child(s.paint(more(folded, shown)+freeGPUs(folded), grey, false))
	}
	return t
}

// more counts domains that are not shown, beside some that are: "… 61 more leaves".
func more(folded []*domain, shown int) string {
	if shown == 0 {
		return "… " + counted(len(folded), kind(folded[0]))
	}
	return "… " + counted(len(folded), "more "+kind(folded[0]))
}

func freeGPUs(domains []*domain) string {
	var sum []supply
	for _, d := range domains {
		sum = addSupplies(sum, d.gpus)
	}
	if text := suppliesText(sum); text != "" {
		return "  " + text
	}
	return ""
}

// uplinkText says what is left of an uplink: "1600 → 900 of 1600 Mbit/s up".
func uplinkText(u *uplink) string {
	if u.mbps < 10000 {
		return fmt.Sprintf("%s of %d Mbit/s up", change(u.free, u.after), u.mbps)
	}
	gbps := func(mbps int64) string { return strconv.FormatFloat(float64(mbps)/1000, 'f', -1, 64) }
	text := gbps(u.free)
	if u.after != u.free {
		text += " → " + gbps(u.after)
	}
	return fmt.Sprintf("%s of %s Gbit/s up", text, gbps(u.mbps))
}

// indent is what a level of the tree takes of a line.
const indent = 4

// line is a domain in a few words, and who goes there: on the same line if there is space.
func (s Style) line(d *domain, depth int) string {
	name := d.name
	if !d.isNode && d.level != "" {
		name = kind(d) + " " + d.name
	}
	var facts []string
	if text := suppliesText(d.gpus); text != "" {
		facts = append(facts, text)
	}
	if d.uplink != nil {
		facts = append(facts, uplinkText(d.uplink))
	}
	fact := strings.Join(facts, ", ")
	used := depth*indent + utf8.RuneCountInString(name) + 2 + utf8.RuneCountInString(fact)
	if d.marked {
		name = s.paint(name, cyan, true)
	}
	text := name
	if fact != "" {
		text += "  " + s.paint(fact, grey, false)
	}
	if d.room >= 0 {
		text += "  " + s.paint("room for "+counted(d.room, "pod"), yellow, false)
	}
	for _, o := range d.pods {
		who := o.String()
		if len(d.pods) == 1 && used+2+utf8.RuneCountInString(who) <= s.width() {
			return text + "  " + who
		}
		text += "\n" + strings.Join(wrap(who, s.width()-depth*indent-2), "\n  ")
	}
	return text
}

// change writes an amount before and after: "8 → 4".
func change(before, after int64) string {
	if before == after {
		return fmt.Sprint(before)
	}
	return fmt.Sprintf("%d → %d", before, after)
}

// String says who it is and what they get: "main 0-3: GPUs 0-1, 2-3, 4-5, 6-7".
func (o occupant) String() string {
	var who []string
	if len(o.ranks) > 0 {
		who = append(who, o.group+" "+ranges(o.ranks))
	}
	var others []string
	if o.added > 0 {
		others = append(others, fmt.Sprintf("%d new", o.added))
	}
	if len(o.instead) > 0 {
		others = append(others, "in place of "+strings.Join(o.instead, ", "))
	}
	if o.kept > 0 {
		others = append(others, stay(o.kept))
	}
	if len(others) > 0 {
		who = append(who, o.group+": "+strings.Join(others, ", "))
	}
	text := "→ " + strings.Join(who, ", ")
	if len(o.devices) > 0 {
		text += "  on " + together(o.devices)
		switch {
		case o.each && strings.HasSuffix(text, " each"):
			text += ", on every node"
		case o.each:
			text += " of each"
		}
	}
	return text
}

// rows writes a list of words with what they say.
func (s Style) rows(rows [][2]string) string {
	wide := 0
	for _, row := range rows {
		wide = max(wide, len(row[0]))
	}
	var b strings.Builder
	for _, row := range rows {
		for i, line := range wrap(row[1], s.width()-wide-2) {
			word := row[0]
			if i > 0 {
				word = ""
			}
			b.WriteString(s.paint(fmt.Sprintf("%-*s", wide, word), grey, false) + "  " + line + "\n")
		}
	}
	return b.String()
}

package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// why says in rows what led to the result.
func why(r *Result) [][2]string {
	var rows [][2]string
	add := func(word, text string) { rows = append(rows, [2]string{word, text}) }
	if e := r.Explanation; e != nil {
		if text := nodeCounts(e); text != "" {
			add("nodes", text)
		}
		if d := e.ChosenDomain; d != nil {
			add("domain", scoreText(e, kindOf(d.Level)+" "+d.Domain, d.Score, d.Terms))
		}
		if d := e.NextDomain; d != nil {
			add("next best", scoreText(e, kindOf(d.Level)+" "+d.Domain, d.Score, d.Terms))
		}
		if n := e.Chosen; n != nil {
			add("chosen", scoreText(e, n.Node, n.Score, n.Terms))
		}
		if n := e.Next; n != nil {
			add("next best", scoreText(e, n.Node, n.Score, n.Terms))
		}
		for _, p := range e.Missed {
			add("preferred", preferenceText(e, p))
		}
		if text := missesText(r, e); text != "" {
			add("nearest", text)
		}
		if e.Certificate != nil && e.Nodes > 0 {
			add("proof", proof(e))
		}
		for _, c := range e.Changes {
			add("fits now", changeText(c))
		}
	}
	rows = append(rows, moveRows(r.Moves)...)
	if r.Reservation != nil {
		rows = append(rows, couldStart(r.Reservation)...)
	}
	if len(r.Victims) > 0 {
		add("evicts", strings.Join(r.Victims, ", "))
	}
	if x := r.Expectation; x != nil {
		expected := "infeasible"
		if x.Feasible {
			expected = "feasible"
		}
		if x.Agrees {
			add("expected", expected+": as it is")
		} else {
			add("expected", expected+", but it is not")
		}
	}
	return rows
}

// scoreText says what a score is made of. A score without terms says nothing to anybody but the
// strategy: what it is worth is which comes first.
func scoreText(e *Explanation, what string, value float64, terms []Term) string {
	if e.several() && e.Group != "" {
		what += " for " + e.Group
	}
	if len(terms) == 0 {
		return what
	}
	return fmt.Sprintf("%s scores %s%s", what, score(value), termsText(terms))
}

// besideText says how the pods that are placed of a group relate to those that it has: "" if it
// has none.
func besideText(placed int, p *part) string {
	text := p.Name + ": " + strconv.Itoa(placed)
	switch {
	case len(p.lost) > 0:
		text += " in place of " + strings.Join(p.lost, ", ")
	case p.limits != nil:
		return fmt.Sprintf("%s of %d that run stay", text, p.previousCount())
	case len(p.kept) > 0:
		text += " new"
	default:
		return ""
	}
	if n := len(p.kept); n == 1 {
		text += " beside 1 that stays"
	} else if n > 1 {
		text += fmt.Sprintf(" beside %d that stay", n)
	}
	return text
}

// reasonText words why nodes cannot take a pod. A reason that is not here is shown as it is.
func reasonText(reason string) string {
	text, ok := map[string]string{
		"notReady":          "not ready",
		"cordoned":          "cordoned",
		"tainted":           "with taints that are not tolerated",
		"notSelected":       "not selected",
		"noSuchGPU":         "without such GPUs",
		"noSuchResource":    "without a resource asked for",
		"wrongProduct":      "of another product",
		"wrongArchitecture": "of another architecture",
		"memoryTooSmall":    "with too little GPU memory",
		"noShares":          "without shared GPUs",
		"shareTooSmall":     "whose shares are too small",
		"noMIG":             "without these MIG profiles",
		"nodeTooSmall":      "too small even when empty",
		"gpusBroken":        "with too few healthy GPUs",
		"gpusTaken":         "with too few free GPUs",
		"migTaken":          "without room for the MIG instances",
		"othersTaken":       "with too little CPU, memory or other resources free",
		"notLocated":        "without a label of the level",
		"avoided":           "avoided",
		"insideUnknown":     "whose GPUs are not known one by one",
		"byPolicy":          "refused by policy",
		"limited":           "where the group has no pods to keep",
	}[reason]
	if !ok {
		return reason
	}
	return text
}

func nodeCounts(e *Explanation) string {
	if e.Nodes == 0 || e.Group == "" {
		return ""
	}
	left := e.Nodes
	var parts []string
	reasons := slices.Sorted(maps.Keys(e.Removed))
	slices.SortStableFunc(reasons, func(a, b string) int { return e.Removed[b] - e.Removed[a] })
	for _, reason := range reasons {
		left -= e.Removed[reason]
		parts = append(parts, fmt.Sprintf("%d %s", e.Removed[reason], reasonText(reason)))
	}
	text := fmt.Sprintf("%d of %d can take a pod of %s", left, e.Nodes, e.Group)
	if len(parts) > 0 {
		text += "; " + strings.Join(parts, ", ")
	}
	return text
}

// score writes a score. A strategy may put some nodes far before all others.
func score(v float64) string {
	if math.Abs(v) < 1e6 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.1e", v)
}

func termsText(terms []Term) string {
	var parts []string
	for _, t := range terms {
		if t.Weight > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f×%g", t.Name, t.Value, t.Weight))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// missesText lists the domains with the most room, of refusals.
func missesText(r *Result, e *Explanation) string {
	if r.Feasible || e.Room == 0 && !slices.ContainsFunc(e.Misses, func(m Miss) bool { return m.Room > 0 }) {
		return ""
	}
	var parts []string
	for _, m := range e.Misses {
		switch kindOf(m.Level) {
		case "":
			parts = append(parts, fmt.Sprintf("%d in %s", m.Room, m.Domain))
		case "node":
			parts = append(parts, fmt.Sprintf("%d on node %s", m.Room, m.Domain))
		default:
			parts = append(parts, fmt.Sprintf("%d in %s %s", m.Room, kindOf(m.Level), m.Domain))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := "room for " + strings.Join(parts, ", ")
	if e.several() && e.Group != "" {
		return "of " + e.Group + ", " + text
	}
	return text
}

func proof(e *Explanation) string {
	c := e.Certificate
	groups := strings.Join(c.Groups, " and ")
	switch c.Kind {
	case "noDomainHolds":
		where := "the cluster"
		if c.Level != "" {
			where = "the best " + kindOf(c.Level) + ", " + c.Domain + ","
		}
		more, are := "pod", "are"
		if e.kept > 0 {
			more = "more pod"
		}
		if c.Need == 1 {
			are = "is"
		}
		return fmt.Sprintf("%s holds %d of the %s of %s that %s needed", where, c.Room, counted(c.Need, more), groups, are)
	case "noDomainHoldsEach":
		where := "the cluster"
		if c.Level != "" {
			where = "no " + kindOf(c.Level)
		}
		return where + " has room for each of " + groups + " by itself"
	case "tooManyMoves":
		return fmt.Sprintf("at least %d workloads have to move, and %d may", c.Need, c.Room)
	case "tooMuchInAll":
		if len(c.Groups) == 1 {
			return fmt.Sprintf("%s asks for %d GPUs, and %d are free in all", groups, c.Need, c.Room)
		}
		return groups + " together ask for more than any domain has free"
	case "exhausted":
		return "every way to place " + groups + " was tried"
	}
	return c.Kind + " of " + groups
}

func changeText(c Change) string {
	field := c.Field
	if field == "bandwidth" {
		field = "bandwidthMbps"
	}
	text := "with " + field + " " + c.To
	switch {
	case c.Field == "replaces" && c.Group == "":
		return "replacing only " + c.To + " of them"
	case c.Field == "replaces":
		text = "replacing only " + c.To
	case c.To == "none":
		text = "without " + c.Field
	}
	if c.Group != "" {
		text += " of " + c.Group
	}
	return text
}

// sentence writes a reason with a capital letter and a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// kind is what people call a domain: "rack", of example.com/rack.
func kind(d *domain) string {
	if d.isNode || d.level == "" {
		return "node"
	}
	return kindOf(d.level)
}

func kindOf(level string) string {
	if level == hostnameLabel {
		return "node"
	}
	return level[strings.LastIndex(level, "/")+1:]
}

// plural writes a noun for n of them.
func plural(noun string, n int) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "leaf"):
		return strings.TrimSuffix(noun, "f") + "ves"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// counted writes a number with its noun: "1 pod", "2 pods".
func counted(n int, noun string) string { return fmt.Sprintf("%d %s", n, plural(noun, n)) }

// ranges writes ascending numbers: "0-3, 6".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if end == i {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// stay says how many are where they were.
func stay(n int) string {
	if n == 1 {
		return "1 stays"
	}
	return fmt.Sprintf("%d stay", n)
}

// together joins what several pods get, and says once what they have in common: "GPUs 0-1 | 2-3".
func together(devices []string) string {
	if len(devices) > 1 && !slices.ContainsFunc(devices, func(d string) bool { return d != devices[0] || strings.Contains(d, "GPU ") }) {
		return devices[0] + " each"
	}
	common := ""
	var rest []string
	for i, d := range devices {
		at := strings.LastIndex(d, " ")
		head := strings.TrimSuffix(d[:max(at, 0)], "s")
		if i > 0 && head != common || !strings.HasSuffix(head, "GPU") {
			return strings.Join(devices, " | ")
		}
		common, rest = head, append(rest, d[at+1:])
	}
	if len(devices) == 1 {
		return devices[0]
	}
	return common + "s " + strings.Join(rest, " | ")
}

// wrap breaks a text at spaces into lines of up to width columns. A longer word stays whole.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

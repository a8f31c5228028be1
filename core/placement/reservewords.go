package placement

import (
	"fmt"
	"strings"
	"time"
)

// Words says when and where the request could start, and what it waits for. Level is what to
// call the level of its domain.
func (r *Reservation) Words(level string) string {
	where, once := "", ""
	if r.Domain != "" {
		where = " in " + level + " " + r.Domain
	}
	if n := len(r.Needs); n > 0 {
		once = ", once " + someOf(r.Needs) + " " + verb(n, "has", "have") + " ended"
	}
	switch {
	case r.Start == 0:
		return fmt.Sprintf("%s fits now%s", r.Name, where)
	case !r.Sure:
		return fmt.Sprintf("%s could start%s%s; when that is, no estimate tells", r.Name, where, once)
	case r.Latest > r.Start && r.Latest != Never:
		return fmt.Sprintf("%s could start in %s (%s if they take long)%s%s", r.Name, Span(r.Start), Span(r.Latest), where, once)
	}
	return fmt.Sprintf("%s could start in %s%s%s", r.Name, Span(r.Start), where, once)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// someOf lists names: "a, b and 3 more".
func someOf(names []string) string {
	const most = 4
	switch {
	case len(names) == 1:
		return names[0]
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Span writes a duration as people say it, in its two largest units: "2 h 10 min".
func Span(d time.Duration) string {
	switch {
	case d >= beyond:
		return "an unknown time"
	case d < time.Minute:
		return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
	}
	// A minute begun counts: nothing is promised too early.
	minutes := (d + time.Minute - 1) / time.Minute
	days, hours, rest := minutes/(24*60), minutes/60%24, minutes%60
	if days > 0 {
		return units(days, "d", hours, "h")
	}
	if hours > 0 {
		return units(hours, "h", rest, "min")
	}
	return fmt.Sprintf("%d min", rest)
}

func units(n time.Duration, unit string, rest time.Duration, small string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
}

package slurm

import (
	"fmt"
	"strings"
	"time"
)

// job returns the number of the job that an identifier is of: 123 of 123, 123_4, 123+0 and of
// their steps, such as 123.batch. Tasks of an array that wait are one row: 123_[4-10%2].
func job(id string) (number string, ok bool) {
	end := strings.IndexFunc(id, func(c rune) bool { return c < '0' || c > '9' })
	switch {
	case end == 0 || id == "":
		return "", false
	case end < 0:
		return id, true
	}
	return id[:end], strings.IndexByte("_+.", id[end]) >= 0
}

// The years that are accepted: what is outside is a mistake, and a trace spans a century at most.
const firstYear, lastYear = 1990, 2088

// time reads a time stamp; false if there is none. Times are local without saying of where: only
// their differences are used, an hour wrong at most, once when summer ends.
func (r *reader) time(column string) (since1970 time.Duration, known bool) {
	text := r.rows.Text(column)
	if unknown(text) {
		return 0, false
	}
	for _, layout := range []string{"2006-01-02T15:04:05", time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			if t.Year() < firstYear || t.Year() > lastYear {
				break
			}
			return time.Duration(t.Unix()) * time.Second, true
		}
	}
	r.rows.Bad(column, fmt.Sprintf("is %q; expected a time such as 2024-05-01T12:00:00, Unknown or None (run sacct without SLURM_TIME_FORMAT)", clipped(text)))
	return 0, false
}

// unknown tells whether the text is one of those that Slurm prints for no time.
func unknown(text string) bool {
	switch strings.ToLower(text) {
	case "", "unknown", "none", "n/a", "(null)":
		return true
	}
	return false
}

// clipped shortens what is shown in a message.
func clipped(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

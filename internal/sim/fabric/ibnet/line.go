package ibnet

import (
	"fmt"
	"strconv"
	"strings"
)

// cursor goes along a line. After the first thing that is not as expected it stays where it is,
// with the reason in wrong.
type cursor struct {
	text  string
	at    int
	wrong string
}

// bad notes what was expected here.
func (c *cursor) bad(format string, args ...any) {
	if c.wrong == "" {
		c.wrong = fmt.Sprintf(format, args...)
	}
}

// found shows what is here instead of what was expected.
func (c *cursor) found() string {
	rest := strings.TrimSpace(c.text[c.at:])
	if rest == "" {
		return "the line ends here"
	}
	if runes := []rune(rest); len(runes) > 20 {
		rest = string(runes[:20]) + "…"
	}
	return "found " + strconv.Quote(rest)
}

// spaces skips white space.
func (c *cursor) spaces() {
	for c.at < len(c.text) && (c.text[c.at] == ' ' || c.text[c.at] == '\t') {
		c.at++
	}
}

// skip goes past a prefix, if it is there.
func (c *cursor) skip(prefix string) bool {
	if c.wrong != "" || !strings.HasPrefix(c.text[c.at:], prefix) {
		return false
	}
	c.at += len(prefix)
	return true
}

// expect goes past a prefix that must be there.
func (c *cursor) expect(prefix, what string) {
	if c.wrong == "" && !c.skip(prefix) {
		c.bad("%s; expected %s", c.found(), what)
	}
}

// number reads a whole number of 1 to most.
func (c *cursor) number(most int, what string) int {
	if c.wrong != "" {
		return 0
	}
	end := c.at
	for end < len(c.text) && '0' <= c.text[end] && c.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(c.text[c.at:end])
	switch {
	case end == c.at:
		c.bad("%s; expected %s", c.found(), what)
		return 0
	case err != nil || n < 1 || n > most:
		c.bad("%s; expected %s, 1 to %d", c.found(), what, most)
		return 0
	}
	c.at = end
	return n
}

// hex goes past hexadecimal digits.
func (c *cursor) hex(what string) {
	if c.wrong != "" {
		return
	}
	end := c.at
	for end < len(c.text) && strings.IndexByte("0123456789abcdefABCDEF", c.text[end]) >= 0 {
		end++
	}
	if end == c.at || end-c.at > 16 {
		c.bad("%s; expected %s of 1 to 16 hexadecimal digits", c.found(), what)
		return
	}
	c.at = end
}

// id reads "S-2c5eab0300b87b40", with its quotes.
func (c *cursor) id() string {
	c.expect(`"`, `an ID in quotes, such as "S-2c5eab0300b87b40"`)
	start := c.at
	if c.wrong == "" && (c.at >= len(c.text) || strings.IndexByte("SHR", c.text[c.at]) < 0) {
		c.bad("%s; expected S-, H- or R-, and a GUID", c.found())
	}
	if c.wrong == "" {
		c.at++
	}
	c.expect("-", "a - before the GUID")
	c.hex("a GUID")
	id := c.text[start:c.at]
	c.expect(`"`, "a quote after the ID")
	if c.wrong != "" {
		return ""
	}
	return id
}

// comment returns what a comment holds in quotes, from the first to the last, and the words after
// that with their columns from 0. There may be none; what is there must be a comment.
func (c *cursor) comment() (quoted string, words []word) {
	c.spaces()
	if c.wrong != "" || c.at == len(c.text) {
		return "", nil
	}
	c.expect("#", "a comment, which begins with #, or nothing")
	first, last := strings.IndexByte(c.text[c.at:], '"'), strings.LastIndexByte(c.text, '"')
	if first >= 0 {
		if first += c.at; first == last {
			c.at = first
			c.bad("%s; expected a second quote", c.found())
			return "", nil
		}
		quoted, c.at = c.text[first+1:last], last+1
	}
	for c.wrong == "" && c.at < len(c.text) {
		c.spaces()
		start := c.at
		for c.at < len(c.text) && c.text[c.at] != ' ' && c.text[c.at] != '\t' {
			c.at++
		}
		if c.at > start {
			words = append(words, word{c.text[start:c.at], start})
		}
	}
	return quoted, words
}

type word struct {
	text string
	at   int
}

// Package problem is what is wrong with files that people give us: which file, where in it, what is
// wrong and what was expected. It collects; it decides nothing.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems is how many problems of one file are shown: who has more has one mistake that
// shows everywhere, and the first of them tell which.
const maxProblems = 20

// Problem is something wrong with a file.
type Problem struct {
	// File, Line and Column say where it is. The two count from 1; 0 is the file, or the line, as
	// a whole.
	File         string
	Line, Column int
	// Path names the field: "nodes[0].gpus.links[1]".
	Path string
	// Text says what is wrong and what was expected.
	Text string
}

// String returns the problem as one line: "gang.yaml:12: request.groups[0].count: …".
func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Column > 0 {
		place = fmt.Sprintf("%s:%d", place, p.Column)
	}
	if p.Path == "" {
		return place + ": " + p.Text
	}
	return place + ": " + p.Path + ": " + p.Text
}

// Problems is the error of files that cannot be used: everything that is wrong with them.
type Problems []Problem

// Error lists the problems, one a line and up to 20 of a file, in the order of files and lines.
func (ps Problems) Error() string {
	var lines []string
	for len(ps) > 0 {
		n := 1
		for n < len(ps) && ps[n].File == ps[0].File {
			n++
		}
		of := slices.Clone(ps[:n])
		slices.SortStableFunc(of, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
		for i, p := range of {
			if i == maxProblems {
				lines = append(lines, fmt.Sprintf("%s: and %d more", p.File, len(of)-i))
				break
			}
			lines = append(lines, p.String())
		}
		ps = ps[n:]
	}
	return strings.Join(lines, "\n")
}

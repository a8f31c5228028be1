package sim

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// path leads from a scenario to a field: strings are keys, numbers are indexes.
type path []any

// with returns the path to something inside; p itself is not changed.
func (p path) with(steps ...any) path {
	return append(p[:len(p):len(p)], steps...)
}

// plainKey is a key that reads well after a dot.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// String writes the path as people do: nodes[0].labels["example.com/rack"].
func (p path) String() string {
	var s strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			s.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			switch {
			case !plainKey.MatchString(step):
				s.WriteString("[" + strconv.Quote(step) + "]")
			case s.Len() > 0:
				s.WriteString("." + step)
			default:
				s.WriteString(step)
			}
		}
	}
	return s.String()
}

// maxNoted bounds how many problems are kept in memory.
const maxNoted = 1000

// source is where a scenario was read from.
type source struct {
	file string
	// root is the scenario in the file, prefix the way to it.
	root     *yaml.Node
	prefix   path
	problems *problem.Problems
}

// bad notes a problem with the field at the path, at the line of the field, or, where it is
// missing, of what it should be in.
func (s *source) bad(p path, text string) {
	if len(*s.problems) >= maxNoted {
		return
	}
	*s.problems = append(*s.problems, problem.Problem{
		File: s.file, Line: s.line(p), Path: s.prefix.with(p...).String(), Text: text,
	})
}

// line walks from the root as far as the path goes.
func (s *source) line(p path) int {
	n := s.root
	line := n.Line
	for _, step := range p {
		next, at := child(n, step)
		if next == nil {
			break
		}
		n, line = next, at
	}
	return line
}

// has tells whether the file says anything at the path.
func (s *source) has(p path) bool {
	n := s.root
	for _, step := range p {
		if n, _ = child(n, step); n == nil {
			return false
		}
	}
	return true
}

// child returns what is at one step inside a node, and its line: that of the key, where there
// is one.
func child(n *yaml.Node, step any) (inside *yaml.Node, line int) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step], n.Content[step].Line
		}
	case string:
		if n.Kind != yaml.MappingNode {
			return nil, 0
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	}
	return nil, 0
}

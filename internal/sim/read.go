package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// Input is a file to be read. Name is what messages call it.
type Input struct {
	Name string
	Data []byte
}

// Read reads scenarios and checks everything they say. The error is a problem.Problems with all
// that is wrong with any of the files; then there are no scenarios.
//
// A scenario that is to be skipped is left out if anything is wrong with it: its source knows
// that it is not for us.
func Read(inputs ...Input) ([]*Scenario, error) {
	var (
		scenarios []*Scenario
		problems  problem.Problems
		names     = map[string]*Scenario{}
	)
	for _, in := range inputs {
		found := readFile(in, &problems)
		for _, s := range found {
			if first, twice := names[s.Name]; twice && s.Name != "" {
				s.src.bad(path{"name"}, fmt.Sprintf("%q is also the name of a scenario at %s:%d; expected a name of its own",
					s.Name, first.src.file, first.src.line(path{"name"})))
			}
			names[s.Name] = s
		}
		scenarios = append(scenarios, found...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return scenarios, nil
}

func readFile(in Input, problems *problem.Problems) []*Scenario {
	var (
		scenarios []*Scenario
		left      = maxValues
		full      = false
		found     = 0
		before    = len(*problems)
	)
	documents := yaml.NewDecoder(bytes.NewReader(in.Data))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// What seems wrong with the rest may come of that.
			*problems = append((*problems)[:before], syntaxProblem(in, err))
			return scenarios
		}
		for _, src := range split(in.Name, &document, problems) {
			found++
			d := decoder{src: src, left: &left, full: &full}
			if s := d.scenario(problems); s != nil {
				scenarios = append(scenarios, s)
			}
		}
	}
	if found == 0 && len(*problems) == before {
		*problems = append(*problems, problem.Problem{File: in.Name, Text: "holds no scenario; expected one, or a list of them under scenarios"})
	}
	return scenarios
}

// scenario reads and checks one scenario; nil if it is to be left out.
func (d decoder) scenario(problems *problem.Problems) *Scenario {
	own := problem.Problems{}
	d.src.problems = &own
	s := &Scenario{src: d.src}
	d.value(d.src.root, reflect.ValueOf(s).Elem(), nil)
	unreadable := own
	own = nil
	s.check()
	d.src.problems = problems
	// What could not be read is zero now: what is wrong with that was said already.
	own = slices.DeleteFunc(own, func(p problem.Problem) bool {
		return slices.ContainsFunc(unreadable, func(u problem.Problem) bool { return inside(p.Path, u.Path) })
	})
	if s.Skip != "" && len(unreadable)+len(own) > 0 {
		return nil
	}
	*problems = append(append(*problems, unreadable...), own...)
	return s
}

// inside tells whether a path leads to or into what the other leads to.
func inside(p, other string) bool {
	rest, ok := strings.CutPrefix(p, other)
	return ok && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}

// split returns the scenarios of one document: itself, or what is listed under scenarios.
func split(file string, document *yaml.Node, problems *problem.Problems) []*source {
	if len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	whole := &source{file: file, root: root, problems: problems}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		whole.bad(nil, "is "+shown(root)+"; expected a scenario, or a list of them under scenarios")
		return nil
	}
	list, _ := child(root, "scenarios")
	if list == nil {
		return []*source{whole}
	}
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i].Value; key != "scenarios" {
			whole.bad(path{key}, "stands beside scenarios; expected nothing but that list")
		}
	}
	if list.Kind != yaml.SequenceNode {
		whole.bad(path{"scenarios"}, "is "+shown(list)+"; expected a list of scenarios")
		return nil
	}
	sources := make([]*source, len(list.Content))
	for i, n := range list.Content {
		sources[i] = &source{file: file, root: n, prefix: path{"scenarios", i}, problems: problems}
	}
	return sources
}

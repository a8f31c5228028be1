package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

var (
	yamlLine    = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	yamlAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	startOfJSON = regexp.MustCompile(`^\s*[{\[]\s*["{}\[\]]`)
)

// syntaxProblem puts the YAML library's message into our form. The library does not say where
// it stopped at characters and anchors, and is a line off elsewhere.
func syntaxProblem(in Input, err error) problem.Problem {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	p := problem.Problem{File: in.Name}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	var (
		at     = -1
		syntax *json.SyntaxError
		anchor = yamlAnchor.FindStringSubmatch(text)
	)
	switch {
	case strings.HasPrefix(text, "control characters"):
		at = notText(in.Data)
		text = fmt.Sprintf("the control character %U is not allowed", firstRune(in.Data, at))
	case strings.Contains(text, "UTF-8"):
		at = notText(in.Data)
	case anchor != nil:
		if found := regexp.MustCompile(`\*` + regexp.QuoteMeta(anchor[1]) + `(?:[\s,\]}]|$)`).FindIndex(in.Data); found != nil {
			at = found[0]
		}
	case startOfJSON.Match(in.Data) && errors.As(jsonError(in.Data), &syntax):
		at, text = int(syntax.Offset)-1, syntax.Error()
	case strings.HasPrefix(text, "did not find expected"):
		p.Line++
	}
	p.Text = text + "; expected YAML or JSON"
	if at >= 0 {
		before := in.Data[:min(at, len(in.Data))]
		p.Line = bytes.Count(before, []byte("\n")) + 1
		p.Column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	}
	return p
}

func jsonError(data []byte) error {
	var anything any
	return json.Unmarshal(data, &anything)
}

// notText returns where the first byte is that no text has, -1 for nowhere.
func notText(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && !strings.ContainsRune("\t\n\r", r) || r >= 0x7f && r < 0xa0 && r != 0x85 {
			return i
		}
		i += size
	}
	return -1
}

func firstRune(data []byte, at int) rune {
	r, _ := utf8.DecodeRune(data[max(0, at):])
	return r
}

package sim

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// TestEveryFieldIsDocumented finds fields that a file may have and users are not told of.
func TestEveryFieldIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	// What is Kubernetes' own is documented there.
	foreign := []reflect.Type{reflect.TypeFor[Affinity](), reflect.TypeFor[Toleration]()}
	seen := map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		for _, f := range foreign {
			if of == f {
				return
			}
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(of.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			name := of.Field(i).Tag.Get("yaml")
			if name == "" {
				continue
			}
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
				t.Errorf("docs/scenario.md does not say what %s.%s is", of.Name(), name)
			}
			visit(of.Field(i).Type)
		}
	}
	visit(reflect.TypeFor[Scenario]())
	if len(seen) < 10 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

// TestFirstExampleOfTheDocumentation answers the scenario that the documentation starts with.
func TestFirstExampleOfTheDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	file, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```console\n")
	shown, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("no first example with what it prints")
	}
	scenarios, err := Read(Input{Name: "docs/scenario.md", Data: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Place(scenarios[0], Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := Render(&table, Table, Style{}, r); err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(shown, "\n") // the command
	want = strings.Replace(want, ", 0.05 ms", "", 1)
	if table.String() != want {
		t.Errorf("the documentation shows\n%s\nwarp prints\n%s", want, table.String())
	}
}

// TestBrokenExampleOfTheDocumentation refuses the file as the documentation says.
func TestBrokenExampleOfTheDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "Of this `broken.yaml`\n\n```yaml\n")
	file, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "$ warp sim place -f broken.yaml\n")
	want, _, found := strings.Cut(rest, "\nwarp: the input is wrong; nothing was answered\n```\n")
	if !found {
		t.Fatal("no broken.yaml with what is said of it")
	}
	if _, err = Read(Input{Name: "broken.yaml", Data: []byte(file)}); err == nil || err.Error() != want {
		t.Errorf("the documentation shows\n%s\nwarp says\n%v", want, err)
	}
}

// TestAnswersAreDocumented finds fields and reasons of answers that users are not told of.
func TestAnswersAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "## The answer")
	var names []string
	for _, of := range []reflect.Type{
		reflect.TypeFor[Answer](), reflect.TypeFor[Result](), reflect.TypeFor[Explanation](),
		reflect.TypeFor[Change](), reflect.TypeFor[Preference](),
	} {
		for i := range of.NumField() {
			if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	for r := range (placement.Explanation{}).Removed {
		if r > 0 {
			names = append(names, placement.Reason(r).String())
		}
	}
	for _, name := range names {
		if !regexp.MustCompile("[`.]" + name + "[`.]|\"" + name + "\"").MatchString(text) {
			t.Errorf("docs/scenario.md does not say what %s of an answer is", name)
		}
	}
}

// TestColours makes sure that colours change nothing but colours.
func TestColours(t *testing.T) {
	for _, s := range readExamples(t) {
		r, err := Place(s, Options{Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		var plain, coloured strings.Builder
		if err := Render(&plain, Table, Style{}, r); err != nil {
			t.Fatal(err)
		}
		if err := Render(&coloured, Table, Style{Color: true}, r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(coloured.String(), "\x1b[") {
			t.Error("no colours")
		}
		if got := strip(coloured.String()); got != plain.String() {
			t.Errorf("without its colours it is\n%q\nnot\n%q", got, plain.String())
		}
	}
}

// strip takes out what colours a terminal: ESC [ numbers m.
func strip(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == 0x1b {
			i += strings.IndexByte(text[i:], 'm')
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

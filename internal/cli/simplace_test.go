package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const example = "../../examples/scenarios/02-gang-in-one-leaf.yaml"

// warp runs the command line as main does, with a clock that ticks a millisecond a look.
func warp(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	now := time.Unix(0, 0)
	code = Run(Process{
		Args: args,
		In:   strings.NewReader(stdin),
		Out:  &out,
		Err:  &errs,
		Clock: func() time.Time {
			now = now.Add(time.Millisecond)
			return now
		},
		LookupVariable: func(string) (string, bool) { return "", false },
	})
	return code, out.String(), errs.String()
}

func TestTable(t *testing.T) {
	code, out, errs := warp("", "sim", "place", "-f", example)
	if code != Done || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if !strings.HasPrefix(out, "FEASIBLE  02-gang-in-one-leaf  (topologyAware, 1.00 ms)\n") {
		t.Errorf("starts with %q", strings.SplitN(out, "\n", 2)[0])
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours where there is no terminal")
	}
}

// TestLineShape holds the JSON lines to the form that conformance tools read.
func TestLineShape(t *testing.T) {
	code, out, errs := warp("", "sim", "place", "-f", example, "-o", "jsonl")
	if code != Done {
		t.Fatal(errs)
	}
	want := `{"name":"02-gang-in-one-leaf","feasible":true,"reason":"4 pods placed on 2 nodes by topologyAware, all in example.com/leaf l4",` +
		`"maxFeasible":4,"placement":{"main":{"n7":2,"n8":2}},"gpus":{},"mig":[],"victims":[],"elapsedMicros":1000}` + "\n"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestJSONShape(t *testing.T) {
	code, out, errs := warp("", "sim", "place", "-f", "../../examples/scenarios/03-refusal-with-nearest-miss.yaml", "-o", "json")
	if code != Done {
		t.Fatal(errs)
	}
	var results []struct {
		Feasible    *bool
		Explanation struct {
			Removed     map[string]int
			Certificate struct {
				Kind       string
				Room, Need int
			}
			Misses  []struct{ Level, Domain string }
			Changes []struct{ Field, To string }
		}
		Expectation struct{ Agrees bool }
	}
	strict := json.NewDecoder(strings.NewReader(out))
	if err := strict.Decode(&results); err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Feasible == nil || *r.Feasible || !r.Expectation.Agrees || r.Explanation.Removed["notReady"] != 1 {
		t.Errorf("got %+v", r)
	}
	if c := r.Explanation.Certificate; c.Kind != "noDomainHolds" || c.Room != 5 || c.Need != 6 {
		t.Errorf("the certificate is %+v", c)
	}
	if len(r.Explanation.Misses) != 3 || len(r.Explanation.Changes) != 3 {
		t.Errorf("misses %v, changes %v", r.Explanation.Misses, r.Explanation.Changes)
	}
	for _, field := range []string{`"maxFeasible"`, `"elapsedMicros"`, `"roomEmpty"`, `"strategy"`} {
		if !strings.Contains(out, field) {
			t.Errorf("%s is not there", field)
		}
	}
}

func TestSeveralFiles(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := warp(string(data), "sim", "place", "-o", "jsonl", "--strategy", "binPack",
		"-f", "../../examples/scenarios/05-elastic-gang.yaml", "-f", "-")
	if code != Done {
		t.Fatal(errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "05-elastic") || !strings.Contains(lines[1], "by binPack") {
		t.Errorf("answers are\n%s", out)
	}
}

// TestBadInput makes sure that nothing is answered unless everything is right, and that the
// message says where to look.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("name: a\nnodes: []\nrequest:\n  name: j\n  groups: [{name: g, count: 0}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"wrong scenario":   {[]string{"sim", "place", "-f", example, "-f", broken}, broken + ":5: request.groups[0].count: is 0; expected"},
		"no file":          {[]string{"sim", "place", "-f", "nowhere.yaml"}, "nowhere.yaml: cannot be read: no such file or directory"},
		"no -f":            {[]string{"sim", "place"}, "warp: no scenario given: name a file with -f"},
		"file without -f":  {[]string{"sim", "place", example}, `02-gang-in-one-leaf.yaml" is not for this command: use -f FILE to name a scenario`},
		"stdin twice":      {[]string{"sim", "place", "-f", "-", "-f", "-"}, "standard input can be read once"},
		"a directory":      {[]string{"sim", "place", "-f", "."}, ".: cannot be read: is a directory"},
		"empty":            {[]string{"sim", "place", "-f", "-"}, "stdin: holds no scenario"},
		"unknown output":   {[]string{"sim", "place", "-f", example, "-o", "xml"}, `warp: unknown output "xml": choose one of table, json, jsonl`},
		"unknown strategy": {[]string{"sim", "place", "-f", example, "--strategy", "best"}, `warp: unknown strategy "best": choose one of leastLoaded`},
		"unknown flag":     {[]string{"sim", "place", "--file", "x"}, "warp: unknown flag: --file"},
		"unknown question": {[]string{"sim", "plan"}, `warp: unknown command "plan" for "warp sim"`},
		"unknown command":  {[]string{"simulate"}, `warp: unknown command "simulate"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := warp("", tc.args...)
			if code != BadInput || out != "" {
				t.Errorf("exit code %d, printed %q", code, out)
			}
			if !strings.Contains(errs, tc.want) {
				t.Errorf("says %q, want %q", errs, tc.want)
			}
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFault(t *testing.T) {
	var errs bytes.Buffer
	code := Run(Process{Args: []string{"sim", "place", "-f", example, "-o", "json"}, Out: brokenPipe{}, Err: &errs})
	if code != Fault || !strings.Contains(errs.String(), "warp: writing the answer: broken pipe") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}

// TestInternalError makes sure that a panic looks like what it is, and leaves no half an answer.
func TestInternalError(t *testing.T) {
	looks := 0
	for name, p := range map[string]Process{
		"in the engine": {Out: &bytes.Buffer{}, Clock: func() time.Time {
			// The first scenario is answered, the second is not.
			if looks++; looks > 2 {
				panic("out of range")
			}
			return time.Unix(0, 0)
		}},
		"elsewhere": {Out: panics{}},
	} {
		var errs bytes.Buffer
		p.Args = []string{"sim", "place", "-o", "jsonl", "-f", example, "-f", "../../examples/scenarios/05-elastic-gang.yaml"}
		p.Err = &errs
		code := Run(p)
		if code != Fault || !strings.HasPrefix(errs.String(), "warp: internal error: ") || !strings.Contains(errs.String(), "out of range") {
			t.Errorf("%s: exit code %d, %s", name, code, errs.String())
		}
		if out, ok := p.Out.(*bytes.Buffer); ok && out.Len() > 0 {
			t.Errorf("%s: printed %s", name, out)
		}
		if name == "in the engine" && !strings.Contains(errs.String(), "answering 05-elastic-gang") {
			t.Errorf("does not say which scenario: %s", errs.String())
		}
	}
}

type panics struct{}

func (panics) Write([]byte) (int, error) { panic("out of range") }

// TestUnexpected has a scenario expect what is not so: it is answered, and the exit code tells.
func TestUnexpected(t *testing.T) {
	file := "name: a\nnodes: []\nrequest: {name: j, groups: [{name: g, count: 1}]}\nexpect: {feasible: true}\n"
	code, out, errs := warp(file, "sim", "place", "-f", "-", "-f", example)
	if code != Unexpected || errs != "warp: 1 of 2 answers not as expected\n" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if !strings.Contains(out, "feasible, but it is not") {
		t.Errorf("printed %s", out)
	}
}

// TestAllFilesAreLookedAt makes sure that what is wrong with one file does not hide what is
// wrong with another.
func TestAllFilesAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	args := []string{"sim", "place", "-f", "nowhere.yaml"}
	for name, data := range map[string]string{
		"empty.yaml":  "",
		"syntax.yaml": "name: [\n",
		"count.yaml":  "name: a\nnodes: []\nrequest: {name: j, groups: [{name: g, count: -1}]}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", file)
	}
	code, _, errs := warp("", args...)
	if code != BadInput {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"nowhere.yaml: cannot", "empty.yaml: holds no scenario", "syntax.yaml:", "count.yaml:3: "} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
}

func TestOtherCommands(t *testing.T) {
	for want, args := range map[string][]string{
		"warp (devel)":                {"version"},
		"warp (devel) ":               {"--version"},
		"3  if every question":        {"sim", "place", "--help"},
		"bash completion":             {"completion", "bash"},
		"warp sim place -f examples/": {"sim", "place", "--help"},
		"Ask what would happen:":      {"--help"},
		"jsonl":                       {"__complete", "sim", "place", "-o", ""},
	} {
		code, out, _ := warp("", args...)
		if code != Done || !strings.Contains(out, want) {
			t.Errorf("warp %v: exit code %d, no %q in\n%s", args, code, want, out)
		}
	}
}

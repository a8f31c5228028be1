package sim

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// corpus is where cases from other schedulers' own tests lie, with the program that judges
// answers to them. They are not part of this repository.
const corpus = "../../../shared/conformance"

// report is what check.py says of one file of cases.
type report struct {
	MustPassed    int                     `json:"mustPassed"`
	PolicyMatched int                     `json:"policyMatched"`
	PolicyCases   int                     `json:"policyCases"`
	Policies      map[string]policyReport `json:"policies"`
	Failed        []struct{ Name, Why string }
}

type policyReport struct{ Matched, Of int }

// TestConformance has the answers to other schedulers' own cases judged. What a case asks for
// must hold in every one of them, but for those that need preemption, which comes later: saying
// that they are infeasible is excused, a wrong plan is not. Which of several equally good
// answers it is, is only counted.
func TestConformance(t *testing.T) {
	missing := func(what string) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing, and CI=true turns skips into failures", what)
		}
		t.Skipf("%s is missing: scenarios of other schedulers are not judged", what)
	}
	files, err := filepath.Glob(filepath.Join(corpus, "*.json"))
	if err != nil || len(files) == 0 {
		missing(corpus + "/*.json")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		missing("python3")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			scenarios, err := Read(Input{Name: filepath.Base(file), Data: data})
			if err != nil {
				t.Fatal(err)
			}
			found := judgeByCorpus(t, python, file, answers(t, scenarios))
			for _, f := range found.Failed {
				t.Errorf("%s: %s", f.Name, f.Why)
			}
			if found.MustPassed == 0 {
				t.Error("not one case passed: the cases or the judge were not found")
			}
			t.Logf("%s: MUST %d passed, %d failed; POLICY %d of %d",
				filepath.Base(file), found.MustPassed, len(found.Failed), found.PolicyMatched, found.PolicyCases)
			for _, policy := range slices.Sorted(maps.Keys(found.Policies)) {
				t.Logf("  %s: %d of %d", policy, found.Policies[policy].Matched, found.Policies[policy].Of)
			}
		})
	}
}

func answers(t *testing.T, scenarios []*Scenario) []byte {
	t.Helper()
	var results []*Result
	for _, s := range scenarios {
		r, err := Place(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	var lines bytes.Buffer
	if err := Render(&lines, JSONLines, Style{}, results...); err != nil {
		t.Fatal(err)
	}
	return lines.Bytes()
}

func judgeByCorpus(t *testing.T, python, file string, lines []byte) report {
	t.Helper()
	answered := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(answered, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	// The exit code only repeats that something failed, which the report says case by case.
	cmd := exec.CommandContext(t.Context(), python, filepath.Join(corpus, "check.py"), file, answered, "--json")
	cmd.Stderr = os.Stderr
	out, _ := cmd.Output()
	reports := map[string]report{}
	if err := json.Unmarshal(out, &reports); err != nil || len(reports) != 1 {
		t.Fatalf("the judge said nothing that can be read: %v\n%s", err, out)
	}
	return reports[file]
}

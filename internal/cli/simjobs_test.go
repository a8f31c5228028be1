package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	traceJobs  = "../../examples/traces/jobs.csv"
	traceNodes = "../../examples/traces/nodes.csv"
)

// file writes a file for a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSimJobs replays the example in every form.
func TestSimJobs(t *testing.T) {
	dir := t.TempDir()
	plot, starts := filepath.Join(dir, "jobs.svg"), filepath.Join(dir, "starts.csv")
	args := []string{"sim", "jobs", "--jobs", traceJobs, "--cluster", traceNodes, "--policy", "hrrn,fifo/leastAllocated", "--seeds", "3,4"}
	code, out, errs := warp("", append(args, "-o", "json", "--plot", plot, "--starts", starts)...)
	if code != Done || !strings.Contains(errs, "events a second") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var report struct {
		Results []struct {
			Policy string
			Jobs   int
			All    struct{ Waiting struct{ P95 float64 } }
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Results) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	ours, theirs := report.Results[0], report.Results[1]
	if ours.Policy != "hrrn/topologyAware" || ours.Jobs != theirs.Jobs || ours.All.Waiting.P95 >= theirs.All.Waiting.P95 {
		t.Errorf("got %+v", report)
	}
	if picture, err := os.ReadFile(plot); err != nil || !strings.Contains(string(picture), "<svg") {
		t.Errorf("the picture: %v", err)
	}
	in, err := os.Open(starts)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil || len(rows) != 1+3*ours.Jobs || rows[1][0] != "nodes.csv" || rows[1][1] != "hrrn/topologyAware" || rows[1][2] != "3" || !strings.HasPrefix(rows[1][7], "node-") {
		t.Errorf("%d rows of starts, %v", len(rows), err)
	}
	// A report that was kept is shown as it would have been at once.
	_, table, _ := warp("", args...)
	saved := file(t, "saved.json", out)
	if code, shown, errs := warp("", "sim", "report", saved); code != Done || shown != table {
		t.Errorf("exit code %d: %s\n%s\nis not\n%s", code, errs, shown, table)
	}
	if code, shown, _ := warp("", "sim", "report", saved, saved); code != Done ||
		!strings.Contains(shown, "p95 of waiting no longer than by any other on 2 of 2; a larger share of gangs in one leaf on 2 of the 2") {
		t.Errorf("exit code %d: %s", code, shown)
	}
	if code, shown, _ := warp("", "sim", "report", "--locality", saved); code != Done || !strings.Contains(shown, "longer than by hrrn/topologyAware") {
		t.Errorf("exit code %d: %s", code, shown)
	}
}

// TestSimJobsFromStandardInput replays what a program prints, and on more nodes.
func TestSimJobsFromStandardInput(t *testing.T) {
	code, out, errs := warp("job_id,submission_time,duration,num_gpu\na,0,10,16\nb,0,10,16\n",
		"sim", "jobs", "--jobs", "-", "--cluster", "fattree:2x8", "--add-nodes", "2", "--policy", "fifo", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != Done || err != nil || len(rows) != 5 || rows[1][7] != "10.0" || rows[3][0] != "fattree:2x8 +2" || rows[3][7] != "0.0" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestBadSimJobs has one thing wrong at a time.
func TestBadSimJobs(t *testing.T) {
	wide := file(t, "wide.csv", "job_id,submission_time,duration,num_gpu\na,0,10,9999\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no trace given: name a file with --jobs, or - for standard input", []string{"--cluster", "flat:1x8"}},
		{"no cluster given: name a shape such as fattree:128x8, or a file, with --cluster", []string{"--jobs", traceJobs}},
		{`unknown queue "lifo"; expected one of fifo, greedy, sjf, backfill, hrrn`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--policy", "lifo"}},
		{`unknown --estimates "guess": choose one of oracle, p50, none`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--estimates", "guess"}},
		{`unknown --output "xml": choose one of table, json, csv`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "-o", "xml"}},
		{"--comm-share 2: expected 0 to 1", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--comm-share", "2"}},
		{`--all-reduce "much": expected an amount of memory such as 512Mi or 1Gi`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--all-reduce", "much"}},
		{`cannot draw "x.gif": expected a file that ends in .png, .svg, .html`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--plot", "x.gif"}},
		{"cannot write /nowhere/x.png", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--plot", "/nowhere/x.png"}},
		{"4294967296 more nodes than 1; expected at most 131072 in all", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--add-nodes", "4294967296"}},
		{"--checkpoint does nothing without --preempt", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--checkpoint", "1h"}},
		{"would have the same name in the results", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--cluster", "flat:1x8"}},
		{"has no node with a GPU; expected some", []string{"--jobs", traceJobs, "--cluster", file(t, "cpu.csv", "name,cpu_milli,memory_mib,gpu\nn,1,1,0\n")}},
		{`seeds are "x": expected whole numbers`, []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--seeds", "x"}},
		{"is a folder", []string{"--jobs", t.TempDir(), "--cluster", "flat:1x8"}},
		{"--add-nodes: expected none of them below 0", []string{"--jobs", traceJobs, "--cluster", "flat:1x8", "--add-nodes", "-1"}},
		{`num_gpu: is 9999, as 3333 pods with 3 GPUs each; the empty cluster has room for 8 of them`, []string{"--jobs", wide, "--cluster", "flat:4x8"}},
		{"wide.csv:2:8: num_gpu: is 9999", []string{"--jobs", wide, "--cluster", "flat:4x8"}},
		{"no such file", []string{"--jobs", "nowhere.csv", "--cluster", "flat:1x8"}},
		{"nowhere.csv", []string{"--jobs", traceJobs, "--cluster", "nowhere.csv"}},
		{"there is no column memory_mib", []string{"--jobs", traceJobs, "--cluster", file(t, "n.csv", "name,cpu_milli,gpu\nn,1,1\n")}},
		{`"jobs.csv" is not for this command: use --jobs FILE and --cluster SHAPE or FILE`, []string{"jobs.csv"}},
	} {
		code, out, errs := warp("", append([]string{"sim", "jobs"}, c.args...)...)
		if code != BadInput || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %q%s\nwant %s", c.args, code, out, errs, c.want)
		}
	}
	for want, args := range map[string][]string{
		"no report given":                {},
		"cannot be read":                 {"nowhere.json"},
		"is no report":                   {wide},
		"expected what warp sim jobs -o": {file(t, "x.json", "{}")},
	} {
		if code, _, errs := warp("", append([]string{"sim", "report"}, args...)...); code != BadInput || !strings.Contains(errs, want) {
			t.Errorf("report %v: exit code %d: %s\nwant %s", args, code, errs, want)
		}
	}
}

// TestCommandsOfTheDocumentation runs what the documentation shows, and compares what it prints.
func TestCommandsOfTheDocumentation(t *testing.T) {
	t.Chdir("../..")
	block := regexp.MustCompile("(?s)```console\n(\\$ warp sim (?:jobs|packing|report) .*?)```")
	found := 0
	for _, doc := range []string{"docs/simulator.md", "docs/packing.md"} {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(data), -1) {
			found++
			command, shown, _ := strings.Cut(strings.ReplaceAll(m[1], "\\\n", " "), "\n")
			args := strings.Fields(strings.TrimPrefix(command, "$ warp "))
			code, out, errs := warp("", args...)
			if code != Done || strings.TrimSpace(out) != strings.TrimSpace(shown) {
				t.Errorf("%s: %s: exit code %d: %s\n%s", doc, command, code, errs, out)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d commands were found", found)
	}
}

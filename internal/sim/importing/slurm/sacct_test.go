package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// TestSacct reads every kind of row that Slurm prints.
func TestSacct(t *testing.T) {
	data, err := os.ReadFile("testdata/sacct.txt")
	if err != nil {
		t.Fatal(err)
	}
	found, err := ReadJobs("sacct.txt", bytes.NewReader(data), Requested)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Job{
		{ID: "1001_4", Duration: 30 * time.Second, GPUs: 1, Pods: 1, Queue: "gpu", Priority: 2147483647},
		{ID: "1002", Submit: 10 * time.Minute, Duration: time.Hour, GPUs: 8, Pods: 1, Model: "h100", Queue: "gpu", Priority: 100},
		{ID: "1003", Submit: 15 * time.Minute, Duration: 1801 * time.Second, GPUs: 12, Pods: 3, Model: "a100", Queue: "gpu2", Priority: 5},
		{ID: "1007", Submit: 19 * time.Minute, Duration: 2 * time.Hour, GPUs: 6, Queue: "gpu", Priority: 1},
		{ID: "1008", Submit: 20 * time.Minute, Duration: 10 * time.Minute, GPUs: 2, Pods: 1, Queue: "gpu", Priority: 1},
		{ID: "1010", Submit: 22 * time.Minute, Duration: 10 * time.Minute, GPUs: 4, Pods: 2, Model: "a100", Queue: "gpu", Priority: 1},
		{ID: "1008#2", Submit: 51 * time.Minute, Duration: 24 * time.Hour, GPUs: 2, Pods: 1, Queue: "gpu", Priority: 1},
	}
	for i := range max(len(want), len(found.Jobs)) {
		if i >= len(want) || i >= len(found.Jobs) || !reflect.DeepEqual(found.Jobs[i], want[i]) {
			t.Errorf("jobs are\n%+v, want\n%+v", found.Jobs, want)
			break
		}
	}
	if left := (importing.Notes{{Count: 3, Text: waiting}, {Count: 2, Text: noGPU}, {Count: 1, Text: shared}}); !reflect.DeepEqual(found.Left, left) {
		t.Errorf("left out %v, want %v", found.Left, left)
	}
	if changed := (importing.Notes{{Count: 1, Text: capped}, {Count: 1, Text: uneven}, {Count: 1, Text: running}, {Count: 1, Text: mixed}}); !reflect.DeepEqual(found.Changed, changed) {
		t.Errorf("changed %v, want %v", found.Changed, changed)
	}
}

const header = "JobID|Submit|Start|End|ElapsedRaw|AllocTRES|ReqTRES\n"

func read(text string, model Model) ([]trace.Job, *importing.Found, error) {
	found, err := ReadJobs("f", strings.NewReader(text), model)
	if err != nil {
		return nil, nil, err
	}
	return found.Jobs, found, nil
}

func TestModels(t *testing.T) {
	const row = "1|2024-05-01T12:00:00|2024-05-01T12:00:00|2024-05-01T12:00:09|9|gres/gpu=4,gres/gpu:h100=4,node=1|"
	for _, c := range []struct {
		text  string
		model Model
		want  string
	}{
		{header + row + "gres/gpu=4\n", Requested, ""},
		{header + row + "gres/gpu=4\n", Allocated, "h100"},
		{header + row + "gres/gpu:a100=4\n", Requested, "a100"},
		{header + row + "gres/gpu:a100=4\n", Any, ""},
		{header + row + "gres/gpu=4,gres/gpu:a100=2\n", Requested, ""},
		// Nothing says what was asked for.
		{strings.ReplaceAll(header, "|ReqTRES", "") + strings.TrimSuffix(row, "|") + "\n", Requested, "h100"},
		{strings.ReplaceAll(header, "|ReqTRES", "") + strings.TrimSuffix(row, "|") + "\n", Any, ""},
	} {
		jobs, _, err := read(c.text, c.model)
		if err != nil || len(jobs) != 1 || jobs[0].Model != c.want {
			t.Errorf("%s of %s: got %+v, %v; want %q", c.model, c.text, jobs, err, c.want)
		}
	}
}

// TestTimes holds how long jobs ran, with fewer columns and with what Slurm says in place of times.
func TestTimes(t *testing.T) {
	const day = "2024-05-01T"
	for name, c := range map[string]struct {
		text string
		want time.Duration
		left string
	}{
		"without ElapsedRaw":    {"JobID|Submit|Start|End|AllocTRES\n1|" + day + "12:00:00|" + day + "12:00:05|" + day + "12:01:05|gres/gpu=1\n", time.Minute, ""},
		"without End":           {"JobID|Submit|Start|ElapsedRaw|AllocTRES\n1|" + day + "12:00:00|" + day + "12:00:05|7|gres/gpu=1\n", 7 * time.Second, ""},
		"suspended in between":  {header + "1|" + day + "12:00:00|" + day + "12:00:00|" + day + "13:00:00|10|gres/gpu=1|\n", 10 * time.Second, ""},
		"runs, for nobody says": {"JobID|Submit|Start|End|AllocTRES\n1|" + day + "12:00:00|" + day + "12:00:05|Unknown|gres/gpu=1\n", 0, noEnd},
		"with a zone":           {header + "1|" + day + "12:00:00+0200|" + day + "12:00:00+02:00|" + day + "13:00:00Z||gres/gpu=1|\n", 3 * time.Hour, ""},
		"bar at the end":        {"JobID|Submit|Start|ElapsedRaw|AllocTRES|\n1|" + day + "12:00:00|" + day + "12:00:05|7|gres/gpu=1|\n", 7 * time.Second, ""},
		"held for ever":         {header + "1|Unknown|Unknown|Unknown|0||\n", 0, waiting},
		"ended at once":         {header + "1|" + day + "12:00:00|" + day + "12:00:05|" + day + "12:00:05|0|gres/gpu=1|\n", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, found, err := read(c.text, Requested)
			switch {
			case err != nil:
				t.Error(err)
			case c.left != "" && (len(jobs) != 0 || !reflect.DeepEqual(found.Left, importing.Notes{{Count: 1, Text: c.left}})):
				t.Errorf("jobs %v, left out %v", jobs, found.Left)
			case c.left == "" && (len(jobs) != 1 || jobs[0].Duration != c.want):
				t.Errorf("got %+v", jobs)
			}
		})
	}
}

// TestHeterogeneous starts the components of a job together, of which some have no GPU.
func TestHeterogeneous(t *testing.T) {
	row := func(id, submit, tres string) string {
		return id + "|2024-05-01T12:00:0" + submit + "|2024-05-01T13:00:00|2024-05-01T13:00:09|9|" + tres + "|" + tres + "\n"
	}
	for name, c := range map[string]struct {
		rows string
		want []trace.Job
		left importing.Notes
	}{
		"alike":              {row("7+0", "0", "gres/gpu=8,node=2") + row("7+1", "0", "gres/gpu=4,node=1"), []trace.Job{{ID: "7", GPUs: 12, Pods: 3}}, nil},
		"different":          {row("7+0", "0", "gres/gpu=8,node=2") + row("7+1", "0", "gres/gpu=8,node=1"), []trace.Job{{ID: "7", GPUs: 16}}, nil},
		"different models":   {row("7+0", "0", "gres/gpu:a=1,node=1") + row("7+1", "0", "gres/gpu:b=1,node=1"), []trace.Job{{ID: "7", GPUs: 2, Pods: 2}}, nil},
		"the number again":   {row("7+0", "0", "gres/gpu=8,node=2") + row("7+0", "1", "gres/gpu=1,node=1"), []trace.Job{{ID: "7", GPUs: 8, Pods: 2}, {ID: "7#2", Submit: time.Second, GPUs: 1, Pods: 1}}, nil},
		"processors alone":   {row("7+0", "0", "cpu=8,node=2") + row("7+1", "0", "cpu=1,node=1"), nil, importing.Notes{{Count: 1, Text: noGPU}}},
		"never started":      {row("7+0", "0", "") + row("7+1", "0", ""), nil, importing.Notes{{Count: 1, Text: waiting}}},
		"processors to lead": {row("7+0", "0", "cpu=1,node=1") + row("7+1", "0", "gres/gpu:a=6,node=3"), []trace.Job{{ID: "7", GPUs: 6, Pods: 3, Model: "a"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, found, err := read(header+c.rows, Requested)
			for i := range c.want {
				c.want[i].Duration = 9 * time.Second
			}
			if err != nil || len(jobs) != len(c.want) || len(jobs) > 0 && !reflect.DeepEqual(jobs, c.want) {
				t.Fatalf("got %+v, %v; want %+v", jobs, err, c.want)
			}
			if !reflect.DeepEqual(found.Left, c.left) {
				t.Errorf("left out %v", found.Left)
			}
		})
	}
}

func TestBadSacct(t *testing.T) {
	const ok = "2024-05-01T12:00:00|2024-05-01T12:00:00|2024-05-01T12:00:09|9|gres/gpu=1|\n"
	for _, c := range []struct{ text, want string }{
		{"", "f: is empty; expected a header with the names of the columns"},
		{header, "f: has a header and no rows; expected at least one"},
		{"       JobID    JobName\n------------\n", "f:1: there is no column JobID; expected a header with JobID, Submit, Start, AllocTRES, ElapsedRaw or End, and read JobID    JobName"},
		{"JobID|Submit|Start|AllocTRES\n1|2|3|4\n", "f:1: there is no column ElapsedRaw or End; expected a header with JobID, Submit, Start, AllocTRES, ElapsedRaw or End, and read JobID|Submit|Start|AllocTRES"},
		{header + "abc|" + ok, `f:2:1: JobID: is "abc"; expected a number such as 123, 123_4 of an array or 123+0 of a heterogeneous job`},
		{header + "1|" + ok + "|" + ok, `f:3:1: JobID: is ""; expected a number such as 123, 123_4 of an array or 123+0 of a heterogeneous job`},
		{header + "12x|" + ok, `f:2:1: JobID: is "12x"; expected a number such as 123, 123_4 of an array or 123+0 of a heterogeneous job`},
		{header + "1|Tue 12:00|2024-05-01T12:00:00||9|gres/gpu=1|\n", `f:2:3: Submit: is "Tue 12:00"; expected a time such as 2024-05-01T12:00:00, Unknown or None (run sacct without SLURM_TIME_FORMAT)`},
		{header + "1||2024-05-01T12:00:00||9|gres/gpu=1|\n", `f:2:3: Submit: is "" of a job that started; expected a time such as 2024-05-01T12:00:00`},
		{header + "1|2024-05-01T12:00:00|0001-01-01T00:00:00||9|gres/gpu=1|\n", `f:2:23: Start: is "0001-01-01T00:00:00"; expected a time such as 2024-05-01T12:00:00, Unknown or None (run sacct without SLURM_TIME_FORMAT)`},
		{header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00|2024-05-01T11:00:00||gres/gpu=1|\n", "f:2:43: End: is 1h0m0s before Start; expected it after, or a column ElapsedRaw"},
		{header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00||01:00|gres/gpu=1|\n", `f:2:44: ElapsedRaw: is "01:00"; expected a number of seconds`},
		{header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00||9|cpu=1,gres/gpu=many|\n", `f:2:46: AllocTRES: has "gres/gpu=many"; expected a list such as cpu=64,gres/gpu=8,gres/gpu:h100=8,mem=500G,node=1`},
		{header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00||9|gres/gpu=2000000|\n", "f:2:46: AllocTRES: has 2000000 GPUs; expected at most 1048576"},
		{header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00||9|gres/gpu=1|gres/gpu:a=-1\n", `f:2:57: ReqTRES: has "gres/gpu:a=-1"; expected a list such as cpu=64,gres/gpu=8,gres/gpu:h100=8,mem=500G,node=1`},
		{header + "1|a|" + ok, "f:2: has 8 values; expected 7, as the header has"},
		{"Priority|" + header + "-1|1|" + ok, "f:2:1: Priority: is -1; expected 0 to 4294967295"},
	} {
		_, _, err := read(c.text, Requested)
		if first, _, _ := strings.Cut(fmt.Sprint(err), "\n"); first != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
		var problems problem.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%q: %T is not the fault of the file", c.text, err)
		}
	}
}

// FuzzSacct holds that whatever is read without complaint can be simulated: it is written and
// read back, and nothing got lost between rows and jobs.
func FuzzSacct(f *testing.F) {
	data, err := os.ReadFile("testdata/sacct.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(header + "1|Unknown|None||9|gres/gpu:a=1,gres/gpu=4,node=3|\n2+1|2024-05-01T12:00:00|2024-05-01T12:00:00|2024-05-01T12:00:00+0100||gres/gpu=4,node=2|x\n")
	f.Add("JobID|Submit|Start|End|AllocTRES|Priority\n\"1|2024-05-01T12:00:00Z|2024-05-01T12:00:00|Unknown|gres/gpu=4|-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, model := range Models() {
			found, err := ReadJobs("f", strings.NewReader(text), Model(model))
			if err != nil {
				continue
			}
			count := len(found.Jobs)
			for _, n := range found.Left {
				count += n.Count
			}
			if rows := strings.Count(text, "\n") + 1; count > rows {
				t.Errorf("%d jobs of %d lines", count, rows)
			}
			var file bytes.Buffer
			if err := trace.WriteJobs(&file, found.Jobs); err != nil {
				t.Fatal(err)
			}
			if len(found.Jobs) == 0 {
				continue
			}
			written := file.String()
			jobs := trace.NewJobs("jobs.csv", &file, trace.JobsOptions{})
			for _, want := range found.Jobs {
				got, ok := jobs.Next()
				got.Line = 0
				if !ok || got != want {
					t.Fatalf("read back as %+v, %v, want %+v\n%s", got, jobs.Err(), want, written)
				}
			}
		}
	})
}

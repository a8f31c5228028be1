package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	accounting = "../sim/importing/slurm/testdata/sacct.txt"
	scontrol   = "NodeName=g1 CPUTot=64 RealMemory=257000 Gres=gpu:h100:8 State=IDLE\n"
)

// TestImportSlurm goes from what Slurm printed to files to simulate with.
func TestImportSlurm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "may")
	code, out, errs := warp("", "sim", "import", "sacct", accounting, "--out", dir)
	want := "wrote " + dir + `/jobs.csv: 7 jobs of 75.0 GPU-hours, submitted over 51m0s
left out:
       3  jobs that never started
       2  jobs that had no GPU
       1  jobs that had parts of GPUs alone (gres/shard, gres/mps)
changed on the way:
       1  jobs with a priority above 2147483647, which is the most that is written
       1  jobs without a number of pods: their GPUs do not divide evenly among their nodes
       1  jobs that still run, with the time they ran so far
       1  heterogeneous jobs, whose components were made one job
the nodes: scontrol show nodes --oneliner | warp sim import slurm-nodes - --out ` + dir + "\n"
	if code != Done || out != "" || errs != want {
		t.Errorf("exit code %d, printed %q, said\n%s", code, out, errs)
	}
	next := "next: warp sim jobs --jobs " + dir + "/jobs.csv --cluster " + dir + "/nodes.csv\n"
	code, out, errs = warp(scontrol, "sim", "import", "slurm-nodes", "-", "--out", dir)
	if code != Done || out != "" || errs != "wrote "+dir+"/nodes.csv: 1 node with 8 GPUs\n"+next {
		t.Errorf("exit code %d, printed %q, said\n%s", code, out, errs)
	}
	file, err := os.ReadFile(filepath.Join(dir, "nodes.csv"))
	if err != nil || string(file) != "name,cpu_milli,memory_mib,gpu,model,spine,leaf\ng1,64000,257000,8,h100,,\n" {
		t.Errorf("%s, %v", file, err)
	}
	code, _, errs = warp("", "sim", "import", "sacct", accounting, "--out", dir, "--force", "--gpu-model", "any")
	file, err = os.ReadFile(filepath.Join(dir, "jobs.csv"))
	if code != Done || !strings.HasSuffix(errs, "\n"+next) || err != nil || strings.Contains(string(file), "h100") {
		t.Errorf("exit code %d, said %s\n%s, %v", code, errs, file, err)
	}
}

// TestBadImports says what is wrong, and writes nothing.
func TestBadImports(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jobs.csv"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreachable := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(unreachable, []byte(`{apiVersion: v1, kind: Config, current-context: a,
		contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", empty)
	const header = "JobID|Submit|Start|End|ElapsedRaw|AllocTRES\n"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"a wrong value":    {header + "1|2024-05-01T12:00:00|soon||5|gres/gpu=1\n", []string{"sacct", "-"}, BadInput, `stdin:2:23: Start: is "soon"; expected a time such as 2024-05-01T12:00:00`},
		"no GPU":           {header + "1|2024-05-01T12:00:00|2024-05-01T12:00:00||5|cpu=1\n", []string{"sacct", "-"}, BadInput, "       1  jobs that had no GPU\nwarp: there is no job with GPUs to write, and nothing was written\n"},
		"no file":          {"", []string{"sacct", "nowhere.txt"}, BadInput, "nowhere.txt: cannot be read: no such file or directory"},
		"no name":          {"", []string{"sacct"}, BadInput, "warp: 0 files are named; expected one, with the output of sacct, or - for standard input"},
		"two names":        {"", []string{"slurm-nodes", "a", "b"}, BadInput, "warp: 2 files are named; expected one, with the output of scontrol"},
		"a folder":         {"", []string{"slurm-nodes", "."}, BadInput, "reading .: read .: is a directory"},
		"it exists":        {"", []string{"sacct", accounting, "--out", dir}, BadInput, "jobs.csv exists: choose another folder with --out, or write over it with --force"},
		"cannot be made":   {scontrol, []string{"slurm-nodes", "-", "--out", empty + "/x"}, Fault, "not a directory"},
		"unknown model":    {"", []string{"sacct", "-", "--gpu-model", "h100"}, BadInput, `unknown --gpu-model "h100": choose one of requested, allocated, any`},
		"not scontrol":     {"PARTITION AVAIL\n", []string{"slurm-nodes", "-"}, BadInput, `stdin:1:1: begins with "PARTITION AVAIL"; expected NodeName=`},
		"no cluster there": {"", []string{"cluster", "--kubeconfig", unreachable}, Fault, "reading the cluster at http://127.0.0.1:1: listing nodes: "},
		"no cluster named": {"", []string{"cluster"}, BadInput, "finding the cluster: "},
		"no such file":     {"", []string{"cluster", "--kubeconfig", "nowhere"}, BadInput, "finding the cluster: stat nowhere: no such file or directory"},
		"no such context":  {"", []string{"cluster", "--kubeconfig", unreachable, "--context", "b"}, BadInput, `finding the cluster: context "b" does not exist`},
		"into the future":  {"", []string{"cluster", "--since", "-1h"}, BadInput, "--since is -1h0m0s; expected how long ago, such as 168h"},
		"jobs are there":   {"", []string{"cluster", "--kubeconfig", unreachable, "--out", dir}, BadInput, "jobs.csv exists"},
	} {
		t.Run(name, func(t *testing.T) {
			// Files that are there are named by a path that does not depend on the folder.
			args := append([]string{"sim", "import"}, c.args...)
			if !strings.Contains(strings.Join(args, " "), "--out") {
				args = append(args, "--out", t.TempDir())
			}
			code, out, errs := warp(c.stdin, args...)
			if code != c.code || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, printed %q, said\n%swant %s", code, out, errs, c.want)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

func TestHelpOfImport(t *testing.T) {
	for want, args := range map[string][]string{
		"slurm-nodes Make nodes.csv of":     {"sim", "import"},
		"sacct --allusers --allocations":    {"sim", "import", "sacct", "--help"},
		"docs/import.md has a role":         {"sim", "import", "cluster", "--help"},
		"allocated":                         {"__complete", "sim", "import", "sacct", "--gpu-model", ""},
		"2  if a file or a flag is wrong, ": {"sim", "import", "slurm-nodes", "--help"},
	} {
		code, out, _ := warp("", args...)
		if code != Done || !strings.Contains(out, want) {
			t.Errorf("warp %v: exit code %d, no %q in\n%s", args, code, want, out)
		}
	}
}

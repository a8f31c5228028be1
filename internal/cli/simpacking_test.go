package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packingFolder has a small cluster, workloads and published results.
func packingFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,8,A100\nn2,64000,262144,8,A100\nn3,96000,262144,4,T4\n",
		"pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,4000,1024,1,500,\np2,4000,1024,1,1000,T4|A100\np3,8000,1024,4,1000,A100\n" +
			"p4,8000,1024,0,0,\np5,1000,1024,1,300,\np6,1000,1024,2,1000,\n",
		"openb_pod_list_two.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nq1,1000,1024,1,1000\nq2,1000,1024,8,1000\n",
		"summary.csv":            "metric,workload,policy,arrive_pct,mean,sd,n\nallo,openb_pod_list_pods,06-FGD,100,40,100,10\n",
		"summary-wrong.csv":      "metric,workload,policy,arrive_pct,mean,sd,n\nallo,openb_pod_list_pods,06-FGD,100,40,0.1,10\n",
		"bad-nodes.csv":          "sn,cpu_milli,memory_mib,gpu\nn1,many,1,1\n",
		"bad-pods.csv":           "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,1,1,1,1000,B200\np2,1,1,2,500,\n",
		"no-gpus.csv":            "sn,cpu_milli,memory_mib,gpu\nn1,1,1,0\n",
		"no-gpu-pods.csv":        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1,1,0,0\n",
		"summary-bad.csv":        "metric,workload,policy,arrive_pct,mean,sd\nallo,w,p,100,x,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// warpPacking runs warp sim packing in a folder, on its cluster.
func warpPacking(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return warp("", append([]string{"sim", "packing", "--nodes", "nodes.csv"}, args...)...)
}

func TestPackingTable(t *testing.T) {
	t.Chdir(packingFolder(t))
	code, out, errs := warpPacking(t, "--pods", "pods.csv", "--policy", "all", "--seeds", "1-3")
	if code != Done || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{
		"3 nodes with 20 GPUs, filled until the pods have asked for 130 % of them; means of 3 seeds and their standard deviation.\n",
		"\npods: 6 pods of 6 kinds\nPOLICY ", "UNALLOCATED AT 100 %", "AT 130 %", "FRAGMENTED AT 100 %", "PODS REFUSED\n",
		"\nleastLoaded ", "\nfragmentationAware:defaultMix ", "\nfgd ", " ± ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, again, _ := warpPacking(t, "--pods", "pods.csv", "--policy", "all", "--seeds", "1-3"); again != out {
		t.Error("the same question has two answers")
	}
}

func TestPackingCSV(t *testing.T) {
	t.Chdir(packingFolder(t))
	code, out, errs := warpPacking(t, "--pods", "pods.csv", "--pods", "openb_pod_list_two.csv", "--seeds", "5", "--tune", "0.5", "-o", "csv")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != Done || len(lines) != 1+2*2*51 || lines[0] != "workload,policy,seed,arrived,allocated,unallocated,fragmentation" {
		t.Fatalf("exit code %d, %d lines, %s", code, len(lines), errs)
	}
	if !strings.HasPrefix(lines[1], "pods,fragmentationAware,5,0,") || !strings.HasPrefix(lines[204], "two,fgd,5,50,") {
		t.Errorf("%s … %s", lines[1], lines[204])
	}
}

func TestPackingJSON(t *testing.T) {
	t.Chdir(packingFolder(t))
	code, out, errs := warpPacking(t, "--pods", "pods.csv", "--seeds", "1,2", "-o", "json", "--published", "summary.csv")
	if code != Done {
		t.Fatal(errs)
	}
	var results struct {
		Nodes, GPUs, Judged, End int
		Summary                  []struct {
			Policy      string
			Unallocated struct{ Mean, SD *float64 }
		}
		Published struct {
			Reproduced []struct{ Near bool }
			Margins    []struct{ Margin float64 }
		}
		Runs []struct {
			Seed          int64
			Pods, Refused int
			Columns       []struct{ Unallocated, FragmentationRate *float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	if results.Nodes != 3 || results.GPUs != 20 || results.Judged != 100 || results.End != 130 || len(results.Summary) != 2 ||
		results.Summary[0].Policy != "fragmentationAware" || results.Summary[0].Unallocated.Mean == nil {
		t.Errorf("got %+v", results)
	}
	if len(results.Runs) != 4 || len(results.Runs[3].Columns) != 131 || results.Runs[3].Seed != 2 || results.Runs[3].Columns[130].FragmentationRate == nil {
		t.Errorf("got %d runs", len(results.Runs))
	}
	if len(results.Published.Reproduced) != 1 || !results.Published.Reproduced[0].Near || len(results.Published.Margins) != 1 {
		t.Errorf("got %+v", results.Published)
	}
}

// TestPackingUnexpected: everything is printed, and the exit code tells.
func TestPackingUnexpected(t *testing.T) {
	t.Chdir(packingFolder(t))
	code, out, errs := warpPacking(t, "--pods", "pods.csv", "--published", "summary-wrong.csv")
	if code != Unexpected || !strings.Contains(out, "0 of 1 are within") || !strings.HasPrefix(errs, "warp: 1 of 1 published figures not found again") {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// TestPicture is drawn completely or not at all.
func TestPicture(t *testing.T) {
	dir := packingFolder(t)
	t.Chdir(dir)
	for _, name := range []string{"a.png", "b.svg", "c.html"} {
		if code, _, errs := warpPacking(t, "--pods", "pods.csv", "--pods", "openb_pod_list_two.csv", "--seeds", "1", "--plot", name); code != Done {
			t.Fatal(errs)
		}
		if info, err := os.Stat(name); err != nil || info.Size() < 1000 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	var errs bytes.Buffer
	code := Run(Process{Args: []string{"sim", "packing", "--nodes", "nodes.csv", "--pods", "pods.csv", "--seeds", "1", "--plot", "d.svg"}, Out: brokenPipe{}, Err: &errs})
	if code != Fault || !strings.Contains(errs.String(), "warp: writing the results: broken pipe") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBadPacking makes sure that nothing is played unless everything is right.
func TestBadPacking(t *testing.T) {
	dir := packingFolder(t)
	t.Chdir(dir)
	if err := os.Mkdir("taken.png", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no cluster":         {[]string{"--nodes", "", "--pods", "pods.csv"}, "warp: no cluster given: name a file with --nodes"},
		"no pods":            {nil, "warp: no workload given: name a file with --pods"},
		"a file alone":       {[]string{"pods.csv"}, `warp: "pods.csv" is not for this command: use --nodes FILE and --pods FILE`},
		"no such file":       {[]string{"--pods", "nowhere.csv"}, "nowhere.csv: cannot be read: no such file or directory\nwarp: the input is wrong"},
		"a bad node":         {[]string{"--nodes", "bad-nodes.csv", "--pods", "pods.csv"}, `bad-nodes.csv:2:4: cpu_milli: is "many"; expected a whole number`},
		"an unknown model":   {[]string{"--pods", "bad-pods.csv"}, `bad-pods.csv:2:15: gpu_spec: "B200" is no GPU model of the nodes; expected one of A100, T4`},
		"all that is wrong":  {[]string{"--pods", "bad-pods.csv", "--published", "summary-bad.csv"}, "summary-bad.csv:2:14: mean: is \"x\"; expected a number"},
		"no GPUs":            {[]string{"--nodes", "no-gpus.csv", "--pods", "pods.csv"}, "no-gpus.csv: none of its 1 nodes has a GPU; expected at least one to fill"},
		"no pods with GPUs":  {[]string{"--pods", "no-gpu-pods.csv"}, "no-gpu-pods.csv: none of its 1 pods asks for a GPU"},
		"the same name":      {[]string{"--pods", "pods.csv", "--pods", "../x/pods.csv"}, "warp: --pods pods.csv and --pods ../x/pods.csv are both called pods"},
		"stdin twice":        {[]string{"--nodes", "-", "--pods", "-"}, "stdin: "},
		"no seeds":           {[]string{"--pods", "pods.csv", "--seeds", ""}, `warp: seeds are "": expected whole numbers and ranges of them`},
		"a bad range":        {[]string{"--pods", "pods.csv", "--seeds", "9-1"}, `warp: seeds are "9-1": the range 9-1 ends before it begins`},
		"no tune":            {[]string{"--pods", "pods.csv", "--tune", "0"}, "warp: tune is 0: expected a multiple of the GPUs, 0.01 to 10"},
		"negative tune":      {[]string{"--pods", "pods.csv", "--tune", "-1"}, "warp: tune is -1: expected"},
		"an unknown policy":  {[]string{"--pods", "pods.csv", "--policy", "best"}, `warp: unknown policy "best": choose among leastLoaded, `},
		"an unknown output":  {[]string{"--pods", "pods.csv", "-o", "yaml"}, `warp: unknown output "yaml": choose one of table, json, csv`},
		"an unknown picture": {[]string{"--pods", "pods.csv", "--plot", "x.gif"}, `warp: cannot draw "x.gif": expected a file that ends in .png`},
		"no such folder":     {[]string{"--pods", "pods.csv", "--plot", "no/x.png"}, "warp: cannot write no/x.png: no such file or directory"},
		"a folder":           {[]string{"--pods", "pods.csv", "--plot", "taken.png"}, "warp: cannot write taken.png: it is there and is no file"},
		"nothing published":  {[]string{"--pods", "openb_pod_list_two.csv", "--published", "summary.csv"}, "summary.csv: has nothing at 100 % for what is to be played"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := warpPacking(t, tc.args...)
			if code != BadInput || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("exit code %d, printed %q, says\n%s\nwant %s", code, out, errs, tc.want)
			}
		})
	}
}

func TestPackingHelp(t *testing.T) {
	for want, args := range map[string][]string{
		"3  if everything was played, and --published": {"sim", "packing", "--help"},
		"fragmentationAware:defaultMix":                {"__complete", "sim", "packing", "--policy", ""},
		"csv":                                          {"__complete", "sim", "packing", "-o", ""},
		"Fill a cluster with the pods of a trace":      {"sim", "--help"},
	} {
		if code, out, _ := warp("", args...); code != Done || !strings.Contains(out, want) {
			t.Errorf("warp %v: exit code %d, no %q in\n%s", args, code, want, out)
		}
	}
}

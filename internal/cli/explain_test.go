package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
)

func waiting() *explainv1alpha1.Explanation {
	hours := 1.5
	return &explainv1alpha1.Explanation{
		TypeMeta:   metav1.TypeMeta{Kind: "Explanation", APIVersion: explainv1alpha1.APIVersion},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang"}, Subject: "gpuworkload", Workload: "gang",
		Verdict: "CHANGE", Reason: "Fragmented", Message: "54 GPUs are free, but no leaf has 4 free nodes; the best, leaf-03, has 3", Snapshot: 7,
		Misses: []explainv1alpha1.Miss{
			{Domain: "the cluster", Room: 5, Need: 4, Empty: 8, MoreHolders: 2, Holders: []explainv1alpha1.Holder{{Name: "team/a", GPUs: 1}}},
			{Level: "leaf", Domain: "leaf-03", Room: 3, Need: 4, Empty: 4, Nodes: []explainv1alpha1.NodeIssue{{Name: "n1", Reason: "cordoned"}}},
		},
		Remedies: []explainv1alpha1.Remedy{
			{Number: 1, Kind: "change", Message: "require one spine instead of one leaf", Starts: "now", Cost: explainv1alpha1.Cost{Summary: "1 level wider"}, Commands: []string{"kubectl patch"}},
			{Number: 2, Kind: "ask", Message: "ask team/a to make way", Starts: "30m0s", Latest: "1h0m0s", Cost: explainv1alpha1.Cost{Summary: "1 pod evicted", GPUHoursLost: &hours}},
			{Number: 3, Kind: "wait", Message: "wait", Starts: "unknown", Cost: explainv1alpha1.Cost{Summary: "nothing but time"}},
		},
	}
}

// explainCluster serves one workload that waits and one that runs, and returns its kubeconfig.
func explainCluster(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := func(code int, body any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			if err := json.NewEncoder(w).Encode(body); err != nil {
				t.Error(err)
			}
		}
		refuse := func(err *apierrors.StatusError) {
			err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			write(int(err.ErrStatus.Code), err.ErrStatus)
		}
		resource := schema.GroupResource{Group: explainv1alpha1.GroupName, Resource: "gpuworkloads"}
		switch r.URL.Path {
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/team/gpuworkloads/gang/explanation":
			answer := waiting()
			if r.URL.Query().Get("try") == "1" {
				answer.Try = &explainv1alpha1.Trial{Number: 1, Message: "4 pods placed", Nodes: []explainv1alpha1.NodeRanks{{Node: "n7", Ranks: "0-3", Domain: "spine-1"}}}
			}
			write(http.StatusOK, answer)
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/team/pods/p/explanation":
			write(http.StatusOK, &explainv1alpha1.Explanation{Subject: "pod", Verdict: "PLACED", Message: "bound to n1", Runs: true})
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/team/pods/rude/explanation":
			write(http.StatusOK, &explainv1alpha1.Explanation{
				Subject: "pod", Verdict: "PLACED", Message: "\x1b[2J\u009b31mgone\u202e", Runs: true, Snapshot: 1<<63 + 1,
				Notes:   []string{"\x1b]0;title\x07"},
				Misses:  []explainv1alpha1.Miss{{Holders: []explainv1alpha1.Holder{{Name: "team/Job/\r\x1b[1Ax"}}}},
				History: []explainv1alpha1.Decision{{Message: "\x1b[8mhidden"}},
			})
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/team/gpuworkloads/gang/scenario":
			write(http.StatusOK, &explainv1alpha1.Scenario{File: "request: {}\n"})
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/team/gpuworkloads/nobody/explanation":
			refuse(apierrors.NewNotFound(resource, "nobody"))
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/other/gpuworkloads/gang/explanation":
			refuse(apierrors.NewForbidden(resource, "gang", nil))
		case "/apis/explain.gpu.warp.dev/v1alpha1/namespaces/gone/gpuworkloads/gang/explanation":
			refuse(apierrors.NewServiceUnavailable("no endpoints"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "` + server.URL + `"}}],
"users": [{"name": "u", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}], "current-context": "x"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func runExplainWith(t *testing.T, kubeconfig string, args ...string) (code int, out, complaint string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(Process{
		Name: "warp", Args: append([]string{"explain", "--kubeconfig", kubeconfig}, args...), In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Clock: time.Now, LookupVariable: func(string) (string, bool) { return "", false },
	})
	return code, stdout.String(), stderr.String()
}

func TestExplainTable(t *testing.T) {
	code, out, complaint := runExplainWith(t, explainCluster(t), "gang")
	const want = `CHANGE: 54 GPUs are free, but no leaf has 4 free nodes; the best, leaf-03, has 3
gpuworkload team/gang, Fragmented, snapshot 7

Nearest
  LEVEL    DOMAIN   ROOM  NEEDED  IF EMPTY  IN THE WAY
  cluster  -        5     4       8         team/a (1 GPU), 2 more workloads
  leaf     leaf-03  3     4       4         n1 (cordoned)

What would help (each was tried on this snapshot; the cheapest first)
  1. require one spine instead of one leaf
     starts now; costs 1 level wider
     kubectl patch
  2. ask team/a to make way
     starts in 30m0s, at the latest in 1h0m0s; costs 1 pod evicted
  3. wait
     when it starts is unknown; costs nothing but time
  --try N shows where it would go
`
	if code != Waiting || out != want || complaint != "" {
		t.Errorf("exit code %d, %q:\n%s", code, complaint, out)
	}
}

func TestExplainExitCodes(t *testing.T) {
	kubeconfig := explainCluster(t)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"it waits":               {[]string{"gang"}, Waiting, "CHANGE: "},
		"it runs":                {[]string{"pod/p"}, Done, "PLACED: bound to n1"},
		"as JSON":                {[]string{"gang", "-o", "json"}, Waiting, `"reason": "Fragmented"`},
		"as YAML":                {[]string{"gang", "-o", "yaml"}, Waiting, "reason: Fragmented\n"},
		"a remedy's plan":        {[]string{"gang", "--try", "1"}, Waiting, "n7    0-3    spine-1"},
		"a scenario":             {[]string{"gang", "--scenario"}, Done, "request: {}"},
		"nobody":                 {[]string{"nobody"}, Fault, "there is no gpuworkload nobody in namespace team"},
		"not allowed":            {[]string{"gang", "-n", "other"}, Fault, "forbidden"},
		"no manager":             {[]string{"gang", "-n", "gone"}, Fault, "kubectl get apiservice v1alpha1.explain.gpu.warp.dev"},
		"not installed":          {[]string{"gang", "-n", "bare"}, Fault, "is gpu-orchestrator installed there"},
		"no kubeconfig":          {[]string{"gang", "--kubeconfig", "/nowhere"}, Fault, "finding the cluster"},
		"of nothing":             {nil, BadInput, "say about what"},
		"of two":                 {[]string{"a", "b"}, BadInput, "say about what"},
		"of no kind":             {[]string{"node/a"}, BadInput, "pod/NAME or gang/NAME"},
		"without a name":         {[]string{"pod/"}, BadInput, "names nothing"},
		"an output that is none": {[]string{"gang", "-o", "xml"}, BadInput, "choose one of table, json, yaml"},
		"a remedy below 1":       {[]string{"gang", "--try", "0"}, BadInput, "numbered from 1"},
		"a pod's scenario":       {[]string{"pod/p", "--scenario"}, BadInput, "--scenario is for GPUWorkloads"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, complaint := runExplainWith(t, kubeconfig, c.args...)
			if code != c.code || !strings.Contains(out+complaint, c.says) {
				t.Errorf("exit code %d, want %d with %q: %s%s", code, c.code, c.says, out, complaint)
			}
		})
	}
}

// Names that others gave do not move the terminal of whoever reads them.
func TestWhatOthersWroteIsShownOnly(t *testing.T) {
	kubeconfig := explainCluster(t)
	for _, output := range explainOutputs() {
		code, out, _ := runExplainWith(t, kubeconfig, "pod/rude", "-o", output)
		if code != Done || !strings.Contains(out, "gone") || !strings.Contains(out, "9223372036854775809") || strings.ContainsAny(out, "\x1b\x07\r\u009b\u202e") {
			t.Errorf("-o %s: exit code %d, %q", output, code, out)
		}
	}
}

func TestAsPluginOfKubectl(t *testing.T) {
	var out bytes.Buffer
	code := Run(Process{Name: "kubectl-warp", Args: []string{"explain", "--help"}, Out: &out, Err: &out, In: strings.NewReader("")})
	if code != Done || !strings.Contains(out.String(), "kubectl warp explain NAME") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/cli"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// warp runs the command line in this process, as a user with the kubeconfig would.
func warp(kubeconfig string, args ...string) (code int, out, complaint string) {
	var stdout, stderr bytes.Buffer
	code = cli.Run(cli.Process{
		Name: "warp", Args: append(args, "--kubeconfig", kubeconfig), In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Clock: time.Now, LookupVariable: os.LookupEnv,
	})
	return code, stdout.String(), stderr.String()
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// explained asks why, until the answer is as wanted: the manager's view may be a moment behind.
func (c *cluster) explained(t *testing.T, w *gpuv1alpha1.GPUWorkload, wanted func(*explainv1alpha1.Explanation) bool) *explainv1alpha1.Explanation {
	t.Helper()
	var answer explainv1alpha1.Explanation
	eventually(t, func() error {
		code, out, complaint := warp(c.kubeconfig(), "explain", w.Name, "-n", w.Namespace, "-o", "json")
		if code != cli.Done && code != cli.Waiting {
			return fmt.Errorf("exit code %d: %s", code, complaint)
		}
		answer = explainv1alpha1.Explanation{}
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			return err
		}
		if runs := code == cli.Done; runs != answer.Runs {
			return fmt.Errorf("exit code %d, and runs is %t", code, answer.Runs)
		}
		if !wanted(&answer) {
			return errors.New(out)
		}
		return nil
	})
	return &answer
}

func offers(kind, words string) func(*explainv1alpha1.Explanation) bool {
	return func(e *explainv1alpha1.Explanation) bool { return remedyOf(e, kind, words) != nil }
}

func remedyOf(e *explainv1alpha1.Explanation, kind, words string) *explainv1alpha1.Remedy {
	for i := range e.Remedies {
		if e.Remedies[i].Kind == kind && strings.Contains(e.Remedies[i].Message, words) {
			return &e.Remedies[i]
		}
	}
	return nil
}

// shell runs a command that an explanation proposes, with the real kubectl.
func (c *cluster) shell(t *testing.T, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig(), "PATH="+harness.Assets(t)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// manifest reads the workloads of an example into a namespace.
func manifest(t *testing.T, namespace, file string) []*gpuv1alpha1.GPUWorkload {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var all []*gpuv1alpha1.GPUWorkload
	for _, part := range strings.Split(string(text), "\n---\n") {
		w := &gpuv1alpha1.GPUWorkload{}
		if err := yaml.UnmarshalStrict([]byte(part), w); err != nil {
			t.Fatal(err)
		}
		w.Namespace = namespace
		all = append(all, w)
	}
	return all
}

// fragment makes of eight nodes two leaves that small jobs keep from being whole, as
// examples/fragmented does.
func (c *cluster) fragment(t *testing.T, namespace string) {
	t.Helper()
	for i := range 8 {
		c.patchNode(t, fmt.Sprintf("gpu-node-%04d", i+1), func(n *corev1.Node) {
			n.Labels[gpuv1alpha1.LeafLabel] = fmt.Sprintf("leaf-%03d", 1+i/4)
			if i == 0 || i == 4 {
				n.Labels["example.com/users"] = "yes"
			}
			if i == 5 || i == 6 {
				n.Labels["example.com/evaluations"] = "yes"
			}
		})
	}
	for _, w := range manifest(t, namespace, "examples/fragmented/jobs.yaml") {
		c.submit(t, w)
	}
}

// settled waits until the small jobs, and nothing else, hold their places.
func (c *cluster) settled(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func() error {
		var all gpuv1alpha1.GPUWorkloadList
		if err := c.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].Status.Phase != gpuv1alpha1.PhaseRunning {
				return fmt.Errorf("%s is %s: %s", all.Items[i].Name, all.Items[i].Status.Phase, all.Items[i].Status.Message)
			}
		}
		if len(all.Items) != 3 {
			return fmt.Errorf("%d workloads", len(all.Items))
		}
		return nil
	})
}

// Every remedy of the example, carried out as it says, starts the gang.
func TestRemediesOfTheFragmentedExampleStartTheGang(t *testing.T) {
	c := ownCluster(t, "--nodes=8")
	ns := c.namespace(t)
	c.fragment(t, ns)
	gang := func() *gpuv1alpha1.GPUWorkload { return manifest(t, ns, "examples/fragmented/gang.yaml")[0] }

	for _, remedy := range []struct{ kind, words string }{
		{"change", "require one spine instead of one leaf"},
		{"change", "ask for 3 pods instead of 4"},
		{"change", "ask for 7 GPUs a pod instead of 8"},
		{"move", "move " + ns + "/notebook to gpu-node-0005"},
		{"preempt", "let it evict " + ns + "/notebook (priority 10, below 20, preemptible)"},
		{"ask", "ask " + ns + "/notebook (priority 10, below 20) to make way"},
	} {
		t.Run(remedy.kind+" "+remedy.words, func(t *testing.T) {
			if remedy.kind == "ask" {
				c.shell(t, "kubectl patch gpuworkload notebook -n "+ns+` --type=merge -p '{"spec":{"preemptible":false}}'`)
			}
			c.settled(t, ns)
			w := c.submit(t, gang())
			e := c.explained(t, w, offers(remedy.kind, remedy.words))
			if want := "54 GPUs are free, but no leaf has 4 free nodes; the best, leaf-001, has 3"; e.Verdict != explainv1alpha1.VerdictWait ||
				e.Reason != "Fragmented" || e.Message != want {
				t.Errorf("%s, %s: %s", e.Verdict, e.Reason, e.Message)
			}
			r := remedyOf(e, remedy.kind, remedy.words)
			tried := c.tried(t, w, r.Number)
			for _, line := range r.Commands {
				c.shell(t, line)
			}
			c.until(t, w, "Scheduled", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
			// Where it goes was told before, where nothing else changed.
			if remedy.kind == "change" && !slices.Equal(w.Status.AssignedNodes, tried) {
				t.Errorf("it went to %v, and was tried on %v", w.Status.AssignedNodes, tried)
			}
			if e := c.explained(t, w, func(e *explainv1alpha1.Explanation) bool { return e.Verdict == explainv1alpha1.VerdictPlaced }); len(e.Placement.Nodes) == 0 {
				t.Error("it is placed nowhere")
			}
			if remedy.kind == "move" {
				moved := &gpuv1alpha1.GPUWorkload{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "notebook"}, moved); err != nil {
					t.Fatal(err)
				}
				c.until(t, moved, "Running again", func(w *gpuv1alpha1.GPUWorkload) bool {
					return w.Status.Phase == gpuv1alpha1.PhaseRunning && w.Status.AssignedNode == "gpu-node-0005"
				})
			}
			c.restore(t, ns, w)
		})
	}
}

// tried returns where --try says that the workload would go.
func (c *cluster) tried(t *testing.T, w *gpuv1alpha1.GPUWorkload, number int) []string {
	t.Helper()
	code, out, complaint := warp(c.kubeconfig(), "explain", w.Name, "-n", w.Namespace, "-o", "json", "--try", fmt.Sprint(number))
	if code != cli.Waiting {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	var e explainv1alpha1.Explanation
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range e.Try.Nodes {
		nodes = append(nodes, n.Node)
	}
	return nodes
}

// restore takes the gang away and puts the notebook back to where it was.
func (c *cluster) restore(t *testing.T, ns string, w *gpuv1alpha1.GPUWorkload) {
	t.Helper()
	notebook := &gpuv1alpha1.GPUWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "notebook"}}
	for _, old := range []*gpuv1alpha1.GPUWorkload{w, notebook} {
		if err := c.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there still: %w", old.Name, err)
			}
			return nil
		})
	}
	c.submit(t, manifest(t, ns, "examples/fragmented/jobs.yaml")[0])
}

// What ends is told when, and a node out of service is what has to be mended.
func TestExplainTellsWhenAndWhatIsBroken(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	selector, nodes := c.nodes(t, 2)
	limit := int64(8)
	c.until(t, c.submit(t, gpuWorkload(ns, "short", 1, 8, onNodes(selector), forever, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ActiveDeadlineSeconds = &limit })),
		"Running", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
	w := c.submit(t, gpuWorkload(ns, "waits", 2, 8, onNodes(selector), forever))
	e := c.explained(t, w, offers("wait", "short has ended"))
	in, err := time.ParseDuration(remedyOf(e, "wait", "short").Starts)
	if err != nil || in > 9*time.Second || e.Verdict != explainv1alpha1.VerdictWait {
		t.Fatalf("%s, in %s: %v", e.Verdict, in, err)
	}
	asked := time.Now()
	c.until(t, w, "Running", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
	if took := time.Since(asked); took > in+10*time.Second {
		t.Errorf("it started %s after it was told that it would in %s", took, in)
	}

	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	c.patchNode(t, nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = true })
	broken := c.submit(t, gpuWorkload(ns, "broken", 2, 8, onNodes(selector), forever))
	e = c.explained(t, broken, offers("mend", "uncordon "+nodes[1]))
	if e.Verdict != explainv1alpha1.VerdictBroken || e.Reason != "NodesOutOfService" {
		t.Errorf("%s, %s: %s", e.Verdict, e.Reason, e.Message)
	}
	for _, line := range remedyOf(e, "mend", "uncordon").Commands {
		c.shell(t, line)
	}
	c.until(t, broken, "Running", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
}

// Kubernetes' own roles say who may ask, and what is told of others.
func TestExplainKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	mine, theirs := c.namespace(t), c.namespace(t)
	selector, _ := c.nodes(t, 1)
	c.until(t, c.submit(t, gpuWorkload(theirs, "secret-project", 1, 8, onNodes(selector), forever)),
		"Running", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
	w := c.submit(t, gpuWorkload(mine, "waits", 1, 8, onNodes(selector), forever))
	c.explained(t, w, offers("ask", theirs+"/secret-project"))

	user := c.viewer(t, mine)
	code, out, complaint := warp(user, "explain", "waits", "-n", mine)
	if code != cli.Waiting {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	if !strings.Contains(out, theirs+"/(hidden)-") || strings.Contains(out, "secret-project") {
		t.Errorf("it is told:\n%s", out)
	}
	for _, args := range [][]string{
		{"explain", "secret-project", "-n", theirs},
		{"explain", "waits", "-n", mine, "--scenario"},
	} {
		if code, out, complaint := warp(user, args...); code != cli.Fault || !strings.Contains(complaint, "forbidden") {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, complaint)
		}
	}
	code, out, complaint = warp(c.kubeconfig(), "explain", "waits", "-n", mine, "--scenario")
	if code != cli.Done || !strings.Contains(out, "request:") {
		t.Errorf("exit code %d: %s%s", code, out, complaint)
	}
}

// viewer returns the kubeconfig of a user who may look at one namespace.
func (c *cluster) viewer(t *testing.T, namespace string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "viewer"}},
	}
	for _, o := range []client.Object{account, binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "viewer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Plain pods are explained, too, and what was decided is listed by kubectl itself.
func TestExplainPodsAndDecisions(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	selector, _ := c.nodes(t, 1)
	c.until(t, c.submit(t, gpuWorkload(ns, "holder", 1, 8, onNodes(selector), forever)),
		"Running", func(w *gpuv1alpha1.GPUWorkload) bool { return w.Status.Phase == gpuv1alpha1.PhaseRunning })
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plain", Labels: map[string]string{gpuv1alpha1.GangLabel: "ring", gpuv1alpha1.GangSizeLabel: "1"}},
		Spec: corev1.PodSpec{NodeSelector: selector, Containers: []corev1.Container{{Name: "c", Image: "example.com/c", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		}}}},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pod/plain", "gang/ring"} {
		eventually(t, func() error {
			code, out, complaint := warp(c.kubeconfig(), "explain", name, "-n", ns)
			if code != cli.Waiting || !strings.Contains(out, "ASK: 2 GPUs are needed and no GPU is free") || !strings.Contains(out, "patch gpuworkload holder") {
				return fmt.Errorf("%s: exit code %d: %s%s", name, code, out, complaint)
			}
			return nil
		})
	}
	if out := c.kubectl(nil, "-n", ns, "get", "decisions"); !strings.Contains(out, "holder") || !strings.Contains(out, "Planned") {
		t.Errorf("kubectl get decisions: %s", out)
	}
	if code, _, complaint := warp(c.kubeconfig(), "explain", "nobody", "-n", ns); code != cli.Fault || !strings.Contains(complaint, "there is no gpuworkload nobody in namespace "+ns) {
		t.Errorf("exit code %d: %s", code, complaint)
	}
}

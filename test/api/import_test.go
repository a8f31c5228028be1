package api

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/cli"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// TestImport imports a cluster through its API server, as a user with the role that the
// documentation shows and, before that, without.
func TestImport(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	importCluster(t, c, space)
	user, err := server.AddUser(envtest.User{Name: "importer"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	data, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// An hour from now all that runs has run for an hour.
	later := time.Now().Add(time.Hour)
	dir := filepath.Join(t.TempDir(), "week")
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := cli.Run(cli.Process{
			Args: append([]string{"sim", "import", "cluster", "--kubeconfig", kubeconfig, "--namespace", space, "--out", dir}, args...),
			Out:  &out, Err: &errs, Clock: func() time.Time { return later },
		})
		if out.Len() > 0 {
			t.Errorf("printed %s", &out)
		}
		return code, errs.String()
	}

	code, said := run()
	if want := "the cluster does not let you list nodes in the whole cluster: ask its administrator for the role in docs/import.md; it says: "; code != cli.Fault || !strings.Contains(said, want) {
		t.Errorf("without a role: exit code %d, %s", code, said)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}

	role := documentedRole(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "importer"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Fatal(err)
		}
	}
	if code, said = run(); code != cli.Done {
		t.Fatalf("exit code %d, %s", code, said)
	}
	for _, want := range []string{"with 20 GPUs; 3 jobs of ", "1  jobs that have not started yet", "1  jobs that still run", "next: warp sim jobs --jobs " + dir} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	checkImported(t, dir, space)

	before := string(read(t, filepath.Join(dir, "jobs.csv")))
	if code, said = run(); code != cli.BadInput || !strings.Contains(said, "exists: choose another folder with --out, or write over it with --force") {
		t.Errorf("a second time: exit code %d, %s", code, said)
	}
	if code, said = run("--force"); code != cli.Done || string(read(t, filepath.Join(dir, "jobs.csv"))) != before {
		t.Errorf("with --force: exit code %d, %s", code, said)
	}
	if code, said = run("--force", "--since", "1ns"); code != cli.BadInput || !strings.Contains(said, "there is no job with GPUs to write") {
		t.Errorf("of no time at all: exit code %d, %s", code, said)
	}
	dir = t.TempDir()
	if code, said = run("--nodes-only", "--spine-label", "example.com/row"); code != cli.Done || !strings.Contains(string(read(t, filepath.Join(dir, "nodes.csv"))), "import-1,95500,1048576,8,H100,r7,l1\n") {
		t.Errorf("of nodes: exit code %d, %s", code, said)
	}
}

// documentedRole is the role that docs/import.md shows.
func documentedRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	text := string(read(t, filepath.Join(harness.Root(t), "docs", "import.md")))
	_, text, found := strings.Cut(text, "```yaml\n")
	text, _, ended := strings.Cut(text, "```\n")
	if !found || !ended {
		t.Fatal("docs/import.md shows no role")
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
		t.Fatal(err)
	}
	return &role
}

// checkImported reads the files as a simulation does.
func checkImported(t *testing.T, dir, space string) {
	t.Helper()
	nodes, err := trace.ReadNodes("nodes.csv", strings.NewReader(string(read(t, filepath.Join(dir, "nodes.csv")))))
	if err != nil {
		t.Fatal(err)
	}
	var ours []trace.Node
	for _, n := range nodes {
		if strings.HasPrefix(n.Name, "import-") {
			ours = append(ours, n)
		}
	}
	wantNodes := []trace.Node{
		{Name: "import-1", CPUMilli: 95500, MemoryMiB: 1 << 20, GPUs: 8, Model: "H100", Spine: "s1", Leaf: "l1"},
		{Name: "import-2", CPUMilli: 95500, MemoryMiB: 1 << 20, GPUs: 8, Model: "H100", Spine: "s1", Leaf: "l2"},
		{Name: "import-3", CPUMilli: 95500, MemoryMiB: 1 << 20, GPUs: 4, Model: "A100", Spine: "s1", Leaf: "l2"},
	}
	if !reflect.DeepEqual(ours, wantNodes) {
		t.Errorf("nodes are %+v", ours)
	}

	jobs := trace.NewJobs("jobs.csv", strings.NewReader(string(read(t, filepath.Join(dir, "jobs.csv")))), trace.JobsOptions{Models: trace.Models(nodes)})
	got := map[string]trace.Job{}
	for {
		j, ok := jobs.Next()
		if !ok {
			break
		}
		// They were all made within seconds.
		if j.Submit > time.Minute {
			t.Errorf("%s was submitted at %v", j.ID, j.Submit)
		}
		j.Submit, j.Line = 0, 0
		got[j.ID] = j
	}
	if err := jobs.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]trace.Job{
		space + "/train":    {ID: space + "/train", Duration: 20 * time.Minute, GPUs: 16, Pods: 2, Model: "H100", Queue: space},
		space + "/notebook": {ID: space + "/notebook", Duration: 5 * time.Minute, GPUs: 1, Pods: 1, Queue: space},
	}
	llama := got[space+"/llama"]
	if llama.GPUs != 8 || llama.Pods != 2 || llama.Duration < 50*time.Minute || llama.Priority != 1 {
		t.Errorf("the workload that runs is %+v", llama)
	}
	delete(got, space+"/llama")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("jobs are %+v, want %+v", got, want)
	}

	pods, err := trace.ReadPods("pods.csv", strings.NewReader(string(read(t, filepath.Join(dir, "pods.csv")))), trace.Models(nodes))
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 7 {
		t.Errorf("%d pods: %+v", len(pods), pods)
	}
}

// importCluster makes nodes and work in a namespace, by hand what controllers and kubelets do.
func importCluster(t *testing.T, c client.Client, space string) {
	t.Helper()
	create := func(o client.Object, status func()) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if status != nil {
			status()
			if err := c.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, gpus := range []string{"8", "8", "4"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("import-%d", i+1), Labels: map[string]string{
			"nvidia.com/gpu.product": []string{"H100", "H100", "A100"}[i], "gpu.warp.dev/spine": "s1",
			"gpu.warp.dev/leaf": []string{"l1", "l2", "l2"}[i], "example.com/row": "r7",
		}}}
		create(n, func() {
			n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("95500m"), "memory": resource.MustParse("1Ti"), "nvidia.com/gpu": resource.MustParse(gpus)}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
		t.Cleanup(func() { _ = c.Delete(context.Background(), n) })
	}
	spec := func(gpus string, selector map[string]string) corev1.PodSpec {
		s := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, NodeSelector: selector, Containers: []corev1.Container{{
			Name: "main", Image: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}}
		if gpus != "" {
			s.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse(gpus)
		}
		return s
	}
	// The server tells when things were made, in whole seconds: what runs does so from then on.
	begin := metav1.NewTime(time.Now().Truncate(time.Second))
	after := func(minutes int) *metav1.Time {
		return ptr.To(metav1.NewTime(begin.Add(time.Duration(minutes) * time.Minute)))
	}
	// pod started and ended after so many minutes; -1 is not.
	pod := func(name string, owner *metav1.OwnerReference, s corev1.PodSpec, start, end int) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Spec: s}
		if owner != nil {
			p.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		create(p, func() {
			if start >= 0 {
				p.Status.Phase, p.Status.StartTime = corev1.PodRunning, after(start)
			}
			if end >= 0 {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "i", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{StartedAt: *after(start), FinishedAt: *after(end)},
				}}}
			}
		})
	}
	job := func(name string, owner *metav1.OwnerReference, s corev1.PodSpec, pods int32) *batchv1.Job {
		j := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name},
			Spec:       batchv1.JobSpec{Parallelism: &pods, Completions: &pods, CompletionMode: ptr.To(batchv1.IndexedCompletion), Template: corev1.PodTemplateSpec{Spec: s}},
		}
		if owner != nil {
			j.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		create(j, nil)
		return j
	}
	owns := func(kind string, gv string, o client.Object) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: gv, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true)}
	}

	train := spec("8", map[string]string{"nvidia.com/gpu.product": "H100"})
	j := job("train", nil, train, 2)
	pod("train-0", owns("Job", "batch/v1", j), train, 5, 25)
	pod("train-1", owns("Job", "batch/v1", j), train, 10, 30)
	j.Status = batchv1.JobStatus{
		StartTime: &begin, CompletionTime: after(30), Succeeded: 2, CompletedIndexes: "0-1", UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue}},
	}
	if err := c.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}

	pod("notebook", nil, spec("1", nil), 1, 6)
	pod("web", nil, spec("", nil), 1, -1)
	waits := job("waits", nil, spec("4", nil), 1)
	pod("waits-0", owns("Job", "batch/v1", waits), spec("4", nil), -1, -1)

	w := workload(t, space, `{metadata: {name: llama}, spec: {modelName: llama, gpuCount: 4, parallelism: 2, priority: high}}`)
	create(w, nil)
	attempt := job("llama-0", owns("GPUWorkload", gpuv1alpha1.GroupVersion.String(), w), spec("4", nil), 2)
	pod("llama-0-0", owns("Job", "batch/v1", attempt), spec("4", nil), 0, -1)
	pod("llama-0-1", owns("Job", "batch/v1", attempt), spec("4", nil), 1, -1)
}

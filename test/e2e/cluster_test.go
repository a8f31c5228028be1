package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// readyWithin bounds the start of a sandbox; on a busy machine it takes some ten seconds.
const readyWithin = 2 * time.Minute

// settleWithin bounds what the control plane and the manager need for one step.
const settleWithin = 60 * time.Second

// cluster is a running sandbox.
type cluster struct {
	client.WithWatch
	config *rest.Config
	dir    string
	binary string
	judge  *judge
	// metrics is where the sandbox's manager serves its metrics.
	metrics string
	// readyAfter is how long the sandbox took to be ready.
	readyAfter time.Duration

	mu     sync.Mutex
	unused []string
}

// shared is the cluster that most tests use, each in a namespace and on nodes of its own.
var shared = struct {
	sync.Once
	cluster *cluster
	stop    func() error
	err     error
}{}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "ending the shared sandbox:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedCluster returns the cluster that tests share, started when the first one asks.
func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	binary := harness.SandboxBinary(t)
	shared.Do(func() {
		//nolint:usetesting // the cluster outlives the test that starts it
		dir, err := os.MkdirTemp("", "gpu-orchestrator-e2e-")
		if err != nil {
			shared.err = err
			return
		}
		var stop func() error
		shared.cluster, stop, shared.err = start(binary, dir, "--nodes=64", "--manager-arg=--bind-timeout=2s")
		if shared.err == nil {
			shared.stop = func() error { return errors.Join(forbidden(dir), stop(), os.RemoveAll(dir)) }
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// ownCluster starts a cluster for one test and ends it with the test.
func ownCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	c, stop, err := start(harness.SandboxBinary(t), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// start runs `sandbox up` and waits until it says that it is ready.
func start(binary, dir string, args ...string) (*cluster, func() error, error) {
	cmd := exec.Command(binary, append([]string{"up", "--dir", dir}, args...)...)
	// Should the test process be killed, the sandbox must not outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = cmd.Stdout
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting the sandbox: %w", err)
	}
	said := &transcript{}
	ready := make(chan bool, 1)
	var metrics string
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said.add(lines.Text())
			if _, url, ok := strings.Cut(lines.Text(), "metrics      "); ok {
				metrics = url
			}
			// The last line of the summary.
			if strings.Contains(lines.Text(), "end it") {
				ready <- true
			}
		}
		close(ready)
	}()
	stop := func() error {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("ending the sandbox: %w\n%s", err, said)
		}
		return nil
	}
	select {
	case ok := <-ready:
		if !ok {
			return nil, nil, fmt.Errorf("the sandbox ended before it was ready: %w\n%s", cmd.Wait(), said)
		}
	case <-time.After(readyWithin):
		return nil, nil, errors.Join(fmt.Errorf("the sandbox was not ready within %s\n%s", readyWithin, said), stop())
	}
	c, err := connect(binary, dir)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	c.metrics, c.readyAfter = metrics, time.Since(started)
	return c, func() error { return errors.Join(c.judge.stop(), stop()) }, nil
}

func connect(binary, dir string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	cl, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	c := &cluster{WithWatch: cl, config: config, dir: dir, binary: binary}
	var nodes corev1.NodeList
	if err := c.List(context.Background(), &nodes); err != nil {
		return nil, err
	}
	for _, n := range nodes.Items {
		c.unused = append(c.unused, n.Name)
	}
	c.judge, err = startJudge(c)
	return c, err
}

// transcript is what a process has said so far.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (t *transcript) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// namespace makes a namespace for the test, and takes everything in it away afterwards.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	// Managed, so that everything is tried with the admission policies on.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{gpuv1alpha1.ManagedLabel: "true"}}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.kubectl(nil, "-n", ns.Name, "get", "gpuworkloads,jobs,pods", "-o", "wide"))
			t.Log(c.kubectl(nil, "-n", ns.Name, "get", "events", "--sort-by=.lastTimestamp"))
		}
		if err := c.Delete(context.Background(), ns); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// nodes gives the test n nodes that no other test uses, labelled so that a nodeSelector picks
// them, and returns the selector with their names.
func (c *cluster) nodes(t *testing.T, n int) (selector map[string]string, names []string) {
	t.Helper()
	c.mu.Lock()
	if len(c.unused) < n {
		c.mu.Unlock()
		t.Fatalf("%d nodes wanted, %d are left: give the shared cluster more", n, len(c.unused))
	}
	names, c.unused = c.unused[:n:n], c.unused[n:]
	c.mu.Unlock()
	value := fmt.Sprintf("t%d", time.Now().UnixNano())
	for _, name := range names {
		c.patchNode(t, name, func(node *corev1.Node) { node.Labels["e2e/owner"] = value })
	}
	return map[string]string{"e2e/owner": value}, names
}

func (c *cluster) patchNode(t *testing.T, name string, edit func(*corev1.Node)) {
	t.Helper()
	node := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	before := node.DeepCopy()
	edit(node)
	if err := c.Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs the sandbox's kubectl and returns what it says, also if it fails.
func (c *cluster) kubectl(stdin io.Reader, args ...string) string {
	cmd := exec.Command(c.binary, append([]string{"kubectl", "--kubeconfig", filepath.Join(c.dir, "kubeconfig")}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\nkubectl %s: %v", out, strings.Join(args, " "), err)
	}
	return string(out)
}

// eventually waits until check says nothing is wrong any more, and fails with what it said last.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, settleWithin, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v; last seen: %v", err, last)
	}
}

// pods returns the pods of a workload, whatever attempt made them.
func (c *cluster) pods(t *testing.T, w *gpuv1alpha1.GPUWorkload) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels{gpuv1alpha1.WorkloadLabel: w.Name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (c *cluster) jobs(t *testing.T, w *gpuv1alpha1.GPUWorkload) []batchv1.Job {
	t.Helper()
	var list batchv1.JobList
	if err := c.List(t.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels{gpuv1alpha1.WorkloadLabel: w.Name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// forbidden says what the manager, which runs with the rights of config/rbac, was refused while
// all the tests ran.
func forbidden(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "logs", "manager.log"))
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(data)) {
		// A namespace that is being deleted takes no more objects; that is no lack of rights.
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "being terminated") && !strings.Contains(line, "exceeded quota") {
			errs = append(errs, errors.New(line))
		}
	}
	return errors.Join(errs...)
}

// settledWithin waits until check says nothing is wrong any more, or for so long, and returns
// what it said last.
func (c *cluster) settledWithin(t *testing.T, limit time.Duration, check func() error) error {
	t.Helper()
	last := check()
	_ = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, limit, false, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	return last
}

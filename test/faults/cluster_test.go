package faults

import (
	"bufio"
	"context"
	"encoding/json"
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

const (
	// readyWithin bounds the start of a sandbox on a busy machine.
	readyWithin = 2 * time.Minute
	// laneNodes is how many nodes each lane has for itself; poolNodes are for all.
	laneNodes, poolNodes = 3, 16
	// laneLabel says on a node whose it is.
	laneLabel = "faults/lane"
	// bystanders is the namespace of pods that are none of the product's business.
	bystanders = "bystanders"
)

// rig is a sandbox without a manager, a proxy for each manager, and a judge.
type rig struct {
	client.Client
	t      *testing.T
	dir    string
	binary string
	// manager is the product as it is installed, which the sandbox's own program is not in
	// everything: what it links of Kubernetes sets client-go's feature gates.
	manager string
	faults  *proxy.Faults
	judge   *judge
	crew    *crew
}

// newRig brings everything up but a manager, and takes it down with the test, after the
// judge's verdict.
func newRig(t *testing.T, lanes int, config managerConfig) *rig {
	t.Helper()
	r := &rig{t: t, binary: harness.SandboxBinary(t), dir: folder(t), faults: proxy.NewFaults()}
	judgeBinary := build(t, "./judge")
	r.manager = build(t, "../../cmd/manager")
	stop, err := up(r.binary, r.dir, fmt.Sprintf("--nodes=%d", lanes*laneNodes+poolNodes), "--no-manager")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if err := r.connect(); err != nil {
		t.Fatal(err)
	}
	if err := r.shareNodes(t.Context(), lanes); err != nil {
		t.Fatal(err)
	}
	if err := r.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bystanders}}); err != nil {
		t.Fatal(err)
	}
	if r.judge, err = sit(judgeBinary, r.admin()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.judge.dismiss)
	if r.crew, err = newCrew(r, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.crew.dismiss)
	return r
}

// folder is where a run keeps everything. Of a red run it stays.
func folder(t *testing.T) string {
	t.Helper()
	if *keepArg != "" {
		dir, err := filepath.Abs(filepath.Join(*keepArg, t.Name()))
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	//nolint:usetesting // t.TempDir takes away what a red run leaves to look at
	dir, err := os.MkdirTemp("", "gpu-orchestrator-faults-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs and journals: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (r *rig) admin() string { return filepath.Join(r.dir, "kubeconfig") }

func (r *rig) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", r.admin())
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	r.Client, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

// shareNodes gives each lane its nodes.
func (r *rig) shareNodes(ctx context.Context, lanes int) error {
	var all corev1.NodeList
	if err := r.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		value := "pool"
		if lane := i / laneNodes; lane < lanes {
			value = fmt.Sprint(lane)
		}
		node, before := &all.Items[i], all.Items[i].DeepCopy()
		node.Labels[laneLabel] = value
		if err := r.Patch(ctx, node, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// proxyFor stands between one manager and the API server, with the manager's own rights.
func (r *rig) proxyFor(instance string) (kubeconfig string, p *proxy.Proxy, err error) {
	upstream, err := clientcmd.BuildConfigFromFlags("", filepath.Join(r.dir, "config", "manager.kubeconfig"))
	if err != nil {
		return "", nil, err
	}
	upstream.QPS = -1
	p, err = proxy.Start(proxy.Config{Component: "manager", Instance: instance, Upstream: rest.CopyConfig(upstream), Faults: r.faults, Label: label})
	if err != nil {
		return "", nil, err
	}
	kubeconfig = filepath.Join(r.dir, instance+".kubeconfig")
	return kubeconfig, p, p.WriteKubeconfig(kubeconfig)
}

// up runs `sandbox up` and returns when it says that it is ready.
func up(binary, dir string, args ...string) (stop func() error, err error) {
	cmd := exec.Command(binary, append([]string{"up", "--dir", dir}, args...)...)
	// Should the test process be killed, the sandbox must not outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the sandbox: %w", err)
	}
	var mu sync.Mutex
	var said []string
	ready := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			said = append(said, lines.Text())
			mu.Unlock()
			// The last line of the summary.
			if strings.Contains(lines.Text(), "end it") {
				ready <- true
			}
		}
		close(ready)
	}()
	transcript := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n")
	}
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("ending the sandbox: %w\n%s", err, transcript())
		}
		return nil
	}
	select {
	case ok := <-ready:
		if !ok {
			return nil, fmt.Errorf("the sandbox ended before it was ready: %w\n%s", cmd.Wait(), transcript())
		}
		return stop, nil
	case <-time.After(readyWithin):
		return nil, errors.Join(fmt.Errorf("the sandbox was not ready within %s\n%s", readyWithin, transcript()), stop())
	}
}

// judge is the judge's process.
type judge struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  *bufio.Reader
	errors *strings.Builder
}

// build compiles a program and returns its path.
func build(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(folder))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", folder, err, out)
	}
	return path
}

// sit starts the judge and returns when it watches everything.
func sit(binary, kubeconfig string) (*judge, error) {
	j := &judge{errors: &strings.Builder{}}
	j.cmd = exec.Command(binary, "--kubeconfig", kubeconfig, "--torn", "30s", "--lost", "20s", "--bystander", "15s", "--bystanders", bystanders)
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	j.cmd.Stderr = j.errors
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.lines = bufio.NewReaderSize(out, 1<<20)
	if err := j.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = j.read()
	return j, err
}

func (j *judge) read() ([]byte, error) {
	line, err := j.lines.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("hearing the judge: %w: %s", err, j.errors)
	}
	return line, nil
}

// ask gives the judge a command and returns its answer.
func (j *judge) ask(command map[string]string) ([]byte, error) {
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := j.in.Write(append(text, '\n')); err != nil {
		return nil, fmt.Errorf("asking the judge: %w: %s", err, j.errors)
	}
	return j.read()
}

func (j *judge) dismiss() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
}

// verdict is the judge's last word.
type verdict struct {
	Changes    int
	Writes     int
	Violations []struct {
		Oracle   string
		Revision uint64
		What     string
	}
}

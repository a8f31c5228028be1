package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/instance"
)

const (
	// readyWithin bounds the start of a sandbox with a thousand nodes on a busy machine.
	readyWithin = 4 * time.Minute
	// creators create at the same time, over one connection.
	creators = 8
)

// sandbox is a running one that nobody else uses.
type sandbox struct {
	client.WithWatch
	config *rest.Config
	// meta reads objects without their contents.
	meta metadata.Interface
	dir  string
	// readyAfter is how long it took to be ready.
	readyAfter time.Duration
	state      instance.State

	process *exec.Cmd
	said    bytes.Buffer
	// ended is closed when the process has, for whatever reason; then result says how.
	ended  <-chan struct{}
	result error
}

// startSandbox runs `sandbox up` and waits until it is ready.
func startSandbox(ctx context.Context, o *options, args ...string) (*sandbox, error) {
	dir, err := os.MkdirTemp("", "gpu-orchestrator-bench-")
	if err != nil {
		return nil, err
	}
	c := &sandbox{dir: dir}
	args = append([]string{"up", "--dir", dir, fmt.Sprintf("--nodes=%d", o.nodes)}, args...)
	// The sandbox ends in good order, by stop, and not with the context.
	c.process = exec.Command(o.sandbox, args...)
	c.process.Stdout, c.process.Stderr = &c.said, &c.said
	if c.ended, err = launch(c.process, &c.result); err != nil {
		return nil, fmt.Errorf("starting the sandbox: %w", err)
	}
	if err := c.ready(ctx); err != nil {
		return nil, errors.Join(err, c.stop(""))
	}
	return c, nil
}

// launch starts a process that must not outlive this one, should it be killed, and tells when it
// has ended, with what result.
func launch(process *exec.Cmd, result *error) (<-chan struct{}, error) {
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel goes by the thread that started the process, not by ours as a whole: that
		// thread must live for as long.
		runtime.LockOSThread()
		defer close(ended)
		err := process.Start()
		started <- err
		if err == nil {
			*result = process.Wait()
		}
	}()
	return ended, <-started
}

func (c *sandbox) ready(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, readyWithin, true, func(context.Context) (bool, error) {
		var err error
		c.state, err = instance.Find(c.dir)
		if errors.Is(err, instance.ErrNotRunning) {
			select {
			case <-c.ended:
				return false, fmt.Errorf("the sandbox ended: %w", c.result)
			default:
				return false, nil
			}
		}
		return c.state.Ready, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the sandbox: %w", err)
	}
	c.config, err = clientcmd.BuildConfigFromFlags("", c.state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c.config.QPS = -1
	scheme := kuberuntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if c.WithWatch, err = client.NewWithWatch(c.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	c.meta, err = metadata.NewForConfig(metadata.ConfigFor(c.config))
	return err
}

// stop ends the sandbox and removes what it left, after keeping its logs in a folder if one is
// named.
func (c *sandbox) stop(logs string) error {
	_ = c.process.Process.Signal(syscall.SIGINT)
	<-c.ended
	err := c.result
	if err != nil {
		err = fmt.Errorf("ending the sandbox: %w\n%s", err, c.said.String())
	}
	if logs != "" {
		if e := os.RemoveAll(logs); e == nil {
			err = errors.Join(err, os.CopyFS(logs, os.DirFS(filepath.Join(c.dir, "logs"))))
		}
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// submit creates what the side makes of the units, as fast as the API server takes it.
func (c *sandbox) submit(ctx context.Context, s side, units []unit) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for _, u := range units {
		group.Go(func() error {
			for _, object := range s.objects(u) {
				if err := c.Create(ctx, object); err != nil {
					return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

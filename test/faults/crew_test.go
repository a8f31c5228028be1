package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reyisjones/gpu-orchestrator/test/faults/proxy"
)

const (
	// system is the namespace of an installation, and lease its lease there.
	system = "gpu-orchestrator-system"
	lease  = "gpu-orchestrator-manager"
)

// managerConfig is the configuration file of the managers under test.
type managerConfig string

// alone is for one manager, elected for replicas with a short lease. Plans are overtaken soon,
// so that flows end soon; many workers, because a held write holds one of them.
const (
	alone managerConfig = `
bindTimeout: 2s
avoidNodeFor: 30s
workers: 128
client: {qps: 1000, burst: 2000}
`
	elected = alone + `
leaderElection: {enabled: true, namespace: ` + system + `, leaseDuration: 2s, renewDeadline: 1500ms, retryPeriod: 300ms}
`
	// stock has the leases of an installation that sets nothing.
	stock = alone + `
leaderElection: {enabled: true, namespace: ` + system + `}
`
)

// crew is the managers: processes that come and go behind proxies that stay.
type crew struct {
	rig    *rig
	config string
	log    *os.File
	// env is added to the environment of the managers.
	env []string

	mu      sync.Mutex
	members map[string]*member
}

type member struct {
	kubeconfig string
	metrics    string
	proxy      *proxy.Proxy
	cmd        *exec.Cmd
	done       chan struct{}
	// killed says that its end is wanted.
	killed bool
}

func newCrew(r *rig, config managerConfig) (*crew, error) {
	c := &crew{rig: r, config: filepath.Join(r.dir, "manager.yaml"), members: make(map[string]*member)}
	if err := os.WriteFile(c.config, []byte(config), 0o600); err != nil {
		return nil, err
	}
	var err error
	c.log, err = os.Create(filepath.Join(r.dir, "managers.log"))
	return c, err
}

// start runs a manager; one that runs already is left alone.
func (c *crew) start(instance string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[instance]
	if m == nil {
		m = &member{}
		var err error
		if m.kubeconfig, m.proxy, err = c.rig.proxyFor(instance); err != nil {
			return err
		}
		if m.metrics, err = freeAddress(); err != nil {
			return err
		}
		c.members[instance] = m
	}
	if m.cmd != nil {
		return nil
	}
	fmt.Fprintf(c.log, "--- starting %s at %s\n", instance, time.Now().Format(time.RFC3339Nano))
	m.cmd = exec.Command(c.rig.manager, "--kubeconfig", m.kubeconfig, "--config", c.config,
		"--metrics-bind-address="+m.metrics, "--health-probe-bind-address=0", "--debug-scenario")
	m.cmd.Stdout, m.cmd.Stderr = c.log, c.log
	m.cmd.Env = append(os.Environ(), c.env...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.cmd = nil
		return fmt.Errorf("starting %s: %w", instance, err)
	}
	m.done, m.killed = make(chan struct{}), false
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(m.cmd, m.done)
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// signal sends a process a signal; ended says whether it had ended by itself.
func (c *crew) signal(instance string, s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[instance]
	if m == nil || m.cmd == nil {
		return fmt.Errorf("%s does not run", instance)
	}
	return m.cmd.Process.Signal(s)
}

// kill ends a process as a crash does, and returns when it is gone.
func (c *crew) kill(instance string) error {
	c.mu.Lock()
	if m := c.members[instance]; m != nil {
		m.killed = true
	}
	c.mu.Unlock()
	err := c.signal(instance, syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err != nil {
		return err
	}
	return c.await(instance, 10*time.Second)
}

// await waits for the end of a process, and notes it.
func (c *crew) await(instance string, patience time.Duration) error {
	c.mu.Lock()
	m := c.members[instance]
	cmd, done := m.cmd, m.done
	c.mu.Unlock()
	select {
	case <-done:
	case <-time.After(patience):
		return fmt.Errorf("%s still runs after %s", instance, patience)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.cmd == cmd {
		m.cmd = nil
	}
	return nil
}

// crashed returns the instances that ended although nobody ended them.
func (c *crew) crashed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for instance, m := range c.members {
		if m.cmd == nil || m.killed {
			continue
		}
		select {
		case <-m.done:
			list = append(list, instance)
		default:
		}
	}
	return list
}

func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.cmd != nil {
			_ = m.cmd.Process.Kill()
			<-m.done
		}
		_ = m.proxy.Close()
	}
	c.log.Close()
}

// leader returns the process that holds the lease, as the API server has it, by its name in the
// crew: a holder is HOST_UUID, and who wrote it the journal knows.
func (c *crew) leader(ctx context.Context) (string, error) {
	var l coordinationv1.Lease
	if err := c.rig.Get(ctx, client.ObjectKey{Namespace: system, Name: lease}, &l); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if l.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *l.Spec.HolderIdentity, nil
}

// untilLeader waits until somebody other than before holds the lease.
func (c *crew) untilLeader(ctx context.Context, before string) (holder string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		holder, err = c.leader(ctx)
		return err == nil && holder != "" && holder != before, nil
	})
	if err != nil {
		return "", fmt.Errorf("nobody took the lease over from %q: %w", before, err)
	}
	return holder, nil
}

// scenario is what a manager would ask its engine about a workload, its whole view of the
// cluster included.
func (c *crew) scenario(ctx context.Context, instance, workload string) (text string, err error) {
	c.mu.Lock()
	address := c.members[instance].metrics
	c.mu.Unlock()
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/scenario?workload="+workload, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		text = string(body)
		return err == nil && response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return "", fmt.Errorf("asking %s about %s: %w: %s", instance, workload, err, text)
	}
	return text, nil
}

// revive starts a process again that ended by itself, as a kubelet does: one that lost its lease
// ends.
func (c *crew) revive(instance string) error {
	select {
	case <-c.end(instance):
		if err := c.await(instance, time.Second); err != nil {
			return err
		}
	default:
	}
	return c.start(instance)
}

// end is closed when the process that runs now has ended.
func (c *crew) end(instance string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[instance].done
}

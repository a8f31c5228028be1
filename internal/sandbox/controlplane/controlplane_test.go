package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

func newPlane(t *testing.T, nodes int) *ControlPlane {
	t.Helper()
	c, err := New(Layout{Dir: t.TempDir()}, "/bin/sandbox", nodes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func specs(t *testing.T, c *ControlPlane) []process.Spec {
	t.Helper()
	if err := c.AddExtender(false); err != nil {
		t.Fatal(err)
	}
	return []process.Spec{
		c.ExtenderSpec(),
		c.EtcdSpec(), c.APIServerSpec(), c.ControllerManagerSpec(), c.SchedulerSpec(),
		c.KwokSpec(c.Config("kwok.yaml")), c.ManagerSpec("system", []string{"--workers=3"}),
	}
}

func TestEveryFileAProcessIsGivenIsThere(t *testing.T) {
	c := newPlane(t, 8)
	// These are written once the API server is up.
	later := []string{c.ExtenderKubeconfig(), c.ManagerKubeconfig(), c.ManagerConfig(), c.Config("kwok.yaml"), c.Data(Etcd)}
	for _, spec := range specs(t, c) {
		for _, arg := range spec.Args {
			_, value, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(value, c.Dir) || slices.Contains(later, value) {
				continue
			}
			if _, err := os.Stat(value); err != nil {
				t.Errorf("%s: %s: %v", spec.Name, arg, err)
			}
		}
	}
}

func TestNothingListensBeyondLoopback(t *testing.T) {
	for _, spec := range specs(t, newPlane(t, 8)) {
		listens := false
		for _, arg := range spec.Args {
			name, value, _ := strings.Cut(arg, "=")
			if strings.Contains(name, "listen") || strings.Contains(name, "bind-address") || strings.Contains(name, "server-address") {
				listens = true
				if !strings.Contains(value, loopback) {
					t.Errorf("%s: %s", spec.Name, arg)
				}
			}
		}
		if !listens {
			t.Errorf("%s does not say where it listens", spec.Name)
		}
	}
}

func TestPortsDiffer(t *testing.T) {
	p, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	ports := []int{p.Etcd, p.EtcdPeer, p.APIServer, p.ControllerManager, p.Scheduler, p.Kwok, p.ManagerMetrics, p.ManagerHealth, p.ManagerAPI}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 9 || ports[0] == 0 {
		t.Errorf("the ports are %v", ports)
	}
}

func TestComponentsHaveTheirOwnUsers(t *testing.T) {
	c := newPlane(t, 8)
	for path, want := range map[string]string{
		c.Kubeconfig():                    "sandbox-admin",
		c.kubeconfigOf(ControllerManager): "system:kube-controller-manager",
		c.kubeconfigOf(Scheduler):         "system:kube-scheduler",
	} {
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		current := config.Contexts[config.CurrentContext]
		if current.AuthInfo != want || config.Clusters[current.Cluster].Server != c.URL() {
			t.Errorf("%s is of %s at %s", filepath.Base(path), current.AuthInfo, config.Clusters[current.Cluster].Server)
		}
	}
}

func TestManagerTakesFurtherArguments(t *testing.T) {
	args := newPlane(t, 8).ManagerSpec("system", []string{"--workers=3"}).Args
	if args[len(args)-1] != "--workers=3" {
		t.Errorf("the last argument, which wins, is %s", args[len(args)-1])
	}
}

// A renewal is due at a quarter of the lease.
func TestNodeLeasesCostFewRequests(t *testing.T) {
	for nodes, grace := range map[int]time.Duration{1: 50 * time.Second, 8: 50 * time.Second, 1000: 250 * time.Second, 5000: 1250 * time.Second} {
		c := &ControlPlane{nodes: nodes}
		if perSecond := float64(nodes) / (float64(c.leaseSeconds()) / 4); perSecond > 20 {
			t.Errorf("%d nodes renew %.0f leases a second", nodes, perSecond)
		}
		if c.monitorGracePeriod() != grace {
			t.Errorf("%d nodes are given up after %s, want %s", nodes, c.monitorGracePeriod(), grace)
		}
	}
}

func TestResetLeavesOnlyWhatIsNotTheSandboxs(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	own, foreign := layout.Data("etcd"), filepath.Join(layout.Dir, "notes.txt")
	if err := layout.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layout.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an earlier run's data is %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// A folder of the user's own, a repository perhaps, is not taken for a sandbox's.
func TestResetRemovesNothingThatNoSandboxMade(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	mine := layout.Config("mine.yaml")
	if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := layout.Reset(); err == nil || !strings.Contains(err.Error(), filepath.Dir(mine)+" is in the way") {
		t.Error(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestAwaitHealthyEndsWithTheCauseAndTheLastAnswer(t *testing.T) {
	c := newPlane(t, 8)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("etcd ended")
	cancel(reason)
	err := c.AwaitHealthy(ctx, APIServer)
	if !errors.Is(err, reason) || !strings.Contains(err.Error(), c.URL()) {
		t.Errorf("the error is %v", err)
	}
}

// The scheduler is told of the extender in its own file, with who it trusts and what it shows.
func TestSchedulerIsToldOfTheExtender(t *testing.T) {
	c := newPlane(t, 8)
	if err := c.AddExtender(true); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.schedulerConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"urlPrefix: " + c.ExtenderURL(), "ignorable: true", "enableHTTPS: true", "nodeCacheCapable: true",
		"caFile: " + c.authority.CAFile(), "percentageOfNodesToScore: 100", "kubeconfig: " + c.kubeconfigOf(Scheduler),
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("it does not say %q:\n%s", want, data)
		}
	}
}

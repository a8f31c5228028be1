// Package controlplane knows how the processes of a sandbox are started and
// found: which flags, which certificates, which ports. It starts none of them.
package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/pki"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

// The names of the processes, which are also the names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Manager           = "manager"
	// OurScheduler is kube-scheduler with this product's plugin.
	OurScheduler = "scheduler"
)

// featureGates switches on gangs and their topology, which are alpha in 1.36.
// The same value goes to every component.
const featureGates = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"

// proxyName is the API server's name towards its extensions.
const proxyName = "front-proxy-client"

// Client limits for components that would otherwise wait for themselves: the
// stock ones allow kube-controller-manager 20 requests per second. The API
// server's own flow control still applies.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// ControlPlane is a cluster's processes as data.
type ControlPlane struct {
	Layout
	Ports

	executable string
	nodes      int
	authority  *pki.Authority
	// proxy vouches for the API server when it hands a request on to an extension:
	// an authority of its own, so that no client can pass for the API server.
	proxy      *pki.Authority
	proxyPair  pki.Pair
	serving    map[string]pki.Pair
	signingKey string
	publicKey  string
}

// New picks ports, makes the certificates and writes the configuration files of
// a cluster of so many nodes. executable is the multi-call binary.
func New(layout Layout, executable string, nodes int) (*ControlPlane, error) {
	if err := layout.Reset(); err != nil {
		return nil, err
	}
	ports, err := freePorts()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{Layout: layout, Ports: ports, executable: executable, nodes: nodes}
	if err := c.issueCertificates(); err != nil {
		return nil, err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return nil, err
	}
	if err := c.writeSchedulerConfig(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) issueCertificates() error {
	var err error
	if c.authority, err = pki.NewAuthority(c.PKI(), "ca"); err != nil {
		return err
	}
	if c.proxy, err = pki.NewAuthority(c.PKI(), "front-proxy-ca"); err != nil {
		return err
	}
	if c.proxyPair, err = c.proxy.Server(proxyName, nil); err != nil {
		return err
	}
	// The first address of the service range is the cluster's own API server.
	kubernetes := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	c.serving = map[string]pki.Pair{}
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, OurScheduler} {
		var names []string
		var addresses []net.IP
		if name == APIServer {
			names, addresses = kubernetes, []net.IP{net.IPv4(10, 96, 0, 1)}
		}
		if c.serving[name], err = c.authority.Server(name, names, addresses...); err != nil {
			return err
		}
	}
	if err = c.issueManagerCertificate(); err != nil {
		return err
	}
	c.signingKey, c.publicKey, err = c.authority.ServiceAccountKey()
	return err
}

// The Service by which the API server knows the manager, as config/explain has it.
const (
	managerService   = "gpu-orchestrator-explain"
	managerNamespace = "gpu-orchestrator-system"
)

// issueManagerCertificate writes the certificate by which the API server knows the manager, under
// the names that a Secret gives the files.
func (c *ControlPlane) issueManagerCertificate() error {
	pair, err := c.authority.Server(Manager, []string{managerService + "." + managerNamespace + ".svc"})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.managerCertDir(), 0o700); err != nil {
		return fmt.Errorf("making the folder of the manager's certificate: %w", err)
	}
	for from, to := range map[string]string{pair.CertFile: "tls.crt", pair.KeyFile: "tls.key"} {
		if err := os.Rename(from, filepath.Join(c.managerCertDir(), to)); err != nil {
			return fmt.Errorf("placing the manager's certificate: %w", err)
		}
	}
	return nil
}

func (c *ControlPlane) managerCertDir() string { return filepath.Join(c.PKI(), "manager-api") }

func (c *ControlPlane) writeKubeconfigs() error {
	for _, k := range []struct{ path, user, group string }{
		{c.Kubeconfig(), "sandbox-admin", "system:masters"},
		{c.kubeconfigOf(ControllerManager), "system:kube-controller-manager", ""},
		{c.kubeconfigOf(Scheduler), "system:kube-scheduler", ""},
		// KWOK stands in for every kubelet, and needs what all of them may do.
		{c.kubeconfigOf(Kwok), "sandbox-kwok", "system:masters"},
	} {
		var groups []string
		if k.group != "" {
			groups = append(groups, k.group)
		}
		if err := c.authority.WriteKubeconfig(k.path, c.URL(), k.user, groups...); err != nil {
			return err
		}
	}
	return nil
}

// URL is where the API server answers.
func (c *ControlPlane) URL() string { return "https://" + address(c.Ports.APIServer) }

// ManagerMetricsURL is where the manager's metrics are.
func (c *ControlPlane) ManagerMetricsURL() string {
	return "http://" + address(c.ManagerMetrics) + "/metrics"
}

// ManagerHealthURL is where the manager says whether it is ready.
func (c *ControlPlane) ManagerHealthURL() string {
	return "http://" + address(c.ManagerHealth) + "/readyz"
}

// ManagerWebhookURL is where the API server finds the manager's webhooks.
func (c *ControlPlane) ManagerWebhookURL() string { return "https://" + address(c.ManagerWebhook) }

// Authority issues further certificates and kubeconfigs.
func (c *ControlPlane) Authority() *pki.Authority { return c.authority }

func (c *ControlPlane) kubeconfigOf(component string) string {
	return c.Config(component + ".kubeconfig")
}

// ManagerKubeconfig is the manager's own, with its service account's token.
func (c *ControlPlane) ManagerKubeconfig() string { return c.kubeconfigOf(Manager) }

// ManagerConfig is the configuration file that the manager's Deployment mounts.
func (c *ControlPlane) ManagerConfig() string { return c.Config("manager.yaml") }

// OurSchedulerKubeconfig is our scheduler's own, with its service account's token.
func (c *ControlPlane) OurSchedulerKubeconfig() string { return c.kubeconfigOf(OurScheduler) }

// spec is what all processes have in common.
func (c *ControlPlane) spec(name string, args ...string) process.Spec {
	return process.Spec{Name: name, Path: c.executable, Args: args, LogFile: c.Log(name)}
}

// leaseSeconds is how long a node's lease lasts. KWOK renews each at a quarter
// of that; above 200 nodes the lease grows with the cluster, so that renewals
// stay at 20 requests per second, which 2 cores do not notice.
func (c *ControlPlane) leaseSeconds() int {
	return max(40, c.nodes/5)
}

// monitorGracePeriod is when a silent node is given up: the stock 50 s for the
// stock 40 s lease, and in the same proportion for longer ones.
func (c *ControlPlane) monitorGracePeriod() time.Duration {
	return time.Duration(c.leaseSeconds()) * time.Second * 5 / 4
}

func flag(name string, value any) string {
	return fmt.Sprintf("--%s=%v", name, value)
}

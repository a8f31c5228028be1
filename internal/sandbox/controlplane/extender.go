package controlplane

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduler "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

// Extender is the name of the scheduler extender's process.
const Extender = "extender"

// extenderTimeout is how long the scheduler waits for an answer: short, so that people who look
// what happens without one need no patience.
const extenderTimeout = 2 * time.Second

// AddExtender has the scheduler ask the extender about GPU pods. Ignorable says what becomes of
// them while it does not answer: true places them without it, false lets them wait.
func (c *ControlPlane) AddExtender(ignorable bool) error {
	pair, err := c.authority.Server(Extender, nil)
	if err != nil {
		return err
	}
	c.serving[Extender] = pair
	client := c.serving[Scheduler]
	data, err := os.ReadFile(c.schedulerConfig())
	if err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	var config scheduler.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	whole := int32(100)
	config.PercentageOfNodesToScore = &whole
	config.Extenders = []scheduler.Extender{{
		URLPrefix:      c.ExtenderURL(),
		FilterVerb:     "filter",
		PrioritizeVerb: "prioritize",
		PreemptVerb:    "preempt",
		BindVerb:       "bind",
		Weight:         100,
		EnableHTTPS:    true,
		TLSConfig: &scheduler.ExtenderTLSConfig{
			CAFile: c.authority.CAFile(), CertFile: client.CertFile, KeyFile: client.KeyFile,
		},
		HTTPTimeout:      metav1.Duration{Duration: extenderTimeout},
		NodeCacheCapable: true,
		ManagedResources: []scheduler.ExtenderManagedResource{{Name: "nvidia.com/gpu"}, {Name: "amd.com/gpu"}},
		Ignorable:        ignorable,
	}}
	if data, err = yaml.Marshal(config); err != nil {
		return fmt.Errorf("encoding the scheduler's configuration: %w", err)
	}
	if err := os.WriteFile(c.schedulerConfig(), data, 0o600); err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	return nil
}

// ExtenderURL is where the extender answers.
func (c *ControlPlane) ExtenderURL() string { return "https://" + address(c.Ports.Extender) }

// ExtenderKubeconfig is the extender's own, with its service account's token.
func (c *ControlPlane) ExtenderKubeconfig() string { return c.kubeconfigOf(Extender) }

// ExtenderSpec starts the extender with its own service account. It answers the scheduler alone.
func (c *ControlPlane) ExtenderSpec() process.Spec {
	pair := c.serving[Extender]
	return c.spec(Extender,
		flag("kubeconfig", c.ExtenderKubeconfig()),
		flag("config", c.ManagerConfig()),
		flag("bind-address", address(c.Ports.Extender)),
		flag("tls-cert-file", pair.CertFile),
		flag("tls-private-key-file", pair.KeyFile),
		flag("client-ca-file", c.authority.CAFile()),
		flag("client-name", Scheduler),
		flag("metrics-bind-address", address(c.ExtenderMetrics)),
		flag("health-probe-bind-address", address(c.ExtenderHealth)),
	)
}

package controlplane

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbase "k8s.io/component-base/config/v1alpha1"
	scheduler "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func (c *ControlPlane) ourSchedulerConfig() string { return c.Config("our-scheduler.yaml") }

// WriteOurSchedulerConfig takes the file that our scheduler's Deployment mounts, and changes in it
// what is different here: which cluster, and the limits of its client, which are those of the
// stock scheduler.
func (c *ControlPlane) WriteOurSchedulerConfig(mounted string) error {
	var config scheduler.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict([]byte(mounted), &config); err != nil {
		return fmt.Errorf("decoding our scheduler's configuration: %w", err)
	}
	config.ClientConnection.Kubeconfig = c.OurSchedulerKubeconfig()
	config.ClientConnection.QPS, config.ClientConnection.Burst = clientQPS, clientBurst
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("encoding our scheduler's configuration: %w", err)
	}
	if err := os.WriteFile(c.ourSchedulerConfig(), data, 0o600); err != nil {
		return fmt.Errorf("writing our scheduler's configuration: %w", err)
	}
	return nil
}

func (c *ControlPlane) schedulerConfig() string { return c.Config("scheduler.yaml") }

// writeSchedulerConfig uses a file, as client limits are deprecated as flags.
func (c *ControlPlane) writeSchedulerConfig() error {
	data, err := yaml.Marshal(scheduler.KubeSchedulerConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: scheduler.SchemeGroupVersion.String(),
			Kind:       "KubeSchedulerConfiguration",
		},
		LeaderElection: componentbase.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
		ClientConnection: componentbase.ClientConnectionConfiguration{
			Kubeconfig: c.kubeconfigOf(Scheduler),
			QPS:        clientQPS,
			Burst:      clientBurst,
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the scheduler's configuration: %w", err)
	}
	if err := os.WriteFile(c.schedulerConfig(), data, 0o600); err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	return nil
}

package manager

import (
	"fmt"
	"os"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Config is what an installation may set. Flags override what the file says.
type Config struct {
	// ClassName picks the workloads of this installation: those with the same spec.className.
	ClassName string `json:"className,omitempty"`
	// DefaultImage runs in workloads without a template.
	DefaultImage string `json:"defaultImage,omitempty"`
	// TopologyLevels are the levels of the network and of the machines, outermost first.
	TopologyLevels []TopologyLevel `json:"topologyLevels,omitempty"`
	// BindTimeout is how long a planned pod may wait for its scheduler before it is taken back
	// and planned anew.
	BindTimeout metav1.Duration `json:"bindTimeout,omitempty"`
	// AvoidNodeFor is how long a node that refused a workload's pod is left out of its plans.
	AvoidNodeFor metav1.Duration `json:"avoidNodeFor,omitempty"`
	// Workers is the number of workloads worked on at the same time.
	Workers int `json:"workers,omitempty"`
	// Client limits the requests to the API server.
	Client ClientLimits `json:"client,omitempty"`
	// MetricsAddress and HealthAddress are where metrics and probes are served, "0" for nowhere.
	MetricsAddress string `json:"metricsAddress,omitempty"`
	HealthAddress  string `json:"healthAddress,omitempty"`
	// DebugScenario serves /debug/scenario beside the metrics. It names all workloads of the
	// cluster to whoever can reach it.
	DebugScenario bool `json:"debugScenario,omitempty"`
	// LeaderElection settles which of several replicas acts.
	LeaderElection LeaderElection `json:"leaderElection,omitempty"`
	// PodScheduler is the one scheduler that binds GPU pods in managed namespaces: pods that name
	// none get it. Empty leaves pods as they are.
	PodScheduler string `json:"podScheduler,omitempty"`
	// Webhooks answer the API server's admission requests.
	Webhooks Webhooks `json:"webhooks,omitempty"`
	// StartupTimeout is how long the manager waits at its start for the API server and the CRD.
	StartupTimeout metav1.Duration `json:"startupTimeout,omitempty"`
	// StallAfter is how long the control loop may stand still before /healthz fails.
	StallAfter metav1.Duration `json:"stallAfter,omitempty"`
}

// TopologyLevel names a level and the node labels that carry it; the first that a node has
// counts.
type TopologyLevel struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
}

// ClientLimits are requests a second on average and at once.
type ClientLimits struct {
	QPS   float32 `json:"qps,omitempty"`
	Burst int     `json:"burst,omitempty"`
}

// LeaderElection settles which of several replicas acts. Defaults are 6/4/1 s: after a kill a
// standby takes over when the lease has run out, so the lease is the time to recover.
type LeaderElection struct {
	Enabled       bool            `json:"enabled,omitempty"`
	Namespace     string          `json:"namespace,omitempty"`
	LeaseDuration metav1.Duration `json:"leaseDuration,omitempty"`
	RenewDeadline metav1.Duration `json:"renewDeadline,omitempty"`
	RetryPeriod   metav1.Duration `json:"retryPeriod,omitempty"`
}

// DefaultConfig returns the configuration of an installation that sets nothing.
func DefaultConfig() Config {
	return Config{
		DefaultImage:   "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04",
		TopologyLevels: defaultLevels(),
		BindTimeout:    metav1.Duration{Duration: 30 * time.Second},
		AvoidNodeFor:   metav1.Duration{Duration: 2 * time.Minute},
		Workers:        16,
		Client:         ClientLimits{QPS: 200, Burst: 400},
		MetricsAddress: ":8080",
		HealthAddress:  ":8081",
		LeaderElection: LeaderElection{
			LeaseDuration: metav1.Duration{Duration: 6 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 4 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: time.Second},
		},
		Webhooks:       defaultWebhooks(),
		StartupTimeout: metav1.Duration{Duration: 2 * time.Minute},
		StallAfter:     metav1.Duration{Duration: time.Minute},
	}
}

// defaultLevels knows the labels of the clouds, of GPU feature discovery, and of topograph in
// the three generations that are about.
func defaultLevels() []TopologyLevel {
	return []TopologyLevel{
		{Name: "region", Labels: []string{"topology.kubernetes.io/region"}},
		{Name: "zone", Labels: []string{"topology.kubernetes.io/zone"}},
		{Name: "spine", Labels: []string{"gpu.warp.dev/spine", "network.topology.nvidia.com/spine", "fabric.topograph.run/tier-2"}},
		{Name: "leaf", Labels: []string{"gpu.warp.dev/leaf", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block", "fabric.topograph.run/tier-1"}},
		{Name: "rack", Labels: []string{"gpu.warp.dev/rack", "topology.kubernetes.io/rack"}},
		{Name: "nvlink", Labels: []string{"gpu.warp.dev/nvlink-domain", "nvidia.com/gpu.clique", "network.topology.nvidia.com/accelerator", "accelerator.topograph.run/domain"}},
		{Name: "host", Labels: []string{"kubernetes.io/hostname"}},
	}
}

// LoadConfig reads a configuration file over the defaults. Unknown keys are refused: a
// misspelt one would otherwise silently do nothing.
func LoadConfig(path string) (Config, error) {
	config := DefaultConfig()
	if path == "" {
		return config, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return config, fmt.Errorf("reading the configuration: %w", err)
	}
	// A list in the file replaces the default; decoding into it would mix the two.
	levels := config.TopologyLevels
	config.TopologyLevels = nil
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return config, fmt.Errorf("reading the configuration %s: %w", path, err)
	}
	if config.TopologyLevels == nil {
		config.TopologyLevels = levels
	}
	return config, nil
}

var levelName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Validate returns everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs field.ErrorList
	positive := func(path string, d metav1.Duration) {
		if d.Duration <= 0 {
			errs = append(errs, field.Invalid(field.NewPath(path), d.Duration.String(), "must be more than 0"))
		}
	}
	positive("bindTimeout", c.BindTimeout)
	positive("avoidNodeFor", c.AvoidNodeFor)
	positive("startupTimeout", c.StartupTimeout)
	positive("stallAfter", c.StallAfter)
	if c.ClassName != "" {
		for _, problem := range validation.IsDNS1123Label(c.ClassName) {
			errs = append(errs, field.Invalid(field.NewPath("className"), c.ClassName, "no workload can have this class: "+problem))
		}
	}
	if c.Client.QPS <= 0 || c.Client.Burst < 1 {
		errs = append(errs, field.Invalid(field.NewPath("client"), fmt.Sprintf("qps %g, burst %d", c.Client.QPS, c.Client.Burst), "both must be more than 0"))
	}
	if c.Workers < 1 {
		errs = append(errs, field.Invalid(field.NewPath("workers"), c.Workers, "must be at least 1"))
	}
	if c.DefaultImage == "" {
		errs = append(errs, field.Required(field.NewPath("defaultImage"), "workloads without a template run it"))
	}
	if l := c.LeaderElection; l.Enabled && (l.LeaseDuration.Duration <= l.RenewDeadline.Duration || l.RenewDeadline.Duration <= l.RetryPeriod.Duration || l.RetryPeriod.Duration <= 0) {
		errs = append(errs, field.Invalid(field.NewPath("leaderElection"),
			fmt.Sprintf("%s/%s/%s", l.LeaseDuration.Duration, l.RenewDeadline.Duration, l.RetryPeriod.Duration),
			"must be leaseDuration > renewDeadline > retryPeriod > 0"))
	}
	errs = append(errs, c.validateWebhooks()...)
	seen := make(map[string]bool)
	for i, l := range c.TopologyLevels {
		path := field.NewPath("topologyLevels").Index(i)
		switch {
		case !levelName.MatchString(l.Name):
			errs = append(errs, field.Invalid(path.Child("name"), l.Name, "must be lower-case letters, digits and '-'"))
		case seen[l.Name]:
			errs = append(errs, field.Duplicate(path.Child("name"), l.Name))
		}
		seen[l.Name] = true
		if len(l.Labels) == 0 {
			errs = append(errs, field.Required(path.Child("labels"), "a level is read from node labels"))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("checking the configuration: %w", err)
	}
	return nil
}

func (c *Config) levels() []cluster.Level {
	levels := make([]cluster.Level, len(c.TopologyLevels))
	for i, l := range c.TopologyLevels {
		levels[i] = cluster.Level(l)
	}
	return levels
}

package manager

import (
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Config is what an installation may set. Flags override what the file says.
type Config struct {
	// ClassName picks the workloads of this installation: those with the same spec.className.
	ClassName string `json:"className,omitempty"`
	// DefaultImage runs in workloads without a template.
	DefaultImage string `json:"defaultImage,omitempty"`
	// TopologyLevels are the levels of the network and of the machines, outermost first.
	TopologyLevels []state.TopologyLevel `json:"topologyLevels,omitempty"`
	// BindTimeout is how long a planned pod may wait for its scheduler before it is taken back
	// and planned anew.
	BindTimeout metav1.Duration `json:"bindTimeout,omitempty"`
	// AvoidNodeFor is how long a node that refused a workload's pod is left out of its plans.
	AvoidNodeFor metav1.Duration `json:"avoidNodeFor,omitempty"`
	// Reservations is how room is held for workloads that wait.
	Reservations Reservations `json:"reservations,omitempty"`
	// Defragmentation is how workloads that may move make room for those that wait.
	Defragmentation Defragmentation `json:"defragmentation,omitempty"`
	// Workers is the number of workloads worked on at the same time.
	Workers int `json:"workers,omitempty"`
	// Client limits the requests to the API server.
	Client ClientLimits `json:"client,omitempty"`
	// MetricsAddress and HealthAddress are where metrics and probes are served, "0" for nowhere.
	MetricsAddress string `json:"metricsAddress,omitempty"`
	HealthAddress  string `json:"healthAddress,omitempty"`
	// APIAddress is where explanations are served to the API server, "0" for nowhere. APICertDir
	// holds tls.crt and tls.key for it; "" makes a certificate that signs itself.
	APIAddress string `json:"apiAddress,omitempty"`
	APICertDir string `json:"apiCertDir,omitempty"`
	// Metrics says how much the metrics of the cluster tell.
	Metrics MetricsDetail `json:"metrics,omitempty"`
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

// Reservations is how room is held for workloads that wait.
type Reservations struct {
	// Max is how many workloads may hold room at a time; 0 switches reservations off.
	Max int `json:"max"`
	// Patience is how long a workload waits before it may hold room.
	Patience metav1.Duration `json:"patience"`
	// MaxWait is for how long others may pass a workload by what they say of their run time.
	MaxWait metav1.Duration `json:"maxWait"`
}

// Defragmentation is how workloads that may move make room for those that wait.
type Defragmentation struct {
	// Enabled has moves carried out; otherwise they are proposed and no more.
	Enabled bool `json:"enabled"`
	// MaxMoves is the most workloads that move for one that waits; 0 proposes nothing.
	MaxMoves int `json:"maxMoves"`
	// Window is the time between moves for one workload and those for another.
	Window metav1.Duration `json:"window"`
}

// ClientLimits are requests a second on average and at once.
type ClientLimits struct {
	QPS   float32 `json:"qps,omitempty"`
	Burst int     `json:"burst,omitempty"`
}

// MetricsDetail bounds how many series a scrape has.
type MetricsDetail struct {
	// Levels are the topology levels of which each domain has a series; without it those of spine
	// and leaf that TopologyLevels has. An empty list shows none.
	Levels []string `json:"levels,omitempty"`
	// MaxDomains is how many domains of a level, and kinds of GPUs, have a series of their own.
	MaxDomains int `json:"maxDomains,omitempty"`
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
		TopologyLevels: state.DefaultLevels(),
		BindTimeout:    metav1.Duration{Duration: 30 * time.Second},
		AvoidNodeFor:   metav1.Duration{Duration: 2 * time.Minute},
		Reservations: Reservations{
			Max:      placement.DefaultMaxReservations,
			Patience: metav1.Duration{Duration: 5 * time.Minute},
			MaxWait:  metav1.Duration{Duration: placement.DefaultMaxWait},
		},
		Defragmentation: Defragmentation{MaxMoves: 2, Window: metav1.Duration{Duration: 10 * time.Minute}},
		Workers:         16,
		Client:          ClientLimits{QPS: 200, Burst: 400},
		MetricsAddress:  ":8080",
		HealthAddress:   ":8081",
		APIAddress:      "0",
		// A cluster of 16,000 nodes with 16 a leaf.
		Metrics: MetricsDetail{MaxDomains: 1000},
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

// maxReservations bounds how many may hold room: each of them makes planning dearer for all.
const maxReservations = 64

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
	positive("reservations.maxWait", c.Reservations.MaxWait)
	if c.Reservations.Patience.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("reservations.patience"), c.Reservations.Patience.Duration.String(), "must not be less than 0"))
	}
	if c.Defragmentation.MaxMoves < 0 {
		errs = append(errs, field.Invalid(field.NewPath("defragmentation.maxMoves"), c.Defragmentation.MaxMoves, "must not be less than 0, which proposes no moves"))
	}
	positive("defragmentation.window", c.Defragmentation.Window)
	if c.Reservations.Max < 0 || c.Reservations.Max > maxReservations {
		errs = append(errs, field.Invalid(field.NewPath("reservations.max"), c.Reservations.Max,
			fmt.Sprintf("must be from 0, which switches reservations off, to %d", maxReservations)))
	}
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
	errs = append(errs, state.ValidateLevels(field.NewPath("topologyLevels"), c.TopologyLevels)...)
	for i, name := range c.Metrics.Levels {
		if !slices.ContainsFunc(c.TopologyLevels, func(l state.TopologyLevel) bool { return l.Name == name }) {
			errs = append(errs, field.Invalid(field.NewPath("metrics", "levels").Index(i), name, "must be the name of one of topologyLevels"))
		}
	}
	if c.Metrics.MaxDomains < 1 {
		errs = append(errs, field.Invalid(field.NewPath("metrics", "maxDomains"), c.Metrics.MaxDomains, "must be at least 1"))
	}
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("checking the configuration: %w", err)
	}
	return nil
}

// metricLevels are the levels of which metrics show every domain.
func (c *Config) metricLevels() []string {
	if c.Metrics.Levels != nil {
		return c.Metrics.Levels
	}
	var shown []string
	for _, l := range c.TopologyLevels {
		if l.Name == "spine" || l.Name == "leaf" {
			shown = append(shown, l.Name)
		}
	}
	return shown
}

func (c *Config) levels() []cluster.Level { return state.Levels(c.TopologyLevels) }

func (c *Config) defragmentation() state.Defragmentation {
	d := c.Defragmentation
	return state.Defragmentation{Enabled: d.Enabled, MaxMoves: d.MaxMoves, Window: d.Window.Duration}
}

func (c *Config) reservations() state.Reservations {
	r := c.Reservations
	return state.Reservations{Max: r.Max, Patience: r.Patience.Duration, MaxWait: r.MaxWait.Duration}
}

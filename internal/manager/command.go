package manager

import (
	goflag "flag"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// NewCommand returns the manager as a command. Its flags override the configuration file.
func NewCommand() *cobra.Command {
	var (
		file, kubeconfig string
		flags            = DefaultConfig()
		logging          zap.Options
	)
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Plan, run and watch GPU workloads on a Kubernetes cluster",
		Long: `manager runs the controllers of gpu-orchestrator against the cluster that
--kubeconfig, $KUBECONFIG or the pod's service account points to.

Settings come from the defaults, then from the file given by --config, then from flags.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := zap.New(zap.UseFlagOptions(&logging))
			ctrl.SetLogger(logger)
			// client-go and leader election log through klog.
			klog.SetLogger(logger)
			config, err := LoadConfig(file)
			if err != nil {
				return err
			}
			override(cmd, &config, &flags)
			if err := config.Validate(); err != nil {
				return err
			}
			rules := clientcmd.NewDefaultClientConfigLoadingRules()
			rules.ExplicitPath = kubeconfig
			rest, err := loadKubeconfig(rules)
			if err != nil {
				return err
			}
			m, err := New(config, rest)
			if err != nil {
				return err
			}
			return m.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (docs/operations.md lists the keys)")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; in a pod leave it out")
	f.StringVar(&flags.ClassName, "class", flags.ClassName, "take care of workloads with this spec.className")
	f.StringVar(&flags.DefaultImage, "default-image", flags.DefaultImage, "image of workloads without a template")
	f.StringVar(&flags.MetricsAddress, "metrics-bind-address", flags.MetricsAddress, "where metrics are served; 0 for nowhere")
	f.StringVar(&flags.HealthAddress, "health-probe-bind-address", flags.HealthAddress, "where /healthz and /readyz are served; 0 for nowhere")
	f.StringVar(&flags.APIAddress, "api-bind-address", flags.APIAddress, "where explanations are served to the API server, as :8443; 0 for nowhere")
	f.StringVar(&flags.APICertDir, "api-cert-dir", flags.APICertDir, "folder of tls.crt and tls.key for that; without it a certificate that signs itself")
	f.BoolVar(&flags.DebugScenario, "debug-scenario", flags.DebugScenario, "serve /debug/scenario beside the metrics, which names all workloads of the cluster")
	f.BoolVar(&flags.LeaderElection.Enabled, "leader-elect", flags.LeaderElection.Enabled, "have replicas agree on one that acts")
	f.StringVar(&flags.LeaderElection.Namespace, "leader-election-namespace", "", "namespace of the lease; in a pod its own")
	f.IntVar(&flags.Workers, "workers", flags.Workers, "workloads worked on at the same time")
	f.DurationVar(&flags.BindTimeout.Duration, "bind-timeout", flags.BindTimeout.Duration, "how long a pod may stay unbound after its scheduler refused it; a gang may wait 10 times as long for its next pod")
	f.DurationVar(&flags.StartupTimeout.Duration, "startup-timeout", flags.StartupTimeout.Duration, "how long to wait at the start for the API server and the CRD")
	addWebhookFlags(f, &flags)
	std := goflag.NewFlagSet("zap", goflag.ContinueOnError)
	logging.BindFlags(std)
	f.AddGoFlagSet(std)
	return cmd
}

// override copies into config what was given as a flag.
func override(cmd *cobra.Command, config, flags *Config) {
	for name, set := range map[string]func(){
		"class":                     func() { config.ClassName = flags.ClassName },
		"default-image":             func() { config.DefaultImage = flags.DefaultImage },
		"metrics-bind-address":      func() { config.MetricsAddress = flags.MetricsAddress },
		"health-probe-bind-address": func() { config.HealthAddress = flags.HealthAddress },
		"api-bind-address":          func() { config.APIAddress = flags.APIAddress },
		"api-cert-dir":              func() { config.APICertDir = flags.APICertDir },
		"debug-scenario":            func() { config.DebugScenario = flags.DebugScenario },
		"leader-elect":              func() { config.LeaderElection.Enabled = flags.LeaderElection.Enabled },
		"leader-election-namespace": func() { config.LeaderElection.Namespace = flags.LeaderElection.Namespace },
		"workers":                   func() { config.Workers = flags.Workers },
		"bind-timeout":              func() { config.BindTimeout = flags.BindTimeout },
		"startup-timeout":           func() { config.StartupTimeout = flags.StartupTimeout },
		"pod-scheduler":             func() { config.PodScheduler = flags.PodScheduler },
		"webhooks":                  func() { config.Webhooks.Enabled = flags.Webhooks.Enabled },
		"webhook-bind-address":      func() { config.Webhooks.Address = flags.Webhooks.Address },
		"webhook-hosts":             func() { config.Webhooks.Hosts = flags.Webhooks.Hosts },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
}

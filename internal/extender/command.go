package extender

import (
	goflag "flag"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/reyisjones/gpu-orchestrator/internal/manager"
)

// Asked tells whether the arguments of the scheduler binary ask it to be the extender.
func Asked(args []string) bool {
	return slices.Contains(args, "--extender") || slices.Contains(args, "--extender=true")
}

// NewCommand returns the extender as a command: what the scheduler binary is with --extender.
func NewCommand() *cobra.Command {
	var (
		file, kubeconfig string
		config           = DefaultConfig()
		logging          zap.Options
	)
	cmd := &cobra.Command{
		Use:   "scheduler --extender",
		Short: "Answer a stock kube-scheduler about GPU pods (extender API v1)",
		Long: `scheduler --extender serves /filter, /prioritize, /preempt and /bind for the stock
kube-scheduler of the cluster that --kubeconfig, $KUBECONFIG or the pod's service account points
to. docs/extender.md says how to configure kube-scheduler, and what an extender cannot do.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := zap.New(zap.UseFlagOptions(&logging))
			ctrl.SetLogger(logger)
			klog.SetLogger(logger)
			settings, err := manager.LoadConfig(file)
			if err != nil {
				return err
			}
			config.Settings = settings
			if err := config.Validate(); err != nil {
				return err
			}
			rest, err := manager.Connect(kubeconfig)
			if err != nil {
				return err
			}
			x, err := New(config, rest)
			if err != nil {
				return err
			}
			return x.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	s := &config.Serving
	f.Bool("extender", true, "be the extender")
	f.StringVar(&file, "config", "", "the manager's configuration file, for its topology levels and client limits (docs/operations.md)")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; in a pod leave it out")
	f.StringVar(&s.Address, "bind-address", s.Address, "host and port to serve on")
	f.StringVar(&s.CertFile, "tls-cert-file", "", "the server's certificate, read again when it changes")
	f.StringVar(&s.KeyFile, "tls-private-key-file", "", "its key")
	f.StringVar(&s.ClientCAFile, "client-ca-file", "", "let in only clients with a certificate of this authority; /bind needs it")
	f.StringSliceVar(&s.ClientNames, "client-name", nil, "and of these only those with such a common name, for example system:kube-scheduler; may be repeated")
	f.BoolVar(&s.Insecure, "insecure-http", false, "serve plain HTTP, on the loopback interface only")
	f.StringVar(&config.ProbeAddress, "health-probe-bind-address", config.ProbeAddress, "where /healthz and /readyz are served, without TLS; 0 for nowhere")
	f.StringVar(&config.MetricsAddress, "metrics-bind-address", config.MetricsAddress, "where metrics are served; 0 for nowhere")
	f.IntVar(&config.RequestMiB, "max-request-mib", config.RequestMiB, "largest request that is read, in MiB")
	std := goflag.NewFlagSet("zap", goflag.ContinueOnError)
	logging.BindFlags(std)
	f.AddGoFlagSet(std)
	return cmd
}

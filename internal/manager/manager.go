// Package manager is the program that runs the controllers: configuration, start-up checks,
// health and wiring. It is a value that a test can run.
package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
	"github.com/reyisjones/gpu-orchestrator/internal/policy/expression"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// leaseName is the lease of an installation; classes get one each.
const leaseName = "gpu-orchestrator-manager"

// Manager is one replica of the manager.
type Manager struct {
	config  Config
	rest    *rest.Config
	metrics *telemetry.Metrics
	scheme  *runtime.Scheme
}

// New returns a manager for the cluster. Nothing is contacted before Run.
func New(config Config, restConfig *rest.Config) (*Manager, error) {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.Burst = config.Client.QPS, config.Client.Burst
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	m, err := telemetry.New(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &Manager{config: config, rest: restConfig, metrics: m, scheme: scheme}, nil
}

// Run works until ctx ends or something fails for good. It waits, within StartupTimeout, for
// the API server and the CRD, because on a new cluster either may come a little later.
func (m *Manager) Run(ctx context.Context) error {
	log := ctrl.Log.WithName("manager")
	if err := waitForCluster(ctx, m.rest, m.config.StartupTimeout.Duration, log); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(m.rest, m.options())
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		return err
	}
	world := state.New(m.config.levels(), strategies)
	decided := decisions.New(decisions.DefaultLimits(), ctrl.Log.WithName("decisions"))
	world.SetClass(m.config.ClassName)
	world.SetReservations(m.config.reservations())
	policies, err := m.policies(strategies)
	if err != nil {
		return err
	}
	world.Follow(policies)
	world.SetDefragmentation(m.config.defragmentation(), time.Now())
	loop := newLoop(clock.RealClock{}, m.config.StallAfter.Duration)
	synced, err := controller.Setup(ctx, mgr, controller.Parts{
		Config: controller.Config{
			ClassName:    m.config.ClassName,
			DefaultImage: m.config.DefaultImage,
			BindTimeout:  m.config.BindTimeout.Duration,
			AvoidFor:     m.config.AvoidNodeFor.Duration,
			Reservations: m.config.reservations(),
			Workers:      m.config.Workers,
		},
		State:     world,
		Policies:  policies,
		Metrics:   m.metrics,
		Decisions: decided,
		Clock:     clock.RealClock{},
		Beat:      loop.beat,
	})
	if err != nil {
		return err
	}
	if err := addChecks(mgr, loop, synced); err != nil {
		return err
	}
	gauges := telemetry.NewCluster(telemetry.Gauges{
		World: world, Synced: synced, Levels: m.config.metricLevels(), MaxDomains: m.config.Metrics.MaxDomains, Now: time.Now,
	})
	if err := metrics.Registry.Register(gauges); err != nil {
		return fmt.Errorf("registering the cluster's metrics: %w", err)
	}
	defer metrics.Registry.Unregister(gauges)
	if m.config.Webhooks.Enabled {
		if err := m.addWebhooks(ctx, mgr, strategies); err != nil {
			return err
		}
	}
	if m.config.DebugScenario {
		if err := addScenarios(mgr, world, m.config.DefaultImage, synced); err != nil {
			return err
		}
	}
	if m.config.APIAddress != "0" {
		if err := addExplanations(mgr, &m.config, world, decided, synced); err != nil {
			return err
		}
	}
	log.Info("starting", "class", m.config.ClassName, "strategies", strategies.Names(), "leaderElection", m.config.LeaderElection.Enabled)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// policies returns the book in which the cluster's policies are kept.
func (m *Manager) policies(strategies *placement.Registry) (*policy.Book, error) {
	compiler, err := expression.NewCompiler(m.config.levels(), policy.DefaultBudget())
	if err != nil {
		return nil, fmt.Errorf("setting up policies: %w", err)
	}
	return policy.NewBook(policy.Config{
		Class:      m.config.ClassName,
		Levels:     m.config.levels(),
		Strategies: strategies,
		Compiler:   compiler,
		Budget:     policy.DefaultBudget(),
	}), nil
}

func (m *Manager) options() ctrl.Options {
	lease := leaseName
	if m.config.ClassName != "" {
		lease += "-" + m.config.ClassName
	}
	l := m.config.LeaderElection
	return ctrl.Options{
		Scheme:                        m.scheme,
		Metrics:                       metricsserver.Options{BindAddress: m.config.MetricsAddress},
		HealthProbeBindAddress:        m.config.HealthAddress,
		LeaderElection:                l.Enabled,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       l.Namespace,
		LeaseDuration:                 &l.LeaseDuration.Duration,
		RenewDeadline:                 &l.RenewDeadline.Duration,
		RetryPeriod:                   &l.RetryPeriod.Duration,
		LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{
			DefaultTransform: state.Trim,
			ByObject: map[client.Object]cache.ByObject{
				// Of Jobs only our own are read.
				&batchv1.Job{}: {Label: ownLabel()},
			},
			// Nothing here depends on being told again what was told before.
			SyncPeriod: nil,
		},
		// The Deployment grants 10 s between SIGTERM and SIGKILL.
		GracefulShutdownTimeout: ptr.To(8 * time.Second),
	}
}

// loadKubeconfig finds the cluster, and says where it looked if it finds none.
func loadKubeconfig(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (--kubeconfig, $KUBECONFIG, ~/.kube/config, a pod's service account): %w", err)
	}
	return config, nil
}

package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/manager"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// The limits of the HTTP server. kube-scheduler keeps a connection or two and waits 5 s by default;
// whoever needs longer to ask or to listen is in the way.
const (
	maxConnections    = 256
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = 5 * time.Second
	gracefulShutdown  = 8 * time.Second
	defaultRequestMiB = 64
)

// nowhere is an address at which nothing is served.
const nowhere = "0"

// Config is what an installation of the extender may set.
type Config struct {
	Serving Serving
	// Settings are those of the manager: topology levels, client limits, the default image.
	Settings manager.Config
	// ProbeAddress is where /healthz and /readyz are served in plain text, "0" for nowhere.
	ProbeAddress string
	// MetricsAddress is where metrics are served, "0" for nowhere.
	MetricsAddress string
	// RequestMiB is the largest body that is read, in MiB.
	RequestMiB int
}

// DefaultConfig returns the configuration of an installation that sets nothing but certificates.
func DefaultConfig() Config {
	return Config{
		Serving:        Serving{Address: ":8888"},
		Settings:       manager.DefaultConfig(),
		ProbeAddress:   ":8081",
		MetricsAddress: ":8080",
		RequestMiB:     defaultRequestMiB,
	}
}

// Validate says what is wrong with the configuration.
func (c *Config) Validate() error {
	var size, probes error
	if c.RequestMiB < 1 || c.RequestMiB > 1024 {
		size = fmt.Errorf("--max-request-mib is %d, it must be between 1 and 1024", c.RequestMiB)
	}
	if _, _, err := net.SplitHostPort(c.ProbeAddress); err != nil && c.ProbeAddress != nowhere {
		probes = fmt.Errorf("--health-probe-bind-address %q is no host and port: %w", c.ProbeAddress, err)
	}
	return errors.Join(c.Serving.validate(), size, probes, c.Settings.Validate())
}

// Extender is one replica of the extender.
type Extender struct {
	config  Config
	rest    *rest.Config
	metrics *telemetry.Extender
	scheme  *runtime.Scheme
}

// New returns an extender for the cluster. Nothing is contacted before Run.
func New(config Config, restConfig *rest.Config) (*Extender, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.Burst = config.Settings.Client.QPS, config.Settings.Client.Burst
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	m, err := telemetry.NewExtender(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &Extender{config: config, rest: restConfig, metrics: m, scheme: scheme}, nil
}

// Run serves until ctx ends or something fails for good.
func (x *Extender) Run(ctx context.Context) error {
	log := ctrl.Log.WithName("extender")
	if err := manager.Await(ctx, x.rest, x.config.Settings.StartupTimeout.Duration, log); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(x.rest, ctrl.Options{
		Scheme:                  x.scheme,
		Metrics:                 metricsserver.Options{BindAddress: x.config.MetricsAddress},
		HealthProbeBindAddress:  nowhere, // They are served from the start, not only once the caches are read.
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:  {Transform: state.Trim},
				&corev1.Node{}: {Transform: state.Trim},
			},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the extender: %w", err)
	}
	strategies, err := placement.NewRegistry(placement.Builtin()...)
	if err != nil {
		return err
	}
	world := newState(&x.config.Settings, strategies)
	nothing := func() {}
	fed, err := world.Feed(ctx, mgr.GetCache(), nothing, nothing)
	if err != nil {
		return err
	}
	inside, err := world.FeedInventories(ctx, mgr.GetCache(), nothing, func(n *gpuv1alpha1.GPUNode, err error) {
		log.Info("going by labels and allocatable of a node, because its GPUNode contradicts itself", "node", n.Name, "problem", err.Error())
	})
	if err != nil {
		return err
	}
	held, err := (&promises{state: world, defaultImage: x.config.Settings.DefaultImage}).follow(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(x.rest)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	heart := &pulse{clock: clock.RealClock{}, reach: func(ctx context.Context) error {
		return typed.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	}}
	if err := mgr.Add(heart); err != nil {
		return fmt.Errorf("setting up the pulse: %w", err)
	}
	h := &handler{
		engine:  newEngine(world, clock.RealClock{}),
		cluster: &apiServer{cached: mgr.GetCache(), typed: typed},
		metrics: x.metrics,
		log:     log,
		ready:   readiness(func() bool { return fed() && inside() && held() }, heart.check),
		client:  x.config.Serving.authorize,
		largest: int64(x.config.RequestMiB) << 20,
		catchUp: defaultCatchUp,
	}
	h.room = semaphore.NewWeighted(bodiesAtOnce * h.largest)
	server := &server{serving: x.config.Serving, handler: h.routes(), log: log, limits: defaultLimits()}
	if err := server.watchCertificate(mgr); err != nil {
		return err
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("setting up the server: %w", err)
	}
	if err := x.serveProbes(mgr, h, log); err != nil {
		return err
	}
	log.Info("starting", "address", x.config.Serving.Address, "strategies", strategies.Names())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the extender: %w", err)
	}
	return nil
}

// newState returns the state of a cluster of which nothing is known yet.
func newState(settings *manager.Config, strategies *placement.Registry) *state.State {
	world := state.New(state.Levels(settings.TopologyLevels), strategies)
	world.SetClass(settings.ClassName)
	return world
}

// serveProbes answers the kubelet, whatever becomes of the connections of the verbs.
func (x *Extender) serveProbes(mgr ctrl.Manager, h *handler, log logr.Logger) error {
	if x.config.ProbeAddress == nowhere {
		return nil
	}
	plain := &server{serving: Serving{Address: x.config.ProbeAddress, Insecure: true}, handler: h.probes(), log: log, limits: defaultLimits()}
	if err := mgr.Add(plain); err != nil {
		return fmt.Errorf("setting up probes: %w", err)
	}
	return nil
}

var errNotSynced = errors.New("nodes, pods and workloads have not been read completely yet")

// readiness tells why no answer can be given.
func readiness(synced func() bool, fresh func() error) func() error {
	return func() error {
		if !synced() {
			return errNotSynced
		}
		return fresh()
	}
}

// server is the HTTP server as a part of a manager. It serves from the start: that nothing can be
// answered yet is an answer.
type server struct {
	serving Serving
	handler http.Handler
	log     logr.Logger
	tls     *tls.Config
	limits  limits
	// listening, if set, is told where.
	listening func(net.Addr)
}

// limits is how long a client may take to send the header of a request and all of it, which is also
// how long the answer may take from there, and how long its connection stays open without one.
type limits struct{ header, request, idle time.Duration }

func defaultLimits() limits {
	return limits{header: 5 * time.Second, request: 15 * time.Second, idle: 30 * time.Second}
}

// watchCertificate has the certificate read again when it changes.
func (s *server) watchCertificate(mgr ctrl.Manager) error {
	if s.serving.Insecure {
		return nil
	}
	watcher, err := certwatcher.New(s.serving.CertFile, s.serving.KeyFile)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	s.tls = s.serving.config(watcher)
	if err := mgr.Add(watcher); err != nil {
		return fmt.Errorf("watching the certificate: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica answers.
func (s *server) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.serving.Address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if s.listening != nil {
		s.listening(listener.Addr())
	}
	listener = netutil.LimitListener(listener, maxConnections)
	web := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.tls,
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.request,
		WriteTimeout:      s.limits.request,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(s.log), slog.LevelInfo),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		// Those who are asking get their answers still.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := web.Shutdown(last); err != nil {
			s.log.Info("requests were cut off", "problem", err.Error())
		}
	})
	if s.serving.Insecure {
		err = web.Serve(listener)
	} else {
		err = web.ServeTLS(listener, "", "")
	}
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving: %w", err)
}

// apiServer is the cluster.
type apiServer struct {
	cached client.Reader
	typed  kubernetes.Interface
}

// Seen implements Cluster.
func (a *apiServer) Seen(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	var pod corev1.Pod
	return &pod, a.cached.Get(ctx, key, &pod)
}

// Live implements Cluster.
func (a *apiServer) Live(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	return a.typed.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// Bind implements Cluster.
func (a *apiServer) Bind(ctx context.Context, binding *corev1.Binding) error {
	return a.typed.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/webhook"
	"github.com/reyisjones/gpu-orchestrator/internal/webhook/certificates"
)

// The objects of config/webhook.
const (
	webhookService       = "gpu-orchestrator-webhook"
	webhookSecret        = "gpu-orchestrator-webhook-certificate" //nolint:gosec // a name
	webhookConfiguration = "gpu-orchestrator"
)

// Webhooks say how admission requests are answered.
type Webhooks struct {
	Enabled bool `json:"enabled,omitempty"`
	// Address is where the server listens.
	Address string `json:"address,omitempty"`
	// CertificateDir holds tls.crt and tls.key, which cert-manager or somebody else keeps up to
	// date. Empty: the manager issues its certificate itself, keeps it in a Secret of Namespace,
	// and tells the API server whom to trust.
	CertificateDir string `json:"certificateDir,omitempty"`
	// Namespace is that of Secret and Service; in a pod its own.
	Namespace string `json:"namespace,omitempty"`
	// Hosts are further names and addresses that the API server calls the server by.
	Hosts []string `json:"hosts,omitempty"`
	// SubmissionsPerSecond and SubmissionsBurst limit the GPUWorkloads that a namespace creates,
	// on average and at once, at each replica. 0 a second is no limit.
	SubmissionsPerSecond float64 `json:"submissionsPerSecond"`
	SubmissionsBurst     int     `json:"submissionsBurst"`
}

func defaultWebhooks() Webhooks {
	return Webhooks{Address: ":9443", SubmissionsPerSecond: 50, SubmissionsBurst: 1000}
}

func addWebhookFlags(f *pflag.FlagSet, flags *Config) {
	f.StringVar(&flags.PodScheduler, "pod-scheduler", flags.PodScheduler, "the one scheduler of GPU pods in managed namespaces; none if empty")
	f.BoolVar(&flags.Webhooks.Enabled, "webhooks", flags.Webhooks.Enabled, "answer admission requests; every replica does, leader or not")
	f.StringVar(&flags.Webhooks.Address, "webhook-bind-address", flags.Webhooks.Address, "where admission requests are answered")
	f.StringSliceVar(&flags.Webhooks.Hosts, "webhook-hosts", nil, "further names and addresses in the webhook's own certificate")
}

// validateWebhooks returns what is wrong with the settings of admission.
func (c *Config) validateWebhooks() field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("webhooks")
	if c.PodScheduler != "" {
		for _, p := range validation.IsDNS1123Subdomain(c.PodScheduler) {
			errs = append(errs, field.Invalid(field.NewPath("podScheduler"), c.PodScheduler, "no scheduler can have this name: "+p))
		}
	}
	if _, _, err := splitAddress(c.Webhooks.Address); c.Webhooks.Enabled && err != nil {
		errs = append(errs, field.Invalid(path.Child("address"), c.Webhooks.Address, "must be host:port or :port: "+err.Error()))
	}
	if c.Webhooks.SubmissionsPerSecond < 0 || c.Webhooks.SubmissionsPerSecond > 0 && c.Webhooks.SubmissionsBurst < 1 {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("submissionsPerSecond %g, submissionsBurst %d", c.Webhooks.SubmissionsPerSecond, c.Webhooks.SubmissionsBurst),
			"both must be more than 0; submissionsPerSecond 0 is no limit"))
	}
	return errs
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	if err == nil && (port < 1 || port > 65535) {
		err = fmt.Errorf("there is no port %d", port)
	}
	return host, port, err
}

// addWebhooks has this replica answer admission requests.
func (m *Manager) addWebhooks(ctx context.Context, mgr ctrl.Manager, strategies *placement.Registry) error {
	host, port, err := splitAddress(m.config.Webhooks.Address)
	if err != nil {
		return fmt.Errorf("reading webhooks.address: %w", err)
	}
	source, err := m.certificates()
	if err != nil {
		return err
	}
	err = webhook.Setup(ctx, mgr, webhook.Parts{
		Config: webhook.Config{
			Host: host, Port: port,
			ClassName:    m.config.ClassName,
			DefaultImage: m.config.DefaultImage,
			Levels:       m.config.levels(),
			PodScheduler: m.config.PodScheduler,
			Submissions:  webhook.Limits{PerSecond: m.config.Webhooks.SubmissionsPerSecond, Burst: m.config.Webhooks.SubmissionsBurst},
		},
		Scheme:     m.scheme,
		Strategies: strategies,
		Priorities: mgr.GetCache(),
		Clock:      clock.RealClock{},
	}, source)
	if err != nil {
		return err
	}
	err = mgr.AddReadyzCheck("webhook-certificate", func(*http.Request) error { return source.Ready() })
	if err != nil {
		return fmt.Errorf("adding the readiness check of the webhooks: %w", err)
	}
	return nil
}

// certificates returns where the webhook's certificate comes from.
func (m *Manager) certificates() (certificates.Source, error) {
	w := m.config.Webhooks
	if w.CertificateDir != "" {
		return certificates.NewFiles(w.CertificateDir), nil
	}
	namespace, err := m.webhookNamespace()
	if err != nil {
		return nil, err
	}
	// Not the manager's client: that one reads through a cache, which would list Secrets.
	direct, err := client.New(m.rest, client.Options{Scheme: m.scheme})
	if err != nil {
		return nil, fmt.Errorf("setting up a client for the webhook's certificate: %w", err)
	}
	service := webhookService + "." + namespace + ".svc"
	return certificates.NewSelf(certificates.Options{
		Client:        direct,
		Secret:        client.ObjectKey{Namespace: namespace, Name: webhookSecret},
		Configuration: webhookConfiguration,
		Hosts:         append([]string{service, service + ".cluster.local"}, w.Hosts...),
		Validity:      365 * 24 * time.Hour,
		Overlap:       time.Hour,
		Every:         30 * time.Second,
		Clock:         clock.RealClock{},
	}), nil
}

// ownNamespaceFile is where a pod finds the name of its namespace.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (m *Manager) webhookNamespace() (string, error) {
	for _, name := range []string{m.config.Webhooks.Namespace, m.config.LeaderElection.Namespace} {
		if name != "" {
			return name, nil
		}
	}
	data, err := os.ReadFile(ownNamespaceFile)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name, nil
	}
	return "", errors.New("finding the namespace of the webhook's Secret and Service: outside a pod set webhooks.namespace or --leader-election-namespace, or webhooks.certificateDir")
}

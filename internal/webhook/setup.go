package webhook

import (
	"context"
	"crypto/tls"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/webhook/certificates"
)

// The paths that config/webhook has the API server call.
const (
	WorkloadPath = "/validate-gpuworkload"
	PodPath      = "/mutate-pod"
)

// Config is what an installation says about admission.
type Config struct {
	// Host and Port are where the server listens; Host "" is every address.
	Host string
	Port int
	// ClassName, DefaultImage and Levels are those of the controller.
	ClassName    string
	DefaultImage string
	Levels       []cluster.Level
	// PodScheduler is the one binder of GPU pods in managed namespaces, "" if there is none.
	PodScheduler string
	Submissions  Limits
}

// Parts are what the handlers are made of.
type Parts struct {
	Config     Config
	Scheme     *runtime.Scheme
	Strategies *placement.Registry
	// Priorities reads PriorityClasses; nil leaves the look-up out.
	Priorities client.Reader
	Clock      clock.PassiveClock
}

// Setup adds the webhook server and the source of its certificate to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, parts Parts, source certificates.Source) error {
	// The informer is started with the others, so that no request waits for it.
	if _, err := mgr.GetCache().GetInformer(ctx, &schedulingv1.PriorityClass{}); err != nil {
		return fmt.Errorf("watching PriorityClasses: %w", err)
	}
	server := webhook.NewServer(webhook.Options{
		Host: parts.Config.Host,
		Port: parts.Config.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.GetCertificate = source.Certificate
		}},
	})
	Register(server, parts)
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	if err := mgr.Add(source); err != nil {
		return fmt.Errorf("adding the webhook's certificate: %w", err)
	}
	return nil
}

// Register puts the handlers on a server.
func Register(server webhook.Server, parts Parts) {
	decoder := admission.NewDecoder(parts.Scheme)
	c := parts.Config
	server.Register(WorkloadPath, limit(&admission.Webhook{Handler: &workloads{
		decoder:      decoder,
		className:    c.ClassName,
		defaultImage: c.DefaultImage,
		levels:       c.Levels,
		strategies:   parts.Strategies,
		limiter:      newLimiter(c.Submissions, parts.Clock),
		priorities:   parts.Priorities,
	}}))
	server.Register(PodPath, limit(&admission.Webhook{Handler: &pods{decoder: decoder, scheduler: c.PodScheduler}}))
}

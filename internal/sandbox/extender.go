package sandbox

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
)

// startExtender installs the extender's resources and starts it as the account that they define,
// with the manager's settings.
func (s *Sandbox) startExtender(ctx context.Context, restConfig *rest.Config, client kubernetes.Interface) error {
	from := time.Now()
	extender, err := install.Part(ctx, restConfig, config.FS, "extender")
	if err != nil {
		return err
	}
	s.console.Done("extender's resources and RBAC", time.Since(from))
	if err := s.login(ctx, client, s.plane.ExtenderKubeconfig(), extender.Namespace, extender.Account); err != nil {
		return err
	}
	return s.launch(ctx, s.plane.ExtenderSpec())
}

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
	token, err := install.Token(ctx, client, extender)
	if err != nil {
		return err
	}
	user := extender.Namespace + "/" + extender.Account
	if err := s.plane.Authority().WriteTokenKubeconfig(s.plane.ExtenderKubeconfig(), s.plane.URL(), user, token); err != nil {
		return err
	}
	return s.launch(ctx, s.plane.ExtenderSpec())
}

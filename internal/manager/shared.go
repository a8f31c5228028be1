package manager

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect finds the cluster by a kubeconfig file, or, with "", where kubectl looks.
func Connect(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return loadKubeconfig(rules)
}

// Await waits until the API server answers and serves our kind, and says meanwhile what it waits
// for. An answer that waiting cannot mend ends it at once.
func Await(ctx context.Context, config *rest.Config, timeout time.Duration, log logr.Logger) error {
	return waitForCluster(ctx, config, timeout, log)
}

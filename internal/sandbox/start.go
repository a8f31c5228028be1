package sandbox

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/cluster"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/controlplane"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/kwok"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/process"
)

func pid() int { return os.Getpid() }

// start brings everything up. The store and the API server come one after the
// other, the rest at the same time, as each waits for the API server alone.
func (s *Sandbox) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the sandbox was not ready after %s", startTimeout))
	defer cancel()

	if err := s.launch(ctx, s.plane.EtcdSpec()); err != nil {
		return err
	}
	if err := s.launch(ctx, s.plane.APIServerSpec()); err != nil {
		return err
	}
	restConfig, client, err := s.connect()
	if err != nil {
		return err
	}
	stages, err := kwok.WriteConfig(s.plane.Config(controlplane.Kwok))
	if err != nil {
		return err
	}
	specs := []process.Spec{s.plane.ControllerManagerSpec(), s.plane.SchedulerSpec(), s.plane.KwokSpec(stages)}

	s.admin = restConfig

	group, ctx := errgroup.WithContext(ctx)
	for _, spec := range specs {
		group.Go(func() error { return s.launch(ctx, spec) })
	}
	group.Go(func() error { return s.createNodes(ctx, client) })
	group.Go(func() error { return s.install(ctx, restConfig, client) })
	group.Go(func() error { return awaitDefaultAccount(ctx, client) })
	return group.Wait()
}

// launch starts one process and waits until it can be used.
func (s *Sandbox) launch(ctx context.Context, spec process.Spec) error {
	from := time.Now()
	if _, err := s.group.Start(spec); err != nil {
		return err
	}
	if err := s.plane.AwaitHealthy(ctx, spec.Name); err != nil {
		return err
	}
	s.console.Done(spec.Name, time.Since(from))
	return nil
}

// connect makes clients for the administrator, without a limit of their own.
func (s *Sandbox) connect() (*rest.Config, kubernetes.Interface, error) {
	restConfig, err := clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	restConfig.QPS = -1
	typed := rest.CopyConfig(restConfig)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return restConfig, client, nil
}

func (s *Sandbox) createNodes(ctx context.Context, client kubernetes.Interface) error {
	from := time.Now()
	if err := cluster.Create(ctx, client, s.Profile.Nodes(s.Nodes, s.GPUsPerNode, from)); err != nil {
		return err
	}
	if err := cluster.AwaitReady(ctx, client, s.Nodes); err != nil {
		return err
	}
	s.console.Done(fmt.Sprintf("GPU nodes (%d)", s.Nodes), time.Since(from))
	return nil
}

// install puts the product's resources into the cluster and starts its manager as
// the account that they define.
func (s *Sandbox) install(ctx context.Context, restConfig *rest.Config, client kubernetes.Interface) error {
	from := time.Now()
	manager, err := install.Product(ctx, restConfig, config.FS, s.plane.ManagerWebhookURL())
	if err != nil {
		return err
	}
	s.console.Done("resources and RBAC", time.Since(from))
	if err := os.WriteFile(s.plane.ManagerConfig(), []byte(manager.Config), 0o600); err != nil {
		return fmt.Errorf("writing the manager's configuration: %w", err)
	}
	token, err := install.Token(ctx, client, manager)
	if err != nil {
		return err
	}
	user := manager.Namespace + "/" + manager.Account
	if err := s.plane.Authority().WriteTokenKubeconfig(s.plane.ManagerKubeconfig(), s.plane.URL(), user, token); err != nil {
		return err
	}
	if !s.Manager {
		// The kubeconfig stands ready for a manager that somebody else starts.
		return nil
	}
	return s.launch(ctx, s.plane.ManagerSpec(manager.Namespace, s.ManagerArgs))
}

// awaitDefaultAccount waits until pods can be made in namespace default: the API
// server refuses them there before the controllers have made its account.
func awaitDefaultAccount(ctx context.Context, client kubernetes.Interface) error {
	accounts := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "serviceaccounts",
		metav1.NamespaceDefault, fields.OneTermEqualSelector(metav1.ObjectNameField, "default"))
	_, err := watchtools.UntilWithSync(ctx, accounts, &corev1.ServiceAccount{}, nil, func(event watch.Event) (bool, error) {
		return event.Type != watch.Deleted, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account: %w", err)
	}
	return nil
}

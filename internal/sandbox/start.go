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
	specs := []process.Spec{s.plane.ControllerManagerSpec(), s.plane.KwokSpec(stages)}
	if s.Scheduler != Only {
		specs = append(specs, s.plane.SchedulerSpec())
	}

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
	local := install.Local{Webhooks: s.plane.ManagerWebhookURL()}
	if s.Manager {
		local.Port, local.CA = s.plane.ManagerAPI, s.plane.Authority().CAPEM()
	}
	manager, err := install.Product(ctx, restConfig, config.FS, local)
	if err != nil {
		return err
	}
	s.console.Done("resources and RBAC", time.Since(from))
	if err := os.WriteFile(s.plane.ManagerConfig(), []byte(manager.Config), 0o600); err != nil {
		return fmt.Errorf("writing the manager's configuration: %w", err)
	}
	if err := s.login(ctx, client, s.plane.ManagerKubeconfig(), manager.Namespace, manager.Account); err != nil {
		return err
	}
	if s.Scheduler != Stock {
		if err := s.installScheduler(ctx, restConfig, client); err != nil {
			return err
		}
	}
	if s.Extender {
		if err := s.startExtender(ctx, restConfig, client); err != nil {
			return err
		}
	}
	if !s.Manager {
		// The kubeconfig stands ready for a manager that somebody else starts.
		return nil
	}
	return s.launch(ctx, s.plane.ManagerSpec(manager.Namespace, s.ManagerArgs))
}

// installScheduler puts our scheduler's account and rights into the cluster and starts it as that.
func (s *Sandbox) installScheduler(ctx context.Context, restConfig *rest.Config, client kubernetes.Interface) error {
	ours, err := install.OurScheduler(ctx, restConfig, config.FS)
	if err != nil {
		return err
	}
	if err := s.plane.WriteOurSchedulerConfig(ours.Configs[s.Scheduler+".yaml"]); err != nil {
		return err
	}
	if err := s.login(ctx, client, s.plane.OurSchedulerKubeconfig(), ours.Namespace, ours.Account); err != nil {
		return err
	}
	return s.launch(ctx, s.plane.OurSchedulerSpec())
}

// login writes a kubeconfig with a token of a service account.
func (s *Sandbox) login(ctx context.Context, client kubernetes.Interface, kubeconfig, namespace, account string) error {
	token, err := install.Token(ctx, client, namespace, account)
	if err != nil {
		return err
	}
	return s.plane.Authority().WriteTokenKubeconfig(kubeconfig, s.plane.URL(), namespace+"/"+account, token)
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

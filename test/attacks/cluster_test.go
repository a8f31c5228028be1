package attacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// The namespaces: two that are managed, each a tenant's, and one that is not.
const (
	teamA   = "team-a"
	teamB   = "team-b"
	foreign = "foreign"
	system  = "gpu-orchestrator-system"
)

// binder is the one scheduler that the installation is configured to have.
const binder = "gpu-orchestrator"

// identity is who asks.
type identity struct {
	user   string
	groups []string
}

func account(namespace, name string) identity {
	return identity{user: "system:serviceaccount:" + namespace + ":" + name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

func person(name string) identity {
	return identity{user: name, groups: []string{"system:authenticated"}}
}

func kubelet(node string) identity {
	return identity{user: "system:node:" + node, groups: []string{"system:nodes", "system:authenticated"}}
}

// world is the API server, with the product installed and its manager running.
type world struct {
	envtest.Environment
	manager *exec.Cmd
	health  string
	log     *os.File
	err     error
}

var shared struct {
	sync.Once
	world
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if shared.manager != nil && shared.manager.Process != nil {
		_ = shared.manager.Process.Kill()
		_ = shared.manager.Wait()
	}
	if shared.Config != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// open returns the world, which the first test that needs it starts.
func open(t testing.TB) *world {
	t.Helper()
	assets, binary := harness.Assets(t), harness.SandboxBinary(t)
	shared.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		shared.err = shared.start(ctx, assets, binary)
	})
	if shared.err != nil {
		t.Fatalf("starting: %v", shared.err)
	}
	return &shared.world
}

func (w *world) start(ctx context.Context, assets, binary string) error {
	w.UseExistingCluster = ptr.To(false)
	w.ControlPlaneStartTimeout = 2 * time.Minute
	w.BinaryAssetsDirectory = assets
	if _, err := w.Start(); err != nil {
		return err
	}
	w.Config.QPS, w.Config.Burst = -1, 0
	webhooks, health, err := freeAddresses()
	if err != nil {
		return err
	}
	manager, err := install.Product(ctx, w.Config, config.FS, install.Local{Webhooks: "https://" + webhooks})
	if err != nil {
		return err
	}
	if err := w.populate(ctx); err != nil {
		return err
	}
	if err := w.run(ctx, binary, manager, webhooks, health); err != nil {
		return err
	}
	w.health = health
	return w.await(ctx, health)
}

func freeAddresses() (first, second string, err error) {
	var addresses [2]string
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	return addresses[0], addresses[1], nil
}

// run starts the manager as the account that the manifests define.
func (w *world) run(ctx context.Context, binary string, manager install.Manager, webhooks, health string) error {
	cluster, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		return err
	}
	token, err := install.Token(ctx, cluster, manager.Namespace, manager.Account)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "attacks-")
	if err != nil {
		return err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: w.Config.Host, CertificateAuthorityData: w.Config.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return err
	}
	settings := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(settings, []byte("webhooks: {submissionsPerSecond: 2, submissionsBurst: 20}\n"), 0o600); err != nil {
		return err
	}
	if w.log, err = os.Create(filepath.Join(dir, "manager.log")); err != nil {
		return err
	}
	w.manager = exec.Command(binary, "manager", "--kubeconfig", path, "--config", settings,
		"--leader-elect", "--leader-election-namespace", manager.Namespace,
		"--webhooks", "--webhook-bind-address", webhooks, "--webhook-hosts", "127.0.0.1", "--pod-scheduler", binder,
		"--metrics-bind-address=0", "--health-probe-bind-address", health)
	w.manager.Stdout, w.manager.Stderr = w.log, w.log
	// If this process is killed, it must not stay.
	w.manager.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return w.manager.Start()
}

// errAllowed says that a request that is to be refused was not.
var errAllowed = errors.New("allowed")

// await waits until the manager serves and the API server knows the policies and whom to call.
func (w *world) await(ctx context.Context, health string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if last = w.serves(ctx, health); last != nil {
			return false, nil //nolint:nilerr // it is asked again
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last seen: %w; the manager's log is %s", err, last, w.log.Name())
	}
	return nil
}

// serves says what is missing for the webhooks and the policies to hold.
func (w *world) serves(ctx context.Context, health string) error {
	if err := ready(ctx, health); err != nil {
		return err
	}
	// The API server takes a moment to act by each.
	for _, probe := range []struct {
		who        identity
		text, want string
	}{
		{person("alice"), `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeName: n1, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, "spec.nodeName must be empty"},
		{person("alice"), `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: gold, containers: [{name: c, image: i}]}}`, "gold is not for everybody"},
		{person("alice"), `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: x, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, "one scheduler"},
		{person("alice"), `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {modelName: m, schedulingStrategy: nonsense}}`, "unknown strategy"},
		{person("carol"), `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {modelName: m}}`, "may not create pods"},
	} {
		err := w.dryCreate(ctx, probe.who, probe.text)
		if err == nil || !strings.Contains(err.Error(), probe.want) {
			return fmt.Errorf("not refused with %q yet, but: %w", probe.want, cmp.Or(err, errAllowed))
		}
	}
	return nil
}

func ready(ctx context.Context, health string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// client acts as somebody; as nobody in particular it is an administrator.
func (w *world) client(who identity) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), gpuv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(w.Config)
	if who.user != "" {
		c.Impersonate = rest.ImpersonationConfig{UserName: who.user, Groups: who.groups}
	}
	c.WarningHandler = rest.NoWarnings{}
	return client.New(c, client.Options{Scheme: scheme})
}

func (w *world) as(t testing.TB, who identity) client.Client {
	t.Helper()
	c, err := w.client(who)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// populate makes tenants and what they may do. The stock role edit is put together by a controller
// that does not run here: its parts are bound.
func (w *world) populate(ctx context.Context) error {
	admin, err := w.client(identity{})
	if err != nil {
		return err
	}
	for name, labels := range map[string]map[string]string{
		teamA: {gpuv1alpha1.ManagedLabel: "true"}, teamB: {gpuv1alpha1.ManagedLabel: "true"}, foreign: nil,
		"flood":    {gpuv1alpha1.ManagedLabel: "true"},
		"hardened": {gpuv1alpha1.ManagedLabel: "true", "pod-security.kubernetes.io/enforce": "restricted"},
	} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			return err
		}
	}
	edit := []string{"system:aggregate-to-edit", "system:aggregate-to-view", "gpu-orchestrator-edit"}
	var objects []client.Object
	bind := func(namespace, role string, subjects ...rbacv1.Subject) {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		name := strings.ReplaceAll(role, ":", "-") + "-" + strings.ReplaceAll(subjects[0].Name, ":", "-")
		if namespace == "" {
			objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects})
			return
		}
		objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: ref, Subjects: subjects})
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	for _, role := range edit {
		for _, namespace := range []string{teamA, foreign, "flood"} {
			bind(namespace, role, user("alice"))
		}
		bind(teamB, role, user("bob"))
		bind(teamA, role, user("dave"))
	}
	bind(teamA, "gpu-orchestrator-edit", user("carol"))
	bind(teamA, "pod-extras", user("eve"))
	// dave was granted priority.
	bind("", "gpu-orchestrator-critical-priority", user("dave"))
	bind("", "gold", user("dave"))
	// olga owns namespaces, nora labels nodes, mona says what is managed.
	bind("", "namespace-owner", user("olga"))
	bind("", "namespace-owner", user("mona"))
	bind("", "gpu-orchestrator-namespace-manager", user("mona"))
	bind("", "node-owner", user("nora"))
	bind("", "gpu-orchestrator-node-labeller", user("nora"))
	bind("", "node-owner", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:nodes"})
	// The stock controllers.
	bind("", "system:controller:job-controller", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "job-controller"})
	rule := func(group, resource string, names []string, verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: strings.Split(resource, ","), ResourceNames: names, Verbs: verbs}}
	}
	objects = append(objects,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Rules: rule("scheduling.k8s.io", "priorityclasses", []string{"gold", "system-node-critical"}, "use")},
		// What the stock role edit has not, and other roles have.
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pod-extras"}, Rules: rule("", "podtemplates,pods/ephemeralcontainers", nil, "create", "patch")},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "namespace-owner"}, Rules: rule("", "namespaces", nil, "get", "create", "update", "patch")},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "node-owner"}, Rules: rule("", "nodes,nodes/status", nil, "get", "create", "update", "patch")},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 1000},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "silver"}, Value: 10},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{gpuv1alpha1.LeafLabel: "leaf-1"}}},
	)
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	var settings corev1.ConfigMap
	if err := admin.Get(ctx, client.ObjectKey{Namespace: system, Name: "gpu-orchestrator-admission"}, &settings); err != nil {
		return err
	}
	settings.Data = map[string]string{"podScheduler": binder, "restrictedPriorityClasses": "platinum, gold"}
	return admin.Update(ctx, &settings)
}

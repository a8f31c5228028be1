// Package api tests the API that a cluster learns when the product is installed, on a real API
// server: each rule of the custom resource definition, with the sentence that a user reads when
// it is broken, what the server fills in, what it shows, and that the manifests apply.
//
// Nothing acts here: what the controller makes of a workload is for test/e2e.
package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// server is the one API server of this package, started by the first test that needs it.
var server struct {
	sync.Once
	envtest.Environment
	err error
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if server.Config != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// connect returns the configuration of a client of the API server, with the product's custom
// resource definition installed, as an administrator.
func connect(t *testing.T) *rest.Config {
	t.Helper()
	// Before Do: a test that is skipped in it would leave the others without a server.
	assets := harness.Assets(t)
	server.Do(func() {
		// Whatever the environment says: a person's cluster is not for tests.
		server.UseExistingCluster = ptr.To(false)
		server.ControlPlaneStartTimeout = 2 * time.Minute
		server.BinaryAssetsDirectory = assets
		server.CRDDirectoryPaths = []string{filepath.Join(harness.Root(t), "config", "crd", "bases")}
		server.ErrorIfCRDPathMissing = true
		_, server.err = server.Start()
	})
	if server.err != nil {
		t.Fatalf("starting the API server: %v", server.err)
	}
	return rest.CopyConfig(server.Config)
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), gpuv1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func cluster(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(connect(t), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes a namespace for one test. Nothing removes it: it ends with the server.
func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return n.Name
}

// workload reads a GPUWorkload as a user writes it, less what is the same in all: the kind, a
// namespace and, if it gives none, a name.
func workload(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	u.SetGroupVersionKind(gpuv1alpha1.GroupVersion.WithKind("GPUWorkload"))
	u.SetNamespace(namespace)
	if u.GetName() == "" {
		u.SetName("w")
	}
	return u
}

// create stores a workload.
func create(t *testing.T, c client.Client, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	u := workload(t, namespace, text)
	if err := c.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatalf("creating %s: %v", text, err)
	}
	return u
}

// set writes part of a workload over another: fields that are null in it are removed.
func set(t *testing.T, u *unstructured.Unstructured, text string) {
	t.Helper()
	var changes map[string]any
	if err := yaml.Unmarshal([]byte(text), &changes); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	merge(u.Object, changes)
}

func merge(into, changes map[string]any) {
	for key, value := range changes {
		inner, ok := value.(map[string]any)
		old, was := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok && was:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}

// sentences returns what the API server says is wrong, as kubectl prints it: each sentence
// after the path of the field, "<nil>" being the whole object. That further rules were not
// checked is left out.
func sentences(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "nothing is wrong"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("the API server did not call the object invalid, but said: %v", err)
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue
		}
		sentence := cause.Field + ": " + cause.Message
		if !strings.Contains(err.Error(), sentence) {
			t.Fatalf("the user does not see %q in: %v", sentence, err)
		}
		all = append(all, sentence)
	}
	return strings.Join(all, ", ")
}

// kubectl runs the real one as an administrator and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	connect(t)
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(harness.Assets(t), "kubectl"), args...)
	cmd.Dir = harness.Root(t)
	// Its cache goes to the home: one of an earlier server would answer for this one.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// warnings collects what the API server warns of.
type warnings struct {
	sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

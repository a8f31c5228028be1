package attacks

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/reyisjones/gpu-orchestrator/internal/webhook"
	"github.com/reyisjones/gpu-orchestrator/internal/webhook/certificates"
)

// TestNoSecret holds that a manager that cannot get its certificate says why.
func TestNoSecret(t *testing.T) {
	w := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := certificates.NewSelf(certificates.Options{
		Client: w.as(t, identity{}), Secret: client.ObjectKey{Namespace: foreign, Name: "nowhere"}, Configuration: "nowhere",
		Hosts: []string{"x"}, Validity: time.Hour, Every: 10 * time.Millisecond, Clock: clock.RealClock{},
	})
	go func() { _ = source.Start(ctx) }()
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		err := source.Ready()
		return err != nil && strings.Contains(err.Error(), "the Secret foreign/nowhere is missing: apply config/webhook again"), nil
	})
	if err != nil {
		t.Errorf("it says: %v", source.Ready())
	}
}

// readyNames looks for a line in the manager's own account of whether it is ready.
func (w *world) readyNames(t *testing.T, want string) {
	t.Helper()
	answer, err := http.Get("http://" + w.health + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("/readyz does not say %q: %s (%v)", want, text, err)
	}
}

// TestRotation renews the certificate and its authority every second or so while the API server
// calls, with a webhook that fails closed: not one request is lost. The server has two replicas
// that keep one Secret.
func TestRotation(t *testing.T) {
	w := open(t)
	admin := w.as(t, identity{})
	w.readyNames(t, "[+]webhook-certificate ok")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "rotating"}}
	if err := admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options := certificates.Options{
		Client: admin, Secret: client.ObjectKeyFromObject(secret), Configuration: "rotating",
		Hosts: []string{"127.0.0.1"}, Clock: clock.RealClock{},
		// Dated back by an hour, it is old as soon as it is issued.
		Validity: time.Hour + time.Minute, Overlap: time.Second, Every: 100 * time.Millisecond,
	}
	serving, other := certificates.NewSelf(options), certificates.NewSelf(options)
	go func() { _ = serving.Start(ctx) }()
	go func() { _ = other.Start(ctx) }()
	mux := http.NewServeMux()
	webhook.Register(ctrlwebhook.NewServer(ctrlwebhook.Options{WebhookMux: mux}), webhook.Parts{Scheme: admin.Scheme(), Clock: clock.RealClock{}})
	var asked atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		mux.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	defer func() { _ = server.Close() }()
	go func() {
		_ = server.Serve(tls.NewListener(listener, &tls.Config{GetCertificate: serving.Certificate, MinVersion: tls.VersionTLS12}))
	}()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "rotating"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "rotating.gpu.warp.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + listener.Addr().String() + webhook.WorkloadPath)},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: foreign}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if err := admin.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Delete(context.Background(), config) }()
	try := func(ctx context.Context) error {
		return admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, GenerateName: "c-"}}, client.DryRunAll)
	}
	// Until the API server has heard of the webhook, it asks nobody and everything works.
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return try(ctx) == nil && asked.Load() > 0, nil
	})
	if err != nil {
		t.Fatalf("it never works: %v", try(t.Context()))
	}
	served := map[string]bool{}
	requests := 0
	for begin := time.Now(); time.Since(begin) < 20*time.Second && len(served) < 5; requests++ {
		if err := try(t.Context()); err != nil {
			t.Fatalf("after %d requests and %d certificates: %v", requests, len(served), err)
		}
		c, err := serving.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		served[string(c.Certificate[0])] = true
	}
	if len(served) < 3 {
		t.Errorf("only %d certificates were served", len(served))
	}
	t.Logf("%d requests while %d certificates were served: none lost", requests, len(served))
}

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, err := NewAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// serve answers with the name and groups of the client's certificate.
func serve(t *testing.T, authority *Authority) *httptest.Server {
	t.Helper()
	pair, err := authority.Server("kube-apiserver", []string{"kubernetes"}, net.IPv4(10, 96, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Authorization-Seen", r.Header.Get("Authorization"))
		if len(r.TLS.PeerCertificates) > 0 {
			subject := r.TLS.PeerCertificates[0].Subject
			w.Header().Set("User", subject.CommonName)
			w.Header()["Group"] = subject.Organization
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, kubeconfig string) http.Header {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.Header
}

func TestKubeconfigWithACertificateIsWhoItSays(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, authority)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := authority.WriteKubeconfig(path, server.URL, "admin", "system:masters"); err != nil {
		t.Fatal(err)
	}

	header := get(t, path)

	if user, group := header.Get("User"), header.Get("Group"); user != "admin" || group != "system:masters" {
		t.Errorf("the server sees user %q in group %q", user, group)
	}
}

func TestKubeconfigWithAToken(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, authority)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := authority.WriteTokenKubeconfig(path, server.URL, "manager", "secret"); err != nil {
		t.Fatal(err)
	}

	header := get(t, path)

	if got := header.Get("Authorization-Seen"); got != "Bearer secret" {
		t.Errorf("the server sees %q", got)
	}
}

func TestKubeconfigTrustsItsOwnAuthorityAlone(t *testing.T) {
	server := serve(t, newAuthority(t))
	stranger := newAuthority(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := stranger.WriteKubeconfig(path, server.URL, "admin"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Get(server.URL); err == nil {
		_ = response.Body.Close()
		t.Error("a server of another authority is trusted")
	}
}

func TestSecretsAreTheOwnersAlone(t *testing.T) {
	authority := newAuthority(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := authority.WriteKubeconfig(path, "https://127.0.0.1:1", "admin"); err != nil {
		t.Fatal(err)
	}
	private, _, err := authority.ServiceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("etcd", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, private, pair.KeyFile, filepath.Join(authority.dir, "ca.key")} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(file), mode)
		}
	}
}

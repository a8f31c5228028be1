package extender

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.crt", "CERTIFICATE", der)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(t testing.TB, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue writes NAME.crt and NAME.key.
func (a *authority) issue(t testing.TB, name, commonName string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".crt", "CERTIFICATE", der)
	a.write(t, name+".key", "EC PRIVATE KEY", secret)
}

// serve starts a server and returns where it is.
func serve(t testing.TB, w *world, serving Serving) string {
	t.Helper()
	serving.Address = "127.0.0.1:0"
	w.handler.client = serving.authorize
	s := &server{serving: serving, handler: w.handler.routes(), log: logr.Discard(), limits: defaultLimits()}
	ctx, cancel := context.WithCancel(context.Background())
	if !serving.Insecure {
		watcher, err := certwatcher.New(serving.CertFile, serving.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = watcher.Start(ctx) }()
		s.tls = serving.config(watcher)
	}
	address, ended := make(chan string, 1), make(chan error, 1)
	s.listening = func(a net.Addr) { address <- a.String() }
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "https://" + <-address
}

// client trusts the authority, and shows a certificate if one is named.
func (a *authority) client(t testing.TB, name string, edits ...func(*tls.Config)) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.cert)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.file(name+".crt"), a.file(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	for _, edit := range edits {
		edit(config)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func asks(t *testing.T, c *http.Client, url string) (int, error) {
	t.Helper()
	r, err := c.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	return r.StatusCode, nil
}

func TestOnlyKnownClientsAreAnswered(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	a.issue(t, "server", "server")
	a.issue(t, "scheduler", "system:kube-scheduler")
	a.issue(t, "kubelet", "system:node:n1")
	stranger.issue(t, "scheduler", "system:kube-scheduler")
	url := serve(t, newWorld(t), Serving{
		CertFile: a.file("server.crt"), KeyFile: a.file("server.key"),
		ClientCAFile: a.file("ca.crt"), ClientNames: []string{"system:kube-scheduler"},
	})
	for _, c := range []struct {
		who    string
		client *http.Client
		path   string
		code   int
	}{
		{"the scheduler", a.client(t, "scheduler"), "/filter", 400}, // Whatever it asks, it may.
		{"the scheduler", a.client(t, "scheduler"), "/bind", 400},
		{"a kubelet", a.client(t, "kubelet"), "/filter", 403},
		{"the scheduler", a.client(t, "scheduler"), "/healthz", 404}, // Probes have a port of their own.
	} {
		if code, err := asks(t, c.client, url+c.path); err != nil || code != c.code {
			t.Errorf("%s asks %s: %d %v, want %d", c.who, c.path, code, err, c.code)
		}
	}
	for _, path := range []string{"/filter", "/bind", "/healthz"} {
		if code, err := asks(t, a.client(t, ""), url+path); err == nil {
			t.Errorf("nobody asks %s: %d", path, code)
		}
	}
	foreign := a.client(t, "", func(c *tls.Config) {
		pair, err := tls.LoadX509KeyPair(stranger.file("scheduler.crt"), stranger.file("scheduler.key"))
		if err != nil {
			t.Fatal(err)
		}
		// Shown although the server does not ask for one of its authority.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	})
	if code, err := asks(t, foreign, url+"/filter"); err == nil {
		t.Errorf("somebody else's scheduler gets %d", code)
	}
	old := a.client(t, "scheduler", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	if code, err := asks(t, old, url+"/filter"); err == nil {
		t.Errorf("TLS 1.1 gets %d", code)
	}
}

// Connections are few: no stranger holds one that kube-scheduler would have to wait for.
func TestStrangersHoldNoConnections(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", "server")
	a.issue(t, "scheduler", "system:kube-scheduler")
	url := serve(t, newWorld(t), Serving{CertFile: a.file("server.crt"), KeyFile: a.file("server.key"), ClientCAFile: a.file("ca.crt")})
	for range maxConnections + 1 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger trusts anybody
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			continue
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("a stranger gets an answer")
		}
	}
	if code, err := asks(t, a.client(t, "scheduler"), url+"/filter"); err != nil || code != 400 {
		t.Errorf("the scheduler: %d %v", code, err)
	}
}

// Without an authority for clients anybody may ask what a node is worth; nobody has pods bound.
func TestNobodyBindsWithoutACertificate(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", "server")
	url := serve(t, newWorld(t), Serving{CertFile: a.file("server.crt"), KeyFile: a.file("server.key")})
	for path, want := range map[string]int{"/filter": 400, "/bind": 403} {
		if code, err := asks(t, a.client(t, ""), url+path); err != nil || code != want {
			t.Errorf("%s: %d %v, want %d", path, code, err, want)
		}
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", "old")
	a.issue(t, "scheduler", "s")
	url := serve(t, newWorld(t), Serving{CertFile: a.file("server.crt"), KeyFile: a.file("server.key"), ClientCAFile: a.file("ca.crt")})
	served := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only its name is read
		if err != nil {
			t.Fatal(err)
		}
		name := conn.ConnectionState().PeerCertificates[0].Subject.CommonName
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		return name
	}
	if name := served(); name != "old" {
		t.Fatalf("serves %s", name)
	}
	a.issue(t, "server", "new")
	for deadline := time.Now().Add(20 * time.Second); served() != "new"; {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not served")
		}
	}
	// So is the authority of clients.
	next := newAuthority(t)
	next.issue(t, "scheduler", "s")
	data, err := os.ReadFile(next.file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file("ca.crt"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	later := a.client(t, "", func(c *tls.Config) {
		pair, err := tls.LoadX509KeyPair(next.file("scheduler.crt"), next.file("scheduler.key"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	})
	if code, err := asks(t, later, url+"/filter"); err != nil || code != 400 {
		t.Errorf("a client of the new authority: %d %v", code, err)
	}
}

func TestServingThatContradictsItself(t *testing.T) {
	a := newAuthority(t)
	for name, c := range map[string]struct {
		serving Serving
		says    string
	}{
		"no certificate":            {Serving{Address: ":8888"}, "--tls-cert-file and --tls-private-key-file are needed"},
		"plain to everybody":        {Serving{Address: ":8888", Insecure: true}, "loopback interface only"},
		"plain to the network":      {Serving{Address: "10.0.0.1:8888", Insecure: true}, "loopback interface only"},
		"plain with a certificate":  {Serving{Address: "127.0.0.1:8888", Insecure: true, CertFile: "c"}, "leave out"},
		"names without authority":   {Serving{Address: ":8888", CertFile: "c", KeyFile: "k", ClientNames: []string{"x"}}, "--client-name needs"},
		"an authority that is none": {Serving{Address: ":8888", CertFile: "c", KeyFile: "k", ClientCAFile: os.DevNull}, "holds no certificate"},
		"no port":                   {Serving{Address: "localhost", Insecure: true}, "no host and port"},
	} {
		if err := c.serving.validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for name, ok := range map[string]Serving{
		"plain on loopback": {Address: "127.0.0.1:8888", Insecure: true},
		"with an authority": {Address: ":8888", CertFile: "c", KeyFile: "k", ClientCAFile: a.file("ca.crt")},
	} {
		if err := ok.validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

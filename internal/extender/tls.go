package extender

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Serving says how the extender is reached.
type Serving struct {
	// Address is host and port; without a host it listens on all interfaces.
	Address string
	// CertFile and KeyFile are the server's certificate; they are read again when they change.
	CertFile, KeyFile string
	// ClientCAFile, if given, is whose certificates are let in; read again at every handshake.
	// ClientNames narrows them to these common names.
	ClientCAFile string
	ClientNames  []string
	// Insecure serves plain HTTP, on the loopback interface alone.
	Insecure bool
}

// validate says what is contradictory.
func (s *Serving) validate() error {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("--bind-address %q is no host and port: %w", s.Address, err)
	}
	switch {
	case s.Insecure && (s.CertFile != "" || s.KeyFile != "" || s.ClientCAFile != ""):
		return errors.New("--insecure-http serves without TLS: leave out the certificate files, or the flag")
	case s.Insecure && !isLoopback(host):
		return fmt.Errorf("--insecure-http is for the loopback interface only: whoever reaches the port may bind any pod; set --bind-address to 127.0.0.1:8888, not %q, or give a certificate", s.Address)
	case !s.Insecure && (s.CertFile == "" || s.KeyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file are needed (or --insecure-http on the loopback interface)")
	case len(s.ClientNames) > 0 && s.ClientCAFile == "":
		return errors.New("--client-name needs --client-ca-file: without it nobody's name is proven")
	}
	if s.ClientCAFile != "" {
		_, err := pool(s.ClientCAFile)
		return err
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// config returns the TLS configuration. With a clients' authority nobody gets further than the
// handshake without a certificate of it: connections are few, and whoever asks would wait for one
// that a stranger holds. The kubelet, which has no certificate, probes another port.
func (s *Serving) config(watcher *certwatcher.CertWatcher) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: watcher.GetCertificate,
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if s.ClientCAFile == "" {
		return config
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	base := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		// kube-scheduler keeps its connections: a file read for each handshake is nothing.
		roots, err := pool(s.ClientCAFile)
		if err != nil {
			return nil, err
		}
		own := base.Clone()
		own.ClientCAs = roots
		return own, nil
	}
	return config
}

func pool(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the clients' authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the clients' authority: %s holds no certificate", file)
	}
	return roots, nil
}

var (
	errNoCertificate = errors.New("a client certificate is needed: set tlsConfig.certFile and keyFile in kube-scheduler's configuration")
	errAnonymousBind = errors.New("bind is answered for clients with a certificate only: start the extender with --client-ca-file, or leave bindVerb out of kube-scheduler's configuration")
)

// authorize tells why the client may not ask. Without a clients' authority everybody may ask, and
// nobody may have pods bound.
func (s *Serving) authorize(r *http.Request, verb string) error {
	switch {
	case s.Insecure:
		return nil
	case s.ClientCAFile == "" && verb == verbBind:
		return errAnonymousBind
	case s.ClientCAFile == "":
		return nil
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		return errNoCertificate
	}
	name := r.TLS.VerifiedChains[0][0].Subject.CommonName
	if len(s.ClientNames) > 0 && !slices.Contains(s.ClientNames, name) {
		return fmt.Errorf("%q is not among the clients that are answered (--client-name)", name)
	}
	return nil
}

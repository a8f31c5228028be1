package aggregated

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// ServiceName is the Service by which the API server finds the manager.
const ServiceName = "gpu-orchestrator-explain"

// Config is what an installation may set.
type Config struct {
	// Address is where to listen.
	Address string
	// CertDir holds tls.crt and tls.key; "" makes a certificate that signs itself, which the
	// APIService must then be told not to verify.
	CertDir string
}

// Server is the manager's part of the API. It is a manager.Runnable that every replica runs.
type Server struct {
	config Config
	rest   *rest.Config
	answer Answerer
	// synced tells whether all of the cluster was read.
	synced func() bool
	log    logr.Logger
}

// New returns a server. Nothing is contacted before Start.
func New(config Config, restConfig *rest.Config, answer Answerer, synced func() bool, log logr.Logger) *Server {
	return &Server{config: config, rest: restConfig, answer: answer, synced: synced, log: log}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: all replicas answer.
func (s *Server) NeedLeaderElection() bool { return false }

// Limits of a request. An explanation of a cluster of 1,024 nodes takes milliseconds.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 90 * time.Second
	stopTimeout    = 5 * time.Second
	largestHeader  = 1 << 20
)

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.rest)
	if err != nil {
		return fmt.Errorf("serving explanations: %w", err)
	}
	gate, err := newGate(ctx, client, s.log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("serving explanations: %w", err)
	}
	certificate, err := s.certificate(ctx)
	if err != nil {
		return fmt.Errorf("serving explanations: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Address)
	if err != nil {
		return fmt.Errorf("serving explanations: %w", err)
	}
	server := &http.Server{
		Handler:           http.TimeoutHandler(gate.wrap(newHandler(s.answer, gate.authorizer, s.synced)), requestTimeout, "it took too long"),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    largestHeader,
		// Whoever connects and says nothing, as probes do, is no news.
		ErrorLog:  slog.NewLogLogger(logr.ToSlogHandler(s.log.V(1)), slog.LevelDebug),
		TLSConfig: tlsConfig(certificate),
	}
	stopped := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = server.Shutdown(last)
	})
	defer stopped()
	s.log.Info("serving explanations", "address", listener.Addr().String())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving explanations: %w", err)
	}
	return nil
}

func tlsConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: certificate,
		// The API server shows a certificate when it hands on a request; it is verified where it is
		// used, against what the cluster says of its API server.
		ClientAuth: tls.RequestClientCert,
		NextProtos: []string{"h2", "http/1.1"},
	}
}

// certificate returns what tells the server's certificate, which may be renewed while it runs.
func (s *Server) certificate(ctx context.Context) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if s.config.CertDir == "" {
		return selfSigned()
	}
	watcher, err := certwatcher.New(filepath.Join(s.config.CertDir, "tls.crt"), filepath.Join(s.config.CertDir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			s.log.Error(err, "the certificate is not read again when it is renewed")
		}
	}()
	return watcher.GetCertificate, nil
}

func selfSigned() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey(ServiceName, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}

// wrap asks of each request who makes it and whether they may.
func (g *gate) wrap(handler http.Handler) http.Handler {
	handler = filters.WithAuthorization(handler, g.authorizer, codecs())
	handler = filters.WithAuthentication(handler, g.authenticator, filters.Unauthorized(codecs()), nil, g.requestHeader)
	handler = filters.WithRequestInfo(handler, resolver())
	return filters.WithRequestReceivedTimestamp(handler)
}

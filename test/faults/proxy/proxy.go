package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// Config says between whom a proxy stands.
type Config struct {
	// Component is the first word of its points; Instance tells replicas apart.
	Component, Instance string
	// Upstream is the API server, and who the component is to it.
	Upstream *rest.Config
	// Faults may be shared by several proxies.
	Faults *Faults
	// Label tells writes to the same resource apart; nil for no labels.
	Label func(Write) string
}

// Proxy is one listener on loopback. Whoever comes with its token acts as the component.
type Proxy struct {
	Config

	token    string
	certPEM  []byte
	listener net.Listener
	server   *http.Server
	base     http.RoundTripper
}

// connKey finds the connection of a request.
type connKey struct{}

// Start listens. Close ends it.
func Start(config Config) (*Proxy, error) {
	upstream := rest.CopyConfig(config.Upstream)
	base, err := rest.TransportFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("connecting the proxy of %s: %w", config.Instance, err)
	}
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's address: %w", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the proxy's certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p := &Proxy{Config: config, token: rand.Text(), certPEM: certPEM, listener: listener, base: base}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// What the component may do, the upstream's own credentials say.
			r.Out.Header.Del("Authorization")
			// The transport asks for compression itself, and undoes it.
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:      roundTripper(p.roundTrip),
		ModifyResponse: p.modify,
		FlushInterval:  -1,
		ErrorHandler:   p.failed,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{
		Handler:           p.authenticate(forward),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Close ends the listener and every connection.
func (p *Proxy) Close() error { return p.server.Close() }

// URL is where the proxy listens.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// WriteKubeconfig writes, with mode 0600, a kubeconfig that leads through the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.URL(), CertificateAuthorityData: p.certPEM}
	config.AuthInfos["component"] = &clientcmdapi.AuthInfo{Token: p.token}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "component"}
	config.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", p.Instance, err)
	}
	return nil
}

func (p *Proxy) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+p.token {
			http.Error(w, "this proxy serves "+p.Instance+" alone", http.StatusUnauthorized)
			return
		}
		if p.Faults.isCut(p.Instance) {
			p.drop(r, true)
		}
		next.ServeHTTP(w, r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lostError asks for the client to be left without an answer.
type lostError struct{ connection bool }

func (*lostError) Error() string { return "the answer is lost on purpose" }

// failed answers, or does not answer, a request that the transport gave no response to.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	var lost *lostError
	if errors.As(err, &lost) {
		p.drop(r, lost.connection)
	}
	http.Error(w, "the API server cannot be reached: "+err.Error(), http.StatusBadGateway)
}

// drop ends the request without an answer, and its connection if asked to. It does not return.
func (p *Proxy) drop(r *http.Request, connection bool) {
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok && connection {
		_ = c.Close()
	}
	panic(http.ErrAbortHandler)
}

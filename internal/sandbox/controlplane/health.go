package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// probeInterval is short because start-up is what people wait for; a probe
	// of a port that nobody listens on costs microseconds.
	probeInterval = 50 * time.Millisecond
	probeTimeout  = 5 * time.Second
)

// healthURLs says where each process answers 200 once it can be used.
func (c *ControlPlane) healthURL(name string) string {
	switch name {
	case Etcd:
		return "https://" + address(c.Ports.Etcd) + "/health"
	case APIServer:
		return c.URL() + "/readyz"
	case ControllerManager:
		return "https://" + address(c.Ports.ControllerManager) + "/healthz"
	case Scheduler:
		return "https://" + address(c.Ports.Scheduler) + "/readyz"
	case OurScheduler:
		return "https://" + address(c.Ports.OurScheduler) + "/readyz"
	case Kwok:
		return "http://" + address(c.Ports.Kwok) + "/healthz"
	case Extender:
		return "http://" + address(c.ExtenderHealth) + "/readyz"
	default:
		return c.ManagerHealthURL()
	}
}

// AwaitHealthy waits until the named process says that it can be used. When ctx
// ends first, the error holds the last answer.
func (c *ControlPlane) AwaitHealthy(ctx context.Context, name string) error {
	client, err := c.probeClient()
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
	defer client.CloseIdleConnections()

	url := c.healthURL(name)
	var last error
	err = wait.PollUntilContextCancel(ctx, probeInterval, true, func(ctx context.Context) (bool, error) {
		last = probe(ctx, client, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s at %s: %w (last answer: %w)", name, url, context.Cause(ctx), last)
	}
	return nil
}

// probeClient trusts the sandbox's authority alone and shows etcd a certificate.
func (c *ControlPlane) probeClient() (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(c.serving[Etcd].CertFile, c.serving[Etcd].KeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the probe's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority.CAPEM())
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		},
	}, nil
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

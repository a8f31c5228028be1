package aggregated

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Without the API server's certificate its word for who asks is nobody's.
func TestTheAPIServerIsAskedForItsCertificate(t *testing.T) {
	certificate, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			_, _ = io.WriteString(w, "shown")
		}
	}))
	server.TLS = tlsConfig(certificate)
	server.StartTLS()
	defer server.Close()
	own, err := certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // what the client shows is looked at
		Certificates:       []tls.Certificate{*own},
	}}}
	r, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || string(text) != "shown" {
		t.Errorf("the server looks at no certificate: %q, %v", text, err)
	}
}

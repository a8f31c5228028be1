package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	validity = 90 * 24 * time.Hour
	overlap  = 10 * time.Minute
	// short makes a certificate that is old a moment after it was issued, as it is dated back by an
	// hour: what is issued is dated by the real clock, whatever time a test plays.
	short = startsBefore + startsBefore/2
)

// secret plays what replicas make of one Secret over time.
type secret struct {
	t     *testing.T
	data  map[string][]byte
	hosts []string
	// validity is that of what is issued.
	validity time.Duration
}

// at returns what is served at the time, and whether the Secret was written.
func (s *secret) at(now time.Time) (served *pair, written bool) {
	s.t.Helper()
	data, current, err := advance(s.data, s.hosts, s.validity, overlap, now)
	if err != nil {
		s.t.Fatal(err)
	}
	written = !same(s.data, data)
	s.data = data
	if again, _, err := advance(data, s.hosts, s.validity, overlap, now); err != nil || !same(again, data) {
		s.t.Errorf("a second replica would write again at once (%v)", err)
	}
	if !s.trusts(current, now) {
		s.t.Error("what is served is not trusted")
	}
	return current, written
}

// trusts tells whether an API server that knows the bundle accepts the certificate.
func (s *secret) trusts(p *pair, now time.Time) bool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.data[bundle])
	_, err := p.leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: s.hosts[0], CurrentTime: now})
	return err == nil
}

func TestRenewalOverlaps(t *testing.T) {
	now := time.Now()
	s := &secret{t: t, hosts: []string{"webhook.ns.svc", "127.0.0.1"}, validity: short}
	first, written := s.at(now.Add(-time.Minute))
	if !written || first.leaf.VerifyHostname("127.0.0.1") != nil || first.leaf.IsCA {
		t.Fatalf("issued for %v %v, written %v", first.leaf.DNSNames, first.leaf.IPAddresses, written)
	}
	s.validity = validity
	if kept, written := s.at(now.Add(-time.Second)); written || kept.leaf.SerialNumber.Cmp(first.leaf.SerialNumber) != 0 {
		t.Error("two thirds of its life are not over, and it is replaced")
	}
	// Two thirds are over: the next one is announced, and not served.
	kept, written := s.at(now.Add(time.Minute))
	if !written || kept.leaf.SerialNumber.Cmp(first.leaf.SerialNumber) != 0 || s.data[nextCert] == nil {
		t.Fatal("no next one is announced, or it is served at once")
	}
	next, err := read(s.data[nextCert], s.data[nextKey])
	if err != nil {
		t.Fatal(err)
	}
	if !s.trusts(next, now) || !s.trusts(first, now) {
		t.Error("one of the two is not trusted while both may be served")
	}
	served, written := s.at(now.Add(overlap + time.Minute))
	if !written || served.leaf.SerialNumber.Cmp(next.leaf.SerialNumber) != 0 || s.data[nextCert] != nil {
		t.Error("the next one is not served after the overlap")
	}
	if !s.trusts(first, now) {
		t.Error("a replica that has not looked yet serves what nobody trusts")
	}
	if _, written := s.at(first.leaf.NotAfter.Add(time.Minute)); !written || s.trusts(first, now) {
		t.Error("an authority is trusted after it expired")
	}
}

func TestWhatCannotBeServedIsReplacedAtOnce(t *testing.T) {
	now := time.Now()
	for name, spoil := range map[string]func(*secret) time.Time{
		"expired": func(*secret) time.Time { return now.Add(2 * validity) },
		"made for another name": func(s *secret) time.Time {
			s.hosts = append([]string{"moved.ns.svc"}, s.hosts...)
			return now
		},
		"emptied": func(s *secret) time.Time { s.data = nil; return now },
		"half a key": func(s *secret) time.Time {
			s.data[currentKey] = s.data[currentKey][:len(s.data[currentKey])/2]
			return now
		},
		"somebody else's": func(s *secret) time.Time { s.data[currentCert] = []byte("x"); s.data[bundle] = []byte("y"); return now },
	} {
		t.Run(name, func(t *testing.T) {
			s := &secret{t: t, hosts: []string{"webhook.ns.svc"}, validity: validity}
			first, _ := s.at(now)
			when := spoil(s)
			data, current, err := advance(s.data, s.hosts, s.validity, overlap, when)
			if err != nil {
				t.Fatal(err)
			}
			if current.leaf.SerialNumber.Cmp(first.leaf.SerialNumber) == 0 {
				t.Error("it is still served")
			}
			if _, err := read(data[currentCert], data[currentKey]); err != nil {
				t.Error(err)
			}
		})
	}
}

// Files may come after the process, and are read again when they change.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	f := NewFiles(dir)
	if _, err := f.Certificate(&tls.ClientHelloInfo{}); err == nil || f.Ready() == nil {
		t.Error("it is ready before there is a file")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	eventually(t, func() bool { return strings.Contains(f.Ready().Error(), dir) })
	for range 2 {
		p, err := issue([]string{"webhook.ns.svc"}, validity)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"tls.key": p.key, "tls.crt": p.cert} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, func() bool {
			c, err := f.Certificate(&tls.ClientHelloInfo{})
			return err == nil && string(c.Certificate[0]) == string(p.leaf.Raw) && f.Ready() == nil
		})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, check func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return check(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

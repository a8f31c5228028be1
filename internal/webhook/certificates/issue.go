package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// The keys of the Secret. What is served comes first, what is to be served next waits under
// names of its own until every API server can be expected to trust it.
const (
	currentCert = "tls.crt"
	currentKey  = "tls.key"
	nextCert    = "next.crt"
	nextKey     = "next.key"
	// bundle is every authority that is to be trusted: of what was, is and will be served.
	bundle = "ca.crt"
)

// startsBefore is by how much client-go dates a certificate back.
const startsBefore = time.Hour

// pair is a certificate with its key and the authority that signed it.
type pair struct {
	cert, key []byte
	leaf, ca  *x509.Certificate
	serving   *tls.Certificate
}

// issue makes a certificate for hosts, and an authority for it alone whose key is thrown away:
// nothing else can ever be signed with it.
func issue(hosts []string, validity time.Duration) (*pair, error) {
	if len(hosts) == 0 {
		return nil, errors.New("issuing a certificate: no host is named")
	}
	options := certutil.SelfSignedCertKeyOptions{Host: hosts[0], MaxAge: validity}
	for _, host := range hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			options.AlternateIPs = append(options.AlternateIPs, ip)
		} else {
			options.AlternateDNS = append(options.AlternateDNS, host)
		}
	}
	cert, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(options)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	return read(cert, key)
}

// read parses a certificate, the authority after it, and its key.
func read(cert, key []byte) (*pair, error) {
	serving, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	chain, err := certutil.ParseCertsPEM(cert)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	if len(chain) != 2 || !chain[1].IsCA {
		return nil, errors.New("reading a certificate: it is not followed by the authority that signed it")
	}
	return &pair{cert: cert, key: key, leaf: chain[0], ca: chain[1], serving: &serving}, nil
}

// goodFor tells whether the pair can be served under all the names at the time.
func (p *pair) goodFor(hosts []string, now time.Time) bool {
	for _, host := range hosts {
		if p.leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	return now.After(p.leaf.NotBefore) && now.Before(p.leaf.NotAfter)
}

// old tells whether two thirds of the validity are over.
func (p *pair) old(now time.Time) bool {
	life := p.leaf.NotAfter.Sub(p.leaf.NotBefore)
	return now.After(p.leaf.NotBefore.Add(life * 2 / 3))
}

// advance returns what the Secret should hold, and what is to be served of it. A certificate that
// grows old is replaced in two steps, overlap apart: first the authority of the next one becomes
// known, then the next one is served. One that is missing, unreadable, expired or made for other
// names is replaced at once.
func advance(data map[string][]byte, hosts []string, validity, overlap time.Duration, now time.Time) (map[string][]byte, *pair, error) {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	current, err := read(out[currentCert], out[currentKey])
	if err != nil || !current.goodFor(hosts, now) {
		if current, err = issue(hosts, validity); err != nil {
			return nil, nil, err
		}
		delete(out, nextCert)
		delete(out, nextKey)
	}
	next, err := read(out[nextCert], out[nextKey])
	switch {
	case (err != nil || !next.goodFor(hosts, now)) && current.old(now):
		if next, err = issue(hosts, validity); err != nil {
			return nil, nil, err
		}
	case err != nil || !next.goodFor(hosts, now):
		next = nil
	case now.After(next.leaf.NotBefore.Add(startsBefore + overlap)):
		current, next = next, nil
	}
	out[currentCert], out[currentKey] = current.cert, current.key
	delete(out, nextCert)
	delete(out, nextKey)
	trusted := []*x509.Certificate{current.ca}
	if next != nil {
		out[nextCert], out[nextKey] = next.cert, next.key
		trusted = append(trusted, next.ca)
	}
	if out[bundle], err = trust(trusted, out[bundle], now); err != nil {
		return nil, nil, err
	}
	return out, current, nil
}

// trust returns the authorities as PEM, after them those of known that have not expired: a replica
// that has not looked yet serves what they signed.
func trust(cas []*x509.Certificate, known []byte, now time.Time) ([]byte, error) {
	// What cannot be parsed is left out.
	old, err := certutil.ParseCertsPEM(known)
	if err != nil {
		old = nil
	}
	for _, ca := range old {
		if now.Before(ca.NotAfter) && !contains(cas, ca) && len(cas) < mostTrusted {
			cas = append(cas, ca)
		}
	}
	encoded, err := certutil.EncodeCertificates(cas...)
	if err != nil {
		return nil, fmt.Errorf("encoding the authorities: %w", err)
	}
	return encoded, nil
}

// mostTrusted bounds the bundle, should certificates be issued again and again.
const mostTrusted = 8

func contains(cas []*x509.Certificate, ca *x509.Certificate) bool {
	for _, c := range cas {
		if c.Equal(ca) {
			return true
		}
	}
	return false
}

// same tells whether two Secrets hold the same.
func same(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}

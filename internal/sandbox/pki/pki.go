// Package pki issues the certificates of a sandbox: an authority, and a
// certificate for each server and each client of the control plane. Keys are
// elliptic, because making RSA keys would cost more than starting etcd.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

const (
	algorithm = kubeadmapi.EncryptionAlgorithmECDSAP256
	// validity is longer than any sandbox stays up; each run makes new keys.
	validity = 365 * 24 * time.Hour

	serviceAccountName = "sa"
)

// Pair names the two files of a certificate.
type Pair struct {
	CertFile string
	KeyFile  string
}

// Authority signs certificates and writes them to a folder.
type Authority struct {
	dir  string
	name string
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes a certificate authority and writes it to dir.
func NewAuthority(dir, name string) (*Authority, error) {
	cert, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config:              certutil.Config{CommonName: name},
		NotAfter:            time.Now().Add(validity),
		EncryptionAlgorithm: algorithm,
	})
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	if err := pkiutil.WriteCertAndKey(dir, name, cert, key); err != nil {
		return nil, fmt.Errorf("writing the certificate authority: %w", err)
	}
	return &Authority{dir: dir, name: name, cert: cert, key: key}, nil
}

// CAFile is the authority's certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, a.name+".crt") }

// CAPEM is the authority's certificate.
func (a *Authority) CAPEM() []byte { return pkiutil.EncodeCertPEM(a.cert) }

// Server issues a certificate for a server on the loopback interface that is
// also known by the given names and addresses. It is good for clients too, as
// etcd calls itself.
func (a *Authority) Server(name string, names []string, addresses ...net.IP) (Pair, error) {
	cert, key, err := a.issue(certutil.Config{
		CommonName: name,
		AltNames: certutil.AltNames{
			DNSNames: append([]string{"localhost"}, names...),
			IPs:      append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, addresses...),
		},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Pair{}, fmt.Errorf("issuing the certificate of %s: %w", name, err)
	}
	if err := pkiutil.WriteCertAndKey(a.dir, name, cert, key); err != nil {
		return Pair{}, fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	return a.pair(name), nil
}

// Client issues a certificate for a client of the API server and returns it
// encoded, ready for a kubeconfig: who user is and which groups it is in.
func (a *Authority) Client(user string, groups ...string) (certPEM, keyPEM []byte, err error) {
	cert, key, err := a.issue(certutil.Config{
		CommonName:   user,
		Organization: groups,
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("issuing the certificate of %s: %w", user, err)
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", user, err)
	}
	return pkiutil.EncodeCertPEM(cert), keyPEM, nil
}

func (a *Authority) issue(config certutil.Config) (*x509.Certificate, crypto.Signer, error) {
	return pkiutil.NewCertAndKey(a.cert, a.key, &pkiutil.CertConfig{
		Config:              config,
		NotAfter:            time.Now().Add(validity),
		EncryptionAlgorithm: algorithm,
	})
}

// ServiceAccountKey makes the key that signs service account tokens and returns
// the names of its private and public files.
func (a *Authority) ServiceAccountKey() (private, public string, err error) {
	key, err := pkiutil.NewPrivateKey(algorithm)
	if err != nil {
		return "", "", fmt.Errorf("making the service account key: %w", err)
	}
	if err := pkiutil.WriteKey(a.dir, serviceAccountName, key); err != nil {
		return "", "", fmt.Errorf("writing the service account key: %w", err)
	}
	if err := pkiutil.WritePublicKey(a.dir, serviceAccountName, key.Public()); err != nil {
		return "", "", fmt.Errorf("writing the service account key: %w", err)
	}
	return filepath.Join(a.dir, serviceAccountName+".key"), filepath.Join(a.dir, serviceAccountName+".pub"), nil
}

func (a *Authority) pair(name string) Pair {
	cert, key := pkiutil.PathsForCertAndKey(a.dir, name)
	return Pair{CertFile: cert, KeyFile: key}
}

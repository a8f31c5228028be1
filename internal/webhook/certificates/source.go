package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Source is where the certificate comes from. It runs in every replica, leader or not.
type Source interface {
	// Start keeps the certificate up to date until ctx ends.
	Start(ctx context.Context) error
	// NeedLeaderElection is false: every replica serves.
	NeedLeaderElection() bool
	// Certificate is for tls.Config.GetCertificate.
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready says why there is no certificate to serve yet; nil if there is one.
	Ready() error
}

// held is the certificate in use and what went wrong last.
type held struct {
	certificate atomic.Pointer[tls.Certificate]
	problem     atomic.Pointer[error]
}

// NeedLeaderElection implements Source.
func (h *held) NeedLeaderElection() bool { return false }

// Certificate implements Source.
func (h *held) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := h.certificate.Load(); c != nil {
		return c, nil
	}
	return nil, h.Ready()
}

// Ready implements Source. A certificate once read is served whatever happens to where it came
// from, so that it does not stop being ready.
func (h *held) Ready() error {
	if h.certificate.Load() != nil {
		return nil
	}
	if p := h.problem.Load(); p != nil {
		return *p
	}
	return errors.New("no certificate has been read yet")
}

func (h *held) note(err error) {
	if err != nil {
		h.problem.Store(&err)
	}
}

// firstTries is the pause between tries as long as there is no certificate.
const firstTries = time.Second

// keep calls look until ctx ends: often until the first success, then every interval.
func keep(ctx context.Context, interval time.Duration, look func(context.Context) error) {
	ready := false
	for ctx.Err() == nil {
		pause := interval
		if look(ctx) == nil {
			ready = true
		} else if !ready {
			pause = min(firstTries, interval)
		}
		timer := time.NewTimer(wait.Jitter(pause, 0.1))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

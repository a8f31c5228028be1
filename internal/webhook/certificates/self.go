package certificates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say what a self-managed certificate is for and where it is kept.
type Options struct {
	// Client reads and writes without a cache: what it asks for it may only get by name.
	Client client.Client
	// Secret keeps the certificate. It is part of the manifests, so that no right to create
	// Secrets is needed.
	Secret client.ObjectKey
	// Configuration names the validating and the mutating webhook configuration that are told
	// whom to trust; no other one is touched.
	Configuration string
	// Hosts are the names and addresses that the API server calls us by.
	Hosts []string
	// Validity is how long a certificate is good for; it is replaced when two thirds are over.
	Validity time.Duration
	// Overlap is how long the authority of the next certificate is known before that is served.
	Overlap time.Duration
	// Every is how often each replica looks.
	Every time.Duration
	Clock clock.PassiveClock
}

// Self issues and renews the certificate itself. Every replica does the same, at any time: what
// it writes is guarded by the resourceVersion of what it read, so that one of them wins and the
// others take over what that one wrote.
type Self struct {
	held
	options Options
}

// NewSelf returns a Source that needs nothing but the API server.
func NewSelf(options Options) *Self { return &Self{options: options} }

// Start implements Source.
func (s *Self) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("webhook-certificates")
	last := ""
	keep(ctx, s.options.Every, func(ctx context.Context) error {
		err := s.look(ctx)
		s.note(err)
		switch {
		case err != nil && ctx.Err() == nil && err.Error() != last:
			log.Error(err, "keeping the webhook's certificate")
			last = err.Error()
		case err == nil:
			last = ""
		}
		return err
	})
	return nil
}

// look brings Secret, webhook configurations and what is served to where they should be.
func (s *Self) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	var secret corev1.Secret
	if err := s.options.Client.Get(ctx, s.options.Secret, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret %s is missing: apply config/webhook again, an empty one will do: %w", s.options.Secret, err)
		}
		return fmt.Errorf("reading the Secret %s: %w", s.options.Secret, err)
	}
	want, current, err := advance(secret.Data, s.options.Hosts, s.options.Validity, s.options.Overlap, s.options.Clock.Now())
	if err != nil {
		return err
	}
	if !same(secret.Data, want) {
		secret.Data = want
		// With the resourceVersion of what was read: of several replicas one wins, and the
		// others find its certificate when they look again.
		if err := s.options.Client.Update(ctx, &secret); err != nil {
			return fmt.Errorf("writing the Secret %s: %w", s.options.Secret, err)
		}
	}
	s.certificate.Store(current.serving)
	return errors.Join(s.tellValidating(ctx, want[bundle]), s.tellMutating(ctx, want[bundle]))
}

// lookWithin bounds one look.
const lookWithin = 10 * time.Second

// tellValidating writes whom to trust into the validating webhook configuration.
func (s *Self) tellValidating(ctx context.Context, ca []byte) error {
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := s.options.Client.Get(ctx, client.ObjectKey{Name: s.options.Configuration}, &c); err != nil {
		return told("validating", err)
	}
	changed := false
	for i := range c.Webhooks {
		changed = trusts(&c.Webhooks[i].ClientConfig, ca) || changed
	}
	if !changed {
		return nil
	}
	return told("validating", s.options.Client.Update(ctx, &c))
}

// tellMutating writes whom to trust into the mutating webhook configuration.
func (s *Self) tellMutating(ctx context.Context, ca []byte) error {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := s.options.Client.Get(ctx, client.ObjectKey{Name: s.options.Configuration}, &c); err != nil {
		return told("mutating", err)
	}
	changed := false
	for i := range c.Webhooks {
		changed = trusts(&c.Webhooks[i].ClientConfig, ca) || changed
	}
	if !changed {
		return nil
	}
	return told("mutating", s.options.Client.Update(ctx, &c))
}

// told says what went wrong. A configuration that is not there was switched off.
func told(kind string, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	default:
		return fmt.Errorf("telling the %s webhook configuration whom to trust: %w", kind, err)
	}
}

// trusts has a webhook trust ca, and tells whether that is new.
func trusts(c *admissionregistrationv1.WebhookClientConfig, ca []byte) bool {
	if bytes.Equal(c.CABundle, ca) {
		return false
	}
	c.CABundle = ca
	return true
}

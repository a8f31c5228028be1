package aggregated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// Where every cluster says by which certificates and headers its API server is known.
const (
	authNamespace = "kube-system"
	authConfigMap = "extension-apiserver-authentication"
)

const (
	// answersAgain is how long an answer of the API server about a right is good for.
	answersAgain = 10 * time.Second
	reviewWithin = 10 * time.Second
	// lookAgain is the pause before another look for what says who the API server is.
	lookAgain = 5 * time.Second
)

// gate tells who asks and whether they may. It knows neither itself: the API server does.
type gate struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	requestHeader *authenticatorfactory.RequestHeaderConfig
}

// newGate waits until the cluster says who its API server is.
func newGate(ctx context.Context, client kubernetes.Interface, log logr.Logger) (*gate, error) {
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"front-proxy", authNamespace, authConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("reading who the API server is: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(authConfigMap, authNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	err = wait.PollUntilContextCancel(ctx, lookAgain, true, func(ctx context.Context) (bool, error) {
		problem := errors.Join(authority.RunOnce(ctx), headers.RunOnce(ctx))
		if problem != nil {
			log.Info("explanations are not served yet: who the API server is cannot be read", "namespace", authNamespace, "configMap", authConfigMap, "problem", problem.Error())
		}
		return problem == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading who the API server is: %w", err)
	}
	go authority.Run(ctx, 1)
	go headers.Run(ctx, 1)
	g := &gate{requestHeader: &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   authority,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
	}}
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	g.authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:  client.AuthenticationV1(),
		TokenAccessReviewTimeout: reviewWithin,
		WebhookRetryBackoff:      backoff,
		CacheTTL:                 answersAgain,
		RequestHeaderConfig:      g.requestHeader,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	g.authorizer, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             answersAgain,
		DenyCacheTTL:              answersAgain,
		WebhookRetryBackoff:       backoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	return g, nil
}

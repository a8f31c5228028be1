package aggregated

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/explaining"
)

// Answerer knows the answers.
type Answerer interface {
	Workload(ctx context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error)
	Pod(ctx context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error)
	Gang(ctx context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error)
	Scenario(ctx context.Context, ask explaining.Ask) (*explainv1alpha1.Scenario, error)
	Decided(q decisions.Query, sees func(namespace string) bool) *explainv1alpha1.DecisionList
}

// The resources, and what of them can be asked for.
const (
	workloads   = "gpuworkloads"
	pods        = "pods"
	gangs       = "gangs"
	decided     = "decisions"
	explanation = "explanation"
	scenario    = "scenario"
)

type handler struct {
	answer Answerer
	may    authorizer.Authorizer
	synced func() bool
	// slots bound how many answers are worked out at a time: one may take a second of a large
	// cluster's manager, whose own work comes first.
	slots chan struct{}
}

// atOnce is how many answers are worked out at a time; the others wait.
const atOnce = 2

func newHandler(answer Answerer, may authorizer.Authorizer, synced func() bool) http.Handler {
	h := &handler{answer: answer, may: may, synced: synced, slots: make(chan struct{}, atOnce)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", h.resource)
	for _, path := range []string{"/apis", "/apis/{$}"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			write(w, http.StatusOK, &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{*group()}})
		})
	}
	mux.HandleFunc("/apis/"+explainv1alpha1.GroupName, func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, group()) })
	mux.HandleFunc("/apis/"+explainv1alpha1.APIVersion, h.discovery)
	// The API server asks for schemas and keeps asking until it is given some. There are none: what
	// is served here is read only, and described in docs/.
	mux.HandleFunc("/openapi/v2", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"swagger": "2.0", "info": openAPIInfo(), "paths": map[string]any{}})
	})
	mux.HandleFunc("/openapi/v3", func(w http.ResponseWriter, _ *http.Request) {
		path := "apis/" + explainv1alpha1.APIVersion
		write(w, http.StatusOK, map[string]any{"paths": map[string]any{path: map[string]string{"serverRelativeURL": "/openapi/v3/" + path}}})
	})
	mux.HandleFunc("/openapi/v3/apis/"+explainv1alpha1.APIVersion, func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"openapi": "3.0.0", "info": openAPIInfo(), "paths": map[string]any{}})
	})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	return mux
}

func openAPIInfo() map[string]string {
	return map[string]string{"title": explainv1alpha1.GroupName, "version": explainv1alpha1.Version}
}

func group() *metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: explainv1alpha1.APIVersion, Version: explainv1alpha1.Version}
	return &metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: explainv1alpha1.GroupName,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

// discovery tells the API server, which asks for it to learn whether this is available, and
// clients, what there is. While the cluster is not read completely there is nothing to be had.
func (h *handler) discovery(w http.ResponseWriter, _ *http.Request) {
	if !h.synced() {
		fail(w, notRead())
		return
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: explainv1alpha1.APIVersion}
	for _, r := range []struct{ name, kind, verb string }{
		{workloads + "/" + explanation, explainv1alpha1.ExplanationKind, "get"},
		{workloads + "/" + decided, explainv1alpha1.DecisionListKind, "get"},
		{workloads + "/" + scenario, explainv1alpha1.ScenarioKind, "get"},
		{pods + "/" + explanation, explainv1alpha1.ExplanationKind, "get"},
		{gangs + "/" + explanation, explainv1alpha1.ExplanationKind, "get"},
		{decided, "Decision", "list"},
	} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.name, Kind: r.kind, Namespaced: true, Verbs: metav1.Verbs{r.verb}})
	}
	write(w, http.StatusOK, list)
}

func notRead() error {
	return apierrors.NewServiceUnavailable("nodes and pods have not been read completely yet: ask again in a moment")
}

// resource answers what is asked about an object, or a namespace.
func (h *handler) resource(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || info.APIGroup != explainv1alpha1.GroupName || info.APIVersion != explainv1alpha1.Version {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "there is nothing at "+r.URL.Path, 0, false))
		return
	}
	if info.Verb != "get" && info.Verb != "list" {
		fail(w, apierrors.NewMethodNotSupported(resourceOf(info), info.Verb))
		return
	}
	if !h.synced() {
		fail(w, notRead())
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		fail(w, apierrors.NewTimeoutError("too much is asked at once: ask again in a moment", 1))
		return
	}
	found, err := h.find(r, info)
	if err != nil {
		fail(w, err)
		return
	}
	if list, ok := found.(*explainv1alpha1.DecisionList); ok && strings.Contains(r.Header.Get("Accept"), "as=Table") {
		found = table(list)
	}
	write(w, http.StatusOK, found)
}

func resourceOf(info *request.RequestInfo) schema.GroupResource {
	name := info.Resource
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return schema.GroupResource{Group: explainv1alpha1.GroupName, Resource: name}
}

func (h *handler) find(r *http.Request, info *request.RequestInfo) (any, error) {
	ask := explaining.Ask{Name: types.NamespacedName{Namespace: info.Namespace, Name: info.Name}, Sees: h.sees(r.Context())}
	query := r.URL.Query()
	if text := query.Get("try"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, apierrors.NewBadRequest("try: " + strconv.Quote(text) + " is not the number of a remedy, from 1")
		}
		ask.Try = n
	}
	switch resourceOf(info).Resource {
	case workloads + "/" + explanation:
		return h.answer.Workload(r.Context(), ask)
	case pods + "/" + explanation:
		return h.answer.Pod(r.Context(), ask)
	case gangs + "/" + explanation:
		return h.answer.Gang(r.Context(), ask)
	case workloads + "/" + scenario:
		return h.answer.Scenario(r.Context(), ask)
	case decided, workloads + "/" + decided:
		return h.decisions(info, query.Get, ask.Sees)
	}
	return nil, apierrors.NewNotFound(resourceOf(info), info.Name)
}

func (h *handler) decisions(info *request.RequestInfo, query func(string) string, sees func(string) bool) (any, error) {
	q := decisions.Query{Namespace: info.Namespace, Name: info.Name, Outcome: decisions.Outcome(query("outcome"))}
	if text := query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, apierrors.NewBadRequest("limit: " + strconv.Quote(text) + " is not a number of decisions")
		}
		q.Limit = n
	}
	if text := query("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, apierrors.NewBadRequest("since: " + strconv.Quote(text) + " is not a time such as 2026-01-31T12:00:00Z")
		}
		q.Since = at
	}
	return h.answer.Decided(q, sees), nil
}

// sees tells of which namespaces the asker may know what runs there: those about which they may
// ask. Nil is all.
func (h *handler) sees(ctx context.Context) func(string) bool {
	asker, ok := request.UserFrom(ctx)
	may := func(namespace string) bool {
		return ok && h.allowed(ctx, asker, namespace)
	}
	if may(metav1.NamespaceAll) {
		return nil
	}
	return may
}

func (h *handler) allowed(ctx context.Context, asker user.Info, namespace string) bool {
	decision, _, err := h.may.Authorize(ctx, authorizer.AttributesRecord{
		User: asker, Verb: "get", Namespace: namespace, ResourceRequest: true,
		APIGroup: explainv1alpha1.GroupName, APIVersion: explainv1alpha1.Version, Resource: workloads, Subresource: explanation,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	// Whoever hangs up does not want the rest.
	_ = json.NewEncoder(w).Encode(body)
}

// fail says what went wrong as the API server does.
func fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	write(w, int(status.Code), &status)
}

func resolver() request.RequestInfoResolver {
	return &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
}

// codecs write the refusals of the filters.
func codecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}

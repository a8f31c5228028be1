package aggregated

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
	"github.com/reyisjones/gpu-orchestrator/internal/explaining"
)

const base = "/apis/explain.gpu.warp.dev/v1alpha1/"

// oracle knows one workload, pod and gang, all called known.
type oracle struct {
	asked []explaining.Ask
	query decisions.Query
	sees  func(string) bool
}

func (o *oracle) answer(ask explaining.Ask, subject string) (*explainv1alpha1.Explanation, error) {
	o.asked = append(o.asked, ask)
	if ask.Name.Name != "known" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: subject}, ask.Name.Name)
	}
	return &explainv1alpha1.Explanation{Subject: subject, Verdict: "WAIT"}, nil
}

func (o *oracle) Workload(_ context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error) {
	return o.answer(ask, "gpuworkload")
}

func (o *oracle) Pod(_ context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error) {
	return o.answer(ask, "pod")
}

func (o *oracle) Gang(_ context.Context, ask explaining.Ask) (*explainv1alpha1.Explanation, error) {
	return o.answer(ask, "gang")
}

func (o *oracle) Scenario(context.Context, explaining.Ask) (*explainv1alpha1.Scenario, error) {
	return &explainv1alpha1.Scenario{File: "request: {}\n"}, nil
}

func (o *oracle) Decided(q decisions.Query, sees func(string) bool) *explainv1alpha1.DecisionList {
	o.query, o.sees = q, sees
	return &explainv1alpha1.DecisionList{Items: []explainv1alpha1.Decision{}}
}

// rules let alice ask about namespace team, and root about all; their tokens are their names.
func rules() *gate {
	return &gate{
		authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
		}),
		authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "root" || !a.IsResourceRequest() || a.GetUser().GetName() == "alice" && a.GetNamespace() == "team" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}
}

func serve(o *oracle, synced bool, method, who, path string) *httptest.ResponseRecorder {
	g := rules()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	g.wrap(newHandler(o, g.authorizer, func() bool { return synced })).ServeHTTP(w, r)
	return w
}

func TestWhoMayAskWhat(t *testing.T) {
	for name, c := range map[string]struct {
		method, who, path string
		want              int
		says              string
	}{
		"a workload":               {"GET", "alice", base + "namespaces/team/gpuworkloads/known/explanation", 200, `"subject":"gpuworkload"`},
		"a pod":                    {"GET", "alice", base + "namespaces/team/pods/known/explanation", 200, `"subject":"pod"`},
		"a gang":                   {"GET", "alice", base + "namespaces/team/gangs/known/explanation?try=2", 200, `"subject":"gang"`},
		"a scenario":               {"GET", "root", base + "namespaces/team/gpuworkloads/known/scenario", 200, `"file":"request`},
		"what was decided":         {"GET", "alice", base + "namespaces/team/decisions?outcome=Refused&limit=3&since=2026-01-31T12:00:00Z", 200, `"items":[]`},
		"of one":                   {"GET", "alice", base + "namespaces/team/gpuworkloads/known/decisions", 200, `"items":[]`},
		"of all":                   {"GET", "root", base + "decisions", 200, `"items":[]`},
		"discovery":                {"GET", "alice", base[:len(base)-1], 200, `"gpuworkloads/explanation"`},
		"the group":                {"GET", "alice", "/apis/explain.gpu.warp.dev", 200, `"preferredVersion"`},
		"schemas":                  {"GET", "alice", "/openapi/v2", 200, `"swagger":"2.0"`},
		"nobody":                   {"GET", "", base + "namespaces/team/gpuworkloads/known/explanation", 401, "Unauthorized"},
		"another team's":           {"GET", "alice", base + "namespaces/other/gpuworkloads/known/explanation", 403, "forbidden"},
		"all, as one of a team":    {"GET", "alice", base + "decisions", 403, "forbidden"},
		"what is not there":        {"GET", "alice", base + "namespaces/team/gpuworkloads/unknown/explanation", 404, "NotFound"},
		"what nobody serves":       {"GET", "alice", base + "namespaces/team/gpuworkloads/known/secrets", 404, "NotFound"},
		"another path":             {"GET", "root", "/metrics", 404, "could not find"},
		"a deletion":               {"DELETE", "root", base + "namespaces/team/gpuworkloads/known/explanation", 405, "MethodNotAllowed"},
		"a remedy without number":  {"GET", "alice", base + "namespaces/team/gpuworkloads/known/explanation?try=all", 400, "not the number of a remedy"},
		"a remedy below the first": {"GET", "alice", base + "namespaces/team/gpuworkloads/known/explanation?try=0", 400, "not the number of a remedy"},
		"a time that is none":      {"GET", "alice", base + "namespaces/team/decisions?since=monday", 400, "is not a time"},
		"a limit that is none":     {"GET", "alice", base + "namespaces/team/decisions?limit=few", 400, "is not a number"},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(&oracle{}, true, c.method, c.who, c.path)
			if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
				t.Fatalf("status %d, want %d with %q: %s", w.Code, c.want, c.says, w.Body)
			}
			var status metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
				t.Fatal(err)
			}
			if w.Code >= 400 && (status.Kind != "Status" || int(status.Code) != w.Code) {
				t.Errorf("a client cannot read what went wrong: %s", w.Body)
			}
		})
	}
}

func TestNothingIsToldBeforeAllIsRead(t *testing.T) {
	for _, path := range []string{base[:len(base)-1], base + "namespaces/team/gpuworkloads/known/explanation"} {
		if w := serve(&oracle{}, false, "GET", "root", path); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

func TestWhatIsAskedArrives(t *testing.T) {
	o := &oracle{}
	serve(o, true, "GET", "alice", base+"namespaces/team/gpuworkloads/known/explanation?try=3")
	serve(o, true, "GET", "root", base+"namespaces/team/gpuworkloads/known/explanation")
	serve(o, true, "GET", "alice", base+"namespaces/team/gpuworkloads/known/decisions?outcome=Refused&limit=3&since=2026-01-31T12:00:00Z")
	first := o.asked[0]
	if first.Try != 3 || first.Name.Namespace != "team" || first.Sees == nil || !first.Sees("team") || first.Sees("other") {
		t.Errorf("alice asks %+v", first)
	}
	if o.asked[1].Sees != nil {
		t.Error("root sees not all")
	}
	want := decisions.Query{Namespace: "team", Name: "known", Outcome: decisions.Refused, Limit: 3, Since: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	if o.query != want {
		t.Errorf("%+v", o.query)
	}
	if o.sees == nil || !o.sees("team") || o.sees("other") {
		t.Error("alice is told of decisions as if she saw all, or nothing")
	}
}

// A right that cannot be looked up is none.
func TestAnErrorIsNoRight(t *testing.T) {
	may := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetNamespace() == "broken" {
			return authorizer.DecisionAllow, "", errors.New("the API server does not answer")
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	h := &handler{may: may}
	sees := h.sees(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}))
	if sees == nil || sees("broken") {
		t.Error("who may see is not known, and names are shown")
	}
	h.may = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", errors.New("the API server does not answer")
	})
	if h.sees(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"})) == nil {
		t.Error("who may see is not known, and everything is shown")
	}
	h.may = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	if sees := h.sees(t.Context()); sees == nil || sees("team") {
		t.Error("nobody sees what runs")
	}
}

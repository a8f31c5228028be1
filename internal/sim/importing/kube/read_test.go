package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// answer is what a simulated API server says to a request: a status and a body.
type answer struct {
	status int
	body   any
}

type object = map[string]any

// serve answers lists by path and continuation, and judges that nothing else is asked for.
func serve(t *testing.T, answers map[string]answer) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Query().Has("watch") {
			t.Errorf("it asks to %s %s", r.Method, r.URL)
		}
		key := r.URL.Path
		if token := r.URL.Query().Get("continue"); token != "" {
			key += " from " + token
		} else if r.URL.Query().Get("limit") == "" {
			key += " at once"
		}
		a, ok := answers[key]
		if !ok {
			a = answer{http.StatusNotFound, status("NotFound", 404)}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_ = json.NewEncoder(w).Encode(a.body)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func status(reason string, code int) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": "because", "code": code}
}

func page(kind, version, next string, names ...string) answer {
	items := []object{}
	for _, name := range names {
		items = append(items, object{"metadata": object{"name": name, "namespace": "ml", "managedFields": []object{{"manager": "x"}}}})
	}
	return answer{http.StatusOK, object{"kind": kind + "List", "apiVersion": version, "metadata": object{"continue": next}, "items": items}}
}

func TestReadGoesPageByPage(t *testing.T) {
	config := serve(t, map[string]answer{
		"/api/v1/nodes":                            page("Node", "v1", "", "n1"),
		"/api/v1/pods":                             page("Pod", "v1", "2", "a", "b"),
		"/api/v1/pods from 2":                      page("Pod", "v1", "", "c"),
		"/apis/batch/v1/jobs":                      page("Job", "batch/v1", "old", "j"),
		"/apis/batch/v1/jobs from old":             {http.StatusGone, status("Expired", 410)},
		"/apis/batch/v1/jobs at once":              page("Job", "batch/v1", "", "j", "k"),
		"/apis/gpu.warp.dev/v1alpha1/gpuworkloads": page("GPUWorkload", "gpu.warp.dev/v1alpha1", "", "w"),
	})
	o, err := Read(t.Context(), config, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Nodes) != 1 || len(o.Pods) != 3 || len(o.Jobs) != 2 || len(o.Workloads) != 1 || o.Pods[2].Name != "c" {
		t.Errorf("read %d nodes, %d pods, %d Jobs, %d workloads", len(o.Nodes), len(o.Pods), len(o.Jobs), len(o.Workloads))
	}
	if o.Pods[0].ManagedFields != nil || o.Jobs[0].ManagedFields != nil {
		t.Error("what nobody reads is kept")
	}
}

// TestReadOfOneNamespace is of a cluster on which the product is not installed.
func TestReadOfOneNamespace(t *testing.T) {
	config := serve(t, map[string]answer{
		"/api/v1/nodes":                     page("Node", "v1", "", "n1"),
		"/api/v1/namespaces/ml/pods":        page("Pod", "v1", "", "a"),
		"/apis/batch/v1/namespaces/ml/jobs": page("Job", "batch/v1", ""),
	})
	if o, err := Read(t.Context(), config, Scope{Namespace: "ml"}); err != nil || len(o.Pods) != 1 || len(o.Workloads) != 0 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := Read(t.Context(), config, Scope{NodesOnly: true}); err != nil || len(o.Nodes) != 1 || o.Pods != nil {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	forbidden := answer{http.StatusForbidden, status("Forbidden", 403)}
	nodes, pods, jobs := page("Node", "v1", ""), page("Pod", "v1", ""), page("Job", "batch/v1", "")
	for _, c := range []struct {
		answers map[string]answer
		want    string
	}{
		{map[string]answer{"/api/v1/nodes": forbidden}, "the cluster does not let you list nodes in the whole cluster: "},
		{map[string]answer{"/api/v1/nodes": nodes, "/api/v1/namespaces/ml/pods": forbidden}, "the cluster does not let you list pods in namespace ml: "},
		{map[string]answer{"/api/v1/nodes": nodes, "/api/v1/namespaces/ml/pods": pods, "/apis/batch/v1/namespaces/ml/jobs": forbidden}, " list jobs.batch in namespace ml: "},
		{map[string]answer{"/api/v1/nodes": nodes, "/api/v1/namespaces/ml/pods": pods, "/apis/batch/v1/namespaces/ml/jobs": jobs, "/apis/gpu.warp.dev/v1alpha1/namespaces/ml/gpuworkloads": forbidden}, " list gpuworkloads.gpu.warp.dev in namespace ml: "},
		{map[string]answer{"/api/v1/nodes": {http.StatusUnauthorized, status("Unauthorized", 401)}}, "listing nodes: because"},
		{map[string]answer{"/api/v1/nodes": {http.StatusOK, "no list"}}, "listing nodes: "},
	} {
		_, err := Read(t.Context(), serve(t, c.answers), Scope{Namespace: "ml"})
		if !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		var of *ForbiddenError
		if is := errors.As(err, &of); is != strings.Contains(c.want, " list ") {
			t.Errorf("%v is a %T", err, err)
		}
	}
}

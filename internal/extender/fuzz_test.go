package extender

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// FuzzVerbs sends anything to every verb: there is always an answer, never more nodes than were
// asked about, and nothing is held afterwards.
func FuzzVerbs(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `null`, `[]`, `{"Pod":null,"NodeNames":null}`,
		`{"Pod":` + podJSON + `,"NodeNames":["a","b","a","unknown"]}`,
		`{"Pod":` + podJSON + `,"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]},"NodeNames":null}`,
		`{"Pod":` + podJSON + `,"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"uid-x"}],"NumPDBViolations":1}}}`,
		`{"Pod":` + podJSON + `,"NodeNameToVictims":{"a":{"Pods":[{"metadata":{"name":"x","namespace":"ns","uid":"uid-x"}}]}}}`,
		`{"PodName":"p","PodNamespace":"ns","PodUID":"uid-p","Node":"a"}`,
		strings.Replace(`{"Pod":`+podJSON+`,"NodeNames":["a","b"]}`, `"uid":`, `"labels":{"gpu.warp.dev/gang":"g","gpu.warp.dev/gang-size":"2"},"annotations":{"gpu.warp.dev/required-level":"leaf","gpu.warp.dev/slice":"1/host","gpu.warp.dev/rank":"1"},"uid":`, 1),
	} {
		for verb := range 4 {
			f.Add(uint8(verb), body)
		}
	}
	verbs := []string{verbFilter, verbPrioritize, verbPreempt, verbBind}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		verb := verbs[int(which)%len(verbs)]
		w := newWorld(t).node("l1", "a", 8).node("l1", "b", 4).node("l2", "c", 8)
		w.handler.catchUp = time.Millisecond
		w.pod("p", 1)
		w.pod("x", 8, on("a"), gang("g", 2), inOneLeaf)
		r := httptest.NewRequest(http.MethodPost, "/"+verb, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.handler.routes().ServeHTTP(rec, r)
		if !slices.Contains([]int{200, 400, 413, 503}, rec.Code) {
			t.Errorf("%s answers %d %s", verb, rec.Code, rec.Body)
		}
		if !w.handler.room.TryAcquire(bodiesAtOnce * w.handler.largest) {
			t.Error("the request is still counted")
		}
		if rec.Code != http.StatusOK {
			return
		}
		switch verb {
		case verbFilter:
			checkFiltered(t, body, rec.Body.Bytes())
		case verbPrioritize:
			var list extenderv1.HostPriorityList
			if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				if p.Score < extenderv1.MinExtenderPriority || p.Score > extenderv1.MaxExtenderPriority {
					t.Errorf("%s has %d", p.Host, p.Score)
				}
			}
		}
	})
}

// checkFiltered tells whether every node that was asked about is in the answer, kept or failed, and
// no other is.
func checkFiltered(t *testing.T, body string, answered []byte) {
	t.Helper()
	var asked extenderv1.ExtenderArgs
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		return // The pod may be newer than our types; the nodes then are, too.
	}
	var r extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(answered, &r); err != nil {
		t.Fatal(err)
	}
	names := func(list *corev1.NodeList, own *[]string) (all []string) {
		if own != nil {
			all = append(all, *own...)
		}
		if list != nil {
			for i := range list.Items {
				all = append(all, list.Items[i].Name)
			}
		}
		return all
	}
	want := names(asked.Nodes, asked.NodeNames)
	got := names(r.Nodes, r.NodeNames)
	for _, failed := range []extenderv1.FailedNodesMap{r.FailedNodes, r.FailedAndUnresolvableNodes} {
		for name, why := range failed {
			if why == "" {
				t.Errorf("node %s failed without a reason", name)
			}
			got = append(got, name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	// A node that is asked about twice and fails is in the answer once.
	if !slices.Equal(slices.Compact(want), slices.Compact(got)) {
		t.Errorf("asked about %v, answered about %v", want, got)
	}
}

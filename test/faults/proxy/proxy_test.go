package proxy

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is an API server that says what it has seen, and sends what a test tells it to.
type server struct {
	mu     sync.Mutex
	seen   []string
	frames chan string
	lists  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	if r.Method != http.MethodGet {
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Authorization") != "Bearer upstream":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case line, ok := <-s.frames:
				if !ok {
					return
				}
				fmt.Fprintln(w, line)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods"):
		s.mu.Lock()
		s.lists++
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`, s.lists)
		s.mu.Unlock()
	default:
		if len(body) == 0 || r.Method == http.MethodDelete {
			body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}
		_, _ = w.Write(body)
	}
}

func (s *server) saw() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

type rig struct {
	*server
	faults *Faults
	client kubernetes.Interface
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := &server{frames: make(chan string)}
	upstream := httptest.NewUnstartedServer(s)
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	faults := NewFaults()
	p, err := Start(Config{
		Component: "manager", Instance: "manager-a", Faults: faults,
		Upstream: &rest.Config{Host: upstream.URL, BearerToken: "upstream", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		Label:    func(w Write) string { return w.Text("metadata", "labels", "attempt") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{server: s, faults: faults, client: client}
}

func (r *rig) patch(t *testing.T, name string) error {
	t.Helper()
	_, err := r.client.CoreV1().Pods("ns").Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"attempt":"0"}}}`), metav1.PatchOptions{})
	return err
}

const point = "manager patch(merge) pods [0] #2"

func TestWritesAreNamedAndCounted(t *testing.T) {
	r := newRig(t)
	uid := types.UID("u1")
	for range 2 {
		if err := r.patch(t, "p"); err != nil {
			t.Fatal(err)
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Labels: map[string]string{"attempt": "3"}}}
	if _, err := r.client.BatchV1().Jobs("ns").Create(t.Context(), job, metav1.CreateOptions{}); err != nil && !apierrors.IsInternalError(err) {
		t.Log("the fake server answers a create with what it got:", err)
	}
	if err := r.client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, record := range r.faults.Journal() {
		names = append(names, record.Point)
	}
	want := []string{"manager patch(merge) pods [0] #1", point, "manager create jobs.batch [3] #1", "manager delete pods #1"}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("recorded %q, want %q", names, want)
	}
	if last := r.faults.Journal()[3]; last.UIDGuard != "u1" || !last.Sent {
		t.Errorf("the deletion is recorded as %+v", last)
	}
}

func TestVerbs(t *testing.T) {
	for _, v := range []struct {
		name   string
		action Action
		// sent is whether the API server saw the faulted request.
		sent  bool
		right func(error) bool
	}{
		{"409", Action{Verb: Fail, Code: 409}, false, apierrors.IsConflict},
		{"429 without Retry-After", Action{Verb: Fail, Code: 429}, false, apierrors.IsTooManyRequests},
		{"429 with Retry-After is tried again by the client", Action{Verb: Fail, Code: 429, RetryAfter: time.Second}, true, func(err error) bool { return err == nil }},
		{"500", Action{Verb: Fail, Code: 500}, false, apierrors.IsInternalError},
		{"504 after the commit", Action{Verb: CommitThenFail, Code: 504}, true, apierrors.IsTimeout},
		{"reset before", Action{Verb: ResetBefore}, false, func(err error) bool { return err != nil }},
		{"reset before, the whole connection", Action{Verb: ResetBefore, Connection: true}, false, func(err error) bool { return err != nil }},
		{"commit, then lose", Action{Verb: CommitThenLose}, true, func(err error) bool { return err != nil }},
		{"delay", Action{Verb: Delay, For: 10 * time.Millisecond}, true, func(err error) bool { return err == nil }},
	} {
		t.Run(v.name, func(t *testing.T) {
			r := newRig(t)
			armed := r.faults.Arm("ns", point, v.action)
			r.faults.Arm("elsewhere", "manager patch(merge) pods [0] #1", Action{Verb: Fail, Code: 500})
			if err := r.patch(t, "first"); err != nil {
				t.Fatal(err)
			}
			err := r.patch(t, "second")
			if !v.right(err) {
				t.Errorf("the client was told %v", err)
			}
			<-armed.Fired()
			seen := strings.Join(r.saw(), "\n")
			if got := strings.Contains(seen, "/second"); got != v.sent {
				t.Errorf("the API server saw it: %t, want %t", got, v.sent)
			}
			if err := r.patch(t, "third"); err != nil {
				t.Errorf("the fault goes on: %v", err)
			}
		})
	}
}

func TestTheGateHoldsAWrite(t *testing.T) {
	for _, v := range []struct {
		verb    Verb
		verdict Verdict
		before  bool
		after   bool
		right   func(error) bool
	}{
		{HoldBefore, Drop, false, false, func(err error) bool { return err != nil }},
		{HoldBefore, Forward, false, true, func(err error) bool { return err == nil }},
		{HoldAfter, Drop, true, true, func(err error) bool { return err != nil }},
		{HoldAfter, Forward, true, true, func(err error) bool { return err == nil }},
	} {
		t.Run(fmt.Sprintf("%s, %d", v.verb, v.verdict), func(t *testing.T) {
			r := newRig(t)
			armed := r.faults.Arm("ns", "manager patch(merge) pods [0] #1", Action{Verb: v.verb})
			told := make(chan error, 1)
			go func() { told <- r.patch(t, "p") }()
			if held := <-armed.Held(); held.Instance != "manager-a" || held.Point.Occurrence != 1 {
				t.Errorf("held %+v", held)
			}
			if got := len(r.saw()) > 0; got != v.before {
				t.Errorf("committed while held: %t", got)
			}
			select {
			case <-armed.Over():
				t.Error("over before the verdict")
			default:
			}
			armed.Let(v.verdict)
			if err := <-told; !v.right(err) {
				t.Errorf("the client was told %v", err)
			}
			<-armed.Over()
			if got := len(r.saw()) > 0; got != v.after {
				t.Errorf("committed in the end: %t", got)
			}
		})
	}
}

func TestTheNextWriteAnywhere(t *testing.T) {
	r := newRig(t)
	armed := r.faults.Arm(Any, "manager patch(merge) pods", Action{Verb: Fail, Code: 409})
	if err := r.patch(t, "p"); !apierrors.IsConflict(err) {
		t.Errorf("the first write was told %v", err)
	}
	if !r.faults.Disarm(armed) {
		t.Error("it does not know that it was done")
	}
	if err := r.patch(t, "p"); err != nil {
		t.Errorf("the second one was told %v", err)
	}
}

func pod(kind, uid, version string) string {
	p := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: version}}
	object, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object)
}

func (r *rig) watch(t *testing.T) watch.Interface {
	t.Helper()
	w, err := r.client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func word(e watch.Event) string {
	if p, ok := e.Object.(*corev1.Pod); ok {
		return string(e.Type) + " " + p.Name + "@" + p.ResourceVersion
	}
	return string(e.Type)
}

func TestAFrozenWatchShowsNothingNewUntilItIsThawed(t *testing.T) {
	for _, compact := range []bool{false, true} {
		t.Run(fmt.Sprintf("compact=%t", compact), func(t *testing.T) {
			r := newRig(t)
			w := r.watch(t)
			r.faults.Freeze("manager-a", "pods", 10)
			r.frames <- pod("ADDED", "old", "10")
			if got := word(<-w.ResultChan()); got != "ADDED old@10" {
				t.Fatal(got)
			}
			for _, line := range []string{
				pod("ADDED", "brief", "11"), pod("ADDED", "new", "12"), pod("DELETED", "brief", "13"),
				pod("MODIFIED", "new", "14"), pod("MODIFIED", "old", "15"), pod("MODIFIED", "old", "16"),
			} {
				r.frames <- line
			}
			select {
			case e := <-w.ResultChan():
				t.Fatalf("a frozen watch shows %s", word(e))
			case <-time.After(100 * time.Millisecond):
			}
			r.faults.Thaw("manager-a", "pods", compact)
			want := []string{"ADDED brief@11", "ADDED new@12", "DELETED brief@13", "MODIFIED new@14", "MODIFIED old@15", "MODIFIED old@16"}
			if compact {
				want = []string{"ADDED new@14", "MODIFIED old@16"}
			}
			for _, one := range want {
				if got := word(<-w.ResultChan()); got != one {
					t.Errorf("saw %s, want %s", got, one)
				}
			}
		})
	}
}

func TestADelayedWatch(t *testing.T) {
	r := newRig(t)
	w := r.watch(t)
	r.faults.DelayWatch("manager-a", "pods", 100*time.Millisecond)
	sent := time.Now()
	r.frames <- pod("ADDED", "p", "1")
	if got := word(<-w.ResultChan()); got != "ADDED p@1" || time.Since(sent) < 100*time.Millisecond {
		t.Errorf("%s after %s", got, time.Since(sent))
	}
}

func TestWatchesEnd(t *testing.T) {
	r := newRig(t)
	w := r.watch(t)
	r.faults.EndWatches("manager-a", "pods", true)
	e := <-w.ResultChan()
	if status, ok := e.Object.(*metav1.Status); !ok || status.Code != http.StatusGone {
		t.Errorf("got %v, want 410", e)
	}
	if _, more := <-w.ResultChan(); more {
		t.Error("the watch goes on after 410")
	}
	w = r.watch(t)
	r.faults.EndWatches("manager-a", "pods", false)
	if e, more := <-w.ResultChan(); more {
		t.Errorf("got %v, want an end without a word", e)
	}
}

func TestAnOldListIsToldAgain(t *testing.T) {
	r := newRig(t)
	list := func(version string) string {
		l, err := r.client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		return l.ResourceVersion
	}
	r.faults.RememberList("manager-a", "pods")
	if got := []string{list("0"), list("0")}; got[0] != "1" || got[1] != "2" {
		t.Fatal(got)
	}
	r.faults.ReplayList("manager-a", "pods", true)
	if got := []string{list("0"), list("")}; got[0] != "1" || got[1] != "3" {
		t.Errorf("lists at %v: the old one is for who asks for any version alone", got)
	}
}

func TestACutInstanceReachesNothing(t *testing.T) {
	r := newRig(t)
	w := r.watch(t)
	r.faults.Cut("manager-a", true)
	if err := r.patch(t, "p"); err == nil {
		t.Error("a write went through")
	}
	for e := range w.ResultChan() {
		// client-go reports the broken stream as an error, and closes.
		if e.Type != watch.Error {
			t.Errorf("a watch goes on: %s", word(e))
		}
	}
	r.faults.Cut("manager-a", false)
	if err := r.patch(t, "p"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheComponentMayPass(t *testing.T) {
	r := newRig(t)
	config := &rest.Config{Host: r.client.CoreV1().RESTClient().Get().URL().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if said, err := bufio.NewReader(response.Body).ReadString('\n'); response.StatusCode != http.StatusUnauthorized || !strings.Contains(said, "manager-a alone") || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s %q", response.Status, said)
	}
}

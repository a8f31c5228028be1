package extender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// podJSON is a pod as kube-scheduler sends it, cut to what matters.
const podJSON = `{"metadata":{"name":"p","namespace":"ns","uid":"uid-p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"1"}}}]}}`

func TestRequestsThatCannotBeAnswered(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	for name, c := range map[string]struct {
		verb, method, kind, body string
		code                     int
		says                     string
	}{
		"another method":        {verb: "filter", method: http.MethodGet, code: 405, says: "is asked with POST"},
		"another content type":  {verb: "filter", kind: "text/plain", body: "{}", code: 415, says: "application/json"},
		"no content type":       {verb: "bind", kind: "-", body: "{}", code: 415, says: "application/json"},
		"no body":               {verb: "filter", code: 400, says: "the body is empty"},
		"no JSON":               {verb: "filter", body: "nodes please", code: 400, says: "reading the body"},
		"half a body":           {verb: "prioritize", body: `{"Pod":` + podJSON, code: 400, says: "unexpected end of JSON input"},
		"two bodies":            {verb: "filter", body: `{"Pod":` + podJSON + `,"NodeNames":[]}{}`, code: 400, says: "after top-level value"},
		"a misspelt field":      {verb: "filter", body: `{"Pod":` + podJSON + `,"Nodenammes":[]}`, code: 400, says: `unknown field "Nodenammes"`},
		"a field twice":         {verb: "filter", body: `{"Pod":` + podJSON + `,"NodeNames":[],"NodeNames":["a"]}`, code: 400, says: `duplicate field "NodeNames"`},
		"no pod":                {verb: "filter", body: `{"NodeNames":["a"]}`, code: 400, says: "no Pod is given"},
		"a pod without a UID":   {verb: "filter", body: `{"Pod":{"metadata":{"name":"p","namespace":"ns"}},"NodeNames":["a"]}`, code: 400, says: "no name, namespace or UID"},
		"a pod that is a list":  {verb: "filter", body: `{"Pod":[],"NodeNames":["a"]}`, code: 400, says: "reading Pod"},
		"an absurd amount":      {verb: "filter", body: `{"Pod":{"metadata":{"name":"p","namespace":"ns","uid":"uid-p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"1e99"}}}]}},"NodeNames":["a"]}`, code: 200, says: "no machine has"},
		"an endless amount":     {verb: "filter", body: `{"Pod":{"metadata":{"name":"p","namespace":"ns","uid":"uid-p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1e-99999999"}}}]}},"NodeNames":["a"]}`, code: 400, says: "no amount of anything"},
		"no nodes":              {verb: "filter", body: `{"Pod":` + podJSON + `}`, code: 400, says: "neither NodeNames nor Nodes"},
		"nodes in two ways":     {verb: "filter", body: `{"Pod":` + podJSON + `,"NodeNames":[],"Nodes":{"items":[]}}`, code: 400, says: "both NodeNames and Nodes"},
		"a node without a name": {verb: "filter", body: `{"Pod":` + podJSON + `,"Nodes":{"items":[{}]}}`, code: 400, says: "node 0 of the list has no name"},
		"too deep":              {verb: "filter", body: `{"Pod":` + deep, code: 400, says: "exceeded max depth"},
		"too large":             {verb: "filter", body: `{"NodeNames":["` + strings.Repeat("x", 2<<20) + `"]}`, code: 413, says: "nodeCacheCapable"},
		"a pod nobody knows":    {verb: "filter", body: `{"Pod":` + strings.ReplaceAll(podJSON, "uid-p", "uid-q") + `,"NodeNames":["a"]}`, code: 503, says: "has not heard of pod ns/p"},
		"victims without UIDs":  {verb: "preempt", body: `{"Pod":` + podJSON + `,"NodeNameToMetaVictims":{"a":{"Pods":[{}]}}}`, code: 400, says: `victim 0 of node "a" has no UID`},
		"null victims":          {verb: "preempt", body: `{"Pod":` + podJSON + `,"NodeNameToVictims":{"a":null}}`, code: 400, says: "null for victims"},
		"too many names":        {verb: "filter", body: `{"Pod":` + podJSON + `,"NodeNames":["a"` + strings.Repeat(`,"a"`, mostNames) + `]}`, code: 413, says: "lists more than 50000 nodes"},
		"too many nodes":        {verb: "prioritize", body: `{"Pod":` + podJSON + `,"Nodes":{"items":[0` + strings.Repeat(`,0`, mostNames) + `]}}`, code: 413, says: "lists more than 50000 nodes"},
		"too many victims":      {verb: "preempt", body: `{"Pod":` + podJSON + `,"NodeNameToMetaVictims":{"a":{"Pods":[{}` + strings.Repeat(`,{}`, mostNames) + `]}}}`, code: 413, says: "lists more than 50000 nodes or pods"},
		"victims of too many":   {verb: "preempt", body: `{"Pod":` + podJSON + `,"NodeNameToVictims":{"a":{}` + strings.Repeat(`,"a":{}`, mostNames) + `}}`, code: 413, says: "lists more than 50000 nodes or pods"},
		"a binding to nowhere":  {verb: "bind", body: `{"PodName":"p","PodNamespace":"ns","PodUID":"uid-p"}`, code: 400, says: "Node is missing"},
		"another path":          {verb: "filters", body: "{}", code: 404},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).node("l1", "a", 8)
			w.pod("p", 1)
			method, kind := c.method, c.kind
			if method == "" {
				method = http.MethodPost
			}
			if kind == "" {
				kind = "application/json; charset=utf-8"
			}
			r := httptest.NewRequest(method, "/"+c.verb, strings.NewReader(c.body))
			if kind != "-" {
				r.Header.Set("Content-Type", kind)
			}
			rec := httptest.NewRecorder()
			w.handler.routes().ServeHTTP(rec, r)
			if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.says) {
				t.Errorf("%d %q, want %d and %q", rec.Code, rec.Body, c.code, c.says)
			}
			// The next one is answered as ever, with all the room there was.
			if got := *w.filtered(t, w.pod("q", 1), "a").NodeNames; len(got) != 1 {
				t.Errorf("the next pod is offered %v", got)
			}
			if !w.handler.room.TryAcquire(bodiesAtOnce * w.handler.largest) {
				t.Error("the request is still counted")
			}
		})
	}
}

// As many names as a body may have are answered.
func TestAsManyNamesAsMayBe(t *testing.T) {
	a, err := readArgs([]byte(`{"Pod":` + podJSON + `,"NodeNames":["a"` + strings.Repeat(`,"a"`, mostNames-1) + `]}`))
	if err != nil || len(a.names) != mostNames {
		t.Errorf("%v", err)
	}
}

func TestNothingIsAnsweredBeforeEverythingIsRead(t *testing.T) {
	w := newWorld(t)
	w.handler.ready = readiness(func() bool { return false }, func() error { return nil })
	probes, web := httptest.NewServer(w.handler.probes()), httptest.NewServer(w.handler.routes())
	defer probes.Close()
	defer web.Close()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		r, err := http.Get(probes.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	r, err := http.Post(web.URL+"/filter", "application/json", strings.NewReader(`{"Pod":`+podJSON+`,"NodeNames":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 503 || !strings.Contains(string(text), errNotSynced.Error()) {
		t.Errorf("%d %s %v", r.StatusCode, text, err)
	}
}

// The informers show a pod a moment after kube-scheduler asks about it.
func TestAnswersWaitForThePod(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	answered := make(chan error, 1)
	go func() {
		_, err := w.handler.filter(t.Context(), fmt.Appendf(nil, `{"Pod":%s,"NodeNames":["a"]}`, strings.ReplaceAll(podJSON, `"p"`, `"late"`)))
		answered <- err
	}()
	w.pod("late", 1, func(p *corev1.Pod) { p.UID = "uid-p" })
	if err := <-answered; err != nil {
		t.Errorf("not answered: %v", err)
	}
}

// A client that sends nothing, or does not listen, is cut off and keeps nothing.
func TestSlowClients(t *testing.T) {
	w := newWorld(t).node("l1", "a", 8)
	w.pod("p", 1)
	s := &server{serving: Serving{Address: "127.0.0.1:0", Insecure: true}, handler: w.handler.routes(), log: logr.Discard(), limits: limits{
		header: 100 * time.Millisecond, request: 200 * time.Millisecond, idle: time.Second,
	}}
	ctx, cancel := context.WithCancel(t.Context())
	address, ended := make(chan string, 1), make(chan error, 1)
	s.listening = func(a net.Addr) { address <- a.String() }
	go func() { ended <- s.Start(ctx) }()
	at := <-address
	for name, sends := range map[string]string{
		"half a header": "POST /filter HTTP/1.1\r\nHost: x\r\n",
		"half a body":   "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, sends); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil && errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the connection stays open", name)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	body := `{"Pod":` + podJSON + `,"NodeNames":["a"]}`
	r, err := http.Post("http://"+at+"/filter", "application/json", bytes.NewReader([]byte(body)))
	if err != nil || r.StatusCode != 200 {
		t.Errorf("others: %v %v", r, err)
	}
	if !w.handler.room.TryAcquire(bodiesAtOnce * w.handler.largest) {
		t.Error("a slow client still holds room")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// misbehaving is an API server on which somebody sells a node's GPUs twice, one pod before the
// judge sits down and one after.
type misbehaving struct {
	// gone ends the watch of pods with 410; busy refuses the first list.
	gone, busy bool
	refused    bool
}

func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod := func(name, version string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","uid":%q,"resourceVersion":%q},%s}`, name, name, version, on("n1", "Running"))
	}
	node := fmt.Sprintf(`{"metadata":{"name":"n1","uid":"n1","resourceVersion":"1"},%s}`, eight)
	w.Header().Set("Content-Type", "application/json")
	ofPods, watches := r.URL.Path == paths()[pods], r.URL.Query().Get("watch") != ""
	switch {
	case m.busy && !m.refused:
		m.refused = true
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	case watches && ofPods && m.gone:
		fmt.Fprintln(w, `{"type":"ERROR","object":{"code":410}}`)
	case watches:
		w.(http.Flusher).Flush()
		if ofPods {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", pod("second", "12"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	case ofPods:
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"10"},"items":[%s]}`, pod("first", "9"))
	case r.URL.Path == paths()[nodes]:
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"10"},"items":[%s]}`, node)
	default:
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"10"},"items":[]}`)
	}
}

func judgeOn(t *testing.T, server http.Handler, commands string) (verdict, error) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	// Before the server, which waits for its watches to end.
	t.Cleanup(s.CloseClientConnections)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	found, err := sit(t.Context(), path, limits{}, strings.NewReader(commands), &out)
	if err != nil {
		return verdict{}, err
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var v verdict
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if found != len(v.Violations) || !strings.Contains(lines[0], "ready") {
		t.Errorf("%d found; it said %s", found, out.String())
	}
	return v, nil
}

func TestAMisbehavingClientIsSeen(t *testing.T) {
	for _, busy := range []bool{false, true} {
		// The quiet gives the watch time to be read.
		v, err := judgeOn(t, &misbehaving{busy: busy}, `{"do":"quiet","for":"300ms"}`+"\n"+`{"do":"verdict"}`+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Violations) != 1 || v.Violations[0].Oracle != "O1" || v.Violations[0].Revision != 12 || v.Changes != 3 {
			t.Errorf("the verdict is %+v", v)
		}
	}
}

// A judge that has not seen everything must not acquit.
func TestAnIncompleteHistoryIsNoAcquittal(t *testing.T) {
	v, err := judgeOn(t, &misbehaving{gone: true}, `{"do":"quiet","for":"300ms"}`+"\n"+`{"do":"verdict"}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Violations) != 1 || v.Violations[0].Oracle != "judge" {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestAJournalIsJudged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte(`{"verb":"delete","resource":"pods","namespace":"ns","name":"first","code":200}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := judgeOn(t, &misbehaving{gone: true}, fmt.Sprintf(`{"do":"journal","path":%q}`+"\n"+`{"do":"verdict"}`+"\n", path))
	if err != nil {
		t.Fatal(err)
	}
	if v.Writes != 1 || v.Violations[len(v.Violations)-1].Oracle != "O5" {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestWhatTheJudgeCannotDoItSays(t *testing.T) {
	for commands, says := range map[string]string{
		"":                                "before a verdict",
		"nonsense\n":                      "reading a command",
		`{"do":"dance"}` + "\n":           `no command "dance"`,
		`{"do":"quiet","for":"x"}` + "\n": "how long",
		`{"do":"journal","path":"/none"}`: "reading the journal",
	} {
		if _, err := judgeOn(t, &misbehaving{}, commands); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", commands, err, says)
		}
	}
}

package webhook

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBadRequests sends what no API server sends (attack 19): each is refused, with an answer that
// says why, and the next good request is answered.
func TestBadRequests(t *testing.T) {
	h, _ := start(t, Limits{})
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	good := review(t, workloadRequest(t, `{modelName: m}`, ""))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.Copy(z, io.LimitReader(zeros{}, 100<<20)); err != nil || z.Close() != nil {
		t.Fatal("making the bomb", err)
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	for name, c := range map[string]struct {
		body        io.Reader
		method      string
		contentType string
		encoding    string
		want        string
	}{
		"nothing":               {body: http.NoBody, want: "no admission request"},
		"no JSON":               {body: strings.NewReader("{"), want: "json"},
		"half a request":        {body: bytes.NewReader(good[:len(good)/2]), want: "json"},
		"another kind":          {body: strings.NewReader(`{"apiVersion":"v1","kind":"Pod"}`), want: "no admission request"},
		"deep":                  {body: strings.NewReader(deep), want: "depth"},
		"deep inside an object": {body: bytes.NewReader(bytes.Replace(good, []byte(`"modelName":"m"`), []byte(`"modelName":"m","x":`+deep), 1)), want: "depth"},
		"wrong content type":    {body: bytes.NewReader(good), contentType: "text/plain", want: "application/json"},
		"gzip bomb":             {body: bytes.NewReader(bomb.Bytes()), encoding: "gzip", want: ""},
		"GET":                   {method: http.MethodGet, want: "POST"},
		"100 MiB":               {body: io.LimitReader(zeros{}, 100<<20), want: "too large"},
		"100 MiB, told":         {body: told{io.LimitReader(zeros{}, 100<<20), 100 << 20}, want: "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			method, contentType := http.MethodPost, "application/json"
			if c.method != "" {
				method = c.method
			}
			if c.contentType != "" {
				contentType = c.contentType
			}
			for _, path := range []string{WorkloadPath, PodPath} {
				r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, c.body)
				if err != nil {
					t.Fatal(err)
				}
				if b, ok := c.body.(told); ok {
					r.ContentLength = b.length
				}
				r.Header.Set("Content-Type", contentType)
				if c.encoding != "" {
					r.Header.Set("Content-Encoding", c.encoding)
				}
				answer, err := server.Client().Do(r)
				if err != nil {
					// A server that does not want all of a body may end the stream.
					if !strings.Contains(name, "100 MiB") {
						t.Error(err)
					}
					return
				}
				text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
				_ = answer.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), `"allowed":true`) {
					t.Errorf("%s: taken: %.300s", path, text)
				}
				if !strings.Contains(string(text), c.want) {
					t.Errorf("%s: %d, not told %q: %.300s", path, answer.StatusCode, c.want, text)
				}
				if s, ok := c.body.(io.Seeker); ok {
					_, _ = s.Seek(0, io.SeekStart)
				} else {
					return
				}
			}
		})
	}
	if a := answer(t, post(h, WorkloadPath, good)); !a.Allowed {
		t.Errorf("afterwards a good request is refused: %+v", a.Result)
	}
}

// told is a body whose length is announced.
type told struct {
	io.Reader
	length int64
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestSlowClientsDoNotStopOthers opens hundreds of requests whose bodies never come, and asks
// meanwhile.
func TestSlowClientsDoNotStopOthers(t *testing.T) {
	h, _ := start(t, Limits{})
	server := httptest.NewServer(h)
	defer server.Close()
	const slow = 300
	conns := make([]net.Conn, 0, slow)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range slow {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", WorkloadPath)
	}
	good := review(t, workloadRequest(t, `{modelName: m}`, ""))
	for range 50 {
		r, err := server.Client().Post(server.URL+WorkloadPath, "application/json", bytes.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !strings.Contains(string(text), `"allowed":true`) {
			t.Fatalf("with %d slow clients: %v %s", slow, err, text)
		}
	}
	// Each is answered or cut off when its time is over.
	begin := time.Now()
	for _, c := range conns {
		_ = c.SetReadDeadline(begin.Add(readWithin + 5*time.Second))
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("a slow client is still waited for after %s: %v", time.Since(begin), err)
		}
	}
}

// TestMemoryIsBounded has many large requests at the same time: what does not fit is turned away.
func TestMemoryIsBounded(t *testing.T) {
	h, _ := start(t, Limits{})
	server := httptest.NewServer(h)
	defer server.Close()
	// A valid object with one long string: it is read, parsed and answered.
	big := review(t, workloadRequest(t, `{modelName: m, template: {metadata: {annotations: {x: "`+strings.Repeat("a", 3<<20)+`"}}, spec: {containers: [{name: c}]}}}`, ""))
	var before, peak runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	statuses := map[int]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			r, err := server.Client().Post(server.URL+WorkloadPath, "application/json", bytes.NewReader(big))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			mu.Lock()
			statuses[r.StatusCode]++
			mu.Unlock()
		})
	}
	group.Wait()
	runtime.GC()
	runtime.ReadMemStats(&peak)
	if statuses[http.StatusOK] == 0 {
		t.Errorf("none was answered: %v", statuses)
	}
	if grown := int64(peak.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MiB stay in use", grown>>20)
	}
	t.Logf("40 requests of 3 MiB at once: %v", statuses)
}

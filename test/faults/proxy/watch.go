package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// viewKey picks the watches of one instance on one resource ("pods", "jobs.batch").
type viewKey struct{ instance, resource string }

// view is what an instance is let see of a resource.
type view struct {
	mu sync.Mutex
	// changed is closed, and made anew, when something below changes.
	changed chan struct{}
	frozen  bool
	// from is the resourceVersion up to which a frozen watch goes on.
	from uint64
	// compact leaves, at the thaw, only what came of what was held back; thaws counts them.
	compact bool
	thaws   int
	delay   time.Duration
	// generation grows when all watches are ended; gone says that they end with 410.
	generation int
	gone       bool
	// remember keeps the next whole list, replay answers lists from the API server's cache
	// with the one that was kept.
	remember, replay bool
}

func (f *Faults) view(instance, resource string) *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := viewKey{instance, resource}
	if f.views[key] == nil {
		f.views[key] = &view{changed: make(chan struct{})}
	}
	return f.views[key]
}

func (v *view) change(edit func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	edit()
	close(v.changed)
	v.changed = make(chan struct{})
}

// wake has every watch look again at what it may show.
func (f *Faults) wake() {
	f.mu.Lock()
	views := make([]*view, 0, len(f.views))
	for _, v := range f.views {
		views = append(views, v)
	}
	f.mu.Unlock()
	for _, v := range views {
		v.change(func() {})
	}
}

// Freeze stops what an instance sees of a resource at a resourceVersion; 0 is now. New watches
// that it opens are frozen as well.
func (f *Faults) Freeze(instance, resource string, from uint64) {
	v := f.view(instance, resource)
	v.change(func() { v.frozen, v.from, v.compact = true, from, false })
}

// Thaw shows everything that was held back. With compact, only what came of it: of what was
// made and deleted meanwhile nothing is ever seen, of what changed often only the last.
func (f *Faults) Thaw(instance, resource string, compact bool) {
	v := f.view(instance, resource)
	v.change(func() { v.frozen, v.compact = false, compact; v.thaws++ })
}

// DelayWatch shows everything later by d; 0 ends that.
func (f *Faults) DelayWatch(instance, resource string, d time.Duration) {
	v := f.view(instance, resource)
	v.change(func() { v.delay = d })
}

// EndWatches ends the open watches of an instance on a resource: with status 410 in the stream,
// as after a compaction, or without a word.
func (f *Faults) EndWatches(instance, resource string, gone bool) {
	v := f.view(instance, resource)
	v.change(func() { v.generation++; v.gone = gone })
}

// RememberList keeps the next list of a resource that an instance gets.
func (f *Faults) RememberList(instance, resource string) {
	v := f.view(instance, resource)
	v.change(func() { v.remember = true })
}

// ReplayList answers lists of a resource that an instance is content to have from a cache
// (resourceVersion=0) with the list that was kept, however old that is.
func (f *Faults) ReplayList(instance, resource string, replay bool) {
	v := f.view(instance, resource)
	v.change(func() { v.replay = replay })
}

// list forwards a list, keeps it, or answers with one that was kept.
func (p *Proxy) list(r *http.Request, info *request.RequestInfo) (*http.Response, error) {
	resource := groupResource(info)
	v := p.Faults.view(p.Instance, resource)
	v.mu.Lock()
	remember, replay := v.remember, v.replay
	v.mu.Unlock()
	key := p.Instance + " " + resource
	if replay && r.URL.Query().Get("resourceVersion") == "0" {
		p.Faults.mu.Lock()
		old := p.Faults.lists[key]
		p.Faults.mu.Unlock()
		if old != nil {
			return &http.Response{
				StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
				Body: io.NopCloser(bytes.NewReader(old)), ContentLength: int64(len(old)),
			}, nil
		}
	}
	if !remember {
		return p.base.RoundTrip(r)
	}
	asJSON(r)
	response, err := p.base.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	p.Faults.mu.Lock()
	p.Faults.lists[key] = body
	p.Faults.mu.Unlock()
	v.change(func() { v.remember = false })
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response, nil
}

// openWatch forwards a watch as JSON; modify puts the stream between server and client.
func (p *Proxy) openWatch(r *http.Request) (*http.Response, error) {
	asJSON(r)
	return p.base.RoundTrip(r)
}

// modify is called with every response.
func (p *Proxy) modify(response *http.Response) error {
	info, err := requests.NewRequestInfo(response.Request)
	if err != nil {
		return fmt.Errorf("reading the request %s: %w", response.Request.URL.Path, err)
	}
	if !info.IsResourceRequest || info.Verb != "watch" || response.StatusCode != http.StatusOK {
		return nil
	}
	v := p.Faults.view(p.Instance, groupResource(info))
	v.mu.Lock()
	generation, thaws := v.generation, v.thaws
	v.mu.Unlock()
	s := &stream{view: v, generation: generation, thaws: thaws, source: response.Body, more: make(chan struct{}, 1), closed: make(chan struct{})}
	s.cut = func() bool { return p.Faults.isCut(p.Instance) }
	go s.fill()
	response.Body = s
	return nil
}

// frame is one line of a watch.
type frame struct {
	line []byte
	at   time.Time
	// version and uid are the object's; bookmark says that it is about no object.
	version  uint64
	uid      string
	kind     string
	bookmark bool
}

// stream is the body of a watch as the client reads it.
type stream struct {
	view       *view
	generation int
	thaws      int
	source     io.ReadCloser
	cut        func() bool

	mu     sync.Mutex
	frames []frame
	ended  bool
	more   chan struct{}
	closed chan struct{}
	once   sync.Once
	// rest is what is left of the frame that is being read.
	rest []byte
}

// fill reads frames as fast as the API server sends them, so that it never ends a watch for
// being slow.
func (s *stream) fill() {
	reader := bufio.NewReaderSize(s.source, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		s.mu.Lock()
		if len(bytes.TrimSpace(line)) > 0 {
			s.frames = append(s.frames, parse(line))
		}
		s.ended = err != nil
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func parse(line []byte) frame {
	f := frame{line: line, at: time.Now()}
	var event struct {
		Type   string
		Object struct {
			Metadata struct{ ResourceVersion, UID string }
		}
	}
	if json.Unmarshal(line, &event) == nil {
		f.kind, f.uid, f.bookmark = event.Type, event.Object.Metadata.UID, event.Type == "BOOKMARK"
		// What has no version is an error, and passes at once.
		f.version, _ = strconv.ParseUint(event.Object.Metadata.ResourceVersion, 10, 64)
	}
	return f
}

// Read implements io.Reader: it returns what may be seen by now.
func (s *stream) Read(buffer []byte) (int, error) {
	for len(s.rest) == 0 {
		line, wait, changed, err := s.next()
		if err != nil {
			return 0, err
		}
		if line != nil {
			s.rest = line
			break
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-s.more:
		case <-changed:
		case <-timer:
		case <-s.closed:
			return 0, io.EOF
		}
	}
	n := copy(buffer, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next returns the next line that may be seen, or what to wait for.
func (s *stream) next() (line []byte, wait time.Duration, changed <-chan struct{}, err error) {
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut():
		return nil, 0, nil, &lostError{}
	case v.generation != s.generation && v.gone:
		s.generation, s.frames, s.ended = v.generation, nil, true
		return []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
			`"message":"too old resource version, on purpose","reason":"Expired","code":410}}` + "\n"), 0, nil, nil
	case v.generation != s.generation:
		return nil, 0, nil, io.EOF
	}
	if v.compact && !v.frozen && s.thaws != v.thaws {
		s.frames, s.thaws = settled(s.frames), v.thaws
	}
	if len(s.frames) == 0 {
		if s.ended {
			return nil, 0, nil, io.EOF
		}
		return nil, 0, v.changed, nil
	}
	first := s.frames[0]
	if v.frozen && first.version > v.from {
		return nil, 0, v.changed, nil
	}
	if left := time.Until(first.at.Add(v.delay)); v.delay > 0 && left > 0 {
		return nil, left, v.changed, nil
	}
	s.frames = s.frames[1:]
	return first.line, 0, nil, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.source.Close()
}

// settled leaves, of the changes of each object, what came of them in the end, in the order of the
// last change.
func settled(frames []frame) []frame {
	last := make(map[string]int)
	made := make(map[string]bool)
	for i, f := range frames {
		if f.uid == "" {
			continue
		}
		last[f.uid] = i
		made[f.uid] = made[f.uid] || f.kind == "ADDED"
	}
	kept := frames[:0:0]
	for i, f := range frames {
		switch {
		case f.uid == "":
			kept = append(kept, f)
		case last[f.uid] != i:
		case made[f.uid] && f.kind == "DELETED":
			// Never seen, and gone: as if it had not been.
		case made[f.uid] && f.kind == "MODIFIED":
			f.line = bytes.Replace(f.line, []byte(`"type":"MODIFIED"`), []byte(`"type":"ADDED"`), 1)
			f.kind = "ADDED"
			kept = append(kept, f)
		default:
			kept = append(kept, f)
		}
	}
	return kept
}

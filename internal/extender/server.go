package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

// The verbs, which are paths and labels of metrics.
const (
	verbFilter     = "filter"
	verbPrioritize = "prioritize"
	verbPreempt    = "preempt"
	verbBind       = "bind"
)

const (
	// bodiesAtOnce is how many of the largest bodies are in memory at the same time; smaller ones
	// are as many more.
	bodiesAtOnce    = 2
	defaultCatchUp  = 250 * time.Millisecond
	catchUpInterval = 2 * time.Millisecond
	// roomWithin is how long a request waits until others are done with the memory that it needs:
	// as long as kube-scheduler waits by default.
	roomWithin = 5 * time.Second
	// bindWithin bounds a binding: one that kube-scheduler does not wait for any more is not called
	// off half-way.
	bindWithin = 10 * time.Second
	// liveWithin bounds the one live read, after a binding whose answer was an error.
	liveWithin = 2 * time.Second
)

// Cluster is what the extender asks and tells the API server.
type Cluster interface {
	// Seen returns the pod as the informers show it.
	Seen(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error)
	// Live returns the pod as the API server has it.
	Live(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error)
	// Bind writes a binding, whose UID is a precondition.
	Bind(ctx context.Context, binding *corev1.Binding) error
}

// handler answers the verbs of the extender API.
type handler struct {
	engine  *engine
	cluster Cluster
	metrics *telemetry.Extender
	log     logr.Logger
	// ready tells why no answer can be given, nil if one can.
	ready func() error
	// client tells why whoever asks may not, nil if it may: for a verb.
	client func(r *http.Request, verb string) error
	// largest is the largest body that is read, in bytes; room is for those of all requests.
	largest int64
	room    *semaphore.Weighted
	// catchUp is how long an answer waits for the informers to show the pod that is asked about:
	// kube-scheduler heard of it from the same API server, at most a little earlier.
	catchUp time.Duration
}

// routes returns what kube-scheduler asks.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+verbFilter, h.verb(verbFilter, h.filter))
	mux.Handle("/"+verbPrioritize, h.verb(verbPrioritize, h.prioritize))
	mux.Handle("/"+verbPreempt, h.verb(verbPreempt, h.preempt))
	mux.Handle("/"+verbBind, h.verb(verbBind, h.bind))
	return mux
}

// probes returns what the kubelet asks, on a port of its own.
func (h *handler) probes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// answer is what a verb has to say: a result that is sent as JSON, and whether it is a refusal.
type answer struct {
	result  any
	refused bool
}

// httpError is an answer with a status of its own.
type httpError struct {
	code int
	err  error
}

func (e *httpError) Error() string { return e.err.Error() }
func (e *httpError) Unwrap() error { return e.err }

func failure(code int, format string, args ...any) error {
	return &httpError{code: code, err: fmt.Errorf(format, args...)}
}

// unreadable is the answer to a body that says what it must not, or too much.
func unreadable(err error) error {
	var tooMany *tooManyError
	if errors.As(err, &tooMany) {
		return failure(http.StatusRequestEntityTooLarge, "%w", err)
	}
	return failure(http.StatusBadRequest, "%w", err)
}

// verb reads a request, has it answered and sends the answer. What is wrong with the request itself
// is an HTTP error that says so.
func (h *handler) verb(name string, run func(ctx context.Context, body []byte) (answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := h.engine.clock.Now()
		a, err := h.run(w, r, name, run)
		code, outcome := http.StatusOK, "ok"
		var failed *httpError
		switch {
		case errors.As(err, &failed):
			code, outcome = failed.code, "error"
		case err != nil:
			code, outcome = http.StatusInternalServerError, "error"
		case a.refused:
			outcome = "refused"
		}
		if err != nil {
			h.log.Info("not answered", "verb", name, "code", code, "problem", err.Error(), "from", r.RemoteAddr)
			if code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "1")
			}
			http.Error(w, err.Error(), code)
		} else if err := send(w, a.result); err != nil {
			h.log.V(1).Info("answer not delivered", "verb", name, "problem", err.Error())
		}
		h.metrics.Answered(name, strconv.Itoa(code), outcome, h.engine.clock.Since(start))
	})
}

func (h *handler) run(w http.ResponseWriter, r *http.Request, name string, run func(context.Context, []byte) (answer, error)) (answer, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return answer{}, failure(http.StatusMethodNotAllowed, "%s is asked with POST, not with %s", r.URL.Path, r.Method)
	}
	if err := h.client(r, name); err != nil {
		return answer{}, failure(http.StatusForbidden, "%w", err)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return answer{}, failure(http.StatusUnsupportedMediaType, "the body must be application/json, not %q", r.Header.Get("Content-Type"))
	}
	body, release, err := h.read(w, r)
	if err != nil {
		return answer{}, err
	}
	defer release()
	if err := h.ready(); err != nil {
		return answer{}, failure(http.StatusServiceUnavailable, "%w", err)
	}
	return run(r.Context(), body)
}

// read reads the body, within the limits of one request and of all together.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	tooLarge := func() error {
		return failure(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: set nodeCacheCapable in kube-scheduler's configuration, or raise --max-request-mib", h.largest)
	}
	size := r.ContentLength
	if size > h.largest {
		return nil, nil, tooLarge()
	}
	if size < 0 {
		size = h.largest // It does not say.
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomWithin)
	defer cancel()
	if err := h.room.Acquire(ctx, size); err != nil {
		return nil, nil, failure(http.StatusServiceUnavailable, "too many large requests at once: %w", err)
	}
	release = func() { h.room.Release(size) }
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, h.largest))
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		err = tooLarge()
	case err != nil:
		err = failure(http.StatusBadRequest, "reading the body: %w", err)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return body, release, nil
}

// send writes the result. Its size is known before the first byte, so that half an answer is never
// taken for a whole one.
func send(w http.ResponseWriter, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, err = w.Write(data)
	return err
}

func (h *handler) filter(ctx context.Context, body []byte) (answer, error) {
	a, err := readArgs(body)
	if err != nil {
		return answer{}, unreadable(err)
	}
	if err := h.awaitSeen(ctx, a.pod); err != nil {
		return answer{}, err
	}
	verdicts := h.engine.filter(a.pod, a.names)
	kept := 0
	for _, v := range verdicts {
		if v.reason == "" {
			kept++
		}
	}
	h.metrics.Judged(verbFilter, kept, len(verdicts)-kept)
	return answer{result: a.answer(verdicts), refused: kept == 0}, nil
}

func (h *handler) prioritize(_ context.Context, body []byte) (answer, error) {
	a, err := readArgs(body)
	if err != nil {
		return answer{}, unreadable(err)
	}
	list := make(extenderv1.HostPriorityList, len(a.names))
	for i, score := range h.engine.prioritize(a.pod, a.names) {
		list[i] = extenderv1.HostPriority{Host: a.names[i], Score: score}
	}
	return answer{result: list}, nil
}

func (h *handler) preempt(ctx context.Context, body []byte) (answer, error) {
	p, err := readPreemption(body)
	if err != nil {
		return answer{}, unreadable(err)
	}
	if err := h.awaitSeen(ctx, p.pod); err != nil {
		return answer{}, err
	}
	kept := h.engine.preempt(p.pod, p.uids())
	h.metrics.Judged(verbPreempt, len(kept), len(p.victims)-len(kept))
	result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: make(map[string]*extenderv1.MetaVictims, len(kept))}
	for _, node := range kept {
		result.NodeNameToMetaVictims[node] = p.victims[node]
	}
	return answer{result: result, refused: len(kept) == 0}, nil
}

// awaitSeen waits until the informers show the pod that is asked about. A replica that does not
// know it is behind whoever asks, and says so rather than answer from the past.
func (h *handler) awaitSeen(ctx context.Context, pod *corev1.Pod) error {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	err := wait.PollUntilContextTimeout(ctx, catchUpInterval, h.catchUp, true, func(ctx context.Context) (bool, error) {
		seen, err := h.cluster.Seen(ctx, key)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && seen.UID == pod.UID, err
	})
	if err != nil {
		return failure(http.StatusServiceUnavailable, "this replica has not heard of pod %s with UID %s: it is behind the API server, or the pod is gone", key, pod.UID)
	}
	return nil
}

func (h *handler) bind(ctx context.Context, body []byte) (answer, error) {
	b, err := readBinding(body)
	if err != nil {
		return answer{}, unreadable(err)
	}
	result := extenderv1.ExtenderBindingResult{}
	if err := h.bindPod(ctx, b); err != nil {
		result.Error = err.Error()
		h.log.Info("not bound", "pod", b.PodNamespace+"/"+b.PodName, "node", b.Node, "problem", result.Error)
	}
	return answer{result: result, refused: result.Error != ""}, nil
}

// bindPod binds a pod if its node still has room. It may be asked again: a pod that is on the node
// already is bound.
func (h *handler) bindPod(ctx context.Context, b *extenderv1.ExtenderBindingArgs) error {
	key := types.NamespacedName{Namespace: b.PodNamespace, Name: b.PodName}
	pod, err := h.cluster.Seen(ctx, key)
	if err == nil && len(pod.Spec.SchedulingGates) > 0 {
		// No scheduler binds such a pod: the news of its plan is on its way, and with it where it goes.
		pod, err = h.cluster.Live(ctx, key)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.UID != b.PodUID:
		return fmt.Errorf("pod %s with UID %s is not known to the extender", key, b.PodUID)
	case err != nil:
		return fmt.Errorf("looking up pod %s: %w", key, err)
	}
	if err := h.engine.reserve(pod, b.Node); err != nil {
		return err
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: b.Node}}
	binding.Namespace, binding.Name, binding.UID = b.PodNamespace, b.PodName, b.PodUID
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bindWithin)
	defer cancel()
	err = h.cluster.Bind(ctx, binding)
	if err != nil && h.isBound(ctx, key, b) {
		err = nil
	}
	if err != nil {
		h.engine.release(b.PodUID)
		return fmt.Errorf("binding pod %s to node %s: %w", key, b.Node, err)
	}
	return nil
}

// isBound asks the API server itself whether the pod is on the node: an earlier request may have
// bound it whose answer was lost.
func (h *handler) isBound(ctx context.Context, key types.NamespacedName, b *extenderv1.ExtenderBindingArgs) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveWithin)
	defer cancel()
	live, err := h.cluster.Live(ctx, key)
	return err == nil && live.UID == b.PodUID && live.Spec.NodeName == b.Node
}

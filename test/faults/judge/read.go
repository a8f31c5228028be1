package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// paths are where the kinds are served.
func paths() map[string]string {
	return map[string]string{
		pods:      "/api/v1/pods",
		nodes:     "/api/v1/nodes",
		jobs:      "/apis/batch/v1/jobs",
		workloads: "/apis/gpu.warp.dev/v1alpha1/gpuworkloads",
		notes:     "/apis/events.k8s.io/v1/events",
	}
}

// history is everything that was seen so far.
type history struct {
	client rest.Interface

	mu      sync.Mutex
	changes []change
	// at is the state of each object as last seen: kind and UID to revision.
	at map[[2]string]uint64
	// gaps say why the history is not complete.
	gaps []string
}

// connect reads a kubeconfig, starts to watch, and returns once every kind is watched.
func connect(ctx context.Context, kubeconfig string) (*history, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	h := &history{client: client, at: make(map[[2]string]uint64)}
	for kind, path := range paths() {
		version, err := h.list(ctx, kind, path, func(o *object, version uint64) {
			h.see(change{version: version, kind: kind, seen: time.Now(), object: o})
		})
		if err != nil {
			return nil, err
		}
		go h.follow(ctx, kind, path, version)
	}
	return h, nil
}

// get asks for a path. The client tries again where the API server says that it may.
func (h *history) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return h.client.Get().RequestURI(path).SetHeader("Accept", "application/json").Stream(ctx)
}

// list reads every object of a kind, consistently.
func (h *history) list(ctx context.Context, kind, path string, each func(*object, uint64)) (version string, err error) {
	response, err := h.get(ctx, path)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", kind, err)
	}
	defer response.Close()
	var all struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.NewDecoder(response).Decode(&all); err != nil {
		return "", fmt.Errorf("listing %s: %w", kind, err)
	}
	for _, raw := range all.Items {
		o, v, err := parseObject(kind, raw)
		if err != nil {
			return "", err
		}
		each(o, v)
	}
	return all.Metadata.ResourceVersion, nil
}

// follow watches a kind from a revision on, and goes on there when a watch ends.
func (h *history) follow(ctx context.Context, kind, path, version string) {
	for ctx.Err() == nil {
		last, err := h.watch(ctx, kind, path, version)
		if ctx.Err() != nil {
			return
		}
		version = last
		var gone *goneError
		if errors.As(err, &gone) {
			h.gap("the watch of %s cannot go on at revision %s: %v", kind, version, err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// goneError says that the API server has forgotten what was not seen yet.
type goneError struct{ text string }

func (e *goneError) Error() string { return e.text }

func (h *history) watch(ctx context.Context, kind, path, version string) (last string, err error) {
	last = version
	response, err := h.get(ctx, path+"?watch=1&allowWatchBookmarks=true&resourceVersion="+version)
	if err != nil {
		return last, err
	}
	defer response.Close()
	reader := bufio.NewReaderSize(response, 256<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return last, err
		}
		var frame struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &frame); err != nil {
			return last, fmt.Errorf("reading the watch of %s: %w", kind, err)
		}
		if frame.Type == "ERROR" {
			return last, &goneError{string(frame.Object)}
		}
		o, v, err := parseObject(kind, frame.Object)
		if err != nil {
			return last, err
		}
		last = o.Metadata.ResourceVersion
		if frame.Type != "BOOKMARK" {
			h.see(change{version: v, kind: kind, created: frame.Type == "ADDED", deleted: frame.Type == "DELETED", seen: time.Now(), object: o})
		}
	}
}

func (h *history) see(c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
	key := [2]string{c.kind, c.Metadata.UID}
	if c.deleted {
		delete(h.at, key)
	} else {
		h.at[key] = c.version
	}
}

func (h *history) gap(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaps = append(h.gaps, fmt.Sprintf(format, args...))
}

// settle waits until the history shows everything that the API server has now.
func (h *history) settle(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for kind, path := range paths() {
		want := make(map[[2]string]uint64)
		if _, err := h.list(ctx, kind, path, func(o *object, v uint64) { want[[2]string{kind, o.Metadata.UID}] = v }); err != nil {
			return err
		}
		for {
			missing := h.missing(kind, want)
			if missing == "" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the watch of %s does not show %s", kind, missing)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// missing names something of a kind that the API server has and the history has not, or the
// other way round.
func (h *history) missing(kind string, want map[[2]string]uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, version := range want {
		// Newer than the list is fine; what is gone since is, too, if it was seen.
		if have, ok := h.at[key]; ok && have < version {
			return fmt.Sprintf("%s at revision %d, only at %d", key[1], version, have)
		} else if !ok && !h.wasDeleted(key) {
			return key[1]
		}
	}
	return ""
}

func (h *history) wasDeleted(key [2]string) bool {
	for i := len(h.changes) - 1; i >= 0; i-- {
		c := h.changes[i]
		if c.deleted && c.kind == key[0] && c.Metadata.UID == key[1] {
			return true
		}
	}
	return false
}

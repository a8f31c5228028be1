package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// bound follows which pods are bound, and when, by one watch that carries only their metadata: a
// pod appears in it when it has a node.
type bound struct {
	mu    sync.Mutex
	first map[types.UID]time.Time
	last  time.Time
	// units count pods by their unit.
	units   map[string]int
	changed chan struct{}
	failed  error
}

// watchBound starts to follow. It ends with ctx.
func (c *sandbox) watchBound(ctx context.Context) (*bound, error) {
	w, err := c.meta.Resource(pods()).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil, fmt.Errorf("watching bound pods: %w", err)
	}
	b := &bound{first: map[types.UID]time.Time{}, units: map[string]int{}, changed: make(chan struct{}, 1)}
	go func() {
		for e := range w.ResultChan() {
			b.see(e)
		}
		b.fail(fmt.Errorf("watching bound pods: the watch ended (%v)", context.Cause(ctx)))
	}()
	context.AfterFunc(ctx, w.Stop)
	return b, nil
}

func (b *bound) see(e watch.Event) {
	now := time.Now()
	p, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok || e.Type == watch.Error {
		b.fail(fmt.Errorf("watching bound pods: %v", e.Object))
		return
	}
	b.mu.Lock()
	_, seen := b.first[p.UID]
	if !seen && e.Type != watch.Deleted {
		b.first[p.UID], b.last = now, now
		b.units[unitOf(p.Labels)]++
	}
	b.mu.Unlock()
	if !seen {
		b.signal()
	}
}

func (b *bound) fail(err error) {
	b.mu.Lock()
	if b.failed == nil {
		b.failed = err
	}
	b.mu.Unlock()
	b.signal()
}

func (b *bound) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// count returns how many pods were bound so far and when the last one was.
func (b *bound) count() (int, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.first), b.last, b.failed
}

// wait returns when so many pods are bound, or when for the given time none was. It says how
// many are, and when the last one was.
func (b *bound) wait(ctx context.Context, want int, patience time.Duration) (int, time.Time, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		n, last, err := b.count()
		if err != nil || n >= want {
			return n, last, err
		}
		select {
		case <-ctx.Done():
			return n, last, context.Cause(ctx)
		case <-timer.C:
			return n, last, nil
		case <-b.changed:
			timer.Reset(patience)
		}
	}
}

// of returns how many pods of the unit are bound.
func (b *bound) of(u unit) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.units[u.name]
}

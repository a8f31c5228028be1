package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// bound follows which pods are bound, and when: a pod is told of when it has a node, with its
// metadata alone. An API server hangs up on clients that are slow to listen, as all are on a busy
// machine; the informer takes up the thread again.
type bound struct {
	mu    sync.Mutex
	first map[types.UID]time.Time
	last  time.Time
	// units count pods by their unit.
	units   map[string]int
	changed chan struct{}
}

// watchBound starts to follow. It ends with ctx.
func (c *sandbox) watchBound(ctx context.Context) (*bound, error) {
	b := &bound{first: map[types.UID]time.Time{}, units: map[string]int{}, changed: make(chan struct{}, 1)}
	client := c.meta.Resource(pods()).Namespace(namespace)
	return b, inform(ctx, &metav1.PartialObjectMetadata{}, b.see, &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = "spec.nodeName!="
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = "spec.nodeName!="
			return client.Watch(ctx, o)
		},
	})
}

// inform calls see for every object that appears or changes, until ctx ends. It returns when what
// is there has been seen.
func inform(ctx context.Context, example runtime.Object, see func(any), source *toolscache.ListWatch) error {
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: source, ObjectType: example,
		Handler: toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }},
	})
	go informer.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("following %T: %w", example, context.Cause(ctx))
	}
	return nil
}

func (b *bound) see(object any) {
	now := time.Now()
	p, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	b.mu.Lock()
	_, seen := b.first[p.UID]
	if !seen {
		b.first[p.UID], b.last = now, now
		b.units[unitOf(p.Labels)]++
	}
	b.mu.Unlock()
	if !seen {
		b.signal()
	}
}

func (b *bound) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// count returns how many pods were bound so far and when the last one was.
func (b *bound) count() (int, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.first), b.last
}

// wait returns when so many pods are bound, or when for the given time none was. It says how
// many are, and when the last one was.
func (b *bound) wait(ctx context.Context, want int, patience time.Duration) (int, time.Time, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		n, last := b.count()
		if n >= want {
			return n, last, nil
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

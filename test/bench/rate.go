package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func rateFigures() []figure {
	return []figure{
		{"workloads/s at saturation", "%.1f"}, {"API requests/workload", "%.1f"}, {"cpu ms/workload", "%.1f"}, {"cpu ms/workload manager", "%.1f"},
		{"cpu ms/workload kube-apiserver", "%.1f"}, {"cpu ms/workload kube-controller-manager", "%.1f"}, {"offered workloads/s", "%.1f"},
		{"create to Scheduled p50 s", "%.2f"}, {"create to Scheduled p99 s", "%.2f"},
		{"gang pods", "%.0f"}, {"gang create to all bound s", "%.2f"}, {"gang create to Scheduled s", "%.2f"},
		{"impossible create to reason s", "%.3f"},
	}
}

// rates are the sizes of this scenario.
type rates struct {
	saturate int
	half     time.Duration
	gang     int
}

// runRate measures planned mode alone: GPUWorkloads that the manager plans and the stock
// scheduler binds.
func runRate(ctx context.Context, o *options, _ []side, r *report) error {
	planned, err := sidesNamed("planned")
	if err != nil {
		return err
	}
	size := rates{saturate: 400, half: 20 * time.Second, gang: min(512, o.nodes/2)}
	if o.quick {
		size.saturate, size.half = 60, 5*time.Second
	}
	one := result{Scenario: "rate", Side: planned[0].name, Load: load()}
	err = withSandbox(ctx, o, planned[0], func(ctx context.Context, c *sandbox) error {
		var err error
		one.Figures, err = c.rate(ctx, planned[0], size)
		return err
	})
	if err != nil {
		return err
	}
	r.add(one, rateFigures())
	r.table("rate", planned, rateFigures())
	return nil
}

func (c *sandbox) rate(ctx context.Context, s side, size rates) (map[string]float64, error) {
	figures := map[string]float64{}
	follow, err := c.watchWorkloads(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.saturate(ctx, s, size, follow, figures); err != nil {
		return nil, err
	}
	if err := c.offer(ctx, s, size, follow, figures); err != nil {
		return nil, err
	}
	if err := c.largeGang(ctx, s, size, follow, figures); err != nil {
		return nil, err
	}
	return figures, c.impossible(ctx, s, follow, figures)
}

// saturate creates more workloads at once than can be handled at once.
func (c *sandbox) saturate(ctx context.Context, s side, size rates, follow *workloads, figures map[string]float64) error {
	var units []unit
	for i := range size.saturate {
		units = append(units, unit{name: fmt.Sprintf("sat-%04d", i), pods: 1, gpus: 1})
	}
	before, err := c.usage(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.submit(ctx, s, units); err != nil {
		return err
	}
	last := start
	for _, u := range units {
		at, err := follow.scheduled(ctx, u.name)
		if err != nil {
			return err
		}
		if at.After(last) {
			last = at
		}
	}
	after, err := c.usage(ctx)
	if err != nil {
		return err
	}
	after.since(before, float64(len(units)), "workload", figures)
	figures["workloads/s at saturation"] = float64(len(units)) / last.Sub(start).Seconds()
	return c.clear(ctx)
}

// offer creates workloads at half the rate, one after the other and whether or not the ones
// before are done with, as users do.
func (c *sandbox) offer(ctx context.Context, s side, size rates, follow *workloads, figures map[string]float64) error {
	rate := figures["workloads/s at saturation"] / 2
	n := max(1, int(rate*size.half.Seconds()))
	created := make([]time.Time, n)
	name := func(i int) string { return fmt.Sprintf("half-%04d", i) }
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	group, inner := errgroup.WithContext(ctx)
	for i := range n {
		select {
		case <-inner.Done():
			return errors.Join(group.Wait(), context.Cause(inner))
		case <-tick.C:
		}
		created[i] = time.Now()
		group.Go(func() error { return c.submit(inner, s, []unit{{name: name(i), pods: 1, gpus: 1}}) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	waits := make([]time.Duration, n)
	for i := range n {
		at, err := follow.scheduled(ctx, name(i))
		if err != nil {
			return err
		}
		waits[i] = at.Sub(created[i])
	}
	figures["offered workloads/s"] = float64(n) / created[n-1].Sub(created[0]).Seconds()
	figures["create to Scheduled p50 s"] = quantile(waits, 0.5).Seconds()
	figures["create to Scheduled p99 s"] = quantile(waits, 0.99).Seconds()
	return c.clear(ctx)
}

// largeGang creates one gang of whole nodes.
func (c *sandbox) largeGang(ctx context.Context, s side, size rates, follow *workloads, figures map[string]float64) error {
	b, err := c.watchBound(ctx)
	if err != nil {
		return err
	}
	u := unit{name: "large", pods: size.gang, gpus: gpusPerNode}
	start := time.Now()
	if err := c.submit(ctx, s, []unit{u}); err != nil {
		return err
	}
	n, last, err := b.wait(ctx, u.pods, patience)
	if err != nil {
		return err
	}
	if n != u.pods {
		return fmt.Errorf("%d of the %d pods of the large gang were bound", n, u.pods)
	}
	at, err := follow.scheduled(ctx, u.name)
	if err != nil {
		return err
	}
	figures["gang pods"] = float64(u.pods)
	figures["gang create to all bound s"] = last.Sub(start).Seconds()
	figures["gang create to Scheduled s"] = at.Sub(start).Seconds()
	return c.clear(ctx)
}

// impossible creates a gang that is larger than the cluster.
func (c *sandbox) impossible(ctx context.Context, s side, follow *workloads, figures map[string]float64) error {
	u := unit{name: "impossible", pods: 2 * c.state.Nodes, gpus: gpusPerNode}
	start := time.Now()
	if err := c.submit(ctx, s, []unit{u}); err != nil {
		return err
	}
	at, err := follow.refused(ctx, u.name)
	figures["impossible create to reason s"] = at.Sub(start).Seconds()
	return err
}

// clear deletes every workload and waits until their pods are gone.
func (c *sandbox) clear(ctx context.Context) error {
	if err := c.DeleteAllOf(ctx, &gpuv1alpha1.GPUWorkload{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting workloads: %w", err)
	}
	left := 0
	err := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		left = 0
		for _, list := range []client.ObjectList{&corev1.PodList{}, &gpuv1alpha1.GPUWorkloadList{}} {
			if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return false, err
			}
			left += meta.LenList(list)
		}
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for what was deleted to go, of which %d objects are left: %w", left, err)
	}
	return nil
}

// workloads follows when each GPUWorkload was first Scheduled or refused.
type workloads struct {
	mu   sync.Mutex
	seen map[string]time.Time
	more chan struct{}
}

func (c *sandbox) watchWorkloads(ctx context.Context) (*workloads, error) {
	f := &workloads{seen: map[string]time.Time{}, more: make(chan struct{})}
	return f, inform(ctx, &gpuv1alpha1.GPUWorkload{}, f.see, &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &gpuv1alpha1.GPUWorkloadList{}
			return list, c.List(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &gpuv1alpha1.GPUWorkloadList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
		},
	})
}

func (f *workloads) see(object any) {
	now := time.Now()
	g, ok := object.(*gpuv1alpha1.GPUWorkload)
	if !ok {
		return
	}
	var keys []string
	if meta.IsStatusConditionTrue(g.Status.Conditions, gpuv1alpha1.ConditionScheduled) {
		keys = append(keys, "scheduled/"+g.Name)
	}
	if planned := meta.FindStatusCondition(g.Status.Conditions, gpuv1alpha1.ConditionPlanned); planned != nil &&
		planned.Status == metav1.ConditionFalse && planned.Message != "" {
		keys = append(keys, "refused/"+g.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		if _, ok := f.seen[key]; !ok {
			f.seen[key] = now
			close(f.more)
			f.more = make(chan struct{})
		}
	}
}

// within is how long a workload is waited for.
const within = 5 * time.Minute

func (f *workloads) scheduled(ctx context.Context, name string) (time.Time, error) {
	return f.wait(ctx, "scheduled/"+name)
}

func (f *workloads) refused(ctx context.Context, name string) (time.Time, error) {
	return f.wait(ctx, "refused/"+name)
}

func (f *workloads) wait(ctx context.Context, key string) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("after %s no workload was %s", within, key))
	defer cancel()
	for {
		f.mu.Lock()
		at, ok := f.seen[key]
		more := f.more
		f.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// createParallelism keeps two processors busy without queueing in the server.
const createParallelism = 16

// Create makes the nodes.
func Create(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(createParallelism)
	for _, node := range nodes {
		group.Go(func() error {
			if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// AwaitReady waits until n nodes are ready for pods: Ready, and no longer
// tainted as new nodes are.
func AwaitReady(ctx context.Context, client kubernetes.Interface, n int) error {
	ready := map[string]bool{}
	count := func(event watch.Event) (bool, error) {
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			return false, nil
		}
		if event.Type != watch.Deleted && schedulable(node) {
			ready[node.Name] = true
		} else {
			delete(ready, node.Name)
		}
		return len(ready) >= n, nil
	}
	nodes := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Nodes().Watch(ctx, options)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, cache.ToListWatcherWithWatchListSemantics(nodes, client), &corev1.Node{}, nil, count)
	if err != nil {
		return fmt.Errorf("waiting for the nodes, of which %d of %d are ready: %w", len(ready), n, errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

func schedulable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

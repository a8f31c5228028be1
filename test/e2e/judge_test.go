package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// judge watches every change of every pod and notes when, at any moment, the pods bound to a
// node hold more GPUs than it has. It knows nothing of plans, and shares no code with what it
// judges: the simulated nodes have no kubelet that would refuse a pod too many.
type judge struct {
	mu         sync.Mutex
	gpus       map[string]int64
	held       map[types.UID]holding
	violations []error
	cancel     context.CancelFunc
	done       chan struct{}
}

type holding struct {
	node string
	gpus int64
}

func startJudge(c *cluster) (*judge, error) {
	ctx, cancel := context.WithCancel(context.Background())
	j := &judge{gpus: map[string]int64{}, held: map[types.UID]holding{}, cancel: cancel, done: make(chan struct{})}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		cancel()
		return nil, err
	}
	for _, n := range nodes.Items {
		q := n.Status.Allocatable["nvidia.com/gpu"]
		j.gpus[n.Name] = q.Value()
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		cancel()
		return nil, err
	}
	for i := range pods.Items {
		j.see(watch.Added, &pods.Items[i])
	}
	w, err := c.follow(ctx, &corev1.PodList{}, pods.ResourceVersion)
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(j.done)
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				j.see(e.Type, pod)
			}
		}
		if ctx.Err() == nil {
			j.blame(errors.New("the watch ended early: not every change was judged"))
		}
	}()
	return j, nil
}

func (j *judge) see(kind watch.EventType, pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.held, pod.UID)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if kind == watch.Deleted || ended || pod.Spec.NodeName == "" {
		return
	}
	h := holding{node: pod.Spec.NodeName}
	for _, c := range pod.Spec.Containers {
		q := c.Resources.Limits["nvidia.com/gpu"]
		h.gpus += q.Value()
	}
	j.held[pod.UID] = h
	total := int64(0)
	for _, other := range j.held {
		if other.node == h.node {
			total += other.gpus
		}
	}
	if total > j.gpus[h.node] {
		j.violations = append(j.violations, fmt.Errorf("oversold at revision %s: %d of %d GPUs of %s are held once %s/%s is bound",
			pod.ResourceVersion, total, j.gpus[h.node], h.node, pod.Namespace, pod.Name))
	}
}

func (j *judge) blame(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violations = append(j.violations, err)
}

// stop ends the watch and returns everything that was wrong.
func (j *judge) stop() error {
	j.cancel()
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.violations...)
}

// watchJobs counts the Jobs that are ever made for each attempt of each workload.
func watchJobs(t *testing.T, c *cluster, namespace string) jobsMade {
	t.Helper()
	var none batchv1.JobList
	if err := c.List(t.Context(), &none, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	w, err := c.follow(t.Context(), &batchv1.JobList{}, none.ResourceVersion, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	made := map[attemptKey][]types.UID{}
	go func() {
		for e := range w.ResultChan() {
			if job, ok := e.Object.(*batchv1.Job); ok && e.Type == watch.Added {
				mu.Lock()
				key := attemptKey{job.Labels["gpu.warp.dev/workload"], job.Labels["gpu.warp.dev/attempt"]}
				made[key] = append(made[key], job.UID)
				mu.Unlock()
			}
		}
	}()
	return func() map[attemptKey][]types.UID {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(made)
	}
}

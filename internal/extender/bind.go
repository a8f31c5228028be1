package extender

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// reserve looks once more whether the pod may go to the node, and counts it there from now on. It
// is for the moment before the pod is bound; release takes it back.
func (e *engine) reserve(pod *corev1.Pod, node string) error {
	own := planned(pod)
	switch {
	case own == node && own != "", own == "" && !wantsGPU(pod):
		// Whoever planned the pod holds its room; what asks for no GPU is not ours to judge.
		return nil
	case own != "":
		return fmt.Errorf("pod %s/%s was planned on node %s, not on %s", pod.Namespace, pod.Name, own, node)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if h, ok := e.state.Holding(pod.UID); ok {
		if h.Node != node {
			return fmt.Errorf("pod %s/%s is on node %s already", pod.Namespace, pod.Name, h.Node)
		}
		return nil
	}
	if w, ok := e.written[pod.UID]; ok && w.node != node {
		return fmt.Errorf("pod %s/%s is being bound to node %s already", pod.Namespace, pod.Name, w.node)
	} else if ok {
		return nil // The same question again: the API server has the last word.
	}
	q, err := e.ask(pod)
	if err != nil {
		return err
	}
	at := q.snapshot.IndexOf(node)
	if at < 0 {
		return fmt.Errorf("node %s is not known to the extender yet", node)
	}
	if why, ok := e.settles(q, q.snapshot, at); !ok {
		return fmt.Errorf("node %s does not take pod %s/%s any more: %s", node, pod.Namespace, pod.Name, why)
	}
	e.written[pod.UID] = binding{
		node: node,
		pod: &cluster.Pod{
			Name:     pod.Namespace + "/" + pod.Name,
			Workload: &cluster.Workload{Name: q.request.Name, Level: placement.AnyLevel},
			Use:      q.group().Pod.Resources,
		},
		until: e.clock.Now().Add(shownWithin),
	}
	return nil
}

// release forgets a reservation of which nothing came.
func (e *engine) release(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.written, uid)
}

package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// What is said of pods that are left out.
const (
	donePods = "pods that have ended and were made before that"
	nodePods = "pods that a node runs for itself, or that run on every node"
	hugePods = "pods that ask for more than a node can have"
)

// pods translates pods for the packing experiment: all that have not ended, and those that have
// and were made within Since, in the order in which they were made.
func (t *translator) pods(pods []*corev1.Pod) {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		owner := metav1.GetControllerOf(p)
		switch {
		case owner != nil && (owner.Kind == "Node" || owner.Kind == "DaemonSet"):
			t.found.Left.Add(nodePods)
		case state.Finished(p) && t.Now.Sub(p.CreationTimestamp.Time) > t.Since:
			t.found.Left.Add(donePods)
		default:
			t.pod(p)
		}
	}
}

func (t *translator) pod(p *corev1.Pod) {
	requests, sane := requested(&p.Spec)
	fits := t.fitting(&p.Spec)
	on := t.byName[p.Spec.NodeName]
	if on == nil && len(fits) > 0 {
		on = fits[0].node
	}
	milli := t.held(requests, on)
	if !sane || milli > maxNodeGPUs*whole {
		t.found.Left.Add(hugePods)
		return
	}
	pod := trace.Pod{Name: p.Namespace + "/" + p.Name, CPUMilli: cpuMilli(requests), MemoryMiB: ceil(requests.Memory().Value(), 1<<20)}
	switch {
	case milli == 0:
	case milli < whole:
		pod.GPUs, pod.Milli = 1, int(milli)
	default:
		pod.GPUs, pod.Milli = int(ceil(milli, whole)), whole
	}
	if pod.GPUs > 0 {
		pod.Models = t.models(fits)
	}
	t.found.Pods = append(t.found.Pods, pod)
}

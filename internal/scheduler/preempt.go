package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// preempt looks for pods of lower priority in whose place the pod, or its gang, can go.
func (p *Plugin) preempt(context.Context, fwk.CycleState, *corev1.Pod) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, refuse("")
}

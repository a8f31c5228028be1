package webhook

import (
	"context"
	"fmt"
	"net/http"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// pods gives GPU pods the installation's scheduler. Which pods come here is for the configuration
// to say: those of managed namespaces that ask for GPUs and name no scheduler.
type pods struct {
	decoder admission.Decoder
	// scheduler is the one binder of GPU pods, "" if the installation has none.
	scheduler string
}

// Handle implements admission.Handler. Applied to its own answer it changes nothing.
func (p *pods) Handle(_ context.Context, r admission.Request) admission.Response {
	if r.UID == "" {
		return noRequest()
	}
	if p.scheduler == "" || r.Operation != admissionv1.Create || r.SubResource != "" || r.Resource.Resource != "pods" {
		return admission.Allowed("")
	}
	if err := checkAmounts(r.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the pod: %w", err))
	}
	var pod corev1.Pod
	if err := p.decoder.Decode(r, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the pod: %w", err))
	}
	// A scheduler that was chosen is not quietly replaced: the policy refuses it and says why.
	unchosen := pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName
	if !unchosen || pod.Spec.SchedulerName == p.scheduler || pod.Spec.NodeName != "" || !asksForGPUs(&pod.Spec) {
		return admission.Allowed("")
	}
	// "add" replaces what is there, and works where there is nothing.
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/schedulerName", p.scheduler))
}

// asksForGPUs tells whether a container of the pod asks for whole GPUs, parts or instances of them.
// config/webhook and config/admission say the same in CEL.
func asksForGPUs(spec *corev1.PodSpec) bool {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			for _, amounts := range []corev1.ResourceList{list[i].Resources.Limits, list[i].Resources.Requests} {
				for name := range amounts {
					if state.IsGPU(string(name)) {
						return true
					}
				}
			}
		}
	}
	return false
}

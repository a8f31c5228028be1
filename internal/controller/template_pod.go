package controller

import (
	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// PodOf returns the pod that the workload is planned with: what a question about the workload
// has to be asked with to get the controller's answer. Errors are *state.InvalidError.
func PodOf(w *gpuv1alpha1.GPUWorkload, defaultImage string) (*corev1.Pod, error) {
	t, err := podTemplate(w, defaultImage)
	if err != nil {
		return nil, err
	}
	return podOf(w, t), nil
}

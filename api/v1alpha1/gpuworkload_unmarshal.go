package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// UnreadableAnnotation says, on a template in memory and never in a cluster, why Go could not
// read the one that is stored.
const UnreadableAnnotation = "gpu.warp.dev/unreadable"

// UnmarshalJSON implements json.Unmarshaler. It keeps one workload's template from making every list of workloads unreadable:
// the schema of a pod template lets in what Go's types do not hold (a port of 3000000000, a
// quantity of 1e1.5), and CEL cannot look into its lists within its limits.
func (s *GPUWorkloadSpec) UnmarshalJSON(data []byte) error {
	type plain GPUWorkloadSpec
	whole := plain{}
	err := json.Unmarshal(data, &whole)
	if err != nil {
		rest := struct {
			*plain
			Template json.RawMessage `json:"template,omitempty"`
		}{plain: &plain{}}
		if json.Unmarshal(data, &rest) != nil {
			return err
		}
		whole = *rest.plain
		whole.Template = &corev1.PodTemplateSpec{}
		whole.Template.Annotations = map[string]string{UnreadableAnnotation: err.Error()}
	}
	*s = GPUWorkloadSpec(whole)
	return nil
}

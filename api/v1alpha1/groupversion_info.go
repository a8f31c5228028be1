// Package v1alpha1 is the API of gpu-orchestrator: the kinds a cluster learns when the
// product is installed. It holds types and nothing that acts.
//
// +kubebuilder:object:generate=true
// +groupName=gpu.warp.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "gpu.warp.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the kinds of this package.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes a scheme know the kinds of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &GPUWorkload{}, &GPUWorkloadList{}, &GPUNode{}, &GPUNodeList{},
		&PlacementPolicy{}, &PlacementPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

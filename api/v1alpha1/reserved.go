package v1alpha1

import (
	"slices"
	"strings"
)

// KeyPrefix begins every label and annotation of the product.
const KeyPrefix = "gpu.warp.dev/"

// ManagedLabel puts a namespace under management, with the value "true": its GPU pods get one
// scheduler, and the admission policies hold in it.
const ManagedLabel = "gpu.warp.dev/managed"

// UserKeys are the labels and annotations with our prefix that users write on their pods and pod
// templates. Every other one is for the product's own components.
func UserKeys() []string {
	return []string{
		GangLabel, GangSizeLabel, GangMinSizeAnnotation,
		RequiredLevelAnnotation, PreferredLevelAnnotation, SliceAnnotation,
		RankAnnotation, StrategyAnnotation, PreferenceAnnotation,
	}
}

// Reserved tells whether a label or annotation is for the product's own components to write: what
// a pod template of a user says under such a key is not carried to the pods.
func Reserved(key string) bool {
	return strings.HasPrefix(key, KeyPrefix) && !slices.Contains(UserKeys(), key)
}

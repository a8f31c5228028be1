package state

import (
	"errors"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func TestGangOf(t *testing.T) {
	const name, size = gpuv1alpha1.GangLabel, gpuv1alpha1.GangSizeLabel
	for title, c := range map[string]struct {
		labels, annotations map[string]string
		// wrong is the field that the error names, "" for none.
		wrong     string
		size, min int
	}{
		"nothing":                  {size: 1, min: 1},
		"a gang":                   {labels: map[string]string{name: "g", size: "8"}, size: 8, min: 8},
		"an elastic gang":          {labels: map[string]string{name: "g", size: "8"}, annotations: map[string]string{gpuv1alpha1.GangMinSizeAnnotation: "4"}, size: 8, min: 4},
		"a gang without its size":  {labels: map[string]string{name: "g"}, wrong: "metadata.labels[" + size + "]"},
		"a size without a gang":    {labels: map[string]string{size: "8"}, wrong: "metadata.labels[" + name + "]"},
		"a least without a gang":   {annotations: map[string]string{gpuv1alpha1.GangMinSizeAnnotation: "4"}, wrong: "metadata.labels[" + name + "]"},
		"a size that is no number": {labels: map[string]string{name: "g", size: "many"}, wrong: "metadata.labels[" + size + "]"},
		"a size beyond all sense":  {labels: map[string]string{name: "g", size: "2147483648"}, wrong: "metadata.labels[" + size + "]"},
		"the largest gang":         {labels: map[string]string{name: "g", size: "10000"}, size: 10000, min: 10000},
		"one more than that":       {labels: map[string]string{name: "g", size: "10001"}, wrong: "metadata.labels[" + size + "]"},
		"no pods at all":           {labels: map[string]string{name: "g", size: "0"}, wrong: "metadata.labels[" + size + "]"},
		"more at least than most":  {labels: map[string]string{name: "g", size: "8"}, annotations: map[string]string{gpuv1alpha1.GangMinSizeAnnotation: "9"}, wrong: "metadata.annotations[" + gpuv1alpha1.GangMinSizeAnnotation + "]"},
		"a slice":                  {labels: map[string]string{name: "g", size: "8"}, annotations: map[string]string{gpuv1alpha1.SliceAnnotation: "4/leaf"}, size: 8, min: 8},
		"a slice without a level":  {labels: map[string]string{name: "g", size: "8"}, annotations: map[string]string{gpuv1alpha1.SliceAnnotation: "4"}, wrong: "metadata.annotations[" + gpuv1alpha1.SliceAnnotation + "]"},
		"a slice that does not divide": {labels: map[string]string{name: "g", size: "8"}, annotations: map[string]string{gpuv1alpha1.SliceAnnotation: "3/leaf"},
			wrong: "metadata.annotations[" + gpuv1alpha1.SliceAnnotation + "]"},
		"an unknown preference": {annotations: map[string]string{gpuv1alpha1.PreferenceAnnotation: "fast"}, wrong: "metadata.annotations[" + gpuv1alpha1.PreferenceAnnotation + "]"},
	} {
		t.Run(title, func(t *testing.T) {
			g, err := GangOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: c.labels, Annotations: c.annotations}})
			var invalid *InvalidError
			switch {
			case c.wrong != "" && (!errors.As(err, &invalid) || invalid.Field != c.wrong):
				t.Errorf("error %v, want one of %s", err, c.wrong)
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong == "" && (g.Size != c.size || g.Min != c.min || g.IsGang() != (c.labels[name] != "")):
				t.Errorf("%+v", g)
			}
		})
	}
}

func TestGPUOf(t *testing.T) {
	asks := func(name, amount string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}}}
	}
	sidecar := asks("nvidia.com/gpu", "4")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for title, c := range map[string]struct {
		init, main []corev1.Container
		name       string
		count      int64
	}{
		"none":                       {main: []corev1.Container{asks("cpu", "4")}},
		"none of it":                 {main: []corev1.Container{asks("nvidia.com/gpu", "0")}},
		"memory of one is no GPU":    {main: []corev1.Container{asks("nvidia.com/gpumem", "4000")}},
		"two containers":             {main: []corev1.Container{asks("nvidia.com/gpu", "1"), asks("nvidia.com/gpu", "2")}, name: "nvidia.com/gpu", count: 3},
		"an init container needs it": {init: []corev1.Container{asks("amd.com/gpu", "4")}, main: []corev1.Container{asks("amd.com/gpu", "1")}, name: "amd.com/gpu", count: 4},
		"beside one that goes on":    {init: []corev1.Container{sidecar}, main: []corev1.Container{asks("nvidia.com/gpu", "4")}, name: "nvidia.com/gpu", count: 8},
		"after one that goes on":     {init: []corev1.Container{sidecar, asks("nvidia.com/gpu", "6")}, main: []corev1.Container{asks("nvidia.com/gpu", "4")}, name: "nvidia.com/gpu", count: 10},
		"Intel's newer driver":       {main: []corev1.Container{asks("gpu.intel.com/xe", "2")}, name: "gpu.intel.com/xe", count: 2},
		"more than there is":         {main: []corev1.Container{asks("nvidia.com/gpu", "1e99")}, name: "nvidia.com/gpu", count: math.MaxInt64},
	} {
		t.Run(title, func(t *testing.T) {
			name, count := GPUOf(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: c.init, Containers: c.main}})
			if name != c.name || count != c.count {
				t.Errorf("%d %s", count, name)
			}
		})
	}
}

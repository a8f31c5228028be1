package extender

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkFullNodes reads 10,000 whole nodes, what kube-scheduler sends without nodeCacheCapable:
// with the labels, conditions, addresses and 20 images that a node tells.
func BenchmarkFullNodes(b *testing.B) {
	list := corev1.NodeList{}
	for i := range 10000 {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-node-%05d", i), UID: "4b3c1f2e-8d1f-4e55-9a52-2f7c6a0d8e11", Labels: map[string]string{}, Annotations: map[string]string{}}}
		for k := range 60 {
			n.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-%02d", k)] = "true"
		}
		for k := range 20 {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 30, Names: []string{
				fmt.Sprintf("registry.example.com/team/image-%02d@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", k),
				fmt.Sprintf("registry.example.com/team/image-%02d:v1.2.3", k),
			}})
		}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("192"), "nvidia.com/gpu": resource.MustParse("8")}
		n.Status.Capacity = n.Status.Allocatable
		list.Items = append(list.Items, n)
	}
	data, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	body := fmt.Appendf(nil, `{"Pod":%s,"Nodes":%s,"NodeNames":null}`, podJSON, data)
	b.ReportMetric(float64(len(body))/(1<<20), "MiB")
	b.ReportAllocs()
	for b.Loop() {
		if a, err := readArgs(body); err != nil || len(a.names) != len(list.Items) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(body))/(1<<20), "MiB")
}

package state

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The cluster of BenchmarkEvent: the large profile, 1,024 nodes with 8 GPUs, 16 nodes a leaf, 32
// leaves a spine, and 8,000 pods with a GPU each.
const (
	eventNodes = 1024
	eventPods  = 8000
)

func eventNode(i int) *corev1.Node {
	n := gpuNode(fmt.Sprintf("node-%04d", i), 8)
	n.Labels["gpu.warp.dev/leaf"] = fmt.Sprintf("leaf-%02d", i/16)
	return n
}

// BenchmarkEvent is one event, up to and including the snapshot that has it. Each must take less
// than a millisecond.
func BenchmarkEvent(b *testing.B) {
	pods := make([]*corev1.Pod, eventPods)
	for i := range pods {
		pods[i] = gpuPod(fmt.Sprintf("pod-%04d", i), 1, bound(fmt.Sprintf("node-%04d", i%eventNodes)))
	}
	s := newState(b)
	for i := range eventNodes {
		s.SetNode(eventNode(i))
	}
	for _, p := range pods {
		s.SetPod(p)
	}
	s.Snapshot()
	for _, event := range []struct {
		name string
		tell func(i int)
	}{
		{"node=heartbeat", func(i int) { s.SetNode(eventNode(i % eventNodes)) }},
		{"node=relabelled", func(i int) {
			n := eventNode(i % eventNodes)
			n.Labels["turn"] = fmt.Sprint(i)
			s.SetNode(n)
		}},
		{"node=cordoned", func(i int) {
			n := eventNode(i / 2 % eventNodes)
			n.Spec.Unschedulable = i%2 == 0
			s.SetNode(n)
		}},
		{"node=moved", func(i int) {
			n := eventNode(i / 2 % eventNodes)
			if i%2 == 0 {
				n.Labels["gpu.warp.dev/leaf"] = "leaf-elsewhere"
			}
			s.SetNode(n)
		}},
		{"node=comes-or-goes", func(i int) {
			if i%2 == 0 {
				s.SetNode(eventNode(eventNodes + i/2%eventNodes))
			} else {
				s.DropNode(fmt.Sprintf("node-%04d", eventNodes+i/2%eventNodes))
			}
		}},
		{"pod=bound-or-gone", func(i int) {
			if p := pods[i/2%eventPods]; i%2 == 0 {
				s.DropPod(p.UID)
			} else {
				s.SetPod(p)
			}
		}},
		{"pod=status", func(i int) { s.SetPod(pods[i%eventPods]) }},
	} {
		b.Run(event.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				event.tell(i)
				s.Snapshot()
			}
		})
	}
}

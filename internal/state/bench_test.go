package state

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// The cluster of the benchmarks: 1,000 nodes with 8 GPUs, 16 nodes a leaf, with 10,000 pods. Of
// ten pods on a node eight hold a GPU, as members of gangs of 16, and two none, as daemons do.
const (
	benchNodes    = 1000
	benchPerNode  = 10
	benchGangSize = 16
)

// benchPods returns the pods of the cluster, and the workloads that they are of.
func benchPods() (pods []*corev1.Pod, workloads []*gpuv1alpha1.GPUWorkload) {
	member := 0
	for i := range benchNodes {
		node := fmt.Sprintf("node-%04d", i)
		for k := range benchPerNode {
			uid := fmt.Sprintf("pod-%04d-%d", i, k)
			if k >= 8 {
				pod := gpuPod(uid, 0, bound(node))
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *newQuantity(1)}
				pods = append(pods, pod)
				continue
			}
			if member%benchGangSize == 0 {
				workloads = append(workloads, workload(fmt.Sprintf("gang-%04d", len(workloads)), benchGangSize, 1))
			}
			w := workloads[len(workloads)-1]
			pods = append(pods, gpuPod(uid, 1, memberPod(w, 0, int32(member%benchGangSize)), bound(node)))
			member++
		}
	}
	return pods, workloads
}

func benchState(b *testing.B, pods []*corev1.Pod) *State {
	b.Helper()
	s := newState(b)
	for i := range benchNodes {
		n := gpuNode(fmt.Sprintf("node-%04d", i), 8)
		n.Labels["gpu.warp.dev/leaf"] = fmt.Sprintf("leaf-%02d", i/16)
		s.SetNode(n)
	}
	for _, p := range pods {
		s.SetPod(p)
	}
	s.Snapshot()
	return s
}

// A pod ends and another is bound: two events.
func BenchmarkPodComesAndGoes(b *testing.B) {
	pods, _ := benchPods()
	s := benchState(b, pods)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := pods[i*7919%len(pods)]
		s.DropPod(p.UID)
		s.SetPod(p)
	}
}

// The same, with the snapshots that are made of it.
func BenchmarkSnapshotAfterPodEvent(b *testing.B) {
	pods, _ := benchPods()
	s := benchState(b, pods)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := pods[i*7919%len(pods)]
		s.DropPod(p.UID)
		s.Snapshot()
		s.SetPod(p)
		s.Snapshot()
	}
}

// News of a pod of which placement sees no difference, as most are.
func BenchmarkPodStatusUpdate(b *testing.B) {
	pods, _ := benchPods()
	s := benchState(b, pods)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.SetPod(pods[i*7919%len(pods)])
	}
}

// Everything from lists, as at the start of the process, with what it keeps in memory beside
// the cache's objects.
func BenchmarkStateFromLists(b *testing.B) {
	pods, _ := benchPods()
	b.ReportAllocs()
	for b.Loop() {
		benchState(b, pods)
	}
	before := heap()
	s := benchState(b, pods)
	b.ReportMetric(float64(heap()-before)/float64(len(pods)), "heap-B/pod")
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The workload of a gang of 1,000 pods changes its priority: the dearest single event.
func BenchmarkWorkloadOfThousandPodsChanges(b *testing.B) {
	w := workload("big", benchNodes, 1)
	var pods []*corev1.Pod
	for i := range benchNodes {
		uid := fmt.Sprintf("big-%d", i)
		pods = append(pods, gpuPod(uid, 1, memberPod(w, 0, int32(i)), bound(fmt.Sprintf("node-%04d", i))))
	}
	s := benchState(b, pods)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.Spec.Priority = []gpuv1alpha1.WorkloadPriority{gpuv1alpha1.PriorityLow, gpuv1alpha1.PriorityHigh}[i%2]
		s.SetWorkload(w)
	}
}

// waitingState is 1,000 full nodes, of whose workloads half say how long they run, a thousand
// workloads that wait, one in ten of them a gang of 16 nodes, and four that hold room.
func waitingState(b *testing.B) (*State, []*gpuv1alpha1.GPUWorkload) {
	b.Helper()
	s := newState(b)
	s.SetReservations(Reservations{Max: 4, Patience: time.Minute, MaxWait: time.Hour})
	for i := range 1000 {
		name := fmt.Sprintf("node-%04d", i)
		n := gpuNode(name, 8)
		n.Labels["gpu.warp.dev/leaf"] = fmt.Sprintf("leaf-%03d", i/16)
		s.SetNode(n)
		w := workload(fmt.Sprintf("runs-%04d", i), 1, 8)
		if i%2 == 0 {
			lasts(w, time.Duration(1+i%97)*10*time.Minute)
		}
		s.SetWorkload(w)
		s.SetPod(gpuPod(w.Name, 8, memberPod(w, 0, 0), boundSince(name, time.Duration(i%10)*time.Minute)))
	}
	var waiting []*gpuv1alpha1.GPUWorkload
	for i := range 1000 {
		w := workload(fmt.Sprintf("waits-%04d", i), 1, 1+int32(i%8))
		if i%10 == 0 {
			w = workload(w.Name, 16, 8)
			w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Preferred: "leaf"}
		}
		if i%3 == 0 {
			lasts(w, time.Duration(1+i%31)*time.Minute)
		}
		if _, ok := asks(s, w, noon(), time.Duration(1000-i)*time.Second); ok {
			b.Fatal("there is room")
		}
		waiting = append(waiting, w)
	}
	s.Reserve(noon())
	if len(s.reservations.held) != 4 {
		b.Fatalf("%d hold room", len(s.reservations.held))
	}
	return s, waiting
}

// BenchmarkReserveAmongThousandWaiting decides for whom room is held.
func BenchmarkReserveAmongThousandWaiting(b *testing.B) {
	s, _ := waitingState(b)
	for b.Loop() {
		s.Reserve(noon())
	}
}

// BenchmarkThousandWaitingAreWoken has a pod end and all that wait ask again.
func BenchmarkThousandWaitingAreWoken(b *testing.B) {
	s, waiting := waitingState(b)
	pod := gpuPod("runs-0500", 8, memberPod(workload("runs-0500", 1, 8), 0, 0), boundSince("node-0500", 0))
	for b.Loop() {
		s.DropPod(pod.UID)
		for _, w := range waiting {
			if _, ok := asks(s, w, noon(), time.Minute); ok {
				s.Release(w.UID)
			}
		}
		s.SetPod(pod)
	}
}

package state

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// GangMember is a pod that belongs to a gang of plain pods and has not ended.
type GangMember struct {
	UID types.UID
	// Pod is its name, Node the node that it is bound to, "" while it waits.
	Pod, Node string
	// Rank is its place in the gang, -1 where nothing tells it.
	Rank int
	// Leaving says that it is being deleted: it holds its room still, and is no member any more.
	Leaving bool
	// Gang is what it says of its gang.
	Gang PodGang
}

// Members returns the pods of a gang in the order of their names. Pods whose labels contradict
// themselves are in no gang.
func (s *State) Members(gang types.NamespacedName) []GangMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := make([]GangMember, 0, len(s.gangs[gang]))
	for _, m := range s.gangs[gang] {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b GangMember) int { return cmp.Compare(a.Pod, b.Pod) })
	return members
}

// Holding is what a bound pod holds, and for whom.
type Holding struct {
	Node string
	Use  cluster.Vector
	// Workload is what the pod stands or falls with, nil where nobody keeps count: a pod of
	// somebody else's without any device. Ours says that it is a GPUWorkload.
	Workload *cluster.Workload
	Ours     bool
	// Gang is the gang of plain pods that it belongs to, zero if there is none.
	Gang types.NamespacedName
}

// Holding returns what a pod holds; false if it holds nothing.
func (s *State) Holding(uid types.UID) (Holding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.pods[uid].held
	if h == nil {
		return Holding{}, false
	}
	holding := Holding{Node: h.node, Use: h.use, Gang: s.gangOf[uid]}
	if h.work != nil {
		holding.Workload, holding.Ours = h.work.spec, h.work.ours()
	}
	return holding, true
}

// RankOf returns the rank of a plain pod: what its annotation says, or the number that its Job or
// StatefulSet gave it; -1 if nothing does.
func RankOf(pod *corev1.Pod) int {
	for _, text := range []string{
		pod.Annotations[gpuv1alpha1.RankAnnotation],
		pod.Annotations[batchv1.JobCompletionIndexAnnotation],
		pod.Labels[appsv1.PodIndexLabel],
	} {
		if rank, err := strconv.Atoi(text); err == nil && rank >= 0 {
			return rank
		}
	}
	return -1
}

// join notes what a pod is in its gang now. The caller holds the lock.
func (s *State) join(pod *corev1.Pod) {
	if pod.Labels[gpuv1alpha1.GangLabel] == "" {
		s.leaveGang(pod.UID)
		return
	}
	g, err := GangOf(pod)
	if old, ok := s.gangOf[pod.UID]; ok && (err != nil || old != g.Name) {
		s.leaveGang(pod.UID)
	}
	if err != nil {
		return
	}
	if Finished(pod) {
		s.leaveGang(pod.UID)
		return
	}
	if s.gangs[g.Name] == nil {
		s.gangs[g.Name] = make(map[types.UID]GangMember)
	}
	s.gangOf[pod.UID] = g.Name
	s.gangs[g.Name][pod.UID] = GangMember{
		UID: pod.UID, Pod: pod.Name, Node: pod.Spec.NodeName, Rank: RankOf(pod), Leaving: pod.DeletionTimestamp != nil, Gang: g,
	}
}

// leaveGang forgets a pod in its gang. The caller holds the lock.
func (s *State) leaveGang(uid types.UID) {
	name, ok := s.gangOf[uid]
	if !ok {
		return
	}
	delete(s.gangOf, uid)
	delete(s.gangs[name], uid)
	if len(s.gangs[name]) == 0 {
		delete(s.gangs, name)
	}
}

package scheduler

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// refusedBy notes that a node refused the member.
func (g *gang) refusedBy(node string, m *member, now time.Time) {
	g.avoid[node] = now
	if m.avoid == nil {
		m.avoid = map[string]bool{}
	}
	m.avoid[node] = true
}

// avoided returns the nodes that are left out for all members.
func (g *gang) avoided() []string {
	if g.each {
		return nil
	}
	return slices.Sorted(maps.Keys(g.avoid))
}

// expire forgets who refused longer ago than the given time, and tells whether there was anybody.
// As long as the gang finds other nodes nobody is forgotten: what one member needs may be on the
// last of many.
func (g *gang) expire(now time.Time, within time.Duration) bool {
	if g.refusal == "" || len(g.avoid) == 0 {
		return false
	}
	before := len(g.avoid)
	maps.DeleteFunc(g.avoid, func(_ string, at time.Time) bool { return now.Sub(at) > within })
	if len(g.avoid) == 0 {
		g.forgive()
	}
	return len(g.avoid) < before
}

// forgive forgets which nodes refused whom.
func (g *gang) forgive() {
	clear(g.avoid)
	g.each = false
	for _, m := range g.members {
		m.avoid = nil
	}
}

// exhausted notes that there is no room without the nodes that refused a member: from now on they
// are left out for a time. It tells whether it is worth asking again, with each member avoiding
// only those that refused it. Members are not alike then, which slices and gangs that go without
// some of them need.
func (g *gang) exhausted(ask *state.PodGang, now time.Time) bool {
	for node := range g.avoid {
		g.avoid[node] = now
	}
	if len(g.avoid) == 0 || g.each || ask.SliceSize > 0 || ask.Min < ask.Size {
		return false
	}
	g.each = true
	return true
}

// seeks is the member's pod as the engine is asked about it.
func (g *gang) seeks(m *member) *corev1.Pod {
	if !g.each || len(m.avoid) == 0 {
		return m.pod
	}
	pod := m.pod.DeepCopy()
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		for _, node := range slices.Sorted(maps.Keys(m.avoid)) {
			term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
			})
		}
	}
	return pod
}

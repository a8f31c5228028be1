package state

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// Question returns what Plan would ask about the whole workload, and the cluster it would ask:
// without what the workload itself holds, and beside what is held for others that go before it. It
// holds nothing and changes nothing. With the zero time nothing is held for anybody: so it is for a
// workload that has its places and does not wait.
//
// Errors are *InvalidError where the workload must change.
func (s *State) Question(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, now time.Time) (*cluster.Snapshot, *placement.Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guide := s.guide(w)
	r, err := s.question(w, pod, &guide)
	if err != nil {
		return nil, nil, err
	}
	held := s.toLeave(w, &r, now)
	snapshot := s.apart(w, held, false)
	if held != 0 && r.Preempts {
		// As Plan: only what finds no room otherwise evicts, and then beside everything.
		if free, err := s.fits(snapshot, &r, &guide); err == nil && !free {
			snapshot = s.apart(w, held, true)
		}
	}
	return snapshot, &r, nil
}

// Withheld says for whom room is held that a workload would have now, "" if that is not what keeps
// it waiting. Of whoever is in a namespace that the asker does not see into the name is left out;
// nil sees into all.
func (s *State) Withheld(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, now time.Time, sees func(namespace string) bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	guide := s.guide(w)
	r, err := s.question(w, pod, &guide)
	if err != nil {
		return ""
	}
	held := s.toLeave(w, &r, now)
	if held == 0 {
		return ""
	}
	if fits, err := s.fits(s.apart(w, held, false), &r, &guide); err != nil || fits {
		return ""
	}
	if free, err := s.fits(s.apart(w, 0, false), &r, &guide); err != nil || !free {
		return ""
	}
	if sees == nil {
		return s.withheld(held, now, nil)
	}
	return s.withheld(held, now, func(namespace string) bool { return namespace == w.Namespace || sees(namespace) })
}

// toLeave returns what is held for others and must be left alone, as bits, and has the request avoid
// what the workload's last plan had to. The caller holds the lock.
func (s *State) toLeave(w *gpuv1alpha1.GPUWorkload, r *placement.Request, now time.Time) (held uint64) {
	if now.IsZero() {
		return 0
	}
	waits := s.reservations.queue[w.UID]
	r.Avoid = waits.avoid
	return s.before(w, &Ask{Now: now, Since: waits.since})
}

// fits tells whether there is room without evicting anybody. The caller holds the lock.
func (s *State) fits(snapshot *cluster.Snapshot, r *placement.Request, guide *policy.Guide) (bool, error) {
	calm := *r
	calm.Preempts = false
	d, err := placement.Plan(snapshot, &calm, placement.Options{Strategies: s.strategies, Scoring: guide.Scoring, Brief: true})
	return d.Feasible, err
}

// apart returns the cluster without what the workload holds, beside the given reservations.
func (s *State) apart(w *gpuv1alpha1.GPUWorkload, held uint64, strict bool) *cluster.Snapshot {
	now := s.current()
	gone := map[string][]*cluster.Pod{}
	if own, ok := s.works[keyOf(w)]; ok {
		for _, m := range own.members {
			gone[m.node] = append(gone[m.node], m.made)
		}
	}
	if len(gone) == 0 {
		return s.besides(held, strict)
	}
	touched := maps.Clone(gone)
	for name := range s.heldNodes(held) {
		touched[name] = gone[name]
	}
	var changed []*cluster.Node
	for name, pods := range touched {
		if n := now.Node(name); n != nil {
			changed = append(changed, s.reservedNode(n.Without(pods...), held, strict))
		}
	}
	// The generation is nobody else's: the next one of the state may look like it and differ.
	s.generation++
	return now.Next(s.generation, s.resources, changed)
}

// question checks the workload and translates it; guide is what its policy asks. The caller holds
// the lock.
func (s *State) question(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, guide *policy.Guide) (placement.Request, error) {
	if _, err := s.strategies.Get(w.Spec.SchedulingStrategy); w.Spec.SchedulingStrategy != "" && err != nil {
		return placement.Request{}, &InvalidError{Field: "spec.schedulingStrategy", Problem: err.Error()}
	}
	if err := CheckAmounts(&pod.Spec); err != nil {
		return placement.Request{}, &InvalidError{Field: "spec.template.spec", Problem: err.Error()}
	}
	r, err := request(guided(w, guide), pod, s.levels, s.resources)
	if err != nil {
		return r, err
	}
	r.Groups[0].Pod.Rules = guide.Rules
	return r, nil
}

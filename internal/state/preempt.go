package state

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// SetClass says which workloads are this installation's. Those of another class have nobody who
// could have them make way: they are neither evicted nor moved. It must be called before
// anything is taken in.
func (s *State) SetClass(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.class = name
}

// Victims returns the workloads that have to make way for what is held for the given one, as the
// last Plan chose them.
func (s *State) Victims(uid types.UID) []gpuv1alpha1.Victim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.holds[uid]; ok {
		return h.victims
	}
	return nil
}

// decide asks the engine. Eviction is asked for only where there is no room without, and only
// then is it worked out what would be lost. What is reserved for the given others is left alone.
// The caller holds the lock.
func (s *State) decide(r *placement.Request, scoring *placement.Scoring, held uint64, now time.Time) (placement.Decision, error) {
	options := placement.Options{Strategies: s.strategies, Cache: &s.cache, Scoring: scoring}
	calm := *r
	calm.Preempts = false
	d, err := placement.Plan(s.besides(held, false), &calm, options)
	if err == nil && !d.Feasible && !d.Why.Never && r.Preempts {
		s.reckon(now)
		d, err = placement.Plan(s.besides(held, true), r, options)
	}
	if err != nil || d.Feasible || held == 0 || d.Why.Never {
		return d, err
	}
	options.Brief = true
	if free, err := placement.Plan(s.current(), &calm, options); err == nil && free.Feasible {
		d.Why.Sentence = s.withheld(held, now, nil)
	}
	return d, nil
}

// victims names those of a decision. The attempt is the one that holds the room: a workload that
// has let go already and only waits for its pods to end is on its next one.
func (s *State) victims(d *placement.Decision) []gpuv1alpha1.Victim {
	list := make([]gpuv1alpha1.Victim, 0, len(d.Victims))
	for i := range d.Victims {
		if w := s.workOfPod(d.Victims[i].Evicted[0]); w != nil {
			list = append(list, w.victim())
		}
	}
	return list
}

func (w *work) victim() gpuv1alpha1.Victim {
	namespace, name, _ := strings.Cut(w.key.name, "/")
	v := gpuv1alpha1.Victim{Namespace: namespace, Name: name, UID: w.key.uid}
	for _, m := range w.members {
		v.Attempt = max(v.Attempt, m.attempt)
	}
	return v
}

// workOfPod finds whose a pod of the current snapshot is. Its workload's name is not enough:
// names are used again.
func (s *State) workOfPod(at cluster.Placement) *work {
	e := s.nodes[s.snapshot.At(at.Node).Name]
	i := slices.IndexFunc(e.held, func(h *held) bool { return h.made == at.Pod })
	if i < 0 {
		return nil
	}
	return e.held[i].work
}

// reckon brings up to date what would be lost with each workload: the GPU-hours that its pods
// have held. When they last saved what they have computed is not known. A change of less than a
// twentieth is not worth showing all of a workload's nodes anew.
func (s *State) reckon(now time.Time) {
	for _, w := range s.works {
		if !w.told || !w.spec.Preemptible && !w.spec.Movable {
			continue
		}
		cost := w.lost(now)
		if math.Abs(cost-w.spec.Cost) <= cost/20 {
			continue
		}
		next := *w.spec
		next.Cost = cost
		s.respecify(w, &next, w.needs)
	}
}

// lost is what the workload's bound pods have held by now, in GPU-hours.
func (w *work) lost(now time.Time) float64 {
	if w.bound == 0 {
		return 0
	}
	return w.gpus * max(0, float64(int64(w.bound)*now.Unix()-w.since)) / 3600
}

// boundAt is when the pod got its node, in seconds since 1970.
func boundAt(pod *corev1.Pod) int64 {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Unix()
		}
	}
	return max(0, pod.CreationTimestamp.Unix())
}

// gpusOf is how many GPUs a pod of the workload holds; a share counts as a share.
func gpusOf(w *gpuv1alpha1.GPUWorkload) float64 {
	if g := w.Spec.GPU; g != nil && g.Milli != nil {
		return float64(*g.Milli) / 1000
	}
	return float64(max(w.Spec.GPUCount, 1))
}

// Crowded returns the nodes of a workload's plan that do not have the room for it yet, because
// what has to make way is there still, and those that are out of service.
func (s *State) Crowded(uid types.UID) (crowded, out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.holds[uid]
	if !ok {
		return nil, nil
	}
	seen := make(map[string]bool, len(h.members))
	for _, m := range h.members {
		if seen[m.node] {
			continue
		}
		seen[m.node] = true
		e := s.nodes[m.node]
		switch {
		case e == nil || e.node == nil || !e.node.Ready || e.node.Cordoned:
			out = append(out, m.node)
		case over(h.pod, e):
			crowded = append(crowded, m.node)
		}
	}
	slices.Sort(crowded)
	slices.Sort(out)
	return crowded, out
}

// over tells whether more is used on the node than it has, of anything that the pod asks for.
func over(pod cluster.Vector, e *entry) bool {
	for i, want := range pod {
		if want > 0 && e.used.At(i) > e.node.Allocatable.At(i) {
			return true
		}
	}
	return false
}

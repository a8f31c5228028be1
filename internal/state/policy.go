package state

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// Follow has the state go by the policies of a book, and Feed keep the book up to date. It must
// be called before either.
func (s *State) Follow(b *policy.Book) {
	s.policies = b
	// It may be told in the middle of a decision, under our own lock: what follows from it waits
	// for the next snapshot.
	b.Told(func(string) { s.fell.Store(true) })
}

// Weights returns what the terms of a score count for the workload; nil for the default weights.
// It keeps its address as long as the policy is the same.
func (s *State) Weights(w *gpuv1alpha1.GPUWorkload) *placement.Scoring {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.says(w).Scoring
}

// Strategy returns the strategy by which the workload is placed: the one that it names, or else
// that of its policy, or else the default.
func (s *State) Strategy(w *gpuv1alpha1.GPUWorkload) string {
	if w.Spec.SchedulingStrategy != "" {
		return w.Spec.SchedulingStrategy
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.says(w).Strategy, gpuv1alpha1.DefaultStrategy)
}

// guide returns what the policy asks that holds for the workload, and begins a decision about it.
// The caller holds the lock.
func (s *State) guide(w *gpuv1alpha1.GPUWorkload) policy.Guide {
	if s.policies == nil {
		return policy.Guide{}
	}
	facts := Facts(w)
	return s.policies.For(&facts, len(s.nodes))
}

// says returns what the policies say of a workload where nothing is decided: no rules.
func (s *State) says(w *gpuv1alpha1.GPUWorkload) policy.Guide {
	if s.policies == nil {
		return policy.Guide{}
	}
	facts := Facts(w)
	return s.policies.Says(&facts)
}

// Facts returns what policies may know of a workload.
func Facts(w *gpuv1alpha1.GPUWorkload) policy.Workload {
	facts := policy.Workload{
		Namespace:   w.Namespace,
		Name:        w.Name,
		Labels:      w.Labels,
		GPUCount:    int64(max(w.Spec.GPUCount, 1)),
		Parallelism: int64(max(w.Spec.Parallelism, 1)),
		Priority:    string(w.Spec.Priority),
		Strategy:    w.Spec.SchedulingStrategy,
		Resource:    ResourceName(w),
		Model:       w.Spec.ModelName,
	}
	if facts.Priority == "" {
		facts.Priority = string(gpuv1alpha1.PriorityMedium)
	}
	return facts
}

// guided returns the workload with what the policy asks where it says nothing itself: a strategy,
// and how close together its pods are where it names no level.
func guided(w *gpuv1alpha1.GPUWorkload, g *policy.Guide) *gpuv1alpha1.GPUWorkload {
	t := w.Spec.Topology
	strategy := w.Spec.SchedulingStrategy == "" && g.Strategy != ""
	levels := (g.Required != "" || g.Preferred != "") && (t == nil || t.Required == "" && t.Preferred == "")
	if !strategy && !levels {
		return w
	}
	own := *w
	if strategy {
		own.Spec.SchedulingStrategy = g.Strategy
	}
	if levels {
		asked := gpuv1alpha1.TopologyRequirements{Required: g.Required, Preferred: g.Preferred}
		if t != nil {
			asked.Slice = t.Slice
		}
		own.Spec.Topology = &asked
	}
	return &own
}

// feedPolicies keeps the book up to date. Better is called when waiting workloads may be placed
// otherwise than before.
func (s *State) feedPolicies(ctx context.Context, c cache.Cache, better func()) (synced []func() bool, err error) {
	if s.policies == nil {
		return nil, nil
	}
	tell := func(changed bool) {
		if changed {
			s.reguide()
			better()
		}
	}
	set := func(obj any) {
		if p, ok := obj.(*gpuv1alpha1.PlacementPolicy); ok {
			tell(s.policies.Set(p, s.size()))
		}
	}
	policies, err := feed(ctx, c, &gpuv1alpha1.PlacementPolicy{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if p, ok := last(obj).(*gpuv1alpha1.PlacementPolicy); ok {
				tell(s.policies.Drop(p.Name))
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching placement policies: %w", err)
	}
	label := func(obj any) {
		// Namespaces come and go by themselves; what is placed elsewhere is not concerned.
		if n, ok := obj.(*corev1.Namespace); ok && s.policies.SetNamespace(n.Name, n.Labels) && s.reguideIn(n.Name) {
			better()
		}
	}
	namespaces, err := feed(ctx, c, &corev1.Namespace{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    label,
		UpdateFunc: func(_, obj any) { label(obj) },
		DeleteFunc: func(obj any) {
			if n, ok := last(obj).(*corev1.Namespace); ok {
				s.policies.DropNamespace(n.Name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return []func() bool{policies.HasSynced, namespaces.HasSynced}, nil
}

// reguide has the pods of every workload kept to the policy that holds for it now, where they may
// be moved.
func (s *State) reguide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guideAll()
}

// reguideIn is reguide for the workloads of a namespace. It reports whether there are any.
func (s *State) reguideIn(namespace string) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.works {
		if w.source != nil && w.source.Namespace == namespace {
			s.specifyAnew(w)
			found = true
		}
	}
	return found
}

// guideAll is reguide for callers that hold the lock.
func (s *State) guideAll() {
	for _, w := range s.works {
		if w.source != nil {
			s.specifyAnew(w)
		}
	}
}

// resize has the cost of policies judged by the nodes there are now.
func (s *State) resize(better func()) {
	if s.policies != nil && s.policies.Resize(s.size()) {
		s.reguide()
		better()
	}
}

// size returns the number of nodes.
func (s *State) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

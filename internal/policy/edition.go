package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// edition is a spec that can be carried out, made ready for that. It does not change.
type edition struct {
	generation            int64
	spec                  *gpuv1alpha1.PlacementPolicySpec
	priority              int32
	namespaces, workloads labels.Selector
	strategy              string
	required, preferred   string
	// scoring is nil where the policy sets no weights. Engines know it by its address.
	scoring *placement.Scoring
	// rules is nil where the policy has no expressions.
	rules Ruleset
}

// edit makes a spec ready. What it costs is not judged here.
func (b *Book) edit(name string, spec *gpuv1alpha1.PlacementPolicySpec) (*edition, error) {
	e := &edition{spec: spec, priority: spec.Priority}
	var err error
	if e.namespaces, err = selector("spec.namespaceSelector", spec.NamespaceSelector); err != nil {
		return nil, err
	}
	if e.workloads, err = selector("spec.workloadSelector", spec.WorkloadSelector); err != nil {
		return nil, err
	}
	if err := b.defaults(e, spec.Defaults); err != nil {
		return nil, err
	}
	e.scoring = scoringOf(spec.Weights)
	if len(spec.Filters)+len(spec.Scores) == 0 {
		return e, nil
	}
	if e.rules, err = b.config.Compiler.Compile(name, spec); err != nil {
		return nil, err
	}
	e.rules.Exhausted(func() { b.exhausted(name, e) })
	return e, nil
}

func selector(field string, s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	read, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, &Problem{Reason: gpuv1alpha1.PolicyInvalidSelector, Sentence: field + " cannot be read: " + err.Error()}
	}
	return read, nil
}

func (b *Book) defaults(e *edition, d *gpuv1alpha1.PlacementDefaults) error {
	if d == nil {
		return nil
	}
	if e.strategy = d.SchedulingStrategy; e.strategy != "" {
		if _, err := b.config.Strategies.Get(e.strategy); err != nil {
			return &Problem{Reason: gpuv1alpha1.PolicyUnknownStrategy, Sentence: "spec.defaults.schedulingStrategy: " + err.Error()}
		}
	}
	if d.Topology == nil {
		return nil
	}
	e.required, e.preferred = d.Topology.Required, d.Topology.Preferred
	for _, l := range []struct{ field, level string }{{"required", e.required}, {"preferred", e.preferred}} {
		if _, ok := cluster.FindLevel(b.config.Levels, l.level); l.level != "" && !ok {
			var names []string
			for _, known := range b.config.Levels {
				names = append(names, known.Name)
			}
			return &Problem{Reason: gpuv1alpha1.PolicyUnknownLevel, Sentence: fmt.Sprintf(
				"spec.defaults.topology.%s: there is no topology level %q; this installation knows %s", l.field, l.level, strings.Join(names, ", "))}
		}
	}
	return nil
}

// scoringOf returns the weights, those that are not set being the defaults; nil if none is.
func scoringOf(w *gpuv1alpha1.ScoreWeights) *placement.Scoring {
	if w == nil || w.Node == nil && w.Domain == nil {
		return nil
	}
	s := placement.DefaultScoring()
	set := func(weight *float64, value *int32) {
		if value != nil {
			*weight = float64(*value)
		}
	}
	if n := w.Node; n != nil {
		set(&s.Node.Topology, n.Topology)
		set(&s.Node.Resources, n.Resources)
		set(&s.Node.Balance, n.Balance)
		set(&s.Node.Hint, n.Hint)
	}
	if d := w.Domain; d != nil {
		set(&s.Domain.Availability, d.Availability)
		set(&s.Domain.Alignment, d.Alignment)
		set(&s.Domain.Utilization, d.Utilization)
		set(&s.Domain.History, d.History)
	}
	return s
}

// selects tells whether the policy is for the workload, whose namespace has these labels.
func (e *edition) selects(w *Workload, namespace labels.Set) bool {
	return e.namespaces.Matches(namespace) && e.workloads.Matches(labels.Set(w.Labels))
}

// selectsAll tells whether the policy is for every workload.
func (e *edition) selectsAll() bool { return e.namespaces.Empty() && e.workloads.Empty() }

// cost is the most that the expressions cost on one node, as far as a status can say.
func (e *edition) cost() int64 {
	if e.rules == nil {
		return 0
	}
	return int64(min(e.rules.CostPerNode(), math.MaxInt64))
}

// stored returns the edition that a policy's status says was in force, if it is another than the
// one that the policy has now.
func (b *Book) stored(p *gpuv1alpha1.PlacementPolicy) *edition {
	was := p.Status.InForce
	if was == nil || was.Spec == nil || was.Generation == p.Generation {
		return nil
	}
	var spec gpuv1alpha1.PlacementPolicySpec
	if json.Unmarshal(was.Spec.Raw, &spec) != nil {
		return nil
	}
	e, err := b.edit(p.Name, &spec)
	if err != nil {
		return nil
	}
	e.generation = was.Generation
	return e
}

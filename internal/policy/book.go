package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Config is what a Book goes by.
type Config struct {
	// Class is the class of the installation, whose policies are kept.
	Class string
	// Levels and Strategies are those there are.
	Levels     []cluster.Level
	Strategies *placement.Registry
	Compiler   Compiler
	Budget     Budget
}

// Book is the policies of a cluster. It is safe for concurrent use.
type Book struct {
	config Config

	mu       sync.Mutex
	policies map[string]*entry
	// ranked are the policies in force, in the order in which they go before one another.
	ranked     []*entry
	namespaces map[string]labels.Set
	// byNamespace says that a policy in force looks at the labels of namespaces.
	byNamespace bool
	// told are called when a policy comes into force or goes out of it by itself.
	told []func(name string)
	// nodes is how many the cluster had when it was last told to the book.
	nodes int
}

// entry is one policy.
type entry struct {
	name       string
	uid        types.UID
	generation int64
	spec       *gpuv1alpha1.PlacementPolicySpec
	// problem is why the spec is not in force, nil if it is.
	problem *Problem
	// inForce is what decisions go by, nil for nothing; before is what the spec took the place
	// of, for the case that it proves too costly.
	inForce, before *edition
	// own is the spec made ready, in force or not; nil where it cannot be, or proved too costly.
	own *edition
	// trusted says that the spec was in force before, so that its cost need not be judged by the
	// size of the cluster: that grows, and must take no policy out of force, neither now nor when
	// a process starts again.
	trusted bool
}

// NewBook returns an empty Book.
func NewBook(config Config) *Book {
	return &Book{config: config, policies: make(map[string]*entry), namespaces: make(map[string]labels.Set)}
}

// Told adds what is called with the name of a policy that went out of force by itself, or came
// into it. It is called without any lock of the Book's, and may be called in the middle of a
// decision.
func (b *Book) Told(tell func(name string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, tell)
}

// Set takes in a policy of a cluster that has so many nodes now. It reports whether decisions
// may come out otherwise than before.
func (b *Book) Set(p *gpuv1alpha1.PlacementPolicy, nodes int) (changed bool) {
	if p.Spec.ClassName != b.config.Class {
		return b.Drop(p.Name)
	}
	b.mu.Lock()
	old := b.policies[p.Name]
	b.mu.Unlock()
	if old != nil && old.uid == p.UID && equality.Semantic.DeepEqual(old.spec, &p.Spec) {
		// News of the status, most of it our own. What is in force keeps its address.
		b.mu.Lock()
		defer b.mu.Unlock()
		if old.generation = p.Generation; old.problem == nil && old.inForce != nil {
			old.inForce.generation = p.Generation
			old.trusted = old.trusted || wasInForce(p)
		}
		return false
	}
	// Compiling takes a while, and no lock: meanwhile the old edition may go out of force.
	next := b.enter(p)
	var stored *edition
	if old == nil || old.uid != p.UID {
		stored = b.stored(p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if next.before = stored; old != nil && old.uid == p.UID {
		next.before = old.inForce
	}
	if next.inForce = next.before; next.own != nil {
		b.weigh(next, max(nodes, b.nodes))
	}
	b.policies[p.Name] = next
	b.rank()
	return old == nil && next.inForce != nil || old != nil && old.inForce != next.inForce
}

// enter judges a policy that is new or was changed, by itself: what was in force before is left
// to the caller, who needs no lock for this.
func (b *Book) enter(p *gpuv1alpha1.PlacementPolicy) *entry {
	next := &entry{name: p.Name, uid: p.UID, generation: p.Generation, spec: p.Spec.DeepCopy()}
	e, err := b.edit(p.Name, next.spec)
	if err != nil {
		if !errors.As(err, &next.problem) {
			next.problem = &Problem{Reason: gpuv1alpha1.PolicyInvalidExpression, Sentence: err.Error()}
		}
		return next
	}
	e.generation = p.Generation
	next.own, next.trusted = e, wasInForce(p)
	return next
}

// wasInForce tells whether the status says of the policy's own spec that it is in force.
func wasInForce(p *gpuv1alpha1.PlacementPolicy) bool {
	return p.Status.InForce != nil && p.Status.InForce.Generation == p.Generation
}

// exhausted takes an edition out of force that cost more than a decision is given. The one before
// is in force again; where there is none the edition stays, and refuses what it has not judged:
// a filter that is too dear must not let in what it would have kept out.
func (b *Book) exhausted(name string, e *edition) {
	b.mu.Lock()
	p := b.policies[name]
	if p == nil || p.inForce != e {
		b.mu.Unlock()
		return
	}
	outcome := "the edition before it is in force again"
	if p.before == nil || p.before == e {
		outcome = "nodes that it has not judged are refused"
		if len(e.spec.Filters) == 0 {
			outcome = "nodes that it has not judged have no score"
		}
	} else {
		p.inForce, p.before = p.before, nil
	}
	p.own = nil // It is not judged again.
	p.problem = &Problem{Reason: gpuv1alpha1.PolicyTooCostly, Sentence: fmt.Sprintf(
		"the expressions cost more than the %d units that a decision is given, and %s: look at fewer labels or taints, or compare instead of matching patterns",
		b.config.Budget.PerDecision, outcome)}
	b.rank()
	told := b.told
	b.mu.Unlock()
	for _, tell := range told {
		tell(name)
	}
}

// Drop forgets a policy. It reports whether it was in force.
func (b *Book) Drop(name string) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.policies[name]
	delete(b.policies, name)
	b.rank()
	return old != nil && old.inForce != nil
}

// rank puts the policies in force in order. The caller holds the lock.
func (b *Book) rank() {
	b.ranked = b.ranked[:0:0]
	b.byNamespace = false
	for _, p := range b.policies {
		if p.inForce != nil {
			b.ranked = append(b.ranked, p)
			b.byNamespace = b.byNamespace || !p.inForce.namespaces.Empty()
		}
	}
	slices.SortFunc(b.ranked, func(p, q *entry) int {
		return cmp.Or(cmp.Compare(q.inForce.priority, p.inForce.priority), cmp.Compare(p.name, q.name))
	})
}

// SetNamespace takes in the labels of a namespace. It reports whether decisions may come out
// otherwise than before.
func (b *Book) SetNamespace(name string, set map[string]string) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.namespaces[name]; ok && maps.Equal(old, set) {
		return false
	}
	b.namespaces[name] = maps.Clone(set)
	return b.byNamespace
}

// DropNamespace forgets a namespace.
func (b *Book) DropNamespace(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.namespaces, name)
}

// labelsOf returns the labels of a namespace; of one that was not told of yet, the one that
// every namespace has. The caller holds the lock.
func (b *Book) labelsOf(namespace string) labels.Set {
	if set, ok := b.namespaces[namespace]; ok {
		return set
	}
	return labels.Set{corev1.LabelMetadataName: namespace}
}

// Guide is what the policy that holds for a workload asks. The zero value asks for nothing.
type Guide struct {
	// Policy is its name, "" if none holds.
	Policy string
	// Strategy, and the levels Required and Preferred, are for a workload that names none.
	Strategy            string
	Required, Preferred string
	// Scoring is nil for the default weights, and Rules nil for none. Both are known by their
	// addresses and keep them as long as nothing changes.
	Scoring *placement.Scoring
	Rules   cluster.Rules
}

// For returns what holds for a workload, and begins a decision about it in a cluster of so many
// nodes: its rules have a fresh budget.
func (b *Book) For(w *Workload, nodes int) Guide {
	g, rules := b.says(w)
	if rules != nil {
		asked := *w
		asked.Strategy = cmp.Or(w.Strategy, g.Strategy, gpuv1alpha1.DefaultStrategy)
		g.Rules = rules.Begin(&asked, nodes)
	}
	return g
}

// Says returns what holds for a workload beside Rules, which are of a decision.
func (b *Book) Says(w *Workload) Guide {
	g, _ := b.says(w)
	return g
}

// says returns what holds for a workload, with the expressions apart.
func (b *Book) says(w *Workload) (Guide, Ruleset) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.holds(w)
	if p == nil {
		return Guide{}, nil
	}
	e := p.inForce
	return Guide{Policy: p.name, Strategy: e.strategy, Required: e.required, Preferred: e.preferred, Scoring: e.scoring}, e.rules
}

// holds returns the policy that holds for a workload, nil for none. The caller holds the lock.
func (b *Book) holds(w *Workload) *entry {
	namespace := b.labelsOf(w.Namespace)
	for _, p := range b.ranked {
		if p.inForce.selects(w, namespace) {
			return p
		}
	}
	return nil
}

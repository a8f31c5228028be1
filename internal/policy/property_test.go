package policy

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// keeper is what the property below is about, so that broken variants can be put in its place.
type keeper interface {
	Set(p *gpuv1alpha1.PlacementPolicy, nodes int) bool
	Drop(name string) bool
	SetNamespace(name string, set map[string]string) bool
	For(w *Workload, nodes int) Guide
}

// drawnPolicy is a policy as it was written, kept beside the book.
type drawnPolicy struct {
	object     *gpuv1alpha1.PlacementPolicy
	priority   int32
	team, tier string
	good       bool
}

func drawPolicy(t *rapid.T, name string, generation int64) drawnPolicy {
	d := drawnPolicy{
		priority: rapid.Int32Range(-1, 1).Draw(t, "priority"),
		team:     rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "team"),
		tier:     rapid.SampledFrom([]string{"", "", "prod"}).Draw(t, "tier"),
		good:     rapid.IntRange(0, 3).Draw(t, "good") > 0,
	}
	d.object = written(name, generation, priority(d.priority))
	if d.team != "" {
		forTeam(d.team)(d.object)
	}
	if d.tier != "" {
		forTier(d.tier)(d.object)
	}
	if !d.good {
		filters("bad")(d.object)
	}
	return d
}

// wrongHolder writes policies in a drawn order and says when another holds for a workload than
// a look at all that was written tells.
func wrongHolder(t *rapid.T, b keeper) string {
	inForce := map[string]drawnPolicy{}
	teams := map[string]string{}
	for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
		name := fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "policy"))
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			b.Drop(name)
			delete(inForce, name)
		case 1:
			space := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace")
			teams[space] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "its team")
			b.SetNamespace(space, map[string]string{"team": teams[space]})
		default:
			d := drawPolicy(t, name, int64(step+1))
			b.Set(d.object, 10)
			if d.good {
				inForce[name] = d
			}
		}
		w := Workload{Name: "w", Namespace: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "asked")}
		if rapid.Bool().Draw(t, "labelled") {
			w.Labels = map[string]string{"tier": "prod"}
		}
		if got, want := b.For(&w, 10).Policy, holder(inForce, &w, teams[w.Namespace]); got != want {
			return fmt.Sprintf("%q holds for %+v, want %q", got, w, want)
		}
	}
	return ""
}

// holder looks at everything.
func holder(inForce map[string]drawnPolicy, w *Workload, team string) string {
	var names []string
	for name, d := range inForce {
		if (d.team == "" || d.team == team) && (d.tier == "" || d.tier == w.Labels["tier"]) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(inForce[b].priority, inForce[a].priority), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func TestTheRightPolicyHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if problem := wrongHolder(rt, newBook(t)); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// forgetful drops a policy that turned bad, instead of keeping its last good edition.
type forgetful struct{ *Book }

func (f forgetful) Set(p *gpuv1alpha1.PlacementPolicy, nodes int) bool {
	f.Book.Set(p, nodes)
	if r, _ := f.Report(p.Name); r.Problem != nil {
		return f.Drop(p.Name)
	}
	return true
}

// backwards prefers the lower priority.
type backwards struct{ *Book }

func (b backwards) Set(p *gpuv1alpha1.PlacementPolicy, nodes int) bool {
	turned := p.DeepCopy()
	turned.Spec.Priority = -turned.Spec.Priority
	return b.Book.Set(turned, nodes)
}

// blind looks at no namespace after the first time.
type blind struct {
	*Book
	seen map[string]bool
}

func (b blind) SetNamespace(name string, set map[string]string) bool {
	if b.seen[name] {
		return false
	}
	b.seen[name] = true
	return b.Book.SetNamespace(name, set)
}

// The property above must be able to fail: each of these mistakes is found.
func TestHolderPropertyFindsMistakes(t *testing.T) {
	for name, wrap := range map[string]func(*Book) keeper{
		"bad editions end good ones":        func(b *Book) keeper { return forgetful{b} },
		"the order is the wrong way round":  func(b *Book) keeper { return backwards{b} },
		"labels of namespaces are not read": func(b *Book) keeper { return blind{b, map[string]bool{}} },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(rt *rapid.T) { found = wrongHolder(rt, wrap(newBook(t))) != "" || found })
			if !found {
				t.Error("the property holds for a broken book")
			}
		})
	}
}

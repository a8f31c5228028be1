package explaining

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
)

// recent is how many decisions an explanation shows.
const recent = 10

func (e *Explainer) history(ask Ask) []explainv1alpha1.Decision {
	return decided(e.Parts.Decisions.Find(decisions.Query{Namespace: ask.Name.Namespace, Name: ask.Name.Name, Limit: recent}), ask.curtain)
}

// Decided returns what was decided in a namespace, or about one workload of it. Sees tells of which
// other namespaces the asker may know the names; nil: of all.
func (e *Explainer) Decided(q decisions.Query, sees func(namespace string) bool) *explainv1alpha1.DecisionList {
	ask := Ask{Name: types.NamespacedName{Namespace: q.Namespace}, Sees: sees}.drawn()
	items := decided(e.Parts.Decisions.Find(q), ask.curtain)
	if items == nil {
		items = []explainv1alpha1.Decision{}
	}
	return &explainv1alpha1.DecisionList{
		TypeMeta: metav1.TypeMeta{APIVersion: explainv1alpha1.APIVersion, Kind: explainv1alpha1.DecisionListKind},
		Items:    items,
	}
}

func decided(found []decisions.Decision, c *curtain) []explainv1alpha1.Decision {
	var all []explainv1alpha1.Decision
	for i := range found {
		d := &found[i]
		victims, _ := c.all(d.Victims)
		all = append(all, explainv1alpha1.Decision{
			Namespace: d.Workload.Namespace, Name: d.Workload.Name, Attempt: d.Attempt,
			Time: metav1.NewTime(d.Time), Last: metav1.NewTime(d.Last), Count: d.Count, By: d.By,
			Outcome: string(d.Outcome), Reason: string(d.Reason), Message: sentence(d, c), Strategy: d.Strategy, Policy: d.Policy,
			Pods: d.Pods, Nodes: d.Nodes, FirstNode: d.FirstNode, Took: metav1.Duration{Duration: d.Took}, Snapshot: d.Generation,
			Victims: victims, For: c.name(d.For),
		})
	}
	return all
}

// sentence is what was said of the decision. Where that names what the asker may not know it is made
// anew, of the fields; what else it may name is looked for in it.
func sentence(d *decisions.Decision, c *curtain) string {
	victims, hidden := c.all(d.Victims)
	switch way := c.name(d.For); {
	case way != d.For:
		return fmt.Sprintf("makes way for %s, which has a higher priority and no room otherwise", way)
	case hidden:
		pods, nodes := "pods", "nodes"
		if d.Pods == 1 {
			pods = "pod"
		}
		if d.Nodes == 1 {
			nodes = "node"
		}
		return fmt.Sprintf("%d %s placed on %d %s, the first on %s, once %s made way",
			d.Pods, pods, d.Nodes, nodes, d.FirstNode, strings.Join(victims, ", "))
	}
	return c.text(d.Sentence)
}

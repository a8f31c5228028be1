package aggregated

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
)

// table is the list as `kubectl get decisions` shows it.
func table(list *explainv1alpha1.DecisionList) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Last", Type: "string", Description: "When it was decided for the last time."},
			{Name: "Workload", Type: "string", Format: "name"},
			{Name: "Attempt", Type: "integer"},
			{Name: "Times", Type: "integer", Description: "How often the same was decided."},
			{Name: "Outcome", Type: "string"},
			{Name: "Reason", Type: "string"},
			{Name: "Message", Type: "string", Priority: 1},
		},
		Rows: []metav1.TableRow{},
	}
	for i := range list.Items {
		d := &list.Items[i]
		t.Rows = append(t.Rows, metav1.TableRow{
			Cells: []any{d.Last.UTC().Format(time.RFC3339), d.Name, d.Attempt, d.Count, d.Outcome, d.Reason, d.Message},
			// kubectl asks the row for its namespace.
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
			}},
		})
	}
	return t
}

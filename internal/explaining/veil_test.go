package explaining

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/decisions"
)

func ownOnly(namespace string) bool { return namespace == "team" }

// rivals records a plan in whose way others stood, and one that made way.
func rivals(w *world) {
	mine := types.NamespacedName{Namespace: "team", Name: "mine"}
	w.decided.Record(decisions.Decision{
		Time: now(), Workload: mine, UID: "u", Outcome: decisions.Planned, Pods: 1, Nodes: 1, FirstNode: "n0",
		Sentence: "placed on n0 by binPack, once rival/secret-llm (priority 1) and 3 more made way", Victims: []string{"rival/secret-llm", "team/other"},
	})
	w.decided.Record(decisions.Decision{
		Time: now(), Workload: mine, UID: "name:x", Outcome: decisions.Evicted, For: "rival/secret-two",
		Sentence: "makes way for rival/secret-two, which has a higher priority",
	})
	w.decided.Record(decisions.Decision{
		Time: now(), Workload: mine, UID: "u", Outcome: decisions.Refused, Sentence: "no node has nvidia.com/gpu in slices of 16/leaf (rival/secret-three)",
	})
}

// What was decided names others only to those who see what these run.
func TestHistoryHidesNamesOfOthers(t *testing.T) {
	w := newWorld(t, 1)
	w.put(gang("rival", "secret-two", 1, 8, on("n0")), true)
	w.put(gang("team", "mine", 1, 8), false)
	rivals(w)
	e := w.ask(t, "mine", Ask{Sees: ownOnly})
	if text := fmt.Sprintf("%+v", *e); strings.Contains(text, "secret") {
		t.Error(text)
	}
	h := e.History
	if len(h) != 3 || h[0].Victims[0] != "rival/(hidden)-1" || h[0].Victims[1] != "team/other" || h[1].For != "rival/(hidden)-2" ||
		h[0].Message != "1 pod placed on 1 node, the first on n0, once rival/(hidden)-1, team/other made way" ||
		!strings.HasPrefix(h[1].Message, "makes way for rival/(hidden)-2, ") ||
		h[2].Message != "no node has nvidia.com/gpu in slices of 16/leaf (rival/(hidden)-3)" {
		t.Errorf("%+v", h)
	}
	// The same is called the same in all of the answer.
	if e.Misses[0].Holders[0].Name != "rival/(hidden)-2" {
		t.Errorf("%+v", e.Misses)
	}
	x := w.explainer(t)
	if list := x.Decided(decisions.Query{Namespace: "team"}, ownOnly); len(list.Items) != 3 || strings.Contains(fmt.Sprintf("%+v", *list), "secret") {
		t.Errorf("%+v", list)
	}
	if list := x.Decided(decisions.Query{Namespace: "team"}, nil); !strings.Contains(list.Items[0].Message, "rival/secret-llm (priority 1) and 3 more") {
		t.Errorf("who sees all is told %+v", list.Items)
	}
}

// The status was written for those who see everything.
func TestStatusHidesNamesOfOthers(t *testing.T) {
	w := newWorld(t, 2)
	w.put(gang("team", "mine", 1, 8, on("n0"), func(g *gpuv1alpha1.GPUWorkload) {
		g.Status.Message = "waits until rival/secret-one is gone"
		g.Status.Conditions = []metav1.Condition{{Type: gpuv1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Message: "placed on n0, once rival/secret-two (priority 1) made way"}}
	}), false)
	w.put(gang("team", "gone", 1, 16, func(g *gpuv1alpha1.GPUWorkload) {
		g.Status.Conditions = []metav1.Condition{{Type: conditionPreempted, Status: metav1.ConditionTrue, Message: "made way for rival/secret-three"}}
	}), false)
	for name, want := range map[string]string{"mine": "once rival/(hidden)-2 (priority 1)", "gone": "made way for rival/(hidden)-1"} {
		text := fmt.Sprintf("%+v %+v", *w.ask(t, name, Ask{Sees: ownOnly}), w.ask(t, name, Ask{Sees: ownOnly}).Placement)
		if strings.Contains(text, "secret") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The question itself has no names of others in it, of pods neither, and all that is known of them.
func TestTheVeilHidesPodsAndKeepsWhatIsKnown(t *testing.T) {
	w := newWorld(t, 1)
	w.put(gang("rival", "secret-llm", 1, 8, on("n0"), func(g *gpuv1alpha1.GPUWorkload) {
		g.Spec.ActiveDeadlineSeconds, g.Status.StartTime = ptr.To(int64(7200)), ptr.To(metav1.NewTime(now().Add(-time.Hour)))
	}), true)
	w.pod("secret-pod", "n0", 1, func(p *corev1.Pod) { p.Namespace = "rival" })
	ours := w.put(gang("team", "mine", 1, 8), false)
	e := w.explainer(t)
	pod, err := e.PodOf(ours)
	if err != nil {
		t.Fatal(err)
	}
	ask := Ask{Name: types.NamespacedName{Namespace: "team", Name: "mine"}, Sees: ownOnly}
	q, err := e.question(t.Context(), ask, ours, pod)
	if err != nil {
		t.Fatal(err)
	}
	hidden := map[string]bool{}
	for _, p := range q.Snapshot.Node("n0").Pods {
		if strings.Contains(p.Name, "secret") || strings.Contains(p.Workload.Name, "secret") {
			t.Errorf("pod %s of %s", p.Name, p.Workload.Name)
		}
		hidden[p.Workload.Name] = q.Foreign(p.Workload.Name)
	}
	foreigners := 0
	for _, is := range hidden {
		if is {
			foreigners++
		}
	}
	if len(hidden) != 2 || foreigners != 1 {
		t.Errorf("of the hidden these are nobody's GPUWorkloads: %v", hidden)
	}
	for name, run := range q.Running {
		if _, is := hidden[name]; !is {
			t.Errorf("%s runs, and nobody is called that", name)
		}
		if !hidden[name] && run.Elapsed != time.Hour {
			t.Errorf("%s has run for %s", name, run.Elapsed)
		}
	}
	if len(q.Running) == 0 {
		t.Error("how long others have run is lost")
	}
}

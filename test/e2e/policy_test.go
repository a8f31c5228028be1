package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// policyFor makes a policy for the workloads of a namespace, and takes it away afterwards.
func (c *cluster) policyFor(t *testing.T, namespace, name string, spec gpuv1alpha1.PlacementPolicySpec) *gpuv1alpha1.PlacementPolicy {
	t.Helper()
	spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	p := &gpuv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, Spec: spec}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.kubectl(nil, "get", "placementpolicy", p.Name, "-o", "yaml"))
		}
		if out := c.kubectl(nil, "delete", "placementpolicy", p.Name); !strings.Contains(out, "deleted") {
			t.Error(out)
		}
	})
	return p
}

// untilPolicy waits until the status of a policy is as wanted and speaks of its present spec.
func (c *cluster) untilPolicy(t *testing.T, p *gpuv1alpha1.PlacementPolicy, what string, wanted func(*gpuv1alpha1.PlacementPolicyStatus) bool) {
	t.Helper()
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.ObservedGeneration != p.Generation || !wanted(&p.Status) {
			return fmt.Errorf("policy %s is not %s: %+v", p.Name, what, p.Status)
		}
		return nil
	})
}

// policyReason is the reason of a condition, "" if there is none.
func policyReason(s *gpuv1alpha1.PlacementPolicyStatus, condition string) string {
	if c := meta.FindStatusCondition(s.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}

func (c *cluster) editPolicy(t *testing.T, p *gpuv1alpha1.PlacementPolicy, edit func(*gpuv1alpha1.PlacementPolicySpec)) {
	t.Helper()
	before := p.DeepCopy()
	edit(&p.Spec)
	if err := c.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) untilPolicyEvent(t *testing.T, p *gpuv1alpha1.PlacementPolicy, reason string) {
	t.Helper()
	eventually(t, func() error {
		var list corev1.EventList
		if err := c.List(t.Context(), &list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == p.UID && e.Reason == reason }) {
			return fmt.Errorf("no event %s about policy %s", reason, p.Name)
		}
		return nil
	})
}

func cooled(expression string) []gpuv1alpha1.PlacementFilter {
	return []gpuv1alpha1.PlacementFilter{{Name: "cooling", Expression: expression, Message: "only liquid-cooled nodes"}}
}

// A policy keeps workloads off nodes and says so, one that turns bad stays in force as it was and
// stops nobody, and one that changes wakes who waits.
func TestPoliciesDecideWhereWorkloadsGo(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns, bystanders := c.namespace(t), c.namespace(t)
	selector, names := c.nodes(t, 3)
	c.patchNode(t, names[2], func(n *corev1.Node) { n.Labels["e2e/cooling"] = "liquid" })
	p := c.policyFor(t, ns, "cool", gpuv1alpha1.PlacementPolicySpec{
		Defaults: &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: "binPack"},
		Filters:  cooled(`node.labels[?'e2e/cooling'].orValue('') == 'liquid'`),
	})
	c.untilPolicy(t, p, "in force", func(s *gpuv1alpha1.PlacementPolicyStatus) bool {
		return policyReason(s, gpuv1alpha1.PolicyReady) == gpuv1alpha1.PolicyInForce && s.CostPerNode > 0
	})

	first := c.submit(t, gpuWorkload(ns, "first", 1, 8, forever, onNodes(selector)))
	c.untilPhase(t, first, gpuv1alpha1.PhaseRunning)
	if first.Status.AssignedNode != names[2] {
		t.Errorf("placed on %s, want %s, the only one that is cooled", first.Status.AssignedNode, names[2])
	}
	planned := meta.FindStatusCondition(first.Status.Conditions, gpuv1alpha1.ConditionPlanned)
	if planned == nil || !strings.Contains(planned.Message, "by binPack") {
		t.Errorf("planned: %+v, want the policy's strategy", planned)
	}
	second := c.submit(t, gpuWorkload(ns, "second", 1, 8, runFor("1s"), onNodes(selector)))
	c.untilReason(t, second, gpuv1alpha1.ConditionPlanned, "NoRoom")
	if want := fmt.Sprintf("2 refused by policy %s, filter cooling: only liquid-cooled nodes", p.Name); !strings.Contains(second.Status.Message, want) {
		t.Errorf("got %q, want %q in it", second.Status.Message, want)
	}
	c.untilPolicy(t, p, "counted", func(s *gpuv1alpha1.PlacementPolicyStatus) bool { return s.Workloads == 2 })

	good := p.Generation
	c.editPolicy(t, p, func(s *gpuv1alpha1.PlacementPolicySpec) { s.Filters = cooled(`node.colling == 'liquid'`) })
	c.untilPolicy(t, p, "refused", func(s *gpuv1alpha1.PlacementPolicyStatus) bool {
		return policyReason(s, gpuv1alpha1.PolicyReady) == gpuv1alpha1.PolicyInvalidExpression && s.InForce != nil && s.InForce.Generation == good && s.InForce.Spec != nil
	})
	if says := meta.FindStatusCondition(p.Status.Conditions, gpuv1alpha1.PolicyReady).Message; !strings.Contains(says, "filters[cooling].expression, line 1, column 5: undefined field 'colling'") || !strings.Contains(says, fmt.Sprintf("generation %d stays in force", good)) {
		t.Errorf("got %q", says)
	}
	c.untilPolicyEvent(t, p, gpuv1alpha1.PolicyInvalidExpression)
	other := c.submit(t, gpuWorkload(bystanders, "other", 1, 4, runFor("1s"), onNodes(selector)))
	c.untilPhase(t, other, gpuv1alpha1.PhaseSucceeded)
	third := c.submit(t, gpuWorkload(ns, "third", 1, 8, runFor("1s"), onNodes(selector)))
	c.untilReason(t, third, gpuv1alpha1.ConditionPlanned, "NoRoom")

	c.editPolicy(t, p, func(s *gpuv1alpha1.PlacementPolicySpec) { s.Filters = nil })
	c.untilPhase(t, second, gpuv1alpha1.PhaseSucceeded)
	c.untilPhase(t, third, gpuv1alpha1.PhaseSucceeded)
	c.untilPolicy(t, p, "in force again", func(s *gpuv1alpha1.PlacementPolicyStatus) bool {
		return policyReason(s, gpuv1alpha1.PolicyReady) == gpuv1alpha1.PolicyInForce && s.InForce.Spec == nil && s.Workloads == 1
	})
}

// What is wrong with a policy is said in its conditions, each kind with its reason.
func TestPoliciesSayWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	ns := c.namespace(t)
	for _, v := range []struct {
		name, condition, reason, says string
		spec                          gpuv1alpha1.PlacementPolicySpec
	}{
		{
			"costly", gpuv1alpha1.PolicyReady, gpuv1alpha1.PolicyTooCostly, "look at fewer labels or taints",
			gpuv1alpha1.PlacementPolicySpec{Filters: []gpuv1alpha1.PlacementFilter{{Name: "pairs", Expression: `node.labels.all(a, node.labels.all(b, a != b || true))`}}},
		},
		{
			"strategy", gpuv1alpha1.PolicyReady, gpuv1alpha1.PolicyUnknownStrategy, "registered are ",
			gpuv1alpha1.PlacementPolicySpec{Defaults: &gpuv1alpha1.PlacementDefaults{SchedulingStrategy: "fastest"}},
		},
		{
			"level", gpuv1alpha1.PolicyReady, gpuv1alpha1.PolicyUnknownLevel, "this installation knows region, zone, core, spine, leaf",
			gpuv1alpha1.PlacementPolicySpec{Defaults: &gpuv1alpha1.PlacementDefaults{Topology: &gpuv1alpha1.DefaultTopology{Required: "cabinet"}}},
		},
	} {
		p := c.policyFor(t, ns, v.name, v.spec)
		c.untilPolicy(t, p, v.reason, func(s *gpuv1alpha1.PlacementPolicyStatus) bool { return policyReason(s, v.condition) == v.reason })
		if says := meta.FindStatusCondition(p.Status.Conditions, v.condition).Message; !strings.Contains(says, v.says) || !strings.Contains(says, "it holds for nobody until that is mended") {
			t.Errorf("%s: got %q", v.name, says)
		}
	}
	// None of them is in force, so nothing keeps this one.
	selector, names := c.nodes(t, 1)
	w := c.submit(t, gpuWorkload(ns, "unharmed", 1, 1, forever, onNodes(selector)))
	c.untilPhase(t, w, gpuv1alpha1.PhaseRunning)

	winner := c.policyFor(t, ns, "winner", gpuv1alpha1.PlacementPolicySpec{Priority: 10})
	loser := c.policyFor(t, ns, "loser", gpuv1alpha1.PlacementPolicySpec{
		Filters: []gpuv1alpha1.PlacementFilter{{Name: "rack", Expression: `node.labels['e2e/rack'] == 'r1'`}},
	})
	c.untilPolicy(t, loser, "overruled", func(s *gpuv1alpha1.PlacementPolicyStatus) bool {
		return policyReason(s, gpuv1alpha1.PolicyConflict) == "Overruled" && s.Overruled == 1 && s.Workloads == 0
	})
	if says := meta.FindStatusCondition(loser.Status.Conditions, gpuv1alpha1.PolicyConflict).Message; !strings.Contains(says, winner.Name) {
		t.Errorf("got %q", says)
	}
	c.untilPolicyEvent(t, loser, "Overruled")
	c.editPolicy(t, loser, func(s *gpuv1alpha1.PlacementPolicySpec) { s.Priority = 11 })
	c.untilPolicy(t, loser, "the one that holds", func(s *gpuv1alpha1.PlacementPolicyStatus) bool {
		return policyReason(s, gpuv1alpha1.PolicyConflict) == "None" && s.Workloads == 1
	})
	// No node has the label that it reads: all are refused, and that is said.
	last := c.submit(t, gpuWorkload(ns, "last", 1, 1, runFor("1s"), onNodes(selector)))
	c.untilReason(t, last, gpuv1alpha1.ConditionPlanned, "NeverFits")
	if want := "whose filter rack cannot be evaluated there: no such key: e2e/rack"; !strings.Contains(last.Status.Message, want) {
		t.Errorf("got %q, want %q in it", last.Status.Message, want)
	}
	// And a label on a node is news for who waits.
	c.patchNode(t, names[0], func(n *corev1.Node) { n.Labels["e2e/rack"] = "r1" })
	c.untilPhase(t, last, gpuv1alpha1.PhaseSucceeded)
}

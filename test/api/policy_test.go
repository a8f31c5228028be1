package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// placementPolicy reads a PlacementPolicy as a user writes it, less its kind and, if it gives
// none, a name.
func placementPolicy(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	u.SetGroupVersionKind(gpuv1alpha1.GroupVersion.WithKind("PlacementPolicy"))
	if u.GetName() == "" {
		u.SetName("p")
	}
	return u
}

func policyCases() []ruleCase { return slices.Concat(policySpecCases(), policyStatusCases()) }

func TestEveryPolicyRuleHasACase(t *testing.T) {
	rules, unknown := rulesOf(definitionOf(t, "placementpolicies"))
	if len(rules) < 50 {
		t.Fatalf("only %d rules were found: the definition was misread", len(rules))
	}
	t.Logf("%d rules, %d cases", len(rules), len(policyCases()))
	for _, key := range unknown {
		t.Errorf("the definition has %s, a kind of bound that no case is asked for: name it in rulesOf", key)
	}
	for _, rule := range uncovered(rules, policyCases()) {
		t.Errorf("no case is refused by: %s", rule)
	}
	for _, c := range policyCases() {
		if !slices.ContainsFunc(rules, c.covers) {
			t.Errorf("there is no rule %q", c.name())
		}
	}
}

// TestPolicySpecRules creates policies that a user would write.
func TestPolicySpecRules(t *testing.T) {
	c := cluster(t)
	create := func(t *testing.T, text string) error {
		t.Helper()
		u := placementPolicy(t, text)
		err := c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &gpuv1alpha1.PlacementPolicy{}); err != nil {
				t.Errorf("the Go type cannot hold %s: %v", text, err)
			}
		}
		return err
	}
	check(t, policySpecCases(), create)
}

// TestPolicyStatusRules writes statuses that a controller could.
func TestPolicyStatusRules(t *testing.T) {
	c := cluster(t)
	u := placementPolicy(t, `{metadata: {name: status-rules}, spec: {}}`)
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	update := func(t *testing.T, text string) error {
		t.Helper()
		changed := u.DeepCopy()
		set(t, changed, text)
		return c.Status().Update(t.Context(), changed, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	}
	check(t, policyStatusCases(), update)
}

// TestPolicyDefaults holds what the server makes of what a user writes.
func TestPolicyDefaults(t *testing.T) {
	c := cluster(t)
	u := placementPolicy(t, `{spec: {weights: {node: {topology: 1}, domain: {history: 0}}, scores: [{name: s, expression: "1"}]}}`)
	if err := c.Create(t.Context(), u, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	var p gpuv1alpha1.PlacementPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p); err != nil {
		t.Fatal(err)
	}
	n, d := p.Spec.Weights.Node, p.Spec.Weights.Domain
	if *n.Topology != 1 || *n.Resources != 35 || *n.Balance != 25 || *n.Hint != 0 {
		t.Errorf("node: %d %d %d %d", *n.Topology, *n.Resources, *n.Balance, *n.Hint)
	}
	if *d.Availability != 40 || *d.Alignment != 30 || *d.Utilization != 20 || *d.History != 0 {
		t.Errorf("domain: %d %d %d %d", *d.Availability, *d.Alignment, *d.Utilization, *d.History)
	}
	if p.Spec.Priority != 0 || p.Spec.Scores[0].Weight != 10 {
		t.Errorf("priority %d, weight %d", p.Spec.Priority, p.Spec.Scores[0].Weight)
	}
}

// TestEditionOutlivesItsSpec holds that what a status keeps of an earlier spec is kept whole.
func TestEditionOutlivesItsSpec(t *testing.T) {
	c := cluster(t)
	u := placementPolicy(t, `{metadata: {name: kept}, spec: {}}`)
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	set(t, u, `{status: {inForce: {generation: 1, spec: {priority: 3, filters: [{name: f, expression: "true"}]}}}}`)
	if err := c.Status().Update(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatal(err)
	}
	var p gpuv1alpha1.PlacementPolicy
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), &p); err != nil {
		t.Fatal(err)
	}
	if got := string(p.Status.InForce.Spec.Raw); !strings.Contains(got, `"expression":"true"`) || !strings.Contains(got, `"priority":3`) {
		t.Errorf("stored as %s", got)
	}
}

// TestPolicyFieldsAreDescribed holds that kubectl explain has a text for each field, and that it
// names the default.
func TestPolicyFieldsAreDescribed(t *testing.T) {
	count := 0
	for _, f := range fields(definitionOf(t, "placementpolicies")) {
		text, _ := f.schema["description"].(string)
		if strings.TrimSpace(text) == "" && f.path != "metadata" && !strings.HasSuffix(f.path, "[]") {
			t.Errorf("%s has no description", f.path)
		}
		value, ok := f.schema["default"]
		if _, isObject := value.(map[string]any); !ok || isObject {
			continue
		}
		count++
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(text, "default: "+fmt.Sprint(value)) {
			t.Errorf("the default of %s is %v; its description does not say so: %s", f.path, value, text)
		}
	}
	if count < 10 {
		t.Errorf("only %d defaults were found", count)
	}
}

// TestPolicyColumns asks for policies as a person does.
func TestPolicyColumns(t *testing.T) {
	c := cluster(t)
	u := placementPolicy(t, `{metadata: {name: columns}, spec: {priority: 7}}`)
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	set(t, u, `{status: {workloads: 3, costPerNode: 12, conditions: [{type: Ready, status: "False", reason: TooCostly, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`)
	if err := c.Status().Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	out := strings.Fields(kubectl(t, "get", "ppol", "columns"))
	if got := strings.Join(out, " "); !strings.HasPrefix(got, "NAME READY REASON PRIORITY WORKLOADS COST AGE columns False TooCostly 7 3 12 ") {
		t.Errorf("got %s", got)
	}
}

// TestPolicyIntegersThatDoNotFit writes the first number that the Go type of each integer field
// cannot hold. Let in, one policy could not be read again, nor any list that has it.
func TestPolicyIntegersThatDoNotFit(t *testing.T) {
	c := cluster(t)
	u := placementPolicy(t, `{metadata: {name: integers}, spec: {}}`)
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, f := range fields(definitionOf(t, "placementpolicies")) {
		if f.schema["type"] != "integer" {
			continue
		}
		tried++
		tooLarge := map[any]string{"int32": "2147483648", "int64": "9223372036854775808"}[f.schema["format"]]
		changed := u.DeepCopy()
		set(t, changed, at(f.path, tooLarge))
		var err error
		if strings.HasPrefix(f.path, "status.") {
			err = c.Status().Update(t.Context(), changed, client.DryRunAll)
		} else {
			err = c.Update(t.Context(), changed, client.DryRunAll)
		}
		path := strings.ReplaceAll(strings.TrimPrefix(f.path, "status."), "[]", "[0]")
		if got := sentences(t, err); tooLarge == "" || !strings.Contains(got, path) {
			t.Errorf("%s: %s is answered with: %s", f.path, tooLarge, got)
		}
	}
	if tried < 12 {
		t.Errorf("only %d integers were found", tried)
	}
}

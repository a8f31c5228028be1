package api

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// ruleCase is a rule of the custom resource definition, at work.
type ruleCase struct {
	// rule is the path of the field and the name of its bound, as in "spec.gpuCount minimum".
	// Empty, it is the rule whose message ends says.
	rule string
	// refused breaks this rule and no other.
	refused string
	// says is all that the user is told.
	says string
	// accepted is next to refused, on the other side of the rule.
	accepted string
}

// covers tells whether this is a case of a rule, by the name that rulesOf gives it.
func (c ruleCase) covers(rule string) bool {
	return c.rule == rule || c.rule == "" && strings.HasSuffix(c.says, ": "+rule)
}

func (c ruleCase) name() string {
	if c.rule != "" {
		return c.rule
	}
	_, message, _ := strings.Cut(c.says, "Invalid value: ")
	return message
}

// long is a text of so many letters.
func long(letters int) string { return strings.Repeat("x", letters) }

// TestSpecRules creates workloads that a user would write.
func TestSpecRules(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	create := func(t *testing.T, text string) error {
		t.Helper()
		u := workload(t, space, text)
		err := c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil {
			// What the server lets in and Go cannot read would stop whoever lists workloads.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &gpuv1alpha1.GPUWorkload{}); err != nil {
				t.Errorf("the Go type cannot hold %s: %v", text, err)
			}
		}
		return err
	}
	check(t, slices.Concat(specCases(), gpuCases(), templateCases()), create)
}

// TestStatusRules writes statuses that a controller could.
func TestStatusRules(t *testing.T) {
	c := cluster(t)
	u := create(t, c, namespace(t, c), `{spec: {modelName: m}}`)
	update := func(t *testing.T, text string) error {
		t.Helper()
		changed := u.DeepCopy()
		set(t, changed, text)
		err := c.Status().Update(t.Context(), changed, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(changed.Object, &gpuv1alpha1.GPUWorkload{}); err != nil {
				t.Errorf("the Go type cannot hold %s: %v", text, err)
			}
		}
		return err
	}
	check(t, statusCases(), update)
}

func check(t *testing.T, cases []ruleCase, write func(*testing.T, string) error) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name(), func(t *testing.T) {
			if got := sentences(t, write(t, c.refused)); got != c.says {
				t.Errorf("refusing %s\n  got:  %s\n  want: %s", c.refused, got, c.says)
			}
			if err := write(t, c.accepted); err != nil {
				t.Errorf("accepting %s: %v", c.accepted, err)
			}
		})
	}
}

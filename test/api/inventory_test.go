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

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// TestInventoryRules writes statuses that an agent could.
func TestInventoryRules(t *testing.T) {
	c := cluster(t)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gpuv1alpha1.GroupVersion.WithKind("GPUNode"))
	u.SetName("status-rules")
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	check(t, inventoryCases(), func(t *testing.T, text string) error {
		t.Helper()
		changed := u.DeepCopy()
		set(t, changed, text)
		err := c.Status().Update(t.Context(), changed, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(changed.Object, &gpuv1alpha1.GPUNode{}); err != nil {
				t.Errorf("the Go type cannot hold %s: %v", text, err)
			}
		}
		return err
	})
}

func TestEveryInventoryRuleHasACase(t *testing.T) {
	rules, unknown := rulesOf(definitionOf(t, "gpunodes"))
	for _, key := range unknown {
		t.Errorf("the definition has %s, a kind of bound that no case is asked for: name it in rulesOf", key)
	}
	for _, rule := range uncovered(rules, inventoryCases()) {
		t.Errorf("no case is refused by: %s", rule)
	}
	for _, c := range inventoryCases() {
		if !slices.ContainsFunc(rules, c.covers) {
			t.Errorf("there is no rule %q", c.name())
		}
	}
}

// Every field of the definition says what it is: kubectl explain shows it.
func TestEveryInventoryFieldIsDescribed(t *testing.T) {
	for _, f := range fields(definitionOf(t, "gpunodes")) {
		if text, _ := f.schema["description"].(string); text == "" && f.path != "metadata" && !strings.HasSuffix(f.path, "[]") {
			t.Errorf("%s is not described", f.path)
		}
	}
}

// gpu is an inventory of one GPU with a field.
func gpu(field, value string) string {
	return fmt.Sprintf(`{status: {gpus: [{index: 0, %s: %s}]}}`, field, value)
}

// holder is an inventory of one pod that holds GPUs.
func holder(uid, gpus string) string {
	return fmt.Sprintf(`{status: {gpus: [{index: 0}], holders: [{podUID: %s, gpus: %s}]}}`, uid, gpus)
}

// list writes so many values.
func list(n int, value func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = value(i)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func always(value string) func(int) string { return func(int) string { return value } }

// between are the cases of a number; at writes it, place is where the server says that it is.
func between(path, place string, low, high int, at func(string) string) []ruleCase {
	says := func(n int, words string, bound int) string {
		return fmt.Sprintf("status.%s: Invalid value: %d: %s in body should be %s than or equal to %d", place, n, place, words, bound)
	}
	return []ruleCase{
		{rule: "status." + path + " minimum", refused: at(fmt.Sprint(low - 1)), says: says(low-1, "greater", low), accepted: at(fmt.Sprint(low))},
		{rule: "status." + path + " maximum", refused: at(fmt.Sprint(high + 1)), says: says(high+1, "less", high), accepted: at(fmt.Sprint(high))},
	}
}

// atMost is the case of a text with a largest size.
func atMost(path, place string, longest int, at func(string) string) ruleCase {
	return ruleCase{
		rule: "status." + path + " maxLength", refused: at(long(longest + 1)), accepted: at(long(longest)),
		says: fmt.Sprintf("status.%s: Too long: may not be more than %d bytes", place, longest),
	}
}

// atMostItems is the case of a list with a largest size; at writes a list of so many.
func atMostItems(path, place string, most int, at func(int) string) ruleCase {
	return ruleCase{
		rule: "status." + path + " maxItems", refused: at(most + 1), accepted: at(most),
		says: fmt.Sprintf("status.%s: Too many: %d: must have at most %d items", place, most+1, most),
	}
}

// inventoryCases has a case for each rule of a GPUNode.
func inventoryCases() []ruleCase {
	of := func(name string) func(string) string { return func(v string) string { return gpu(name, v) } }
	cases := slices.Concat(
		between("gpus[].index", "gpus[0].index", 0, 63, func(v string) string { return `{status: {gpus: [{index: ` + v + `}]}}` }),
		between("gpus[].memoryMiB", "gpus[0].memoryMiB", 0, 1<<30, of("memoryMiB")),
		between("gpus[].numaNode", "gpus[0].numaNode", 0, 1023, of("numaNode")),
		between("gpus[].nvlinks[]", "gpus[0].nvlinks[0]", 0, 64, func(v string) string { return gpu("nvlinks", "["+v+"]") }),
		between("holders[].gpus[]", "holders[0].gpus[0]", 0, 63, func(v string) string { return holder("p", "["+v+"]") }),
		[]ruleCase{
			atMost("driverVersion", "driverVersion", 63, func(v string) string { return `{status: {driverVersion: ` + v + `}}` }),
			atMost("gpus[].uuid", "gpus[0].uuid", 96, of("uuid")),
			atMost("gpus[].product", "gpus[0].product", 63, of("product")),
			atMost("gpus[].architecture", "gpus[0].architecture", 63, of("architecture")),
			atMost("gpus[].problem", "gpus[0].problem", 256, of("problem")),
			atMost("holders[].podUID", "holders[0].podUID", 64, func(v string) string { return holder(v, "[0]") }),
			atMostItems("gpus[].nvlinks", "gpus[0].nvlinks", 64, func(n int) string { return gpu("nvlinks", list(n, always("0"))) }),
			atMostItems("gpus[].pcie", "gpus[0].pcie", 64, func(n int) string { return gpu("pcie", list(n, always("SYS"))) }),
			atMostItems("holders", "holders", 1024, func(n int) string {
				return `{status: {holders: ` + list(n, func(i int) string { return fmt.Sprintf("{podUID: p%d, gpus: [0]}", i) }) + `}}`
			}),
			{
				rule: "status.gpus map by index", refused: `{status: {gpus: [{index: 1}, {index: 1}]}}`,
				says: `status.gpus[1]: Duplicate value: {"index":1}`, accepted: `{status: {gpus: [{index: 0}, {index: 1}]}}`,
			},
			{
				rule: "status.gpus[].index required", refused: `{status: {gpus: [{uuid: a}]}}`,
				says: "status.gpus[0].index: Required value", accepted: gpu("uuid", "a"),
			},
			{
				rule: "status.gpus[].pcie[] enum", refused: gpu("pcie", "[near]"),
				says:     `status.gpus[0].pcie[0]: Unsupported value: "near": supported values: "SELF", "PIX", "PXB", "PHB", "NODE", "SYS", "unknown"`,
				accepted: gpu("pcie", "[SELF]"),
			},
			{
				rule: "status.holders map by podUID", refused: `{status: {holders: [{podUID: p, gpus: [0]}, {podUID: p, gpus: [1]}]}}`,
				says:     `status.holders[1]: Duplicate value: {"podUID":"p"}`,
				accepted: `{status: {holders: [{podUID: p, gpus: [0]}, {podUID: q, gpus: [1]}]}}`,
			},
			{
				rule: "status.holders[].gpus required", refused: `{status: {holders: [{podUID: p}]}}`,
				says: "status.holders[0].gpus: Required value", accepted: holder("p", "[0]"),
			},
			{
				rule: "status.holders[].podUID required", refused: `{status: {holders: [{gpus: [0]}]}}`,
				says: "status.holders[0].podUID: Required value", accepted: holder("p", "[0]"),
			},
			{
				rule: "status.holders[].podUID minLength", refused: holder(`""`, "[0]"),
				says:     `status.holders[0].podUID: Invalid value: "": holders[0].podUID in body should be at least 1 chars long`,
				accepted: holder("p", "[0]"),
			},
			{
				rule: "status.holders[].gpus minItems", refused: holder("p", "[]"),
				says:     "status.holders[0].gpus: Invalid value: 0: holders[0].gpus in body should have at least 1 items",
				accepted: holder("p", "[0]"),
			},
			{
				rule: "status.holders[].gpus set by <nil>", refused: holder("p", "[3, 3]"),
				says: "status.holders[0].gpus[1]: Duplicate value: 3", accepted: holder("p", "[2, 3]"),
			},
		})
	for _, c := range statusCases() {
		if strings.HasPrefix(c.rule, "status.conditions") {
			cases = append(cases, c)
		}
	}
	return cases
}

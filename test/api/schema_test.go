package api

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/config"
)

// definition is the schema of GPUWorkload as the generated manifest has it.
func definition(t *testing.T) map[string]any { return definitionOf(t, "gpuworkloads") }

// definitionOf is the schema of a kind as the generated manifest has it: a map, so that a kind
// of bound that this package has never heard of is met and not overlooked.
func definitionOf(t *testing.T, plural string) map[string]any {
	t.Helper()
	file, err := config.FS.ReadFile("crd/bases/gpu.warp.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(file, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("the definition has %d versions: each needs its cases", len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// field is a place in the schema: "spec.gpu.milli", "status.placement[].node", or "" for the
// whole object.
type field struct {
	path   string
	schema map[string]any
}

// fields lists every place of a schema. Of the pod template only the template itself: what is
// in it is Kubernetes', with hundreds of bounds of its own.
func fields(schema map[string]any) []field {
	var all []field
	var walk func(string, map[string]any)
	walk = func(path string, schema map[string]any) {
		all = append(all, field{path, schema})
		if path == "spec.template" {
			return
		}
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range sorted(properties) {
			inner, _ := properties[name].(map[string]any)
			walk(strings.TrimPrefix(path+"."+name, "."), inner)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
	}
	walk("", schema)
	return all
}

// rulesOf names every rule of a schema: a CEL rule by its message, a bound by the path of its
// field and its kind. The second list is what it cannot judge.
func rulesOf(schema map[string]any) (rules, unknown []string) {
	for _, f := range fields(schema) {
		for _, key := range sorted(f.schema) {
			value := f.schema[key]
			switch key {
			case "description", "default", "properties", "items":
			case "additionalProperties", "x-kubernetes-map-type":
				// Maps of texts, and that who applies a selector owns all of it.
			case "x-kubernetes-preserve-unknown-fields":
				// Anything is let in.
			case "type", "anyOf", "x-kubernetes-int-or-string":
				// Each field has a type. TestTypes has a wrong one for each kind.
			case "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "enum":
				rules = append(rules, f.path+" "+key)
			case "format":
				// TestIntegersThatDoNotFit tries the formats of integers, all of them.
				if format := fmt.Sprint(value); !strings.HasPrefix(format, "int") {
					rules = append(rules, f.path+" format "+format)
				}
			case "required":
				for _, name := range value.([]any) {
					rules = append(rules, strings.TrimPrefix(f.path+"."+name.(string), ".")+" required")
				}
			case "x-kubernetes-validations":
				for _, rule := range value.([]any) {
					rules = append(rules, rule.(map[string]any)["message"].(string))
				}
			case "x-kubernetes-list-type":
				if value != "atomic" {
					rules = append(rules, fmt.Sprintf("%s %s by %v", f.path, value, strings.Trim(fmt.Sprint(f.schema["x-kubernetes-list-map-keys"]), "[]")))
				}
			case "x-kubernetes-list-map-keys":
			default:
				unknown = append(unknown, f.path+" "+key)
			}
		}
	}
	return rules, unknown
}

// uncovered lists the rules for which there is no case.
func uncovered(rules []string, cases []ruleCase) []string {
	var missing []string
	for _, rule := range rules {
		if !slices.ContainsFunc(cases, func(c ruleCase) bool { return c.covers(rule) }) {
			missing = append(missing, rule)
		}
	}
	return missing
}

// allCases is every case of the package.
func allCases() []ruleCase {
	return slices.Concat(specCases(), gpuCases(), templateCases(), statusCases(), transitionCases())
}

func TestEveryRuleHasACase(t *testing.T) {
	rules, unknown := rulesOf(definition(t))
	if len(rules) < 60 {
		t.Fatalf("only %d rules were found: the definition was misread", len(rules))
	}
	t.Logf("%d rules, %d cases", len(rules), len(allCases()))
	for _, key := range unknown {
		t.Errorf("the definition has %s, a kind of bound that no case is asked for: name it in rulesOf", key)
	}
	for _, rule := range uncovered(rules, allCases()) {
		t.Errorf("no case is refused by: %s", rule)
	}
}

// TestEveryCaseHasARule finds cases whose rule is gone or misspelt: they would cover nothing.
func TestEveryCaseHasARule(t *testing.T) {
	rules, _ := rulesOf(definition(t))
	for _, c := range allCases() {
		ofKubernetes := strings.HasPrefix(c.rule, "(Kubernetes) ")
		if !ofKubernetes && !slices.ContainsFunc(rules, c.covers) {
			t.Errorf("there is no rule %q", c.name())
		}
	}
}

// TestCoverageCanFail adds rules to the definition, as somebody does who forgets their cases.
func TestCoverageCanFail(t *testing.T) {
	for _, c := range []struct {
		at, key string
		value   any
		want    string
	}{
		{"spec.priority", "x-kubernetes-validations", []any{map[string]any{"rule": "self != 'low'", "message": "low is not served"}}, "low is not served"},
		{"", "x-kubernetes-validations", []any{map[string]any{"rule": "false", "message": "closed"}}, "closed"},
		{"spec.template", "x-kubernetes-validations", []any{map[string]any{"rule": "false", "message": "no template"}}, "no template"},
		{"spec.suspend", "enum", []any{true}, "spec.suspend enum"},
		{"spec.topology", "required", []any{"required"}, "spec.topology.required required"},
		{"status.assignedNodes", "x-kubernetes-list-type", "set", "status.assignedNodes set by <nil>"},
		{"status.assignedNodes[]", "maxLength", 63, "status.assignedNodes[] maxLength"},
		{"spec.modelName", "format", "uri", "spec.modelName format uri"},
		{"spec.gpuCount", "multipleOf", 2, "spec.gpuCount multipleOf"},
	} {
		t.Run(c.want, func(t *testing.T) {
			schema := definition(t)
			all := fields(schema)
			at := slices.IndexFunc(all, func(f field) bool { return f.path == c.at })
			if at < 0 {
				t.Fatalf("there is no field %q", c.at)
			}
			all[at].schema[c.key] = c.value
			rules, unknown := rulesOf(schema)
			if missing := slices.Concat(uncovered(rules, allCases()), unknown); !slices.Equal(missing, []string{c.want}) {
				t.Errorf("missing: %q, want %q alone", missing, c.want)
			}
		})
	}
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// at returns a workload with a value at a field's path, every list on the way having one
// element.
func at(field string, value string) string {
	text := value
	for dir := strings.ReplaceAll(strings.ReplaceAll(field, "[]", "/[]"), ".", "/"); dir != "."; dir = path.Dir(dir) {
		if name := path.Base(dir); name == "[]" {
			text = "[" + text + "]"
		} else {
			text = "{" + name + ": " + text + "}"
		}
	}
	return text
}

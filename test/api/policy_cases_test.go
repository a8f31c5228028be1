package api

import (
	"fmt"
	"strings"
)

// many is a list of so many named expressions.
func many(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{name: n%d, expression: "true"}`, i)
	}
	return strings.Join(parts, ", ")
}

// bounds are the cases of a whole number from lowest to highest.
func bounds(path string, lowest, highest int) []ruleCase {
	at := func(n int) string { return at(path, fmt.Sprint(n)) }
	return []ruleCase{
		{
			rule:     path + " minimum",
			refused:  at(lowest - 1),
			says:     fmt.Sprintf("%s: Invalid value: %d: %s in body should be greater than or equal to %d", path, lowest-1, path, lowest),
			accepted: at(lowest),
		},
		{
			rule:     path + " maximum",
			refused:  at(highest + 1),
			says:     fmt.Sprintf("%s: Invalid value: %d: %s in body should be less than or equal to %d", path, highest+1, path, highest),
			accepted: at(highest),
		},
	}
}

// texts are the cases of a text that must not be empty and has a largest size.
func texts(path string, longest int) []ruleCase {
	return []ruleCase{
		{
			rule:     path + " minLength",
			refused:  at(path, `""`),
			says:     fmt.Sprintf("%s: Invalid value: \"\": %s in body should be at least 1 chars long", path, path),
			accepted: at(path, "l"),
		},
		tooLong(path, longest),
	}
}

func tooLong(path string, longest int) ruleCase {
	return ruleCase{
		rule:     path + " maxLength",
		refused:  at(path, long(longest+1)),
		says:     fmt.Sprintf("%s: Too long: may not be more than %d bytes", path, longest),
		accepted: at(path, long(longest)),
	}
}

// listed are the cases of a list of named expressions.
func listed(list string) []ruleCase {
	path := "spec." + list
	one := func(fields string) string { return fmt.Sprintf(`{spec: {%s: [{%s}]}}`, list, fields) }
	whole := one(`name: a, expression: "true"`)
	return []ruleCase{
		{
			rule:     path + " maxItems",
			refused:  fmt.Sprintf(`{spec: {%s: [%s]}}`, list, many(17)),
			says:     fmt.Sprintf("%s: Too many: 17: must have at most 16 items", path),
			accepted: fmt.Sprintf(`{spec: {%s: [%s]}}`, list, many(16)),
		},
		{
			rule:     path + " map by name",
			refused:  fmt.Sprintf(`{spec: {%s: [{name: a, expression: "true"}, {name: a, expression: "false"}]}}`, list),
			says:     path + `[1]: Duplicate value: {"name":"a"}`,
			accepted: fmt.Sprintf(`{spec: {%s: [{name: a, expression: "true"}, {name: b, expression: "true"}]}}`, list),
		},
		{rule: path + "[].name required", refused: one(`expression: "true"`), says: path + "[0].name: Required value", accepted: whole},
		{rule: path + "[].expression required", refused: one(`name: a`), says: path + "[0].expression: Required value", accepted: whole},
		{
			rule:     path + "[].name maxLength",
			refused:  one(`name: ` + long(64) + `, expression: "true"`),
			says:     path + "[0].name: Too long: may not be more than 63 bytes",
			accepted: one(`name: ` + long(63) + `, expression: "true"`),
		},
		{
			refused:  one(`name: Liquid, expression: "true"`),
			says:     path + `[0].name: Invalid value: "Liquid": name must be lower-case letters, digits and '-', with a letter or digit at both ends, for example liquid-cooled`,
			accepted: one(`name: liquid-cooled, expression: "true"`),
		},
		{
			rule:     path + "[].expression minLength",
			refused:  one(`name: a, expression: ""`),
			says:     fmt.Sprintf(`%s[0].expression: Invalid value: "": %s[0].expression in body should be at least 1 chars long`, path, path),
			accepted: whole,
		},
		{
			rule:     path + "[].expression maxLength",
			refused:  one(`name: a, expression: ` + long(2049)),
			says:     path + "[0].expression: Too long: may not be more than 2048 bytes",
			accepted: one(`name: a, expression: ` + long(2048)),
		},
	}
}

// selecting are the cases of a selector.
func selecting(field string) []ruleCase {
	path := "spec." + field
	one := func(fields string) string {
		return fmt.Sprintf(`{spec: {%s: {matchExpressions: [{%s}]}}}`, field, fields)
	}
	whole := one(`key: team, operator: In, values: [a]`)
	return []ruleCase{
		{rule: path + ".matchExpressions[].key required", refused: one(`operator: Exists`), says: path + ".matchExpressions[0].key: Required value", accepted: whole},
		{rule: path + ".matchExpressions[].operator required", refused: one(`key: team`), says: path + ".matchExpressions[0].operator: Required value", accepted: whole},
	}
}

// policySpecCases has a case for each rule of a policy's spec. Whether an expression compiles is
// not for the server to know: that is told in the status.
func policySpecCases() []ruleCase {
	cases := []ruleCase{
		{
			rule:     `spec required`,
			refused:  `{}`,
			says:     `spec: Required value`,
			accepted: `{spec: {}}`,
		},
		tooLong("spec.className", 63),
		{
			refused:  `{spec: {className: A}}`,
			says:     `spec.className: Invalid value: "A": className must be lower-case letters, digits and '-', with a letter or digit at both ends: leave it out for the installation without a class`,
			accepted: `{spec: {className: a}}`,
		},
		tooLong("spec.defaults.schedulingStrategy", 63),
		{
			refused:  `{spec: {defaults: {schedulingStrategy: bin pack}}}`,
			says:     `spec.defaults.schedulingStrategy: Invalid value: "bin pack": schedulingStrategy must be the name of a strategy, for example leastLoaded: a letter, then letters, digits, '-' and '.'`,
			accepted: `{spec: {defaults: {schedulingStrategy: binPack}}}`,
		},
		{
			refused:  `{spec: {weights: {node: {topology: 0, resources: 0, balance: 0}}}}`,
			says:     `spec.weights.node: Invalid value: weights.node must have a weight above 0, or every node scores the same: leave it out for 40, 35, 25 and 0`,
			accepted: `{spec: {weights: {node: {topology: 0, resources: 0, balance: 0, hint: 1}}}}`,
		},
		{
			refused:  `{spec: {weights: {domain: {availability: 0, alignment: 0, utilization: 0, history: 0}}}}`,
			says:     `spec.weights.domain: Invalid value: weights.domain must have a weight above 0, or every domain scores the same: leave it out for 40, 30, 20 and 10`,
			accepted: `{spec: {weights: {domain: {availability: 0, alignment: 0, utilization: 0}}}}`,
		},
		{
			rule:     `spec.filters[].message maxLength`,
			refused:  `{spec: {filters: [{name: a, expression: "true", message: ` + long(257) + `}]}}`,
			says:     `spec.filters[0].message: Too long: may not be more than 256 bytes`,
			accepted: `{spec: {filters: [{name: a, expression: "true", message: ` + long(256) + `}]}}`,
		},
		{
			refused:  `{spec: {filters: [{name: a, expression: "true", message: "two\nlines"}]}}`,
			says:     `spec.filters[0].message: Invalid value: "two\nlines": message must be one line of text`,
			accepted: `{spec: {filters: [{name: a, expression: "true", message: "Größe: one line"}]}}`,
		},
	}
	for _, weight := range []string{"node.topology", "node.resources", "node.balance", "node.hint", "domain.availability", "domain.alignment", "domain.utilization", "domain.history"} {
		cases = append(cases, bounds("spec.weights."+weight, 0, 1000)...)
	}
	cases = append(cases, bounds("spec.priority", -1_000_000, 1_000_000)...)
	cases = append(cases, texts("spec.defaults.topology.required", 316)...)
	cases = append(cases, texts("spec.defaults.topology.preferred", 316)...)
	cases = append(cases, listed("filters")...)
	cases = append(cases, listed("scores")...)
	cases = append(cases, selecting("namespaceSelector")...)
	cases = append(cases, selecting("workloadSelector")...)
	return append(cases,
		ruleCase{
			rule:     `spec.scores[].weight minimum`,
			refused:  `{spec: {scores: [{name: a, expression: "1", weight: 0}]}}`,
			says:     `spec.scores[0].weight: Invalid value: 0: spec.scores[0].weight in body should be greater than or equal to 1`,
			accepted: `{spec: {scores: [{name: a, expression: "1", weight: 1}]}}`,
		},
		ruleCase{
			rule:     `spec.scores[].weight maximum`,
			refused:  `{spec: {scores: [{name: a, expression: "1", weight: 1001}]}}`,
			says:     `spec.scores[0].weight: Invalid value: 1001: spec.scores[0].weight in body should be less than or equal to 1000`,
			accepted: `{spec: {scores: [{name: a, expression: "1", weight: 1000}]}}`,
		},
	)
}

// policyStatusCases has a case for each rule of a policy's status; of its conditions those of
// every kind's.
func policyStatusCases() []ruleCase {
	cases := []ruleCase{{
		rule:     `status.inForce.generation required`,
		refused:  `{status: {inForce: {spec: {}}}}`,
		says:     `status.inForce.generation: Required value`,
		accepted: `{status: {inForce: {generation: 1}}}`,
	}}
	for _, c := range statusCases() {
		if strings.Contains(c.rule, "status.conditions") {
			cases = append(cases, c)
		}
	}
	return cases
}

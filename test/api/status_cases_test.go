package api

import "fmt"

// condition is a status with one condition that is as it should be but for one field, or with
// a field left out where the value is empty.
func condition(field, value string) string {
	fields := map[string]string{
		"type":               "Planned",
		"status":             `"True"`,
		"reason":             "Planned",
		"message":            "planned",
		"lastTransitionTime": `"2026-01-01T00:00:00Z"`,
	}
	fields[field] = value
	text := ""
	for _, f := range []string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"} {
		if fields[f] != "" {
			text += fmt.Sprintf("%s: %s, ", f, fields[f])
		}
	}
	return `{status: {conditions: [{` + text + `}]}}`
}

// statusCases has a case for each rule of status. The sentences are for who writes a
// controller; some name the field from status on, as the server checks a status by itself.
func statusCases() []ruleCase {
	cases := []ruleCase{
		{
			rule:     `status.phase enum`,
			refused:  `{status: {phase: Waiting}}`,
			says:     `status.phase: Unsupported value: "Waiting": supported values: "Pending", "Scheduling", "Scheduled", "Running", "Failed", "Succeeded"`,
			accepted: `{status: {phase: Scheduled}}`,
		},
		{
			rule:     `status.placement[].node required`,
			refused:  `{status: {placement: [{indexes: "0"}]}}`,
			says:     `status.placement[0].node: Required value`,
			accepted: `{status: {placement: [{node: a, indexes: "0"}]}}`,
		},
		{
			rule:     `status.placement[].indexes required`,
			refused:  `{status: {placement: [{node: a}]}}`,
			says:     `status.placement[0].indexes: Required value`,
			accepted: `{status: {placement: [{node: a, indexes: 0-3}]}}`,
		},
		{
			rule:     `status.preempting[].namespace required`,
			refused:  `{status: {preempting: [{name: a, uid: u, attempt: 0}]}}`,
			says:     `status.preempting[0].namespace: Required value`,
			accepted: `{status: {preempting: [{namespace: t, name: a, uid: u, attempt: 0}]}}`,
		},
		{
			rule:     `status.preempting[].name required`,
			refused:  `{status: {preempting: [{namespace: t, uid: u, attempt: 0}]}}`,
			says:     `status.preempting[0].name: Required value`,
			accepted: `{status: {preempting: [{namespace: t, name: a, uid: u, attempt: 0}]}}`,
		},
		{
			rule:     `status.preempting[].uid required`,
			refused:  `{status: {preempting: [{namespace: t, name: a, attempt: 0}]}}`,
			says:     `status.preempting[0].uid: Required value`,
			accepted: `{status: {preempting: [{namespace: t, name: a, uid: u, attempt: 0}]}}`,
		},
		{
			rule:     `status.preempting[].attempt required`,
			refused:  `{status: {preempting: [{namespace: t, name: a, uid: u}]}}`,
			says:     `status.preempting[0].attempt: Required value`,
			accepted: `{status: {preempting: [{namespace: t, name: a, uid: u, attempt: 0}]}}`,
		},
		{
			rule: `status.conditions map by type`,
			refused: `{status: {conditions: [
				{type: Planned, status: "True", reason: A, message: a, lastTransitionTime: "2026-01-01T00:00:00Z"},
				{type: Planned, status: "False", reason: B, message: b, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			says: `status.conditions[1]: Duplicate value: {"type":"Planned"}`,
			accepted: `{status: {conditions: [
				{type: Planned, status: "True", reason: A, message: a, lastTransitionTime: "2026-01-01T00:00:00Z"},
				{type: Scheduled, status: "False", reason: B, message: b, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
		},
		{
			rule:     `status.conditions[].type maxLength`,
			refused:  condition("type", long(317)),
			says:     `status.conditions[0].type: Too long: may not be more than 316 bytes`,
			accepted: condition("type", long(316)),
		},
		{
			rule:     `status.conditions[].type pattern`,
			refused:  condition("type", "in progress"),
			says:     `status.conditions[0].type: Invalid value: "in progress": conditions[0].type in body should match '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$'`,
			accepted: condition("type", "example.com/InProgress"),
		},
		{
			rule:     `status.conditions[].status enum`,
			refused:  condition("status", "maybe"),
			says:     `status.conditions[0].status: Unsupported value: "maybe": supported values: "True", "False", "Unknown"`,
			accepted: condition("status", "Unknown"),
		},
		{
			rule:     `status.conditions[].reason minLength`,
			refused:  condition("reason", `""`),
			says:     `status.conditions[0].reason: Invalid value: "": conditions[0].reason in body should be at least 1 chars long`,
			accepted: condition("reason", "A"),
		},
		{
			rule:     `status.conditions[].reason maxLength`,
			refused:  condition("reason", long(1025)),
			says:     `status.conditions[0].reason: Too long: may not be more than 1024 bytes`,
			accepted: condition("reason", long(1024)),
		},
		{
			rule:     `status.conditions[].reason pattern`,
			refused:  condition("reason", "no room"),
			says:     `status.conditions[0].reason: Invalid value: "no room": conditions[0].reason in body should match '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'`,
			accepted: condition("reason", "NoRoom"),
		},
		{
			rule:     `status.conditions[].message maxLength`,
			refused:  condition("message", long(32769)),
			says:     `status.conditions[0].message: Too long: may not be more than 32768 bytes`,
			accepted: condition("message", long(32768)),
		},
		{
			rule:     `status.conditions[].observedGeneration minimum`,
			refused:  condition("observedGeneration", "-1"),
			says:     `status.conditions[0].observedGeneration: Invalid value: -1: conditions[0].observedGeneration in body should be greater than or equal to 0`,
			accepted: condition("observedGeneration", "0"),
		},
		{
			rule:     `status.conditions[].lastTransitionTime format date-time`,
			refused:  condition("lastTransitionTime", "now"),
			says:     `status.conditions[0].lastTransitionTime: Invalid value: "now": conditions[0].lastTransitionTime in body must be of type date-time: "now"`,
			accepted: condition("lastTransitionTime", `"2026-01-01T00:00:00.5+01:00"`),
		},
	}
	for _, field := range []string{"type", "status", "reason", "message", "lastTransitionTime"} {
		cases = append(cases, ruleCase{
			rule:     `status.conditions[].` + field + ` required`,
			refused:  condition(field, ""),
			says:     `status.conditions[0].` + field + `: Required value`,
			accepted: condition("observedGeneration", "1"),
		})
	}
	for _, field := range []string{"nextRetryTime", "lastScheduleTime", "startTime", "completionTime"} {
		cases = append(cases, ruleCase{
			rule:     `status.` + field + ` format date-time`,
			refused:  `{status: {` + field + `: tomorrow}}`,
			says:     `status.` + field + `: Invalid value: "tomorrow": ` + field + ` in body must be of type date-time: "tomorrow"`,
			accepted: `{status: {` + field + `: "2026-01-01T00:00:00Z"}}`,
		})
	}
	return cases
}

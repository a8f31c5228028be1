package api

// specCases has a case for each rule of spec and metadata that holds for a new workload.
func specCases() []ruleCase {
	return []ruleCase{
		{
			refused:  `{metadata: {name: ` + long(64) + `}, spec: {modelName: m}}`,
			says:     `<nil>: Invalid value: metadata.name must have at most 63 characters, because it becomes a label value on the pods: choose a shorter name`,
			accepted: `{metadata: {name: ` + long(63) + `}, spec: {modelName: m}}`,
		},
		{
			rule:     `spec required`,
			refused:  `{}`,
			says:     `spec: Required value`,
			accepted: `{spec: {modelName: m}}`,
		},

		// modelName
		{
			rule:     `spec.modelName required`,
			refused:  `{spec: {gpuCount: 1}}`,
			says:     `spec.modelName: Required value`,
			accepted: `{spec: {modelName: m}}`,
		},
		{
			rule:     `spec.modelName minLength`,
			refused:  `{spec: {modelName: ""}}`,
			says:     `spec.modelName: Invalid value: "": spec.modelName in body should be at least 1 chars long`,
			accepted: `{spec: {modelName: m}}`,
		},
		{
			rule:     `spec.modelName maxLength`,
			refused:  `{spec: {modelName: ` + long(254) + `}}`,
			says:     `spec.modelName: Too long: may not be more than 253 bytes`,
			accepted: `{spec: {modelName: ` + long(253) + `}}`,
		},
		{
			refused:  `{spec: {modelName: "  "}}`,
			says:     `spec.modelName: Invalid value: "  ": modelName must be one line of text without spaces around it, for example llama2-70b`,
			accepted: `{spec: {modelName: "Llama 2 (70B), fine-tuned: größer"}}`,
		},
		{
			refused:  `{spec: {modelName: "llama2\n"}}`,
			says:     `spec.modelName: Invalid value: "llama2\n": modelName must be one line of text without spaces around it, for example llama2-70b`,
			accepted: `{spec: {modelName: meta-llama/Llama-2-70b-hf}}`,
		},

		// preemption
		{
			rule:     `spec.preemptionPolicy enum`,
			refused:  `{spec: {modelName: m, preemptionPolicy: Always}}`,
			says:     `spec.preemptionPolicy: Unsupported value: "Always": supported values: "Never", "PreemptLowerPriority"`,
			accepted: `{spec: {modelName: m, preemptionPolicy: PreemptLowerPriority}}`,
		},

		// expectedDuration
		{
			refused:  `{spec: {modelName: m, expectedDuration: 1d}}`,
			says:     `spec.expectedDuration: Invalid value: "1d": expectedDuration must be at least 1s, in hours, minutes and seconds: write it like 36h or 1h30m`,
			accepted: `{spec: {modelName: m, expectedDuration: 1h30m}}`,
		},
		{
			refused:  `{spec: {modelName: m, expectedDuration: 0s}}`,
			says:     `spec.expectedDuration: Invalid value: "0s": expectedDuration must be at least 1s, in hours, minutes and seconds: write it like 36h or 1h30m`,
			accepted: `{spec: {modelName: m, expectedDuration: 99999h}}`,
		},
		{
			rule:     `spec.expectedDuration maxLength`,
			refused:  `{spec: {modelName: m, expectedDuration: ` + long(33) + `}}`,
			says:     `spec.expectedDuration: Too long: may not be more than 32 bytes`,
			accepted: `{spec: {modelName: m, expectedDuration: 36h}}`,
		},

		// gpuCount, parallelism, minParallelism
		{
			rule:     `spec.gpuCount minimum`,
			refused:  `{spec: {modelName: m, gpuCount: 0}}`,
			says:     `spec.gpuCount: Invalid value: 0: spec.gpuCount in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, gpuCount: 1}}`,
		},
		{
			rule:     `spec.gpuCount minimum`,
			refused:  `{spec: {modelName: m, gpuCount: -1}}`,
			says:     `spec.gpuCount: Invalid value: -1: spec.gpuCount in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, gpuCount: 8}}`,
		},
		{
			rule:     `spec.gpuCount maximum`,
			refused:  `{spec: {modelName: m, gpuCount: 1025}}`,
			says:     `spec.gpuCount: Invalid value: 1025: spec.gpuCount in body should be less than or equal to 1024`,
			accepted: `{spec: {modelName: m, gpuCount: 1024}}`,
		},
		{
			rule:     `spec.parallelism minimum`,
			refused:  `{spec: {modelName: m, parallelism: 0}}`,
			says:     `spec.parallelism: Invalid value: 0: spec.parallelism in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, parallelism: 1}}`,
		},
		{
			rule:     `spec.parallelism maximum`,
			refused:  `{spec: {modelName: m, parallelism: 10001}}`,
			says:     `spec.parallelism: Invalid value: 10001: spec.parallelism in body should be less than or equal to 10000`,
			accepted: `{spec: {modelName: m, parallelism: 10000}}`,
		},
		{
			rule:     `spec.minParallelism minimum`,
			refused:  `{spec: {modelName: m, parallelism: 4, minParallelism: 0}}`,
			says:     `spec.minParallelism: Invalid value: 0: spec.minParallelism in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, parallelism: 4, minParallelism: 1}}`,
		},
		{
			refused:  `{spec: {modelName: m, parallelism: 4, minParallelism: 5}}`,
			says:     `spec.minParallelism: Invalid value: minParallelism must not be larger than parallelism: lower minParallelism or raise parallelism`,
			accepted: `{spec: {modelName: m, parallelism: 4, minParallelism: 4}}`,
		},

		// priority, schedulingStrategy, restartPolicy
		{
			rule:     `spec.priority enum`,
			refused:  `{spec: {modelName: m, priority: urgent}}`,
			says:     `spec.priority: Unsupported value: "urgent": supported values: "low", "medium", "high", "critical"`,
			accepted: `{spec: {modelName: m, priority: critical}}`,
		},
		{
			refused:  `{spec: {modelName: m, schedulingStrategy: least loaded}}`,
			says:     `spec.schedulingStrategy: Invalid value: "least loaded": schedulingStrategy must be the name of a strategy, for example leastLoaded: a letter, then letters, digits, '-' and '.'`,
			accepted: `{spec: {modelName: m, schedulingStrategy: acme.com-cheapest2}}`,
		},
		{
			refused:  `{spec: {modelName: m, schedulingStrategy: ""}}`,
			says:     `spec.schedulingStrategy: Invalid value: "": schedulingStrategy must be the name of a strategy, for example leastLoaded: a letter, then letters, digits, '-' and '.'`,
			accepted: `{spec: {modelName: m, schedulingStrategy: random}}`,
		},
		{
			rule:     `spec.schedulingStrategy maxLength`,
			refused:  `{spec: {modelName: m, schedulingStrategy: ` + long(64) + `}}`,
			says:     `spec.schedulingStrategy: Too long: may not be more than 63 bytes`,
			accepted: `{spec: {modelName: m, schedulingStrategy: ` + long(63) + `}}`,
		},
		{
			rule:     `spec.restartPolicy enum`,
			refused:  `{spec: {modelName: m, restartPolicy: Never}}`,
			says:     `spec.restartPolicy: Unsupported value: "Never": supported values: "gang", "member"`,
			accepted: `{spec: {modelName: m, restartPolicy: member}}`,
		},

		// retryPolicy
		{
			rule:     `spec.retryPolicy.maxRetries minimum`,
			refused:  `{spec: {modelName: m, retryPolicy: {maxRetries: -1}}}`,
			says:     `spec.retryPolicy.maxRetries: Invalid value: -1: spec.retryPolicy.maxRetries in body should be greater than or equal to 0`,
			accepted: `{spec: {modelName: m, retryPolicy: {maxRetries: 0}}}`,
		},
		{
			rule:     `spec.retryPolicy.maxRetries maximum`,
			refused:  `{spec: {modelName: m, retryPolicy: {maxRetries: 1001}}}`,
			says:     `spec.retryPolicy.maxRetries: Invalid value: 1001: spec.retryPolicy.maxRetries in body should be less than or equal to 1000`,
			accepted: `{spec: {modelName: m, retryPolicy: {maxRetries: 1000}}}`,
		},
		{
			rule:     `spec.retryPolicy.backoffSeconds minimum`,
			refused:  `{spec: {modelName: m, retryPolicy: {backoffSeconds: 0}}}`,
			says:     `spec.retryPolicy.backoffSeconds: Invalid value: 0: spec.retryPolicy.backoffSeconds in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, retryPolicy: {backoffSeconds: 1}}}`,
		},
		{
			rule:     `spec.retryPolicy.backoffSeconds maximum`,
			refused:  `{spec: {modelName: m, retryPolicy: {backoffSeconds: 301}}}`,
			says:     `spec.retryPolicy.backoffSeconds: Invalid value: 301: spec.retryPolicy.backoffSeconds in body should be less than or equal to 300`,
			accepted: `{spec: {modelName: m, retryPolicy: {backoffSeconds: 300}}}`,
		},

		// className, schedulerName, priorityClassName
		{
			refused:  `{spec: {modelName: m, className: Team_A}}`,
			says:     `spec.className: Invalid value: "Team_A": className must be lower-case letters, digits and '-', with a letter or digit at both ends: leave it out for the installation without a class`,
			accepted: `{spec: {modelName: m, className: team-a}}`,
		},
		{
			refused:  `{spec: {modelName: m, className: ""}}`,
			says:     `spec.className: Invalid value: "": className must be lower-case letters, digits and '-', with a letter or digit at both ends: leave it out for the installation without a class`,
			accepted: `{spec: {modelName: m, className: "1"}}`,
		},
		{
			rule:     `spec.className maxLength`,
			refused:  `{spec: {modelName: m, className: ` + long(64) + `}}`,
			says:     `spec.className: Too long: may not be more than 63 bytes`,
			accepted: `{spec: {modelName: m, className: ` + long(63) + `}}`,
		},
		{
			refused:  `{spec: {modelName: m, schedulerName: My Scheduler}}`,
			says:     `spec.schedulerName: Invalid value: "My Scheduler": schedulerName must be the name of a scheduler, in lower-case letters, digits, '-' and '.': leave it out for the default one`,
			accepted: `{spec: {modelName: m, schedulerName: bin-packing.example.com}}`,
		},
		{
			rule:     `spec.schedulerName maxLength`,
			refused:  `{spec: {modelName: m, schedulerName: ` + long(254) + `}}`,
			says:     `spec.schedulerName: Too long: may not be more than 253 bytes`,
			accepted: `{spec: {modelName: m, schedulerName: ` + long(253) + `}}`,
		},
		{
			refused:  `{spec: {modelName: m, priorityClassName: High}}`,
			says:     `spec.priorityClassName: Invalid value: "High": priorityClassName must be the name of a PriorityClass, in lower-case letters, digits, '-' and '.': leave it out for none`,
			accepted: `{spec: {modelName: m, priorityClassName: system-cluster-critical}}`,
		},
		{
			rule:     `spec.priorityClassName maxLength`,
			refused:  `{spec: {modelName: m, priorityClassName: ` + long(254) + `}}`,
			says:     `spec.priorityClassName: Too long: may not be more than 253 bytes`,
			accepted: `{spec: {modelName: m, priorityClassName: ` + long(253) + `}}`,
		},

		// ttlSecondsAfterFinished, activeDeadlineSeconds
		{
			rule:     `spec.ttlSecondsAfterFinished minimum`,
			refused:  `{spec: {modelName: m, ttlSecondsAfterFinished: -1}}`,
			says:     `spec.ttlSecondsAfterFinished: Invalid value: -1: spec.ttlSecondsAfterFinished in body should be greater than or equal to 0`,
			accepted: `{spec: {modelName: m, ttlSecondsAfterFinished: 0}}`,
		},
		{
			rule:     `spec.activeDeadlineSeconds minimum`,
			refused:  `{spec: {modelName: m, activeDeadlineSeconds: 0}}`,
			says:     `spec.activeDeadlineSeconds: Invalid value: 0: spec.activeDeadlineSeconds in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, activeDeadlineSeconds: 1}}`,
		},
		{
			// A time.Duration ends at 9223372036 s; past it, the deadline would be in the past.
			rule:     `spec.activeDeadlineSeconds maximum`,
			refused:  `{spec: {modelName: m, activeDeadlineSeconds: 9223372037}}`,
			says:     `spec.activeDeadlineSeconds: Invalid value: 9223372037: spec.activeDeadlineSeconds in body should be less than or equal to 2147483647`,
			accepted: `{spec: {modelName: m, activeDeadlineSeconds: 2147483647}}`,
		},
	}
}

package api

// templateCases has a case for each rule of ours about the pod template. Its own rules are
// Kubernetes'; a few show that they hold.
func templateCases() []ruleCase {
	return []ruleCase{
		{
			refused:  `{spec: {modelName: m, template: {metadata: {labels: {team: a}}}}}`,
			says:     `spec.template.spec: Invalid value: template.spec is missing: write the pod to run there, or leave template out to run the default image`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}]}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, template: {spec: {containers: []}}}}`,
			says:     `spec.template.spec.containers: Invalid value: template.spec.containers must have at least one container: add one, or leave template out to run the default image`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}]}}}}`,
		},
		{
			refused: `{spec: {modelName: m, template: {spec: {containers: [
				{name: one, resources: {limits: {nvidia.com/gpu: 1}}}, {name: two, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`,
			says: `spec.template.spec.containers: Invalid value: template.spec.containers must have at most one container with a limit of GPUs, because gpuCount is for one: take the limit out of the others`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [
				{name: one, resources: {limits: {nvidia.com/gpu: 1}}}, {name: two, resources: {limits: {cpu: 1}}}, {name: three}]}}}}`,
		},
		{
			refused: `{spec: {modelName: m, gpu: {resourceName: amd.com/gpu}, template: {spec: {containers: [
				{name: one, resources: {limits: {amd.com/gpu: "1"}}}, {name: two, resources: {limits: {amd.com/gpu: "1"}}}]}}}}`,
			says: `spec.template.spec.containers: Invalid value: template.spec.containers must have at most one container with a limit of GPUs, because gpuCount is for one: take the limit out of the others`,
			accepted: `{spec: {modelName: m, gpu: {resourceName: amd.com/gpu}, template: {spec: {containers: [
				{name: one, resources: {requests: {cpu: "1"}, limits: {amd.com/gpu: "1"}}}]}}}}`,
		},
		{
			rule:     `(Kubernetes) spec.template.spec.containers required`,
			refused:  `{spec: {modelName: m, template: {spec: {restartPolicy: Never}}}}`,
			says:     `spec.template.spec.containers: Required value`,
			accepted: `{spec: {modelName: m, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}}`,
		},
		{
			rule:     `(Kubernetes) spec.template.spec.containers[].name required`,
			refused:  `{spec: {modelName: m, template: {spec: {containers: [{image: i}]}}}}`,
			says:     `spec.template.spec.containers[0].name: Required value`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main}]}}}}`,
		},
		{
			rule:     `(Kubernetes) spec.template.spec.containers list map`,
			refused:  `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}, {name: main, image: i}]}}}}`,
			says:     `spec.template.spec.containers[1]: Duplicate value: {"name":"main"}`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}, {name: sidecar, image: i}]}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}], restartPolicy: Always}}}}`,
			says:     `spec.template.spec.restartPolicy: Invalid value: template.spec.restartPolicy must be Never or OnFailure: a GPUWorkload runs to completion`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}], restartPolicy: OnFailure}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}], nodeName: node-1}}}}`,
			says:     `spec.template.spec.nodeName: Invalid value: template.spec.nodeName must be empty: placing the pods is what the controller is for; use template.spec.nodeSelector to narrow the choice`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}], nodeSelector: {kubernetes.io/hostname: node-1}}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, schedulerName: one, template: {spec: {containers: [{name: main, image: i}], schedulerName: two}}}}`,
			says:     `spec.template.spec.schedulerName: Invalid value: template.spec.schedulerName differs from schedulerName: set only schedulerName`,
			accepted: `{spec: {modelName: m, schedulerName: one, template: {spec: {containers: [{name: main, image: i}], schedulerName: one}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, priorityClassName: one, template: {spec: {containers: [{name: main, image: i}], priorityClassName: two}}}}`,
			says:     `spec.template.spec.priorityClassName: Invalid value: template.spec.priorityClassName differs from priorityClassName: set only priorityClassName`,
			accepted: `{spec: {modelName: m, template: {spec: {containers: [{name: main, image: i}], priorityClassName: two}}}}`,
		},
	}
}

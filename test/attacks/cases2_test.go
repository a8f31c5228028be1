package attacks

func priorities() []attack {
	const notForEverybody = "is not for everybody"
	dave := person("dave")
	return []attack{
		{
			name:   "13 a pod as important as the cluster itself",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: system-node-critical}}`},
			want:   "PriorityClass system-node-critical " + notForEverybody,
			twins: []request{
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: silver}}`},
				{as: dave, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: system-node-critical}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: foreign}, spec: {priorityClassName: system-node-critical}}`},
			},
		},
		{
			name:   "13 a PriorityClass that the installation restricts",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: gold}}`},
			want:   "PriorityClass gold " + notForEverybody,
			twins:  []request{{as: dave, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {priorityClassName: gold}}`}},
		},
		{
			name:   "13 by a Deployment",
			attack: request{as: alice, create: `{kind: Deployment, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: system-cluster-critical}}}}`},
			want:   notForEverybody,
			twins: []request{
				{as: alice, create: `{kind: Deployment, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: silver}}}}`},
				{as: alice, patch: `{kind: Deployment, metadata: {namespace: team-a, name: old, labels: {example.com/x: z}}}`},
			},
		},
		{
			name:   "13 by a Job",
			attack: request{as: alice, create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: gold}}}}`},
			want:   notForEverybody,
			twins: []request{
				{as: dave, create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: gold}}}}`},
				{as: manager(), create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: gold}}}}`}, // Checked on the workload.
			},
		},
		{
			name:   "13 by a workload",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {priorityClassName: gold}}`},
			want:   notForEverybody,
			twins:  []request{{as: dave, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {priorityClassName: gold}}`}},
		},
		{
			name:   "13 by the template of a workload",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: system-node-critical, containers: [{name: c, image: i}]}}}}`},
			want:   notForEverybody,
			twins:  []request{{as: dave, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {priorityClassName: system-node-critical, containers: [{name: c, image: i}]}}}}`}},
		},
		{
			name:   "13 a workload is critical",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {priority: critical}}`},
			want:   "spec.priority critical goes before everybody else",
			twins: []request{
				{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {priority: high}}`},
				{as: dave, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {priority: critical}}`},
				{as: alice, patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: urgent}, spec: {suspend: false}}`},
			},
		},
		{
			name:   "13 becomes critical",
			attack: request{as: alice, patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: w}, spec: {priority: critical}}`},
			want:   "spec.priority critical goes before everybody else",
			twins:  []request{{as: alice, patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: urgent}, spec: {priority: low}}`}},
		},
	}
}

func devices() []attack {
	const past = "takes GPUs past the scheduler"
	return []attack{
		{
			name:   "15 GPUs by the environment",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}`},
			want:   past,
			twins: []request{
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]}]}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, env: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]}]}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: foreign}, spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}`},
			},
		},
		{
			name:   "15 from a field that nobody sees now",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`},
			want:   past,
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i, env: [{name: X, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}`}},
		},
		{
			name:   "15 in a container that is added later",
			attack: request{as: person("eve"), patch: `{kind: Pod, subresource: ephemeralcontainers, metadata: {namespace: team-a, name: running}, spec: {ephemeralContainers: [{name: e, image: i, terminationMessagePolicy: File, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}`},
			want:   past,
			twins:  []request{{as: person("eve"), patch: `{kind: Pod, subresource: ephemeralcontainers, metadata: {namespace: team-a, name: running}, spec: {ephemeralContainers: [{name: e, image: i, terminationMessagePolicy: File}]}}`}},
		},
		{
			name:   "15 by the mount that stands for it",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /var/run/nvidia-container-devices/all}]}]}}`},
			want:   past,
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /var/run/data}]}]}}`}},
		},
		{
			name:   "15 by a Job",
			attack: request{as: alice, create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: "0"}]}]}}}}`},
			want:   past,
			twins: []request{
				{as: alice, create: `{kind: Job, metadata: {namespace: team-a}}`},
				{as: alice, create: `{kind: Deployment, metadata: {namespace: team-a}}`},
				{as: alice, create: `{kind: CronJob, metadata: {namespace: team-a}}`},
			},
		},
		{
			name:   "15 by a workload",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}}}`},
			want:   past,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: foreign}, spec: {template: {spec: {containers: [{name: c, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}}}`}},
		},
	}
}

func namespaces() []attack {
	const says = "says whether gpu-orchestrator manages"
	return []attack{
		{
			name:   "23 the owner of a namespace leaves management",
			attack: request{as: person("olga"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: null}}}`},
			want:   says,
			twins: []request{
				{as: person("olga"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {example.com/x: z}}}`},
				{as: person("mona"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: null}}}`},
				{as: admin, patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: null}}}`},
			},
		},
		{
			name:   "23 by another value",
			attack: request{as: person("olga"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: "false"}}}`},
			want:   says,
			twins:  []request{{as: person("mona"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: "false"}}}`}},
		},
		{
			name:   "23 or enters it",
			attack: request{as: person("olga"), patch: `{kind: Namespace, metadata: {name: foreign, labels: {gpu.warp.dev/managed: "true"}}}`},
			want:   says,
			twins:  []request{{as: person("mona"), patch: `{kind: Namespace, metadata: {name: foreign, labels: {gpu.warp.dev/managed: "true"}}}`}},
		},
		{
			name:   "23 with a new one",
			attack: request{as: person("olga"), create: `{kind: Namespace, metadata: {name: new, labels: {gpu.warp.dev/managed: "true"}}}`},
			want:   says,
			twins: []request{
				{as: person("olga"), create: `{kind: Namespace, metadata: {name: new}}`},
				{as: person("mona"), create: `{kind: Namespace, metadata: {name: new, labels: {gpu.warp.dev/managed: "true"}}}`},
			},
		},
		{
			name:   "23 a tenant",
			attack: request{as: alice, patch: `{kind: Namespace, metadata: {name: team-a, labels: {gpu.warp.dev/managed: null}}}`},
			want:   "is forbidden",
			twins:  []request{{as: person("olga"), patch: `{kind: Namespace, metadata: {name: team-a, labels: {example.com/team: a}}}`}},
		},
	}
}

// poison is what is valid by the schema and absurd, or made to look like something else in a
// message.
func poison() []attack {
	return []attack{
		{
			name:   "17 a gang of a million pods",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {parallelism: 1000000}}`},
			want:   "should be less than or equal to 10000",
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {parallelism: 10000}}`}},
		},
		{
			name:   "17 a number that no 32 bits hold",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {gpuCount: 2147483648}}`},
			want:   "spec.gpuCount",
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {gpuCount: 8}}`}},
		},
		{
			name:   "21 a level that paints the terminal",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {parallelism: 2, topology: {required: "leaf\e[31m\r\n<script>"}}}`},
			want:   `spec.topology.required: there is no topology level "leaf\x1b[31m\r\n<script>"; this installation knows region, zone, core, spine, leaf`,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {parallelism: 2, topology: {required: leaf}}}`}},
		},
		{
			name:   "24 an amount that takes hours to add up",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, resources: {limits: {memory: "5e99"}}}]}}}}`},
			want:   "asks for an amount of memory that no machine has",
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, resources: {limits: {memory: 5Gi}}}]}}}}`}},
		},
		{
			name:   "24 a template that Go cannot read",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, readinessProbe: {httpGet: {port: 3000000000}}}]}}}}`},
			want:   "spec.template: it cannot be read as a pod template",
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {spec: {containers: [{name: c, image: i, readinessProbe: {httpGet: {port: 3000}}}]}}}}`}},
		},
		{
			name:   "24 a strategy that nobody has",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {schedulingStrategy: cheapest}}`},
			want:   `spec.schedulingStrategy: unknown strategy "cheapest"; registered are`,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {schedulingStrategy: costOptimized}}`}},
		},
		{
			name:   "24 a workload that asks for other GPUs than its container",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {gpuCount: 2, template: {spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`},
			want:   `container "c" asks for 8 nvidia.com/gpu, gpuCount says 2`,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {gpuCount: 8, template: {spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`}},
		},
	}
}

package attacks

import "slices"

// all is the table. The numbers are those of the list of attacks in docs/admission.md.
func all() []attack {
	return slices.Concat(nodeLabels(), workloadRights(), gates(), binding(), reservedKeys(), priorities(), devices(), namespaces(), poison())
}

var (
	alice = person("alice")
	admin = identity{}
)

func manager() identity { return account(system, "gpu-orchestrator-manager") }

func nodeLabels() []attack {
	const trusts = "placement trusts the label"
	return []attack{
		{
			name:   "4 a kubelet puts its node under another leaf",
			attack: request{as: kubelet("n1"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu.warp.dev/leaf: leaf-9}}}`},
			want:   trusts + " gpu.warp.dev/leaf",
			twins: []request{
				{as: kubelet("n1"), patch: `{kind: Node, metadata: {name: n1, labels: {example.com/leaf: leaf-9}}}`},
				{as: kubelet("n1"), patch: `{kind: Node, subresource: status, metadata: {name: n1}, status: {nodeInfo: {kernelVersion: x}}}`},
				{as: person("nora"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu.warp.dev/leaf: leaf-9}}}`},
				{as: admin, patch: `{kind: Node, metadata: {name: n1, labels: {gpu.warp.dev/leaf: leaf-9}}}`},
			},
		},
		{
			name:   "4 through the status of its node",
			attack: request{as: kubelet("n1"), patch: `{kind: Node, subresource: status, metadata: {name: n1, labels: {gpu.warp.dev/spine: s}}}`},
			want:   trusts,
			twins:  []request{{as: person("nora"), patch: `{kind: Node, subresource: status, metadata: {name: n1, labels: {gpu.warp.dev/spine: s}}}`}},
		},
		{
			name:   "4 takes its label off",
			attack: request{as: kubelet("n1"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu.warp.dev/leaf: null}}}`},
			want:   trusts,
			twins:  []request{{as: person("nora"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu.warp.dev/leaf: null}}}`}},
		},
		{
			name:   "4 registers with a rack, and an NVLink domain",
			attack: request{as: kubelet("n2"), create: `{kind: Node, metadata: {name: n2, labels: {gpu.warp.dev/rack: r, gpu.warp.dev/nvlink-domain: d}}}`},
			want:   trusts,
			twins: []request{
				{as: kubelet("n2"), create: `{kind: Node, metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}}`},
				{as: person("nora"), create: `{kind: Node, metadata: {name: n2, labels: {gpu.warp.dev/rack: r}}}`},
			},
		},
		{
			name:   "4 calls itself cheap",
			attack: request{as: kubelet("n1"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu-orchestrator/cheap-node: "true"}}}`},
			want:   trusts,
			twins:  []request{{as: person("nora"), patch: `{kind: Node, metadata: {name: n1, labels: {gpu-orchestrator/cheap-node: "true"}}}`}},
		},
	}
}

func workloadRights() []attack {
	const hardened = `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`
	jobs := account("kube-system", "job-controller")
	return []attack{
		{
			// The Job controller is who creates the pods of a workload's template.
			name:   "7 a privileged template in a namespace that forbids it",
			attack: request{as: jobs, create: `{kind: Pod, metadata: {namespace: hardened, labels: {gpu.warp.dev/workload: w}}, spec: {hostNetwork: true, containers: [{name: c, image: i, securityContext: {privileged: true}}]}}`},
			want:   "violates PodSecurity",
			twins: []request{
				{as: jobs, create: `{kind: Pod, metadata: {namespace: hardened, labels: {gpu.warp.dev/workload: w}}, spec: {` + hardened + `}}`},
				{as: jobs, create: `{kind: Pod, metadata: {namespace: foreign}, spec: {containers: [{name: c, image: i, securityContext: {privileged: true}}]}}`},
			},
		},
		{
			name:   "8 who may not create pods creates them by a workload",
			attack: request{as: person("carol"), create: `{kind: GPUWorkload, metadata: {namespace: team-a}}`},
			want:   "you may not create pods in this namespace",
			twins: []request{
				{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}}`},
				{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: foreign}}`},
				{as: person("carol"), patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: w}, spec: {priority: low}}`},
			},
		},
		{
			name:   "8 or by the template of one that is there",
			attack: request{as: person("carol"), patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: w}, spec: {template: {spec: {containers: [{name: c, image: mine}]}}}}`},
			want:   "you may not create pods in this namespace",
			twins:  []request{{as: alice, patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: w}, spec: {template: {spec: {containers: [{name: c, image: mine}]}}}}`}},
		},
		{
			name:   "8 in the namespace of somebody else",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-b}}`},
			want:   "is forbidden",
			twins:  []request{{as: person("bob"), create: `{kind: GPUWorkload, metadata: {namespace: team-b}}`}},
		},
	}
}

func gates() []attack {
	return []attack{
		{
			name:   "9 a tenant opens the gate",
			attack: request{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: [{name: example.com/own}]}}`},
			want:   "is removed by gpu-orchestrator when the plan",
			twins: []request{
				{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: [{name: gpu.warp.dev/plan}]}}`},
				{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated, labels: {example.com/x: z}}}`},
				{as: manager(), patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: [{name: example.com/own}]}}`},
				{as: admin, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: null}}`},
				{as: alice, patch: `{kind: Pod, metadata: {namespace: foreign, name: gated}, spec: {schedulingGates: null}}`},
			},
		},
		{
			name:   "9 all gates at once",
			attack: request{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: null}}`},
			want:   "is removed by gpu-orchestrator when the plan",
			twins:  []request{{as: manager(), patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: null}}`}},
		},
	}
}

func binding() []attack {
	return []attack{
		{
			name:   "10 a GPU pod names its node",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeName: n1}}`},
			want:   "spec.nodeName must be empty",
			twins: []request{
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeSelector: {kubernetes.io/hostname: n1}}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: foreign}, spec: {nodeName: n1}}`},
			},
		},
		{
			name:   "10 a MIG instance by an init container's request",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeName: n1, containers: [{name: c, image: i}], initContainers: [{name: d, image: i, resources: {requests: {nvidia.com/mig-1g.10gb: 1}, limits: {nvidia.com/mig-1g.10gb: 1}}}]}}`},
			want:   "spec.nodeName must be empty",
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i}], initContainers: [{name: d, image: i, resources: {requests: {nvidia.com/mig-1g.10gb: 1}, limits: {nvidia.com/mig-1g.10gb: 1}}}]}}`}},
		},
		{
			name:   "10 a pod that looks like a static one",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}`},
			want:   "is for kubelets",
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, annotations: {example.com/config.mirror: x}}, spec: {containers: [{name: c, image: i}]}}`}},
		},
		{
			name:   "10 a GPU pod chooses another scheduler",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: mine}}`},
			want:   "one scheduler, gpu-orchestrator, not mine",
			twins: []request{
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: gpu-orchestrator}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: default-scheduler}}`}, // Replaced: it is what none becomes.
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: mine, containers: [{name: c, image: i}]}}`},
				{as: alice, create: `{kind: Pod, metadata: {namespace: foreign}, spec: {schedulerName: mine}}`},
			},
		},
		{
			name:   "10 or by a workload",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {schedulerName: mine}}`},
			want:   "one scheduler, gpu-orchestrator, not mine",
			twins: []request{
				{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {schedulerName: gpu-orchestrator}}`},
				{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: foreign}, spec: {schedulerName: mine}}`},
			},
		},
	}
}

func reservedKeys() []attack {
	const ours = "are written by gpu-orchestrator alone"
	jobController := account("kube-system", "job-controller")
	return []attack{
		{
			name:   "11 a pod passes for the member of a gang that the controller made",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, labels: {gpu.warp.dev/workload: w, gpu.warp.dev/workload-uid: u, gpu.warp.dev/attempt: "0"}}}`},
			want:   ours,
			twins: []request{
				{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, labels: {gpu.warp.dev/gang: g, gpu.warp.dev/gang-size: "4"}, annotations: {gpu.warp.dev/rank: "1", gpu.warp.dev/required-level: leaf}}}`},
				{as: jobController, create: `{kind: Pod, metadata: {namespace: team-a, labels: {gpu.warp.dev/workload: w, gpu.warp.dev/workload-uid: u, gpu.warp.dev/attempt: "0"}}}`},
			},
		},
		{
			name:   "12 a Job passes for the controller's",
			attack: request{as: alice, create: `{kind: Job, metadata: {namespace: team-a, name: w-12345678-0, labels: {gpu.warp.dev/workload-uid: u}}}`},
			want:   ours,
			twins: []request{
				{as: alice, create: `{kind: Job, metadata: {namespace: team-a, name: w-12345678-0}}`},
				{as: manager(), create: `{kind: Job, metadata: {namespace: team-a, name: w-12345678-0, labels: {gpu.warp.dev/workload-uid: u}}}`},
			},
		},
		{
			name:   "14 a pod says where it was planned",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, annotations: {gpu.warp.dev/planned-node: n1}}}`},
			want:   ours,
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: foreign, annotations: {gpu.warp.dev/planned-node: n1}}}`}},
		},
		{
			name:   "14 afterwards",
			attack: request{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: running, annotations: {gpu.warp.dev/planned-node: n1}}}`},
			want:   ours,
			twins: []request{
				{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: running, annotations: {example.com/planned-node: n1}}}`},
				{as: manager(), patch: `{kind: Pod, metadata: {namespace: team-a, name: running, annotations: {gpu.warp.dev/planned-node: n1}}}`},
			},
		},
		{
			name:   "14 takes the controller's label off its pod",
			attack: request{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated, labels: {gpu.warp.dev/workload-uid: null}}}`},
			want:   ours + ": leave them",
			twins:  []request{{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated, labels: {example.com/x: null}}}`}},
		},
		{
			name:   "14 a key that does not exist yet",
			attack: request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, annotations: {gpu.warp.dev/exempt: "true"}}}`},
			want:   "gpu.warp.dev/exempt " + ours,
			twins:  []request{{as: alice, create: `{kind: Pod, metadata: {namespace: team-a, annotations: {sandbox.gpu.warp.dev/run-for: 3s}}}`}},
		},
		{
			name:   "14 in the template of a Job",
			attack: request{as: alice, create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {metadata: {annotations: {gpu.warp.dev/planned-node: n1}}}}}`},
			want:   ours,
			twins:  []request{{as: alice, create: `{kind: Job, metadata: {namespace: team-a}, spec: {template: {metadata: {annotations: {gpu.warp.dev/strategy: binPack}}}}}`}},
		},
		{
			name:   "14 of a CronJob",
			attack: request{as: alice, create: `{kind: CronJob, metadata: {namespace: team-a}, spec: {jobTemplate: {spec: {template: {metadata: {labels: {gpu.warp.dev/attempt: "1"}}}}}}}`},
			want:   ours,
			twins:  []request{{as: alice, create: `{kind: CronJob, metadata: {namespace: team-a}}`}},
		},
		{
			name:   "14 of a Deployment",
			attack: request{as: alice, create: `{kind: Deployment, metadata: {namespace: team-a}, spec: {template: {metadata: {labels: {gpu.warp.dev/workload: w}}}}}`},
			want:   ours,
			twins:  []request{{as: alice, create: `{kind: Deployment, metadata: {namespace: team-a}}`}, {as: alice, create: `{kind: StatefulSet, metadata: {namespace: team-a}}`}},
		},
		{
			name:   "14 of a PodTemplate",
			attack: request{as: person("eve"), create: `{kind: PodTemplate, metadata: {namespace: team-a}, template: {metadata: {labels: {gpu.warp.dev/workload: w}}}}`},
			want:   ours,
			twins:  []request{{as: person("eve"), create: `{kind: PodTemplate, metadata: {namespace: team-a}}`}},
		},
		{
			name:   "14 of a workload",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {metadata: {annotations: {gpu.warp.dev/planned-node: n1}}, spec: {containers: [{name: c, image: i}]}}}}`},
			want:   ours,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {template: {metadata: {annotations: {example.com/x: z}}, spec: {containers: [{name: c, image: i}]}}}}`}},
		},
		{
			name:   "14 of a workload where nobody manages",
			attack: request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: foreign}, spec: {template: {metadata: {annotations: {gpu.warp.dev/planned-node: n1}}, spec: {containers: [{name: c, image: i}]}}}}`},
			want:   `"gpu.warp.dev/planned-node" is for gpu-orchestrator alone to write`,
			twins:  []request{{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: foreign}, spec: {template: {metadata: {labels: {gpu.warp.dev/gang: g}}, spec: {containers: [{name: c, image: i}]}}}}`}},
		},
	}
}

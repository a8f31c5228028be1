package api

// gpuCases has a case for each rule of spec.gpu and spec.topology.
func gpuCases() []ruleCase {
	return []ruleCase{
		// gpu.resourceName
		{
			refused:  `{spec: {modelName: m, gpu: {resourceName: gpu}}}`,
			says:     `spec.gpu.resourceName: Invalid value: "gpu": gpu.resourceName must be a resource with its domain, for example nvidia.com/gpu, nvidia.com/mig-1g.10gb or amd.com/gpu`,
			accepted: `{spec: {modelName: m, gpu: {resourceName: nvidia.com/mig-1g.10gb}}}`,
		},
		{
			rule:     `spec.gpu.resourceName maxLength`,
			refused:  `{spec: {modelName: m, gpu: {resourceName: a/` + long(252) + `}}}`,
			says:     `spec.gpu.resourceName: Too long: may not be more than 253 bytes`,
			accepted: `{spec: {modelName: m, gpu: {resourceName: a/` + long(251) + `}}}`,
		},

		// gpu.product, gpu.architecture
		{
			refused:  `{spec: {modelName: m, gpu: {product: NVIDIA H100 80GB HBM3}}}`,
			says:     `spec.gpu.product: Invalid value: "NVIDIA H100 80GB HBM3": gpu.product is compared with the node label nvidia.com/gpu.product, which has letters, digits, '-', '_' and '.' and no spaces: write it as the label does, for example NVIDIA-H100-80GB-HBM3`,
			accepted: `{spec: {modelName: m, gpu: {product: NVIDIA-H100-80GB-HBM3}}}`,
		},
		{
			rule:     `spec.gpu.product maxLength`,
			refused:  `{spec: {modelName: m, gpu: {product: ` + long(64) + `}}}`,
			says:     `spec.gpu.product: Too long: may not be more than 63 bytes`,
			accepted: `{spec: {modelName: m, gpu: {product: ` + long(63) + `}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpu: {architecture: ada lovelace}}}`,
			says:     `spec.gpu.architecture: Invalid value: "ada lovelace": gpu.architecture is compared with the node label nvidia.com/gpu.family, which has letters, digits, '-', '_' and '.' and no spaces: write it as the label does, for example hopper`,
			accepted: `{spec: {modelName: m, gpu: {architecture: ada-lovelace}}}`,
		},
		{
			rule:     `spec.gpu.architecture maxLength`,
			refused:  `{spec: {modelName: m, gpu: {architecture: ` + long(64) + `}}}`,
			says:     `spec.gpu.architecture: Too long: may not be more than 63 bytes`,
			accepted: `{spec: {modelName: m, gpu: {architecture: ` + long(63) + `}}}`,
		},

		// gpu.minMemory
		{
			// The pattern is Kubernetes' own, for every quantity; the rule explains it.
			rule:     `spec.gpu.minMemory pattern`,
			refused:  `{spec: {modelName: m, gpu: {minMemory: 40GB}}}`,
			says:     `spec.gpu.minMemory: Invalid value: "40GB": spec.gpu.minMemory in body should match '^[+-]?([0-9]{1,32}(\.[0-9]{0,32})?|\.[0-9]{1,32})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$', spec.gpu.minMemory: Invalid value: "40GB": gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: 40G}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpu: {minMemory: 40}}}`,
			says:     `spec.gpu.minMemory: Invalid value: 40: gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: 40Gi}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpu: {minMemory: -40Gi}}}`,
			says:     `spec.gpu.minMemory: Invalid value: "-40Gi": gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: 42949672960}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpu: {minMemory: 1023Ki}}}`,
			says:     `spec.gpu.minMemory: Invalid value: "1023Ki": gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: 1Mi}}}`,
		},
		{
			// Past 8Ei the value in bytes no longer fits.
			refused:  `{spec: {modelName: m, gpu: {minMemory: 9Ei}}}`,
			says:     `spec.gpu.minMemory: Invalid value: "9Ei": gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: 1Pi}}}`,
		},
		{
			// The stock pattern lets this exponent pass, and reading it takes hours.
			refused:  `{spec: {modelName: m, gpu: {minMemory: 5e3000000000}}}`,
			says:     `spec.gpu.minMemory: Invalid value: "5e3000000000": spec.gpu.minMemory in body should match '^[+-]?([0-9]{1,32}(\.[0-9]{0,32})?|\.[0-9]{1,32})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$', spec.gpu.minMemory: Invalid value: "5e3000000000": gpu.minMemory must be from 1Mi to 1Pi: write it with its unit, for example 40Gi`,
			accepted: `{spec: {modelName: m, gpu: {minMemory: "1e10"}}}`,
		},

		// gpu.milli
		{
			rule:     `spec.gpu.milli minimum`,
			refused:  `{spec: {modelName: m, gpu: {milli: 0}}}`,
			says:     `spec.gpu.milli: Invalid value: 0: spec.gpu.milli in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, gpu: {milli: 1}}}`,
		},
		{
			rule:     `spec.gpu.milli maximum`,
			refused:  `{spec: {modelName: m, gpu: {milli: 1000}}}`,
			says:     `spec.gpu.milli: Invalid value: 1000: spec.gpu.milli in body should be less than or equal to 999`,
			accepted: `{spec: {modelName: m, gpu: {milli: 999}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpuCount: 2, gpu: {milli: 500}}}`,
			says:     `spec.gpuCount: Invalid value: gpuCount must be 1 with gpu.milli, which asks for a share of one GPU: set gpuCount to 1 or leave gpu.milli out`,
			accepted: `{spec: {modelName: m, gpuCount: 1, gpu: {milli: 500}}}`,
		},
		{
			refused:  `{spec: {modelName: m, gpu: {milli: 500, resourceName: amd.com/gpu}}}`,
			says:     `spec.gpu.resourceName: Invalid value: gpu.resourceName must be nvidia.com/gpu with gpu.milli, which asks for a share of one: leave one of the two out`,
			accepted: `{spec: {modelName: m, gpu: {milli: 500, resourceName: nvidia.com/gpu}}}`,
		},

		// gpu.topologyPreference
		{
			rule:     `spec.gpu.topologyPreference enum`,
			refused:  `{spec: {modelName: m, gpu: {topologyPreference: NVLink}}}`,
			says:     `spec.gpu.topologyPreference: Unsupported value: "NVLink": supported values: "none", "nvlink", "numa", "pcie"`,
			accepted: `{spec: {modelName: m, gpu: {topologyPreference: nvlink}}}`,
		},

		// topology
		{
			rule:     `spec.topology.required minLength`,
			refused:  `{spec: {modelName: m, topology: {required: ""}}}`,
			says:     `spec.topology.required: Invalid value: "": spec.topology.required in body should be at least 1 chars long`,
			accepted: `{spec: {modelName: m, topology: {required: leaf}}}`,
		},
		{
			rule:     `spec.topology.required maxLength`,
			refused:  `{spec: {modelName: m, topology: {required: ` + long(317) + `}}}`,
			says:     `spec.topology.required: Too long: may not be more than 316 bytes`,
			accepted: `{spec: {modelName: m, topology: {required: ` + long(316) + `}}}`,
		},
		{
			rule:     `spec.topology.preferred minLength`,
			refused:  `{spec: {modelName: m, topology: {preferred: ""}}}`,
			says:     `spec.topology.preferred: Invalid value: "": spec.topology.preferred in body should be at least 1 chars long`,
			accepted: `{spec: {modelName: m, topology: {preferred: topology.kubernetes.io/zone}}}`,
		},
		{
			rule:     `spec.topology.preferred maxLength`,
			refused:  `{spec: {modelName: m, topology: {preferred: ` + long(317) + `}}}`,
			says:     `spec.topology.preferred: Too long: may not be more than 316 bytes`,
			accepted: `{spec: {modelName: m, topology: {preferred: ` + long(316) + `}}}`,
		},

		// topology.slice
		{
			rule:     `spec.topology.slice.level required`,
			refused:  `{spec: {modelName: m, topology: {slice: {size: 1}}}}`,
			says:     `spec.topology.slice.level: Required value`,
			accepted: `{spec: {modelName: m, topology: {slice: {size: 1, level: leaf}}}}`,
		},
		{
			rule:     `spec.topology.slice.size required`,
			refused:  `{spec: {modelName: m, topology: {slice: {level: leaf}}}}`,
			says:     `spec.topology.slice.size: Required value`,
			accepted: `{spec: {modelName: m, topology: {slice: {size: 1, level: leaf}}}}`,
		},
		{
			rule:     `spec.topology.slice.level minLength`,
			refused:  `{spec: {modelName: m, topology: {slice: {size: 1, level: ""}}}}`,
			says:     `spec.topology.slice.level: Invalid value: "": spec.topology.slice.level in body should be at least 1 chars long`,
			accepted: `{spec: {modelName: m, topology: {slice: {size: 1, level: x}}}}`,
		},
		{
			rule:     `spec.topology.slice.level maxLength`,
			refused:  `{spec: {modelName: m, topology: {slice: {size: 1, level: ` + long(317) + `}}}}`,
			says:     `spec.topology.slice.level: Too long: may not be more than 316 bytes`,
			accepted: `{spec: {modelName: m, topology: {slice: {size: 1, level: ` + long(316) + `}}}}`,
		},
		{
			rule:     `spec.topology.slice.size minimum`,
			refused:  `{spec: {modelName: m, topology: {slice: {size: 0, level: leaf}}}}`,
			says:     `spec.topology.slice.size: Invalid value: 0: spec.topology.slice.size in body should be greater than or equal to 1`,
			accepted: `{spec: {modelName: m, topology: {slice: {size: 1, level: leaf}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, parallelism: 6, topology: {slice: {size: 4, level: leaf}}}}`,
			says:     `spec.parallelism: Invalid value: parallelism must be a multiple of topology.slice.size, so that every slice is whole: change one of the two`,
			accepted: `{spec: {modelName: m, parallelism: 8, topology: {slice: {size: 4, level: leaf}}}}`,
		},
		{
			refused:  `{spec: {modelName: m, parallelism: 2, topology: {slice: {size: 4, level: leaf}}}}`,
			says:     `spec.parallelism: Invalid value: parallelism must be a multiple of topology.slice.size, so that every slice is whole: change one of the two`,
			accepted: `{spec: {modelName: m, parallelism: 4, topology: {slice: {size: 4, level: leaf}}}}`,
		},
	}
}

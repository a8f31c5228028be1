// Package cluster makes the simulated machines of a sandbox: what a node of each
// kind offers and how it is labelled, where it stands in the network, and the
// Node objects themselves.
package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// machine is a kind of node.
type machine struct {
	// instanceType is the label node.kubernetes.io/instance-type.
	instanceType string
	cpu, memory  string
	// gpus is the number of GPUs where the kind fixes it; 0 takes the number
	// asked for on the command line.
	gpus int
	// resource is the extended resource that the device plugin offers.
	resource corev1.ResourceName
	// replicas is how many pods share each GPU in turn; 0 is none.
	replicas int
	// labels are what discovery writes on a node with so many GPUs.
	labels func(gpus int) map[string]string
}

// Profile is a cluster's mix of machines.
type Profile struct {
	Name string
	// Description is one line for people.
	Description string
	// machines share the nodes equally, each kind in one contiguous run: racks
	// are bought together.
	machines []machine
}

// Profiles lists what can be asked for.
func Profiles() []Profile {
	return []Profile{
		{"dgx-h100", "DGX H100: 8 x H100 80 GB, NVLink", []machine{h100()}},
		{"dgx-h200", "DGX H200: 8 x H200 141 GB, NVLink", []machine{h200()}},
		{"dgx-a100", "DGX A100: 8 x A100 80 GB, NVLink", []machine{a100of80()}},
		{"l4", "inference nodes: 8 x L4 24 GB, PCIe", []machine{l4()}},
		{"mixed", "H100, A100 80 and 40 GB, L4, a time-sliced T4, AMD MI300X and Intel Max nodes", []machine{
			h100(), h100(), a100of80(), a100of40(), l4(), sharedT4(), mi300x(), intelMax(),
		}},
	}
}

// ProfileNamed finds a profile. The error lists those there are.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return Profile{}, fmt.Errorf("there is no profile %q: choose one of %s", name, strings.Join(names, ", "))
}

// machineOf is the kind of the i-th of n nodes.
func (p Profile) machineOf(i, n int) machine {
	if n < len(p.machines) {
		return p.machines[i]
	}
	return p.machines[i*len(p.machines)/n]
}

func h100() machine {
	return machine{
		instanceType: "dgx-h100", cpu: "224", memory: "2Ti", resource: v1alpha1.DefaultResourceName,
		labels: nvidia{"NVIDIA-H100-80GB-HBM3", "hopper", "DGXH100", 81559, "9.0", true}.labels,
	}
}

func h200() machine {
	return machine{
		instanceType: "dgx-h200", cpu: "224", memory: "2Ti", resource: v1alpha1.DefaultResourceName,
		labels: nvidia{"NVIDIA-H200", "hopper", "DGXH200", 143771, "9.0", true}.labels,
	}
}

func a100of80() machine {
	return machine{
		instanceType: "dgx-a100-80gb", cpu: "256", memory: "2Ti", resource: v1alpha1.DefaultResourceName,
		labels: nvidia{"NVIDIA-A100-SXM4-80GB", "ampere", "DGXA100-920-23687-2530-000", 81920, "8.0", true}.labels,
	}
}

func a100of40() machine {
	return machine{
		instanceType: "dgx-a100-40gb", cpu: "256", memory: "1Ti", resource: v1alpha1.DefaultResourceName,
		labels: nvidia{"NVIDIA-A100-SXM4-40GB", "ampere", "DGXA100-920-23687-2530-000", 40960, "8.0", true}.labels,
	}
}

func l4() machine {
	return machine{
		instanceType: "g2-standard-96", cpu: "96", memory: "384Gi", resource: v1alpha1.DefaultResourceName,
		labels: nvidia{"NVIDIA-L4", "ada-lovelace", "Google-Compute-Engine", 23034, "8.9", false}.labels,
	}
}

// sharedT4 is shared with renameByDefault, so that it offers no nvidia.com/gpu.
func sharedT4() machine {
	const replicas = 4
	t4 := nvidia{"Tesla-T4", "turing", "g4dn.12xlarge", 15360, "7.5", false}
	return machine{
		instanceType: "g4dn.12xlarge", cpu: "48", memory: "192Gi", gpus: 4,
		resource: v1alpha1.SharedResourceName, replicas: replicas,
		labels: func(gpus int) map[string]string {
			labels := t4.labels(gpus)
			labels["nvidia.com/gpu.replicas"] = strconv.Itoa(replicas)
			labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
			return labels
		},
	}
}

// mi300x is labelled as AMD's node labeller does it.
func mi300x() machine {
	return machine{
		instanceType: "mi300x", cpu: "192", memory: "2Ti", resource: "amd.com/gpu",
		labels: func(int) map[string]string {
			return map[string]string{
				"amd.com/gpu.product-name":   "AMD_Instinct_MI300X_OAM",
				"amd.com/gpu.family":         "AI",
				"amd.com/gpu.device-id":      "74a1",
				"amd.com/gpu.vram":           "192G",
				"amd.com/gpu.cu-count":       "304",
				"amd.com/gpu.driver-version": "6.10.5",
			}
		},
	}
}

// intelMax is labelled as Intel's node feature rules do it.
func intelMax() machine {
	return machine{
		instanceType: "max-1550", cpu: "112", memory: "1Ti", gpus: 4, resource: "gpu.intel.com/i915",
		labels: func(gpus int) map[string]string {
			return map[string]string{
				"intel.feature.node.kubernetes.io/gpu":      "true",
				"gpu.intel.com/product":                     "Max_1550",
				"gpu.intel.com/family":                      "Max_Series",
				"gpu.intel.com/device-id.0380-0bd5.present": "true",
				"gpu.intel.com/device-id.0380-0bd5.count":   strconv.Itoa(gpus),
				"gpu.intel.com/memory.max":                  strconv.FormatInt(int64(gpus)*131072*1024*1024, 10),
				"gpu.intel.com/millicores":                  strconv.Itoa(gpus * 1000),
			}
		},
	}
}

// nvidia is what GPU feature discovery knows of a product.
type nvidia struct {
	product, family, machine string
	memoryMiB                int
	compute                  string
	mig                      bool
}

// labels are GPU feature discovery's, for a driver of the 570 branch.
func (n nvidia) labels(gpus int) map[string]string {
	major, minor, _ := strings.Cut(n.compute, ".")
	return map[string]string{
		"nvidia.com/gpu.present":                  "true",
		"nvidia.com/gpu.product":                  n.product,
		"nvidia.com/gpu.family":                   n.family,
		"nvidia.com/gpu.machine":                  n.machine,
		"nvidia.com/gpu.memory":                   strconv.Itoa(n.memoryMiB),
		"nvidia.com/gpu.count":                    strconv.Itoa(gpus),
		"nvidia.com/gpu.replicas":                 "1",
		"nvidia.com/gpu.sharing-strategy":         "none",
		"nvidia.com/gpu.compute.major":            major,
		"nvidia.com/gpu.compute.minor":            minor,
		"nvidia.com/mig.capable":                  strconv.FormatBool(n.mig),
		"nvidia.com/mps.capable":                  "false",
		"nvidia.com/cuda.driver-version.major":    "570",
		"nvidia.com/cuda.driver-version.minor":    "124",
		"nvidia.com/cuda.driver-version.revision": "06",
		"nvidia.com/cuda.driver-version.full":     "570.124.06",
		"nvidia.com/cuda.runtime-version.major":   "12",
		"nvidia.com/cuda.runtime-version.minor":   "8",
		"nvidia.com/cuda.runtime-version.full":    "12.8",
	}
}

// resources are a machine's capacity with so many GPUs.
func (m machine) resources(gpus int) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(m.cpu),
		corev1.ResourceMemory:           resource.MustParse(m.memory),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		// The kubelet's own default.
		corev1.ResourcePods: resource.MustParse("110"),
		m.resource:          *resource.NewQuantity(int64(gpus*max(1, m.replicas)), resource.DecimalSI),
	}
}

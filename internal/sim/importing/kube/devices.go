package kube

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// whole is a GPU in thousandths, in which parts of GPUs are added up.
const whole = 1000

// tooMany is more than any machine has of a device, and few enough to reckon with.
const tooMany = 1 << 20

const (
	migPrefix    = "nvidia.com/mig-"
	sharedSuffix = ".shared"

	labelMemory = "nvidia.com/gpu.memory"
	labelCount  = "nvidia.com/gpu.count"
	resourceGPU = "nvidia.com/gpu"
)

// isGPU tells whether a resource is whole GPUs, by the names that the vendors' device plugins
// give them.
func isGPU(resource string) bool {
	switch resource {
	case resourceGPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe":
		return true
	}
	return false
}

// productLabels are where a node may say what its GPUs are, in the order in which they are asked:
// feature discovery by NVIDIA and by AMD, and what clouds write themselves.
func productLabels() []string {
	return []string{"nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator"}
}

// product returns what the GPUs of a node are called by its labels, and what of that is the
// model: feature discovery adds that GPUs are shared or cut.
func product(labels map[string]string) (name, model string) {
	for _, key := range productLabels() {
		if name = strings.TrimSpace(labels[key]); name != "" {
			break
		}
	}
	model, _, _ = strings.Cut(name, "-MIG-")
	return name, strings.TrimSuffix(model, "-SHARED")
}

// cut is how much of a GPU something is: its slices of compute and memory, and how many a GPU has.
type cut struct{ compute, memory, ofCompute, ofMemory int64 }

// devices knows how GPUs are cut and shared.
type devices struct{ cuts map[[2]string]cut }

// unit says what one unit of a resource is on a node, nil for any: its cut, the zero value for a
// whole GPU, and how many share it. The last result is false for what is no GPU.
func (d *devices) unit(resource string, n *corev1.Node) (c cut, sharers int64, ok bool) {
	var labels map[string]string
	if n != nil {
		labels = n.Labels
	}
	base := strings.TrimSuffix(resource, sharedSuffix)
	profile, isMIG := strings.CutPrefix(base, migPrefix)
	name, model := product(labels)
	switch {
	case isMIG:
		sharers = positive(labels[base+".replicas"])
	case base == resourceGPU:
		sharers = positive(labels[resourceGPU+".replicas"])
		// With MIG strategy "single" an instance goes by the name of a GPU.
		_, profile, isMIG = strings.Cut(name, "-MIG-")
		profile = strings.ToLower(strings.TrimSuffix(profile, "-SHARED"))
	case isGPU(resource):
		return cut{}, 1, true
	default:
		return cut{}, 0, false
	}
	if isMIG {
		c = d.cut(profile, model, positive(labels[labelMemory]))
	}
	return c, max(sharers, 1), true
}

// cut returns what an instance of a profile is of a GPU. Of a model that is not known it is what
// its name says in sevenths, as of most.
func (d *devices) cut(profile, model string, memoryMiB int64) cut {
	key := [2]string{profile, model}
	if known, ok := d.cuts[key]; ok {
		return known
	}
	// A name such as "invalid" counts as a whole GPU.
	c := cut{}
	if g, ok := gpu.GeometryOf(model, memoryMiB); ok {
		if p, ok := g.Profile(profile); ok {
			c = cut{int64(p.Compute), int64(p.Memory), int64(g.ComputeSlices()), int64(g.MemorySlices())}
		}
	}
	if digits, _, isSlices := strings.Cut(profile, "g."); c == (cut{}) && isSlices {
		if n := positive(digits); n > 0 && n <= 7 {
			// Three slices of compute come with four of memory, seven with eight.
			c = cut{n, n, 7, 8}
			if n == 3 || n == 7 {
				c.memory++
			}
		}
	}
	if d.cuts == nil {
		d.cuts = map[[2]string]cut{}
	}
	d.cuts[key] = c
	return c
}

// milli is one of n sharers' part of a GPU in thousandths, at least one. By compute, since
// the parts of a GPU that is cut must not come to more than a GPU: two 3g take all memory, but
// with two 1g and a 2g a 3g is there, too.
func (c cut) milli(sharers int64) int64 {
	part := int64(whole)
	if c.ofCompute > 0 {
		part = whole * c.compute / c.ofCompute
	}
	return max(part/sharers, 1)
}

// held is how many thousandths of GPUs a pod asks for.
func (d *devices) held(requests corev1.ResourceList, n *corev1.Node) (milli int64) {
	for name, q := range requests {
		if c, sharers, ok := d.unit(string(name), n); ok {
			milli += c.milli(sharers) * min(q.Value(), tooMany)
		}
	}
	return milli
}

// count returns how many GPUs a node has: whole ones, and as many as its instances take. The
// second result says that some are cut or shared.
func (d *devices) count(offers corev1.ResourceList, n *corev1.Node) (gpus int64, parts bool) {
	var full, compute, memory int64
	of := cut{ofCompute: 7, ofMemory: 8}
	told := false
	for name, q := range offers {
		units := min(q.Value(), tooMany)
		c, sharers, ok := d.unit(string(name), n)
		told = told || strings.HasPrefix(string(name), "nvidia.com/")
		if !ok || units <= 0 {
			continue
		}
		units = ceil(units, sharers)
		parts = parts || sharers > 1 || c.ofCompute > 0
		if c.ofCompute == 0 {
			full += units
			continue
		}
		of = c
		compute += units * c.compute
		memory += units * c.memory
	}
	if !told {
		// No device plugin runs, but feature discovery counted.
		full += positive(n.Labels[labelCount])
	}
	return full + max(ceil(compute, of.ofCompute), ceil(memory, of.ofMemory)), parts
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// positive reads a whole number, as labels say it; anything else is 0.
func positive(label string) int64 {
	n, err := strconv.ParseInt(label, 10, 32)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

package fabric

import (
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

const (
	gpuResource = "nvidia.com/gpu"
	// unlimitedPods is how many pods a node takes: more than anybody asks for.
	unlimitedPods = 1 << 20

	// The labels of a live cluster, as api/v1alpha1 and Kubernetes name them.
	hostLabel    = "kubernetes.io/hostname"
	leafLabel    = "gpu.warp.dev/leaf"
	spineLabel   = "gpu.warp.dev/spine"
	productLabel = "nvidia.com/gpu.product"
)

// Machine is a kind of node.
type Machine struct {
	// GPUs is how many GPUs it has, 1 to 64; 0 takes 8.
	GPUs int
	// Model is the product name of its GPUs; "" takes H100.
	Model string
}

// kind is what is known of machines with a model of GPU.
type kind struct {
	words    []string
	cpu, gib int64
	network  func() collective.Fabric
}

// kinds are those of NVIDIA's data sheets: DGX H100, DGX A100 and DGX-1. A DGX-1 has four NICs; its
// numbers here are those of machines with one, as V100EDR tells.
func kinds() []kind {
	return []kind{
		{[]string{"H100", "H800", "H200"}, 224, 2048, collective.H100NDR},
		{[]string{"A100", "A800"}, 256, 2048, collective.A100HDR},
		{[]string{"V100"}, 80, 512, collective.V100EDR},
	}
}

// kindOf returns the kind of the first word that a product name has; of the H100, and false, if
// none is known.
func kindOf(model string) (kind, bool) {
	all := kinds()
	for _, k := range all {
		for _, word := range k.words {
			if strings.Contains(strings.ToUpper(model), word) {
				return k, true
			}
		}
	}
	return all[0], false
}

// network returns the numbers of the machine's fabric, and what to say of them.
func (m Machine) network() (f collective.Fabric, notes []string) {
	k, known := kindOf(m.Model)
	f = k.network()
	f.GPUs = m.GPUs
	if !known {
		notes = append(notes, "nothing is known of the network of machines with "+m.Model+": that of a DGX H100 is taken")
	}
	return f, notes
}

// filled replaces what is not told.
func (m Machine) filled() Machine {
	if m.GPUs == 0 {
		m.GPUs = 8
	}
	if m.Model == "" {
		m.Model = "H100"
	}
	return m
}

// builder makes nodes that share what equal nodes may share.
type builder struct {
	levels    []cluster.Level
	resources *cluster.Resources
	boards    map[int]*gpu.Board
}

// newBuilder knows the levels spine, leaf and host, or only the last in a cluster without
// topology.
func newBuilder(topology bool) *builder {
	b := &builder{resources: cluster.NewResources(gpuResource), boards: map[int]*gpu.Board{}}
	if topology {
		b.levels = append(b.levels, cluster.Level{Name: "spine", Labels: []string{spineLabel}}, cluster.Level{Name: "leaf", Labels: []string{leafLabel}})
	}
	b.levels = append(b.levels, cluster.Level{Name: "host", Labels: []string{hostLabel}})
	return b
}

// spec is a node before it is built: thousandths of cores, bytes, and its place, "" for none.
type spec struct {
	Machine
	name, spine, leaf string
	cpu, memory       int64
}

// node builds a node with nothing on it. It knows how many GPUs there are and can give them out
// one by one; how they are wired it does not know.
func (b *builder) node(s spec) (*cluster.Node, error) {
	m := &cluster.Machine{
		Name: s.name, Ready: true, Labels: map[string]string{hostLabel: s.name},
		Allocatable: make(cluster.Vector, b.resources.Len()),
	}
	for label, value := range map[string]string{spineLabel: s.spine, leafLabel: s.leaf} {
		if value != "" {
			m.Labels[label] = value
		}
	}
	m.Path = cluster.PathOf(b.levels, m.Labels)
	m.Allocatable[cluster.CPU], m.Allocatable[cluster.Memory], m.Allocatable[cluster.Pods] = s.cpu, s.memory, unlimitedPods
	m.Allocatable[b.resources.Index(gpuResource)] = int64(s.GPUs)
	if s.GPUs == 0 {
		return &cluster.Node{Machine: m}, nil
	}
	m.GPU.Product = s.Model
	if s.Model != "" {
		m.Labels[productLabel] = s.Model
	}
	board := b.boards[s.GPUs]
	if board == nil {
		var err error
		if board, err = gpu.NewBoard(gpu.Wiring{Count: s.GPUs}); err != nil {
			return nil, err
		}
		b.boards[s.GPUs] = board
	}
	m.Board = board
	return &cluster.Node{Machine: m}, nil
}

// of puts a machine at a place, with the cores and memory of its kind.
func (m Machine) of(name, spine, leaf string) spec {
	k, _ := kindOf(m.Model)
	return spec{Machine: m, name: name, spine: spine, leaf: leaf, cpu: k.cpu * 1000, memory: k.gib << 30}
}

package placement

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// The resources of drawn worlds, beside those of the tests' world.
const (
	sharedIndex = 4
	migIndex    = 5
)

// cases runs a property on about n drawn cases, more or fewer as -rapid.checks says: its
// default of 100 is n. Under the race detector, which is there for what is shared and not for
// what is decided, it runs a part of them.
func cases(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	checks, err := strconv.Atoi(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Value.Set(strconv.Itoa(max(1, n*checks/100/slowdown))); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Value.Set(was) }()
	rapid.Check(t, property)
}

// seeds returns how many of n simulations to run: under the race detector a part of them.
func seeds(n uint64) uint64 { return max(1, n/slowdown) }

// until runs a property on about n cases at a time until it has found what it looks for, and
// gives up after thirty times n: a rare mistake is missed now and then by a fixed number of
// draws. Under the race detector that is four times n.
func until(t *testing.T, n int, found *bool, property func(*rapid.T)) {
	t.Helper()
	for round := 0; round < max(30, 16*slowdown) && !*found; round++ {
		cases(t, n, func(t *rapid.T) {
			if !*found {
				property(t)
			}
		})
	}
}

// chance is true once in so many draws, roughly: rapid likes small numbers.
func chance(t *rapid.T, oneIn int, what string) bool {
	return rapid.IntRange(0, oneIn-1).Draw(t, what) == oneIn-1
}

func between(t *rapid.T, low, high int, what string) int {
	return rapid.IntRange(low, high).Draw(t, what)
}

func oneOf[T any](t *rapid.T, what string, of ...T) T { return rapid.SampledFrom(of).Draw(t, what) }

// kit is what drawn worlds are made of and share: as in a cluster, many nodes have one Board.
type kit struct {
	boards   []*gpu.Board // one for each number of GPUs
	geometry *gpu.Geometry
	// nodes, groups and pods bound the draws.
	nodes, groups, pods int
	// devices draws what is inside nodes, and requests for it.
	devices bool
	// plain draws neither missing labels nor nodes out of service.
	plain bool
}

func newKit(t testing.TB, nodes, groups, pods int) *kit {
	t.Helper()
	k := &kit{nodes: nodes, groups: groups, pods: pods, boards: []*gpu.Board{nil}}
	for n := 1; n <= 4; n++ {
		w := gpu.Wiring{Count: n, Links: make([][]int, n)}
		for i := range n {
			w.Links[i] = make([]int, n)
			for j := range n {
				if i != j {
					w.Links[i][j] = 1 + (i^j)%3
				}
			}
			w.NUMA = append(w.NUMA, i/2)
		}
		b, err := gpu.NewBoard(w)
		if err != nil {
			t.Fatal(err)
		}
		k.boards = append(k.boards, b)
	}
	g, ok := gpu.GeometryOf("NVIDIA-A100-SXM4-80GB", 81920)
	if !ok {
		t.Fatal("the A100 has no geometry")
	}
	k.geometry = g
	return k
}

func drawnResources() *cluster.Resources {
	return cluster.NewResources("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")
}

func (k *kit) world(t *rapid.T) *cluster.Snapshot {
	nodes := make([]*cluster.Node, k.nodes-between(t, 0, k.nodes-1, "fewer nodes"))
	for i := range nodes {
		nodes[i] = k.node(t, fmt.Sprintf("n%d", i))
	}
	return cluster.NewSnapshot(1, testLevels(), drawnResources(), nodes)
}

// node draws a machine and what runs on it.
func (k *kit) node(t *rapid.T, name string) *cluster.Node {
	n := &cluster.Node{Machine: k.machine(t, name)}
	k.load(t, n)
	return n
}

func (k *kit) machine(t *rapid.T, name string) *cluster.Machine {
	labels := map[string]string{
		"spine": oneOf(t, "spine", "s1", "s2"),
		"leaf":  oneOf(t, "leaf", "l1", "l2", "l3"),
		"host":  name,
		"zone":  oneOf(t, "zone", "a", "a", "b"),
	}
	gpus := oneOf(t, "gpus", 4, 3, 2, 4, 1, 0)
	m := &cluster.Machine{
		Name:        name,
		Ready:       true,
		Labels:      labels,
		Allocatable: cluster.Vector{oneOf[int64](t, "cpu", 8, 4, 12, 6, 2), 1 << 40, 110, int64(gpus)},
	}
	if !k.plain {
		for _, l := range testLevels() {
			if chance(t, 12, "no "+l.Name) {
				delete(labels, l.Name)
			}
		}
		if chance(t, 16, "double host") {
			labels["host"] = "h"
		}
		switch between(t, 0, 24, "service") {
		case 21:
			m.Ready = false
		case 22:
			m.Cordoned = true
		case 23:
			m.Taints = []cluster.Taint{{Key: "x", Effect: cluster.NoSchedule}}
		case 24:
			m.Allocatable[cluster.Pods] = 2
		}
	}
	m.Path = cluster.PathOf(testLevels(), labels)
	if k.devices {
		k.furnish(t, m, gpus)
	}
	return m
}

// furnish draws what is inside a machine, and the other ways in which it offers its GPUs.
func (k *kit) furnish(t *rapid.T, m *cluster.Machine, gpus int) {
	switch between(t, 0, 4, "inside") {
	case 0:
		return
	case 1:
		m.GPU.Replicas = oneOf(t, "replicas", 2, 4)
		m.Allocatable = append(m.Allocatable, int64(gpus*m.GPU.Replicas))
		m.Allocatable[gpuResource] = 0
	case 2:
		m.GPU.Product, m.GPU.MemoryMiB, m.Geometry = "NVIDIA-A100-SXM4-80GB", 81920, k.geometry
		if chance(t, 3, "mig resource") {
			m.Allocatable = append(m.Allocatable, 0, int64(between(t, 0, 3, "instances")))
		}
	}
	m.Board = k.boards[gpus]
	if m.Board != nil && chance(t, 4, "broken") {
		m.Broken = gpu.MaskOf(between(t, 0, gpus-1, "which"))
	}
}

// load draws what is used of a node. Single GPUs and amounts are drawn apart, as a report of
// one may come before that of the other.
func (k *kit) load(t *rapid.T, n *cluster.Node) {
	n.Used = make(cluster.Vector, len(n.Allocatable))
	for _, r := range []int{cluster.CPU, gpuResource, sharedIndex, migIndex} {
		if have := int(n.Allocatable.At(r)); have > 0 && chance(t, 3, "busy") {
			n.Used[r] = int64(between(t, 0, have, "used"))
		}
	}
	n.Taken, n.Shares, n.Instances = 0, nil, nil
	if n.Board == nil {
		return
	}
	for i := range n.Board.Count() {
		switch between(t, 0, 7, "gpu") {
		case 5:
			n.Taken = n.Taken.With(i)
		case 6:
			if n.Shares == nil {
				n.Shares = make([]int16, n.Board.Count())
			}
			n.Shares[i] = oneOf[int16](t, "share", 300, 500, 800)
		case 7:
			k.partition(t, n, i)
		}
	}
}

// partition draws MIG instances of GPU i that exist, legal ones side by side.
func (k *kit) partition(t *rapid.T, n *cluster.Node, i int) {
	if n.Geometry == nil {
		return
	}
	layout := oneOf(t, "layout",
		[]gpu.Instance{{Profile: "3g.40gb", Start: 4, Size: 4}},
		[]gpu.Instance{{Profile: "1g.10gb", Start: 2, Size: 1}, {Profile: "2g.20gb", Start: 4, Size: 2}},
		[]gpu.Instance{{Profile: "4g.40gb", Start: 0, Size: 4}, {Profile: "1g.10gb", Start: 6, Size: 1}},
		[]gpu.Instance{{Profile: "7g.80gb", Start: 0, Size: 8}},
	)
	for _, in := range layout {
		in.GPU, in.Used = i, chance(t, 2, "in use")
		n.Instances = append(n.Instances, in)
	}
}

// shape draws what a pod needs.
func (k *kit) shape(t *rapid.T) Shape {
	q := Shape{GPUResource: -1, Resources: cluster.Vector{int64(between(t, 0, 4, "cpu")), 1, 1}}
	kinds := 1
	if k.devices {
		kinds = 6
	}
	kind := between(t, 0, kinds, "kind")
	if kind == 1 && !k.devices {
		return q // CPU only
	}
	switch kind {
	case 0, 6:
		q.count("nvidia.com/gpu", gpuResource, between(t, 1, 4, "gpus"))
		if k.devices && chance(t, 4, "include") {
			q.Include = gpu.MaskOf(between(t, 0, 3, "included"))
		}
	case 2:
		q.Milli = oneOf(t, "milli", 100, 200, 300, 500, 600, 1000)
	case 3:
		q.count("nvidia.com/gpu.shared", sharedIndex, 1)
		q.Milli = oneOf(t, "milli", 0, 250, 500)
	case 4:
		q.MIG = oneOf(t, "mig", []string{"1g.10gb"}, []string{"3g.40gb"}, []string{"1g.10gb", "2g.20gb"}, []string{"4g.40gb"}, []string{"7g.80gb"})
	case 5:
		q.count("nvidia.com/mig-1g.10gb", migIndex, 1)
	}
	if chance(t, 6, "selector") {
		q.Selector.Labels = map[string]string{"zone": "a"}
	}
	if chance(t, 6, "tolerations") {
		q.Tolerations = []cluster.Toleration{{Exists: true}}
	}
	if chance(t, 5, "rules") {
		q.Rules = drawRules(t)
	}
	return q
}

// count asks for so many units of a resource that counts as a GPU.
func (q *Shape) count(name string, index, gpus int) {
	q.GPUResource, q.GPUResourceName, q.GPUs = index, name, int64(gpus)
	for len(q.Resources) <= index {
		q.Resources = append(q.Resources, 0)
	}
	q.Resources[index] = int64(gpus)
}

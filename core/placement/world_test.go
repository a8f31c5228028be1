package placement

import (
	"fmt"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// The tests' world: levels spine > leaf > host, GPUs are resource 3.
const gpuResource = 3

const (
	spine = iota
	leaf
	host
)

func testLevels() []cluster.Level {
	return []cluster.Level{
		{Name: "spine", Labels: []string{"spine"}},
		{Name: "leaf", Labels: []string{"leaf"}},
		{Name: "host", Labels: []string{"host"}},
	}
}

// nodeSpec is a node in one line of a test.
type nodeSpec struct {
	name, spine, leaf string
	gpus, used        int64
	edit              func(*cluster.Node)
}

func (s nodeSpec) node() *cluster.Node {
	labels := map[string]string{"spine": s.spine, "leaf": s.leaf, "host": s.name}
	n := &cluster.Node{
		Machine: &cluster.Machine{
			Name:        s.name,
			Ready:       true,
			Labels:      labels,
			Path:        cluster.PathOf(testLevels(), labels),
			Allocatable: cluster.Vector{64000, 1 << 40, 110, s.gpus},
		},
		Used: cluster.Vector{0, 0, 0, s.used},
	}
	if s.edit != nil {
		s.edit(n)
	}
	return n
}

func world(specs ...nodeSpec) *cluster.Snapshot {
	nodes := make([]*cluster.Node, len(specs))
	for i, s := range specs {
		nodes[i] = s.node()
	}
	return cluster.NewSnapshot(1, testLevels(), cluster.NewResources("nvidia.com/gpu"), nodes)
}

// ask is a gang of count pods with gpus GPUs each, placed by leastLoaded.
func ask(count int, gpus int64, edits ...func(*Request)) *Request {
	r := &Request{
		Name:     "test/gang",
		Strategy: "leastLoaded",
		Groups: []Group{{
			Count:    count,
			Topology: NoTopology(),
			Pod: Shape{
				Resources:       cluster.Vector{1000, 1 << 30, 1, gpus},
				GPUResource:     gpuResource,
				GPUResourceName: "nvidia.com/gpu",
				GPUs:            gpus,
			},
		}},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// group edits the only group of a request.
func group(edit func(*Group)) func(*Request) {
	return func(r *Request) { edit(&r.Groups[0]) }
}

func registry(t testing.TB) *Registry {
	t.Helper()
	r, err := NewRegistry(Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func plan(t testing.TB, s *cluster.Snapshot, r *Request) Decision {
	t.Helper()
	d, err := Plan(s, r, Options{Strategies: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fatTree is the large profile: nodes x 8 GPUs, 16 nodes a leaf, 32 leaves a spine.
func fatTree(nodes int) []nodeSpec {
	specs := make([]nodeSpec, nodes)
	for i := range specs {
		specs[i] = nodeSpec{
			name:  fmt.Sprintf("node-%05d", i),
			spine: fmt.Sprintf("spine-%03d", i/(16*32)),
			leaf:  fmt.Sprintf("leaf-%04d", i/16),
			gpus:  8,
		}
	}
	return specs
}

package explain

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

const gpuResource = 3

func levels() []cluster.Level {
	return []cluster.Level{{Name: "spine", Labels: []string{"spine"}}, {Name: "leaf", Labels: []string{"leaf"}}, {Name: "host", Labels: []string{"host"}}}
}

// machine is a node of 8 GPUs in a leaf of four: n00 to n03 are in leaf-0, and so on; two leaves
// are a spine.
func machine(i int) *cluster.Machine {
	labels := map[string]string{"spine": fmt.Sprintf("spine-%d", i/8), "leaf": fmt.Sprintf("leaf-%d", i/4), "host": fmt.Sprintf("n%02d", i)}
	return &cluster.Machine{
		Name: labels["host"], Ready: true, Labels: labels, Path: cluster.PathOf(levels(), labels),
		Allocatable: cluster.Vector{64000, 1 << 40, 110, 8},
	}
}

// world is a cluster as a test writes it down.
type world struct {
	machines []*cluster.Machine
	pods     map[int][]*cluster.Pod
}

func newWorld(nodes int) *world {
	w := &world{pods: map[int][]*cluster.Pod{}}
	for i := range nodes {
		w.machines = append(w.machines, machine(i))
	}
	return w
}

func uses(gpus int64) cluster.Vector { return cluster.Vector{1000, 1 << 30, 1, gpus} }

// run puts one pod of a workload on each of the nodes.
func (w *world) run(work *cluster.Workload, gpus int64, nodes ...int) {
	for k, i := range nodes {
		w.pods[i] = append(w.pods[i], &cluster.Pod{Name: fmt.Sprintf("%s-%d", work.Name, k), Workload: work, Use: uses(gpus)})
	}
}

func job(name string, edits ...func(*cluster.Workload)) *cluster.Workload {
	w := &cluster.Workload{Name: "team/" + name, Level: placement.AnyLevel}
	for _, edit := range edits {
		edit(w)
	}
	return w
}

func (w *world) snapshot() *cluster.Snapshot {
	nodes := make([]*cluster.Node, len(w.machines))
	for i, m := range w.machines {
		n := &cluster.Node{Machine: m}
		nodes[i] = n.With(w.pods[i]...)
	}
	return cluster.NewSnapshot(1, levels(), cluster.NewResources("nvidia.com/gpu"), nodes)
}

func ask(count int, gpus int64, required int) *placement.Request {
	r := &placement.Request{Name: "team/gang", Strategy: "leastLoaded", Groups: []placement.Group{{
		Count: count, Topology: placement.NoTopology(),
		Pod: placement.Shape{Resources: uses(gpus), GPUResource: gpuResource, GPUResourceName: "nvidia.com/gpu", GPUs: gpus},
	}}}
	r.Groups[0].Topology.Required = required
	return r
}

func between(t *rapid.T, low, high int, what string) int {
	return rapid.IntRange(low, high).Draw(t, what)
}

func one[T any](t *rapid.T, what string, of ...T) T { return rapid.SampledFrom(of).Draw(t, what) }

// drawQuestion draws a crowded cluster and a gang.
func drawQuestion(t *rapid.T) *Question {
	nodes := between(t, 2, 10, "nodes")
	w := newWorld(nodes)
	for _, m := range w.machines {
		switch between(t, 0, 12, "service") {
		case 10:
			m.Cordoned = true
		case 11:
			m.Ready = false
			m.Taints = []cluster.Taint{{Key: "node.kubernetes.io/not-ready", Effect: cluster.NoSchedule}}
		case 12:
			m.Taints = []cluster.Taint{{Key: "team", Effect: cluster.NoSchedule}}
		}
	}
	q := &Question{Running: map[string]placement.Run{}, Idle: map[string]time.Duration{}}
	free := make([]int64, nodes)
	for i := range free {
		free[i] = 8
	}
	for k := range between(t, 0, 8, "jobs") {
		work := job(fmt.Sprintf("j%d", k))
		work.Priority = int32(between(t, 0, 3, "priority"))
		work.Preemptible = one(t, "preemptible", false, true)
		work.Movable = one(t, "movable", false, true)
		work.Protected = one(t, "protected", false, false, true)
		work.Level = one(t, "level", placement.AnyLevel, 1)
		gpus := one[int64](t, "gpus", 1, 2, 4, 8)
		for range between(t, 1, 3, "pods") {
			if i := between(t, 0, nodes-1, "on"); free[i] >= gpus {
				free[i] -= gpus
				w.run(work, gpus, i)
			}
		}
		if one(t, "estimated", false, true) {
			q.Running[work.Name] = placement.Run{
				Estimate: placement.Estimate{P50: time.Duration(between(t, 1, 50, "p50")) * time.Minute}, Elapsed: time.Duration(between(t, 0, 60, "elapsed")) * time.Minute,
			}
		}
		if between(t, 0, 5, "idle") == 5 {
			q.Idle[work.Name] = time.Hour
		}
	}
	q.Snapshot = w.snapshot()
	q.Request = ask(between(t, 1, 5, "count"), one[int64](t, "each", 2, 4, 8), between(t, placement.AnyLevel, 1, "required"))
	q.Request.Priority = int32(between(t, 0, 3, "own priority"))
	q.Request.Preempts = one(t, "preempts", false, true)
	g := &q.Request.Groups[0]
	switch between(t, 0, 5, "kind") {
	case 4:
		g.MinCount = between(t, 1, g.Count, "least")
	case 5:
		g.Count *= 2
		g.Topology.Required = placement.AnyLevel
		g.Slices = []placement.Slice{{Level: 1, Size: 2}}
	}
	if between(t, 0, 9, "foreign") == 9 {
		q.Foreign = func(string) bool { return true }
	}
	return q
}

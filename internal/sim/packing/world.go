package packing

import (
	"fmt"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// maxPods is how many pods a node takes, whatever they ask for: as the published runs had it.
const maxPods = 1001

// world is what is left of every node, in the order that decides ties. It is the ledger of every
// run, and refuses what is not there.
type world struct {
	nodes []node
}

type node struct {
	name string
	// cpu, memory and pods are what is left; left is so for each GPU, in thousandths.
	cpu, memory int64
	pods        int
	left        []int
	// idle is the sum of left, whole the number of GPUs of which nothing is taken.
	idle, whole int
	model       int
	// classes counts the pods with GPUs by their class.
	classes map[int]int
	// version grows with every pod.
	version uint32
}

func newWorld(c *Cluster, o *order) *world {
	w := &world{nodes: make([]node, len(o.nodes))}
	for position, i := range o.nodes {
		n := &c.nodes[i]
		left := make([]int, n.GPUs)
		for g := range left {
			left[g] = cluster.Full
		}
		w.nodes[position] = node{
			name: n.Name, cpu: n.CPUMilli, memory: n.MemoryMiB, pods: maxPods, left: left,
			idle: n.GPUs * cluster.Full, whole: n.GPUs, model: c.models[n.Model], classes: map[int]int{}, version: 1,
		}
	}
	return w
}

// class tells pods apart as Gandiva does: 0 without GPUs, -1 with a share of one, else how many.
func (k *kind) class() int {
	if k.shares() {
		return -1
	}
	return k.gpus
}

// fits tells whether the node has room for a pod.
func (n *node) fits(k *kind) bool {
	if k.cpu > n.cpu || k.memory > n.memory || n.pods == 0 {
		return false
	}
	if k.gpus == 0 {
		return true
	}
	if !k.runsOn(n.model) {
		return false
	}
	able, _ := n.able(k.milli)
	return able >= k.gpus
}

// spot is where a pod goes: a position in the world, and GPUs of the node there.
type spot struct {
	node int
	gpus gpu.Mask
}

// take puts a pod on its spot. The error says what is not there.
func (w *world) take(k *kind, s spot) error {
	n := &w.nodes[s.node]
	switch {
	case k.cpu > n.cpu || k.memory > n.memory || n.pods == 0:
		return fmt.Errorf("%s has %d mCPU, %d MiB and room for %d pods left; taken were %d, %d and 1", n.name, n.cpu, n.memory, n.pods, k.cpu, k.memory)
	case k.gpus > 0 && !k.runsOn(n.model):
		return fmt.Errorf("%s has GPUs that the pod does not accept", n.name)
	case s.gpus.Count() != k.gpus:
		return fmt.Errorf("%s gave %d GPUs; asked for were %d", n.name, s.gpus.Count(), k.gpus)
	}
	for g := range s.gpus.Each() {
		if g >= len(n.left) || n.left[g] < k.milli {
			return fmt.Errorf("%s has not %d thousandths left of GPU %d", n.name, k.milli, g)
		}
	}
	n.take(k, s.gpus)
	return nil
}

func (n *node) take(k *kind, gpus gpu.Mask) {
	n.cpu -= k.cpu
	n.memory -= k.memory
	n.pods--
	for g := range gpus.Each() {
		if n.left[g] == cluster.Full {
			n.whole--
		}
		n.left[g] -= k.milli
		n.idle -= k.milli
	}
	if k.gpus > 0 && n.classes != nil {
		n.classes[k.class()]++
	}
	n.version++
}

// firstWhole returns the first so many GPUs of which nothing is taken.
func (n *node) firstWhole(count int) gpu.Mask {
	var m gpu.Mask
	for g, left := range n.left {
		if m.Count() == count {
			break
		}
		if left == cluster.Full {
			m = m.With(g)
		}
	}
	return m
}

// tightest returns the GPU with the least left that is enough, the first of several.
func (n *node) tightest(milli int) int {
	best := -1
	for g, left := range n.left {
		if left >= milli && (best < 0 || left < n.left[best]) {
			best = g
		}
	}
	return best
}

// hopeless counts the pods of the list that fit no node of the cluster even if it is empty.
func hopeless(w *Workload, c *Cluster) (pods int) {
	all := &order{nodes: make([]int, len(c.nodes))}
	for i := range all.nodes {
		all.nodes[i] = i
	}
	empty := newWorld(c, all)
	never := make([]bool, len(w.kinds))
	for id := range w.kinds {
		never[id] = true
		for i := range empty.nodes {
			if empty.nodes[i].fits(&w.kinds[id]) {
				never[id] = false
				break
			}
		}
	}
	for _, id := range w.pods {
		if never[id] {
			pods++
		}
	}
	return pods
}

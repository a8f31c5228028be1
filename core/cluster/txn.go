package cluster

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// Txn tries changes on a snapshot and takes them back. Snapshots share what does not change,
// so that every state a Txn passes through is a snapshot of its own: going back is going back
// to it, and nothing is ever undone by hand.
//
// A Txn is for one goroutine; the snapshots it gives out are as immutable as any.
type Txn struct {
	now   *Snapshot
	marks []*Snapshot
	// generation is the last one given out: it grows through every rollback, so that no two
	// states have the same.
	generation uint64
}

// Begin starts a Txn over s.
func (s *Snapshot) Begin() *Txn { return &Txn{now: s, generation: s.Generation} }

// Snapshot returns the cluster with the changes so far.
func (t *Txn) Snapshot() *Snapshot { return t.now }

// Placement is a pod and the position of the node that it goes to or leaves.
type Placement struct {
	Node int
	Pod  *Pod
}

// Place puts pods on nodes. It refuses, and changes nothing, where a node would hold more than
// it offers.
func (t *Txn) Place(placements ...Placement) error {
	if len(placements) == 1 {
		// A single pod is what the fast path is about: no grouping, no map.
		p := placements[0]
		next, err := t.placeOn(p.Node, []*Pod{p.Pod})
		if err != nil {
			return err
		}
		t.now = t.next([]*Node{next})
		return nil
	}
	changed := t.group(placements)
	nodes := make([]*Node, 0, len(changed))
	for i, pods := range changed {
		next, err := t.placeOn(i, pods)
		if err != nil {
			return err
		}
		nodes = append(nodes, next)
	}
	t.now = t.next(nodes)
	return nil
}

// placeOn returns the node at position i with the pods, if it has room for them.
func (t *Txn) placeOn(i int, pods []*Pod) (*Node, error) {
	n := t.now.At(i)
	next := n.With(pods...)
	for r, used := range next.Used {
		if used > n.Allocatable.At(r) && used > n.Used.At(r) {
			return nil, fmt.Errorf("placing %d pods on %s: %d of %s used, %d allocatable",
				len(pods), n.Name, used, t.now.Resources.Name(r), n.Allocatable.At(r))
		}
	}
	if err := checkGPUs(n, pods); err != nil {
		return nil, fmt.Errorf("placing %d pods on %s: %w", len(pods), n.Name, err)
	}
	return next, nil
}

// Evict takes pods from their nodes.
func (t *Txn) Evict(placements ...Placement) {
	changed := t.group(placements)
	nodes := make([]*Node, 0, len(changed))
	for i, pods := range changed {
		nodes = append(nodes, t.now.At(i).Without(pods...))
	}
	t.now = t.next(nodes)
}

// Checkpoint marks the present state and returns what to give to Rollback.
func (t *Txn) Checkpoint() int {
	t.marks = append(t.marks, t.now)
	return len(t.marks) - 1
}

// Rollback returns to the state at the checkpoint, which stays valid. Later ones are void then.
func (t *Txn) Rollback(mark int) {
	t.now = t.marks[mark]
	t.marks = t.marks[:mark+1]
}

// next returns the snapshot in which the given nodes are changed.
func (t *Txn) next(changed []*Node) *Snapshot {
	t.generation++
	return t.now.Next(t.generation, t.now.Resources, changed)
}

func (t *Txn) group(placements []Placement) map[int][]*Pod {
	by := make(map[int][]*Pod, min(len(placements), t.now.Len()))
	for _, p := range placements {
		by[p.Node] = append(by[p.Node], p.Pod)
	}
	return by
}

// checkGPUs tells whether the single GPUs that the pods name are free, each for all of them.
func checkGPUs(n *Node, pods []*Pod) error {
	for k, p := range pods {
		if k > 0 {
			n = n.With(pods[k-1])
		}
		if p.Milli > 0 && p.Milli < Full {
			for _, i := range p.GPUs.Indexes() {
				if n.FreeShare(i) < p.Milli {
					return fmt.Errorf("%d/1000 of GPU %d asked for, %d free", p.Milli, i, n.FreeShare(i))
				}
			}
		} else if busy := p.GPUs &^ n.WholeGPUs(); busy != 0 {
			return fmt.Errorf("GPU %d is in use", busy.Lowest())
		}
		if err := checkInstances(n, p); err != nil {
			return err
		}
	}
	return nil
}

// checkInstances tells whether the pod's MIG instances are where nothing else is in use.
func checkInstances(n *Node, p *Pod) error {
	for k, want := range p.Instances {
		if !n.PartitionGPUs().Has(want.GPU) || p.GPUs.Has(want.GPU) {
			return fmt.Errorf("GPU %d takes no MIG instances", want.GPU)
		}
		overlaps := func(have gpu.Instance) bool {
			return have.GPU == want.GPU && have.Start < want.Start+want.Size && want.Start < have.Start+have.Size
		}
		taken := func(have gpu.Instance) bool { return have.Used && overlaps(have) }
		if slices.ContainsFunc(n.Instances, taken) || slices.ContainsFunc(p.Instances[:k], overlaps) {
			return fmt.Errorf("slice %d of GPU %d is in use", want.Start, want.GPU)
		}
	}
	return nil
}

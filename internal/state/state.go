package state

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/policy"
)

// State is the cluster as its informers tell it, plus the promises of plans that the cluster
// does not show yet. It is safe for concurrent use.
type State struct {
	levels     []cluster.Level
	strategies *placement.Registry
	// class is the className of this installation's workloads.
	class string
	// policies are those that workloads are placed by, nil for none.
	policies *policy.Book
	// fell says that one of them came into force or went out of it by itself.
	fell atomic.Bool

	mu        sync.Mutex
	resources *cluster.Resources
	nodes     map[string]*entry
	pods      map[types.UID]podEntry
	holds     map[types.UID]*hold
	works     map[workKey]*work
	// boards are those of the nodes, by wiring: nodes of a kind share theirs.
	boards map[string]*gpu.Board
	// gangs are the pods of gangs of plain pods, gangOf the gang of each.
	gangs  map[types.NamespacedName]map[types.UID]GangMember
	gangOf map[types.UID]types.NamespacedName
	// assumed are the nodes of pods that are on their way there, see Assume.
	assumed map[types.UID]string
	// podsAlone says that all pods are judged by what they say themselves, see JudgePodsAlone.
	podsAlone bool

	generation uint64
	snapshot   *cluster.Snapshot
	changed    map[string]struct{}
	reordered  bool

	reservations reservations
	moves        moves

	// cache is what placement remembers from one plan to the next; models are the MIG
	// geometries of the GPUs seen, nil for those that have none.
	cache  placement.Cache
	models map[cluster.GPUFacts]*gpu.Geometry

	news news
}

// entry is what is known of one node. Its node is nil while only pods speak of it.
type entry struct {
	// told is what the Node tells, node that with what is known of its inside.
	told, node *cluster.Machine
	inside     *inside
	// gone are pods that were bound there and are not any more.
	gone map[types.UID]struct{}
	used cluster.Vector
	// held is what is listed of what is held there, by name.
	held []*held
}

// podEntry is a pod with what it holds, nil if that is nothing. Pods of gangs are kept after they have ended, too,
// so that it is known which ranks need no promise any more.
type podEntry struct {
	pod    *corev1.Pod
	held   *held
	member member
	// settled says that the pod was bound, or has ended.
	settled bool
}

// hold is what a plan promised to members of a gang that are not bound yet.
type hold struct {
	attempt int32
	// job is the Job whose pods the promise is to: labels alone can be anybody's.
	job     types.NamespacedName
	pod     cluster.Vector
	members map[int32]*held
	// planned is the whole plan, with the members that need no promise any more.
	planned map[int32]string
	// victims have to make way before the members find room.
	victims []gpuv1alpha1.Victim
}

// New returns an empty State. Levels are the topology levels, outermost first.
func New(levels []cluster.Level, strategies *placement.Registry) *State {
	return &State{
		levels:     levels,
		strategies: strategies,
		resources:  cluster.NewResources(),
		nodes:      make(map[string]*entry),
		pods:       make(map[types.UID]podEntry),
		holds:      make(map[types.UID]*hold),
		works:      make(map[workKey]*work),
		boards:     make(map[string]*gpu.Board),
		gangs:      make(map[types.NamespacedName]map[types.UID]GangMember),
		gangOf:     make(map[types.UID]types.NamespacedName),
		assumed:    make(map[types.UID]string),
		changed:    make(map[string]struct{}),
		reordered:  true,
		models:     make(map[cluster.GPUFacts]*gpu.Geometry),
	}
}

// Strategies returns the registered strategies.
func (s *State) Strategies() *placement.Registry { return s.strategies }

// Snapshot returns the cluster as it is now.
func (s *State) Snapshot() *cluster.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current()
}

// SetNode takes in a node. It reports whether the node may have become more useful: new,
// larger, in service again, or changed in what selectors look at.
func (s *State) SetNode(n *corev1.Node) (better bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, resources := translateNode(n, s.levels, s.resources)
	s.learn(resources)
	e := s.entry(n.Name)
	old := e.told
	if old != nil && equalNodes(old, node) {
		return false
	}
	if old == nil || !equalPaths(old, node) {
		s.reordered = true
	}
	e.told = node
	e.node = s.withInside(node, e.inside)
	s.touch(n.Name)
	return true
}

// DropNode forgets a node. What pods held there is remembered until they go.
func (s *State) DropNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.nodes[name]; ok && e.node != nil {
		e.told, e.node = nil, nil
		s.reordered = true
		s.touch(name)
		s.tidy(name)
	}
}

// SetPod takes in a pod. It reports whether room was freed by it.
func (s *State) SetPod(pod *corev1.Pod) (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setPod(pod)
}

// setPod is SetPod for callers that hold the lock.
func (s *State) setPod(pod *corev1.Pod) (freed bool) {
	s.join(pod)
	old := s.pods[pod.UID]
	next := podEntry{pod: pod, held: s.heldBy(pod, s.nodeOf(pod)), settled: old.settled}
	m, isMember := memberOf(pod)
	if isMember {
		next.member = m
		next.settled = old.settled || next.held != nil || Finished(pod)
	}
	// Only the first such news of a pod ends a hold: the next hold of the same rank is for
	// the pod that replaces this one.
	if next.settled && !old.settled {
		s.settle(m)
	}
	if old.held.same(next.held) {
		next.held = old.held
	}
	if next.held == nil && !isMember {
		delete(s.pods, pod.UID)
	} else {
		s.pods[pod.UID] = next
	}
	if next.held == old.held {
		return false
	}
	freed = old.held != nil && !old.held.sameRoom(next.held)
	s.take(next.held)
	s.departs(old, next.held)
	s.give(old.held)
	return freed
}

// DropPod forgets a pod that is gone. It reports whether room was freed by it.
func (s *State) DropPod(uid types.UID) (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropPod(uid)
}

// dropPod is DropPod for callers that hold the lock.
func (s *State) dropPod(uid types.UID) (freed bool) {
	s.leaveGang(uid)
	old := s.pods[uid]
	delete(s.pods, uid)
	delete(s.assumed, uid)
	s.departs(old, nil)
	s.give(old.held)
	return old.held != nil
}

// learn takes in new resource names, and counts anew what pods take that were seen before a
// node told of the resource. There are a handful of names, all known after the first nodes.
func (s *State) learn(resources *cluster.Resources) {
	if resources == s.resources {
		return
	}
	s.resources = resources
	for uid, e := range s.pods {
		if e.held == nil {
			continue
		}
		next := s.heldBy(e.pod, e.held.node)
		s.take(next)
		s.give(e.held)
		e.held = next
		s.pods[uid] = e
	}
}

// current returns the snapshot of all that was taken in. The caller holds the lock.
func (s *State) current() *cluster.Snapshot {
	if s.fell.Swap(false) {
		s.guideAll()
	}
	switch {
	case s.reordered || s.snapshot == nil:
		s.generation++
		s.snapshot = cluster.NewSnapshot(s.generation, s.levels, s.resources, s.all())
	case len(s.changed) > 0:
		nodes := make([]*cluster.Node, 0, len(s.changed))
		for name := range s.changed {
			if n := s.frozen(name); n != nil {
				nodes = append(nodes, n)
			}
		}
		s.generation++
		s.snapshot = s.snapshot.Next(s.generation, s.resources, nodes)
	}
	s.reordered = false
	clear(s.changed)
	return s.snapshot
}

// all returns every node as it is now. Those that did not change come first, as the last
// snapshot has them and in its order: what is nearly sorted is quickly put in order again.
func (s *State) all() []*cluster.Node {
	nodes := make([]*cluster.Node, 0, len(s.nodes))
	if s.snapshot != nil {
		for _, n := range s.snapshot.Nodes() {
			if _, changed := s.changed[n.Name]; !changed {
				nodes = append(nodes, n)
			}
		}
	}
	for name := range s.changed {
		if n := s.frozen(name); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// frozen returns a copy of the node that nobody will write to, with what it holds now.
func (s *State) frozen(name string) *cluster.Node {
	e := s.nodes[name]
	if e == nil || e.node == nil {
		return nil
	}
	n := &cluster.Node{Machine: e.node, Used: e.used.Clone(), Pods: e.pods()}
	if e.inside != nil && e.node.Board != nil {
		n.Taken = e.taken()
		// What is in use inside cannot be free outside, whatever pods are known.
		i := s.resources.Index(resourceGPU)
		if over := n.Free(i) - int64((n.WholeGPUs() | n.Broken).Count()); i >= 0 && over > 0 {
			n.Used = append(n.Used, make(cluster.Vector, max(0, i+1-len(n.Used)))...)
			n.Used[i] += over
		}
	}
	return n
}

// geometry returns how GPUs of the kind can be cut, one value for all nodes that have it.
func (s *State) geometry(facts cluster.GPUFacts) *gpu.Geometry {
	known, ok := s.models[facts]
	if !ok {
		if g, has := gpu.GeometryOf(facts.Product, facts.MemoryMiB); has {
			known = g
		}
		s.models[facts] = known
	}
	return known
}

func (s *State) entry(name string) *entry {
	e, ok := s.nodes[name]
	if !ok {
		e = &entry{}
		s.nodes[name] = e
	}
	return e
}

func (s *State) touch(name string) { s.changed[name] = struct{}{} }

// tidy forgets a node that is gone once nothing is held there any more.
func (s *State) tidy(name string) {
	e := s.nodes[name]
	if e == nil || e.node != nil || e.inside != nil {
		return
	}
	for _, x := range e.used {
		if x != 0 {
			return
		}
	}
	delete(s.nodes, name)
}

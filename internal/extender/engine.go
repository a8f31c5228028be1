package extender

import (
	"hash/fnv"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// shownWithin is how long a binding of ours is counted that the informers do not show: far longer
// than a watch is ever behind, and short for a pod that was bound and deleted in between.
const shownWithin = 30 * time.Second

// engine asks placement about pods, one question at a time. It is safe for concurrent use.
type engine struct {
	state *state.State
	clock clock.PassiveClock

	mu    sync.Mutex
	cache placement.Cache
	// written are the bindings of this replica that the informers may not show yet.
	written map[types.UID]binding
}

// binding is a pod that this replica binds, or has just bound.
type binding struct {
	node  string
	pod   *cluster.Pod
	until time.Time
}

func newEngine(s *state.State, c clock.PassiveClock) *engine {
	return &engine{state: s, clock: c, written: make(map[types.UID]binding)}
}

// moment is the cluster as one question sees it.
type moment struct {
	snapshot *cluster.Snapshot
	// members are the pods of the gang, among them those that are bound by us and not shown yet.
	members []state.GangMember
}

// look returns the snapshot and the gang's members of the same moment, with what this replica has
// written beside them. The caller holds the lock.
func (e *engine) look(gang types.NamespacedName) moment {
	var m moment
	var unseen []binding
	// The snapshot changes with every change of who holds what: where it is the same before and
	// after, the members are those that it shows. Under constant change the last look must do; it
	// is a moment old, as any answer is once it is read.
	for range 3 {
		m.snapshot = e.state.Snapshot()
		m.members = nil
		if gang.Name != "" {
			m.members = e.state.Members(gang)
		}
		unseen = e.unseen()
		if m.snapshot == e.state.Snapshot() {
			break
		}
	}
	m.snapshot = with(m.snapshot, unseen)
	for i := range m.members {
		if w, ok := e.written[m.members[i].UID]; ok && m.members[i].Node == "" {
			m.members[i].Node = w.node
		}
	}
	return m
}

// unseen returns what was written and is not shown yet, and forgets the rest.
func (e *engine) unseen() []binding {
	now := e.clock.Now()
	maps.DeleteFunc(e.written, func(uid types.UID, w binding) bool {
		_, shown := e.state.Holding(uid)
		return shown || now.After(w.until)
	})
	all := make([]binding, 0, len(e.written))
	for _, w := range e.written {
		all = append(all, w)
	}
	return all
}

// with returns the snapshot with pods that it does not show.
func with(s *cluster.Snapshot, bindings []binding) *cluster.Snapshot {
	if len(bindings) == 0 {
		return s
	}
	nodes := make(map[string]*cluster.Node, len(bindings))
	for _, b := range bindings {
		n := nodes[b.node]
		if n == nil {
			n = s.Node(b.node)
		}
		if n != nil {
			nodes[b.node] = n.With(b.pod)
		}
	}
	changed := make([]*cluster.Node, 0, len(nodes))
	for _, n := range nodes {
		changed = append(changed, n)
	}
	return s.Next(s.Generation, s.Resources, changed)
}

// options are those of every question. The caller holds the lock for as long as it uses them.
func (e *engine) options() placement.Options {
	return placement.Options{Strategies: e.state.Strategies(), Cache: &e.cache}
}

// planned returns the node that a plan of ours gave the pod; "" if none did.
func planned(pod *corev1.Pod) string {
	if pod.Labels[gpuv1alpha1.WorkloadUIDLabel] == "" {
		return ""
	}
	return state.PlannedNode(pod)
}

// wantsGPU tells whether the pod asks for what we decide about. One whose amounts cannot be reckoned
// with is ours to refuse.
func wantsGPU(pod *corev1.Pod) bool {
	if state.CheckAmounts(&pod.Spec) != nil {
		return true
	}
	name, count := state.GPUOf(pod)
	return name != "" && count > 0
}

// gangSeed makes strategy random the same for all members of a gang.
func gangSeed(gang types.NamespacedName) uint64 {
	h := fnv.New64a()
	h.Write([]byte(gang.String()))
	return h.Sum64()
}

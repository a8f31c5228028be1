package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// inside is what an agent tells of its node, as far as it may be relied on.
type inside struct {
	board  *gpu.Board
	facts  cluster.GPUFacts
	broken gpu.Mask
	// mig are the GPUs in MIG mode, holders the pods that hold some.
	mig     gpu.Mask
	holders map[types.UID]gpu.Mask
}

// mostGone is how many pods are remembered that left a node, at least. An agent tells of a pod a
// few seconds late.
const mostGone = 64

// taken returns the GPUs that nobody else can have whole: those of the holders, and those in MIG
// mode. Pods that were seen to go hold nothing, whatever an agent told last that fell silent; those
// that were not seen yet do.
func (e *entry) taken() gpu.Mask {
	taken := e.inside.mig
	for uid, held := range e.inside.holders {
		if _, gone := e.gone[uid]; !gone {
			taken |= held
		}
	}
	return taken
}

// departs has the node that a pod was bound to remember it, if it holds nothing there now.
func (s *State) departs(old podEntry, next *held) {
	if next != nil {
		delete(s.entry(next.node).gone, next.uid)
	}
	if old.held != nil && old.pod.Spec.NodeName != "" && (next == nil || next.node != old.held.node) {
		s.entry(old.held.node).left(old.held.uid)
	}
}

// left notes that a pod that was bound to the node is gone, or has ended.
func (e *entry) left(uid types.UID) {
	if e.inside == nil {
		return
	}
	if e.gone == nil {
		e.gone = make(map[types.UID]struct{})
	}
	if len(e.gone) >= mostGone {
		maps.DeleteFunc(e.gone, func(uid types.UID, _ struct{}) bool { _, holds := e.inside.holders[uid]; return !holds })
	}
	e.gone[uid] = struct{}{}
}

// SetInventory takes in what an agent found on its node. One that must not be relied on, because
// it is not Ready or contradicts itself, counts as none: the node is then what its labels and
// allocatable say. It reports whether the node may have become more useful, and returns what is
// wrong with an inventory that cannot be used though it claims to be Ready.
func (s *State) SetInventory(n *gpuv1alpha1.GPUNode) (better bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *inside
	if meta.IsStatusConditionTrue(n.Status.Conditions, gpuv1alpha1.ConditionReady) {
		next, err = s.readInside(&n.Status)
	}
	return s.setInside(n.Name, next), err
}

// FeedInventories connects the state to the informer of GPUNodes, as Feed does for the rest. Better
// is called when a node may have become more useful, refused when an inventory that claims to be
// Ready cannot be used.
func (s *State) FeedInventories(ctx context.Context, c cache.Cache, better func(), refused func(*gpuv1alpha1.GPUNode, error)) (synced func() bool, err error) {
	set := func(obj any) {
		n, ok := obj.(*gpuv1alpha1.GPUNode)
		if !ok {
			return
		}
		changed, err := s.SetInventory(n)
		if changed {
			better()
		}
		if err != nil {
			refused(n, err)
		}
	}
	registration, err := feed(ctx, c, &gpuv1alpha1.GPUNode{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			// An agent writes what it sees again and again; most of it is known.
			was, _ := old.(*gpuv1alpha1.GPUNode)
			if now, ok := obj.(*gpuv1alpha1.GPUNode); !ok || was == nil || was.ResourceVersion != now.ResourceVersion {
				set(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if n, ok := last(obj).(*gpuv1alpha1.GPUNode); ok && s.DropInventory(n.Name) {
				better()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching GPUNodes: %w", err)
	}
	return registration.HasSynced, nil
}

// DropInventory forgets what an agent told. It reports whether the node may have become more useful.
func (s *State) DropInventory(name string) (better bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setInside(name, nil)
}

// setInside reports whether the node may have become more useful.
func (s *State) setInside(name string, next *inside) (better bool) {
	if e := s.nodes[name]; next == nil && (e == nil || e.inside == nil) {
		return false
	}
	e := s.entry(name)
	if e.inside != nil && next != nil && e.inside.equal(next) {
		return false
	}
	taken := gpu.Mask(0)
	if e.inside != nil {
		taken = e.taken()
	}
	was := e.inside
	if e.inside = next; next == nil {
		e.gone = nil
	}
	if e.told != nil {
		// What is held changes often, the machine seldom: a machine that stays is not looked at anew.
		if node := s.withInside(e.told, next); node.Board != e.node.Board || node.Broken != e.node.Broken || node.GPU != e.node.GPU {
			e.node = node
		}
	}
	// Another board, other facts, and none at all may suit somebody; more that is taken or broken
	// suits nobody.
	better = was == nil || next == nil || was.board != next.board || was.facts != next.facts ||
		was.broken&^next.broken != 0 || taken&^e.taken() != 0
	s.touch(name)
	s.tidy(name)
	return better
}

// withInside returns the machine that the Node tells of, with what is known of its inside.
func (s *State) withInside(told *cluster.Machine, in *inside) *cluster.Machine {
	m := *told
	if in != nil {
		if s.countsGPUs(told, in.board.Count()) {
			m.Board, m.Broken = in.board, in.broken
		}
		// The labels have the first word: an administrator may have written them.
		m.GPU.Product = cmp.Or(m.GPU.Product, in.facts.Product)
		m.GPU.Architecture = cmp.Or(m.GPU.Architecture, in.facts.Architecture)
		m.GPU.MemoryMiB = cmp.Or(m.GPU.MemoryMiB, in.facts.MemoryMiB)
	}
	m.Geometry = s.geometry(m.GPU)
	return &m
}

// countsGPUs tells whether the GPUs that the node offers are those that are inside: not so where
// it lends each to several pods under the same name, or offers MIG instances under it.
func (s *State) countsGPUs(m *cluster.Machine, inside int) bool {
	if m.GPU.Replicas > 1 || strings.Contains(m.GPU.Product, "-MIG-") {
		return false
	}
	return m.Allocatable.At(s.resources.Index(resourceGPU)) <= int64(inside)
}

// readInside translates an inventory. The result is nil without an error where it tells of no
// GPU.
func (s *State) readInside(status *gpuv1alpha1.GPUNodeStatus) (*inside, error) {
	if len(status.GPUs) == 0 {
		return nil, nil
	}
	devices := slices.SortedFunc(slices.Values(status.GPUs), func(a, b gpuv1alpha1.GPUDevice) int { return cmp.Compare(a.Index, b.Index) })
	in := &inside{holders: make(map[types.UID]gpu.Mask, len(status.Holders))}
	for i := range devices {
		d := &devices[i]
		if int(d.Index) != i {
			return nil, fmt.Errorf("status.gpus: there is no GPU with index %d, and one with index %d: the indexes must be 0 to %d", i, d.Index, len(devices)-1)
		}
		if d.Problem != "" {
			in.broken = in.broken.With(i)
		}
		if d.MIG {
			in.mig = in.mig.With(i)
		}
	}
	first := &devices[0]
	in.facts = cluster.GPUFacts{Product: first.Product, Architecture: strings.ToLower(first.Architecture), MemoryMiB: first.MemoryMiB}
	for _, h := range status.Holders {
		var held gpu.Mask
		for _, i := range h.GPUs {
			if int(i) >= len(devices) {
				return nil, fmt.Errorf("status.holders[%s]: there is no GPU with index %d", h.PodUID, i)
			}
			held = held.With(int(i))
		}
		in.holders[types.UID(h.PodUID)] = held
	}
	wiring, err := wiringOf(devices)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(wiring)
	if in.board = s.boards[key]; in.board == nil {
		if in.board, err = gpu.NewBoard(wiring); err != nil {
			return nil, fmt.Errorf("status.gpus: %w", err)
		}
		s.forgetBoards()
		s.boards[key] = in.board
	}
	return in, nil
}

// spareBoards is how many boards are kept beside one for each node, at most.
const spareBoards = 64

// forgetBoards makes room for a board: links that come and go wire a node in ever new ways.
func (s *State) forgetBoards() {
	if len(s.boards) < len(s.nodes)+spareBoards {
		return
	}
	used := make(map[*gpu.Board]struct{}, len(s.nodes))
	for _, e := range s.nodes {
		if e.inside != nil {
			used[e.inside.board] = struct{}{}
		}
	}
	maps.DeleteFunc(s.boards, func(_ string, b *gpu.Board) bool { _, is := used[b]; return !is })
}

// wiringOf collects what the devices tell of each other. What not all of them tell is not known.
func wiringOf(devices []gpuv1alpha1.GPUDevice) (gpu.Wiring, error) {
	w := gpu.Wiring{Count: len(devices)}
	all := func(tells func(*gpuv1alpha1.GPUDevice) bool) bool {
		return !slices.ContainsFunc(devices, func(d gpuv1alpha1.GPUDevice) bool { return !tells(&d) })
	}
	links := all(func(d *gpuv1alpha1.GPUDevice) bool { return d.NVLinks != nil })
	pcie := all(func(d *gpuv1alpha1.GPUDevice) bool { return d.PCIe != nil })
	numa := !all(func(d *gpuv1alpha1.GPUDevice) bool { return d.NUMANode == nil })
	for i := range devices {
		d := &devices[i]
		if links {
			row := make([]int, len(d.NVLinks))
			for j, n := range d.NVLinks {
				row[j] = int(n)
			}
			w.Links = append(w.Links, row)
		}
		if pcie {
			row := make([]gpu.PCIe, len(d.PCIe))
			for j, class := range d.PCIe {
				var err error
				if row[j], err = gpu.ParsePCIe(string(class)); err != nil {
					return w, fmt.Errorf("status.gpus[%d].pcie[%d]: %w", i, j, err)
				}
			}
			w.PCIe = append(w.PCIe, row)
		}
		switch {
		case !numa:
		case d.NUMANode == nil:
			w.NUMA = append(w.NUMA, -1)
		default:
			w.NUMA = append(w.NUMA, int(*d.NUMANode))
		}
	}
	return w, nil
}

func (in *inside) equal(other *inside) bool {
	if in.board != other.board || in.facts != other.facts || in.broken != other.broken ||
		in.mig != other.mig || len(in.holders) != len(other.holders) {
		return false
	}
	for uid, held := range in.holders {
		if other.holders[uid] != held {
			return false
		}
	}
	return true
}

// heldGPUs returns the GPUs that something is known to hold; none of a promise, and of a pod that
// the agent has not told of yet.
func (e *entry) heldGPUs(h *held) gpu.Mask {
	if e.inside == nil || h.uid == "" || e.node == nil || e.node.Board == nil {
		return 0
	}
	return e.inside.holders[h.uid]
}

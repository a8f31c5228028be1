package placement

import (
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// wanting is a request for new places for pods of one workload: the groups, and which of the
// pods are in each.
type wanting struct {
	groups []Group
	set    *Set
	pods   [][]cluster.Placement
}

// wants asks for places for pods of a workload, of which others stay on the kept nodes.
func (m *mover) wants(v *prey, pods []cluster.Placement, kept []string) wanting {
	level := min(v.Level, len(m.p.s.Levels)-1)
	var q wanting
	for _, at := range pods {
		i := slices.IndexFunc(q.pods, func(like []cluster.Placement) bool { return alikePods(like[0].Pod, at.Pod) })
		if i < 0 {
			i = len(q.pods)
			q.pods = append(q.pods, nil)
			group := Group{Name: at.Pod.Group, Pod: m.shapeOf(at.Pod), Topology: NoTopology(), Mbps: v.Mbps}
			if len(kept) > 0 {
				group.Kept = kept
			}
			group.Topology.Required = level
			q.groups = append(q.groups, group)
		}
		q.pods[i] = append(q.pods[i], at)
		q.groups[i].Count++
	}
	if len(q.groups) > 1 && level >= 0 {
		q.set = &Set{Topology: Topology{Required: level, Preferred: AnyLevel}}
		for i := range q.groups {
			q.set.Groups = append(q.set.Groups, i)
		}
	}
	return q
}

// alikePods tells whether one place is as good as another for both pods.
func alikePods(a, b *cluster.Pod) bool {
	return a.Group == b.Group && a.Milli == b.Milli && slices.Equal(a.Use, b.Use) &&
		slices.Equal(profiles(a), profiles(b)) && (a.Needs == b.Needs || a.Needs.Equal(b.Needs))
}

func profiles(p *cluster.Pod) []string {
	var names []string
	for i := range p.Instances {
		names = append(names, p.Instances[i].Profile)
	}
	return names
}

// shapeOf is what a running pod would ask for if it came anew.
func (m *mover) shapeOf(p *cluster.Pod) Shape {
	shape := Shape{Resources: p.Use, GPUResource: -1, Milli: p.Milli, MIG: profiles(p)}
	if p.Needs != nil {
		shape.Selector, shape.Tolerations, shape.GPU = p.Needs.Selector, p.Needs.Tolerations, p.Needs.GPU
		shape.Rules = p.Needs.Rules
	}
	if len(shape.MIG) > 0 || shape.Milli > 0 {
		return shape // Its place on single GPUs says more than what it was counted as.
	}
	for i, amount := range p.Use {
		if amount > 0 && m.p.s.Resources.Extended(i) && namesGPUs(m.p.s.Resources.Name(i)) {
			shape.GPUResource, shape.GPUResourceName, shape.GPUs = i, m.p.s.Resources.Name(i), amount
			break
		}
	}
	return shape
}

// namesGPUs tells whether a resource counts GPUs, or parts of them, of some vendor.
func namesGPUs(resource string) bool {
	vendor, what, _ := strings.Cut(resource, "/")
	return what == "gpu" || what == "gpu.shared" || strings.HasPrefix(resource, migPrefix) || strings.HasPrefix(vendor, "gpu.")
}

// relocate moves what is not kept of a workload or, if that has no room beside the rest, all
// of it.
func (m *mover) relocate(v *prey, kept map[*cluster.Pod]bool, depth int) bool {
	if m.out() {
		return false
	}
	if len(kept) > 0 {
		var leaving []cluster.Placement
		var nodes []string
		for _, at := range v.pods {
			if kept[at.Pod] {
				nodes = append(nodes, m.s.At(at.Node).Name)
			} else {
				leaving = append(leaving, at)
			}
		}
		if m.relocatePods(v, leaving, nodes, depth) {
			return true
		}
	}
	return m.relocatePods(v, v.pods, nil, depth)
}

func (m *mover) relocatePods(v *prey, leaving []cluster.Placement, kept []string, depth int) bool {
	q := m.wants(v, leaving, kept)
	r := &Request{Name: v.Name, Groups: q.groups}
	if q.set != nil {
		r.Sets = []Set{*q.set}
	}
	saved := m.save()
	d, ok := m.clear(m.packer(m.s, r), leaving, depth)
	if !ok {
		m.state = saved
		return false
	}
	move := m.moveOf(v, q, d.Groups)
	if len(move.Pods) == 0 {
		return true
	}
	m.s = putPods(dropPods(m.s, move.places(func(p *PodMove) cluster.Placement { return p.Before })),
		move.places(func(p *PodMove) cluster.Placement { return p.After }))
	m.moves = append(m.moves, move)
	return true
}

// packer plans what has to move onto the fullest nodes that take it, whatever it was placed by
// before: it must not break up what is still whole.
func (m *mover) packer(s *cluster.Snapshot, r *Request) *planner {
	p := *m.p
	p.s, p.request, p.strategy, p.packs, p.seeded = s, r, BinPack{}, true, false
	return &p
}

// moveOf pairs the pods with their places. A pod that could stay on its node does.
func (m *mover) moveOf(v *prey, q wanting, places []Assignment) Move {
	move := Move{Workload: v.Name, Cost: v.Cost}
	for i, pods := range q.pods {
		a := &places[i]
		taken := make([]bool, len(pods))
		ranks := slices.Repeat([]int{-1}, len(pods))
		for k, at := range pods {
			for rank := range pods {
				if !taken[rank] && int(a.At[rank]) == at.Node {
					ranks[k], taken[rank] = rank, true
					break
				}
			}
		}
		for k, at := range pods {
			if ranks[k] < 0 {
				ranks[k] = slices.Index(taken, false)
				taken[ranks[k]] = true
			}
			pod := m.moved(at.Pod, a, ranks[k], &q.groups[i].Pod)
			to := int(a.At[ranks[k]])
			if to == at.Node && sameDevices(pod, at.Pod) {
				continue
			}
			move.Pods = append(move.Pods, PodMove{
				Pod: pod.Name, From: m.s.At(at.Node).Name, To: m.s.At(to).Name,
				Before: at, After: cluster.Placement{Node: to, Pod: pod},
			})
		}
	}
	if stay := v.size - len(move.Pods); v.MinMembers > 0 && stay >= v.MinMembers {
		move.Cost *= float64(len(move.Pods)) / float64(v.size)
	}
	return move
}

// moved is the pod as it holds its new place.
func (m *mover) moved(p *cluster.Pod, a *Assignment, rank int, shape *Shape) *cluster.Pod {
	next := *a.pod(rank, shape, p.Workload)
	next.Name, next.Group, next.Needs = p.Name, p.Group, p.Needs
	return &next
}

func sameDevices(a, b *cluster.Pod) bool {
	return a.GPUs == b.GPUs && slices.EqualFunc(a.Instances, b.Instances, func(x, y gpu.Instance) bool {
		return x.GPU == y.GPU && x.Start == y.Start && x.Profile == y.Profile
	})
}

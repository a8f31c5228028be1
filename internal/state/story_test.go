package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// told is what is told of a cluster, so that broken variants can be put in its place.
type told interface {
	SetNode(n *corev1.Node) bool
	DropNode(name string)
	SetPod(pod *corev1.Pod) bool
	DropPod(uid types.UID) bool
	SetWorkload(w *gpuv1alpha1.GPUWorkload)
	DropWorkload(w *gpuv1alpha1.GPUWorkload)
	SetInventory(n *gpuv1alpha1.GPUNode) (bool, error)
	DropInventory(name string) bool
	Snapshot() *cluster.Snapshot
}

// story is what there is after a number of events.
type story struct {
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod
	workloads map[string]*gpuv1alpha1.GPUWorkload
	insides   map[string]*gpuv1alpha1.GPUNode
}

// draw tells of one event.
func (y *story) draw(t *rapid.T, s told) {
	node := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")
	uid := rapid.SampledFrom([]string{"p", "q", "r", "s", "t"}).Draw(t, "pod")
	name := rapid.SampledFrom([]string{"v", "w"}).Draw(t, "workload")
	switch rapid.IntRange(0, 11).Draw(t, "event") {
	case 0, 1:
		n := gpuNode(node, rapid.Int64Range(0, 8).Draw(t, "gpus"))
		n.Labels["gpu.warp.dev/leaf"] = rapid.SampledFrom([]string{"l1", "l2", ""}).Draw(t, "leaf")
		n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
		y.nodes[node] = n
		s.SetNode(n)
	case 2:
		delete(y.nodes, node)
		s.DropNode(node)
	case 3, 4, 5:
		y.pods[uid] = drawnPod(t, uid, node, name)
		s.SetPod(y.pods[uid])
	case 6:
		delete(y.pods, uid)
		s.DropPod(types.UID(uid))
	case 7:
		y.workloads[name] = drawnWorkload(t, name)
		s.SetWorkload(y.workloads[name])
	case 8:
		if w, ok := y.workloads[name]; ok {
			delete(y.workloads, name)
			s.DropWorkload(w)
		}
	case 9, 10:
		y.insides[node] = drawnInventory(t, node)
		_, _ = s.SetInventory(y.insides[node])
	case 11:
		delete(y.insides, node)
		s.DropInventory(node)
	}
}

func drawnPod(t *rapid.T, uid, node, name string) *corev1.Pod {
	p := gpuPod(uid, rapid.Int64Range(0, 4).Draw(t, "use"))
	switch rapid.IntRange(0, 2).Draw(t, "whose") {
	case 0:
		memberPod(workload(name, 4, 1), 0, rapid.Int32Range(0, 3).Draw(t, "rank"))(p)
	case 1: // A Deployment's: pods of one controller.
		memberPod(workload("web", 4, 1), 0, 0)(p)
		p.Labels = nil
	}
	p.Spec.Priority = ptr.To(rapid.Int32Range(0, 2).Draw(t, "priority"))
	if rapid.Bool().Draw(t, "bound") {
		bound(node)(p)
	} else {
		pinned(node)(p)
	}
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodRunning, corev1.PodFailed}).Draw(t, "phase")
	return p
}

func drawnWorkload(t *rapid.T, name string) *gpuv1alpha1.GPUWorkload {
	w := workload(name, 4, 1)
	w.Spec.Priority = rapid.SampledFrom([]gpuv1alpha1.WorkloadPriority{"", "low", "critical"}).Draw(t, "importance")
	w.Spec.Preemptible = rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, "preemptible")
	if rapid.Bool().Draw(t, "elastic") {
		w.Spec.MinParallelism = ptr.To(int32(2))
	}
	if rapid.Bool().Draw(t, "selects") {
		w.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"k": "v"}}}
	}
	if rapid.Bool().Draw(t, "in one leaf") {
		w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: "leaf"}
	}
	return w
}

// checkStory tells a drawn story to the state and the end of it to a fresh one, and says in what
// the two differ.
func checkStory(t *rapid.T, tb testing.TB, wrap func(*State) told) string {
	kept := newState(tb)
	s := wrap(kept)
	y := &story{map[string]*corev1.Node{}, map[string]*corev1.Pod{}, map[string]*gpuv1alpha1.GPUWorkload{}, map[string]*gpuv1alpha1.GPUNode{}}
	for range rapid.IntRange(1, 80).Draw(t, "events") {
		y.draw(t, s)
		if rapid.Bool().Draw(t, "look") {
			s.Snapshot()
		}
	}
	fresh := newState(tb)
	for _, p := range y.pods {
		fresh.SetPod(p)
	}
	for _, w := range y.workloads {
		fresh.SetWorkload(w)
	}
	for _, n := range y.nodes {
		fresh.SetNode(n)
	}
	for _, n := range y.insides {
		// A fresh process has seen no pod go: it takes the agent's word.
		n = n.DeepCopy()
		n.Status.Holders = slices.DeleteFunc(n.Status.Holders, func(h gpuv1alpha1.GPUHolder) bool {
			_, gone := kept.entry(n.Name).gone[types.UID(h.PodUID)]
			return gone
		})
		_, _ = fresh.SetInventory(n)
	}
	if problem := inconsistent(s.Snapshot()); problem != "" {
		return problem
	}
	if got, want := describe(s.Snapshot()), describe(fresh.Snapshot()); got != want {
		return fmt.Sprintf("kept up by events:\n%s\nbuilt from lists:\n%s", got, want)
	}
	return ""
}

// inconsistent tells where a snapshot contradicts itself: pods hold no more than is used, and
// those of one workload point to one Workload.
func inconsistent(s *cluster.Snapshot) string {
	byName := map[string]*cluster.Workload{}
	for _, n := range s.Nodes() {
		var sum cluster.Vector
		for _, p := range n.Pods {
			if w, ok := byName[p.Workload.Name]; ok && w != p.Workload {
				return "pods of " + w.Name + " point to two workloads"
			}
			byName[p.Workload.Name] = p.Workload
			sum = sum.Add(p.Use)
		}
		for i := range s.Resources.Len() {
			if listed := sum.At(i); listed > n.Used.At(i) || n.Board == nil && s.Resources.Name(i) == "nvidia.com/gpu" && listed != n.Used.At(i) {
				return fmt.Sprintf("the pods on %s hold %d %s, used are %d", n.Name, listed, s.Resources.Name(i), n.Used.At(i))
			}
		}
	}
	return ""
}

func describe(s *cluster.Snapshot) string {
	text := ""
	for _, n := range s.Nodes() {
		text += fmt.Sprintf("%s %v ready=%v cordoned=%v", n.Name, n.Path, n.Ready, n.Cordoned)
		for i := range s.Resources.Len() {
			if n.Allocatable.At(i) != 0 || n.Used.At(i) != 0 {
				text += fmt.Sprintf(" %s=%d/%d", s.Resources.Name(i), n.Used.At(i), n.Allocatable.At(i))
			}
		}
		if n.Board != nil {
			text += fmt.Sprintf(" %d GPUs inside, %v broken, %v taken, %d links", n.Board.Count(), n.Broken, n.Taken, n.Board.Links(gpu.All(8)))
		}
		text += fmt.Sprintf(" %+v\n", n.GPU)
		for _, p := range n.Pods {
			text += fmt.Sprintf("  %s of %+v holds %v", p.Name, *p.Workload, p.GPUs)
			for i := range s.Resources.Len() {
				text += fmt.Sprintf(" %d", p.Use.At(i))
			}
			if p.Needs != nil {
				text += fmt.Sprintf(" needs %+v", *p.Needs)
			}
			text += "\n"
		}
	}
	for level := range s.Levels {
		text += fmt.Sprintf("%v\n", s.Domains(level))
	}
	return text
}

// A state kept up by events, in any order, is the one that a fresh process builds from lists.
func TestStateFromEventsIsStateFromLists(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if problem := checkStory(rt, t, func(s *State) told { return s }); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// faithless forgets to show the pods of a workload anew when the workload changes.
type faithless struct{ *State }

func (f faithless) SetWorkload(w *gpuv1alpha1.GPUWorkload) {
	f.Snapshot()
	changed := maps.Clone(f.changed)
	f.State.SetWorkload(w)
	f.changed = changed
}

// sentimental keeps what it knew of a workload that is gone.
type sentimental struct{ *State }

func (s sentimental) DropWorkload(*gpuv1alpha1.GPUWorkload) {}

// lavish never takes a pod that is gone off its node's list.
type lavish struct{ *State }

func (l lavish) DropPod(uid types.UID) bool {
	lists := map[*entry][]*held{}
	for _, e := range l.nodes {
		lists[e] = slices.Clone(e.held)
	}
	freed := l.State.DropPod(uid)
	for e, list := range lists {
		e.held = list
	}
	return freed
}

// trusting goes by the first inventory of a node for good.
type trusting struct {
	*State
	seen map[string]bool
}

func (s trusting) SetInventory(n *gpuv1alpha1.GPUNode) (bool, error) {
	if s.seen[n.Name] {
		return false, nil
	}
	s.seen[n.Name] = true
	return s.State.SetInventory(n)
}

// The property above must be able to fail: each of these mistakes is found.
func TestStoryPropertyFindsMistakes(t *testing.T) {
	for name, wrap := range map[string]func(*State) told{
		"a changed workload leaves its pods as they are": func(s *State) told { return faithless{s} },
		"a workload that is gone is remembered":          func(s *State) told { return sentimental{s} },
		"pods that are gone stay listed":                 func(s *State) told { return lavish{s} },
		"what an agent tells later is not heard":         func(s *State) told { return trusting{s, map[string]bool{}} },
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			for range 30 { // Some mistakes show in one story of a few hundred.
				rapid.Check(t, func(rt *rapid.T) {
					if !found {
						found = checkStory(rt, t, wrap) != ""
					}
				})
			}
			if !found {
				t.Error("the property holds for a broken state")
			}
		})
	}
}

func TestPodsShowTheirWorkload(t *testing.T) {
	s := newState(t)
	s.SetNode(gpuNode("a", 8))
	w := workload("w", 3, 1)
	w.Spec.Priority, w.Spec.MinParallelism = gpuv1alpha1.PriorityHigh, ptr.To(int32(2))
	w.Spec.Topology = &gpuv1alpha1.TopologyRequirements{Required: "leaf"}
	w.Spec.GPU = &gpuv1alpha1.GPURequirements{Product: "H100"}
	s.SetPod(gpuPod("p0", 1, memberPod(w, 0, 0), bound("a"), pinned("a"))) // before its workload is known
	s.SetWorkload(w)
	s.Confirm(w, gpuPod("", 1), map[int32]string{0: "a", 1: "a"})
	s.SetPod(gpuPod("daemon", 0, bound("a")))
	s.SetPod(gpuPod("notebook", 2, bound("a"), func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(7)) }))
	s.SetPod(gpuPod("thief", 1, memberPod(w, 0, 0), bound("a"), func(p *corev1.Pod) { p.OwnerReferences[0].Name = "job" }))
	got := map[string]cluster.Workload{}
	for _, p := range s.Snapshot().Node("a").Pods {
		got[p.Name] = *p.Workload
		if ours := p.Workload.Name == "default/w"; ours != (p.Needs != nil && p.Needs.GPU.Product == "H100" && p.Needs.Selector.Terms == nil) {
			t.Errorf("%s needs %v", p.Name, p.Needs)
		}
	}
	// It is evicted whole or not at all, elastic or not.
	ours := cluster.Workload{Name: "default/w", Priority: 30, Preemptible: true}
	want := map[string]cluster.Workload{
		"default/p0":                      ours,
		"default/" + JobName(w, 0) + "-1": ours, // promised
		"default/notebook":                {Name: "default/Pod/notebook", Priority: 7, Level: -1},
		"default/thief":                   {Name: "default/Job/job", Level: -1},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Snapshots share what an event does not concern.
func TestEventsOfOneNodeChangeOneNode(t *testing.T) {
	s := newState(t)
	for i := range 200 {
		s.SetNode(gpuNode(fmt.Sprintf("n%03d", i), 8))
		s.SetPod(gpuPod(fmt.Sprintf("p%d", i), 1, bound(fmt.Sprintf("n%03d", i))))
	}
	before := s.Snapshot()
	s.DropPod("p77")
	changed := 0
	s.Snapshot().Changed(before, func(int) { changed++ })
	if changed != 1 {
		t.Errorf("%d nodes changed", changed)
	}
}

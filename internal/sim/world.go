package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// unlimitedPods is how many pods a node takes that does not say: more than anybody asks for.
const unlimitedPods = 1 << 20

// world is a scenario as core sees it.
type world struct {
	*Scenario
	snapshot  *cluster.Snapshot
	resources *cluster.Resources
	// workloads are those that run, by name.
	workloads map[string]*cluster.Workload
	// boards are those built so far, by wiring: nodes of a kind share theirs, and what it
	// works out.
	boards map[string]*gpu.Board
	// rules are what the scenario's policy says, nil for none.
	rules cluster.Rules
}

// newWorld builds the cluster of a scenario with what runs in it.
func newWorld(s *Scenario) (*world, error) {
	w := &world{Scenario: s, resources: resourcesOf(s), workloads: workloadsOf(s), boards: map[string]*gpu.Board{}, rules: s.judgements()}
	levels := make([]cluster.Level, len(s.Levels))
	for i, key := range s.Levels {
		levels[i] = cluster.Level{Name: key, Labels: []string{key}}
	}
	pods := map[string][]*cluster.Pod{}
	for i := range s.Running {
		if r := &s.Running[i]; r.holds(s) {
			pods[r.Node] = append(pods[r.Node], w.pod(r))
		}
	}
	nodes := make([]*cluster.Node, len(s.Nodes))
	for i := range s.Nodes {
		n, err := w.node(&s.Nodes[i])
		if err != nil {
			return nil, fmt.Errorf("building node %s: %w", s.Nodes[i].Name, err)
		}
		nodes[i] = n.With(pods[n.Name]...)
	}
	w.snapshot = cluster.NewSnapshot(1, levels, w.resources, nodes)
	if len(s.Uplinks) == 0 {
		return w, nil
	}
	uplinks := make([]cluster.Uplink, len(s.Uplinks))
	for i, u := range s.Uplinks {
		uplinks[i] = cluster.Uplink{Level: slices.Index(s.Levels, u.Level), Path: strings.Split(u.Domain, "/"), Mbps: u.Mbps}
	}
	var err error
	w.snapshot, err = w.snapshot.WithUplinks(uplinks)
	return w, err
}

// resourcesOf names what the nodes have, in an order that does not depend on theirs.
func resourcesOf(s *Scenario) *cluster.Resources {
	names := map[string]bool{}
	for _, n := range s.Nodes {
		for name := range n.Allocatable {
			names[name] = true
		}
	}
	return cluster.NewResources(slices.Sorted(maps.Keys(names))...)
}

// workloadsOf takes together what runs. A workload is as hard to evict as its hardest pod.
func workloadsOf(s *Scenario) map[string]*cluster.Workload {
	workloads := map[string]*cluster.Workload{}
	for i := range s.Running {
		r := &s.Running[i]
		preemptible := r.Preemptible == nil || *r.Preemptible
		w := workloads[r.workload()]
		if w == nil {
			w = &cluster.Workload{Name: r.workload(), Priority: r.Priority, Preemptible: preemptible, Movable: true, Level: -1}
			workloads[w.Name] = w
		}
		w.Priority = max(w.Priority, r.Priority)
		w.Preemptible = w.Preemptible && preemptible
		w.Mbps = max(w.Mbps, r.BandwidthMbps)
		w.Movable = w.Movable && r.Movable
		w.Level = max(w.Level, slices.Index(s.Levels, r.Level))
		w.Cost = max(w.Cost, r.Cost)
	}
	return workloads
}

// vector puts amounts in the order of the resources. What no node has is left out.
func (w *world) vector(amounts Amounts) cluster.Vector {
	v := make(cluster.Vector, w.resources.Len())
	for name, amount := range amounts {
		if i := w.resources.Index(name); i >= 0 {
			v[i] = amount
		}
	}
	return v
}

// podVector is vector for a pod, which is one of its node's pods unless it says otherwise.
func (w *world) podVector(requests Amounts) cluster.Vector {
	v := w.vector(requests)
	if _, says := requests[podsResource]; !says {
		v[cluster.Pods] = 1
	}
	return v
}

func (w *world) pod(r *Running) *cluster.Pod {
	p := &cluster.Pod{
		Name:     r.Name,
		Workload: w.workloads[r.workload()],
		Group:    r.Group,
		Use:      w.podVector(r.Requests),
		GPUs:     gpu.MaskOf(r.GPUs...),
	}
	if len(r.NodeSelector) > 0 || len(r.Tolerations) > 0 {
		p.Needs = &cluster.Needs{
			Selector: cluster.Selector{Labels: r.NodeSelector}, Tolerations: tolerations(&Group{Tolerations: r.Tolerations}),
		}
	}
	if r.uncounted(w.Scenario) {
		p.Use[cluster.Pods] = 0
	}
	if r.GPUMilli < cluster.Full {
		p.Milli = r.GPUMilli
	}
	return p
}

// node returns the node without the pods that run on it.
func (w *world) node(n *Node) (*cluster.Node, error) {
	m := &cluster.Machine{
		Name:        n.Name,
		Ready:       n.Ready == nil || *n.Ready,
		Cordoned:    n.Unschedulable,
		Labels:      n.Labels,
		Allocatable: w.vector(n.Allocatable),
		Path:        make([]string, len(w.Levels)),
	}
	if last := len(w.Levels) - 1; last >= 0 && n.Labels[w.Levels[last]] != "" {
		// The last level names the node: what has no name there is not in the topology.
		copy(m.Path, domainPath(w.Levels, n.Labels))
	}
	if _, limited := n.Allocatable[podsResource]; !limited {
		m.Allocatable[cluster.Pods] = unlimitedPods
	}
	for _, t := range n.Taints {
		// A preference keeps nobody away.
		if effect := cluster.Effect(t.Effect); effect == cluster.NoSchedule || effect == cluster.NoExecute {
			m.Taints = append(m.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: effect})
		}
	}
	node := &cluster.Node{Machine: m}
	if n.GPUs == nil {
		return node, nil
	}
	return node, w.furnish(node, n)
}

// furnish adds what is inside a node.
func (w *world) furnish(node *cluster.Node, n *Node) error {
	g := n.GPUs
	node.GPU = cluster.GPUFacts{
		Product:      g.Product,
		Architecture: strings.ToLower(g.Architecture),
		MemoryMiB:    g.MemoryMiB,
		Replicas:     g.Replicas,
		Sharing:      g.Sharing,
	}
	node.Geometry = n.geometry
	count := n.gpuCount()
	if count == 0 {
		return nil
	}
	var err error
	if node.Board, err = w.board(g, count); err != nil {
		return err
	}
	node.Broken = gpu.MaskOf(g.Broken...)
	node.Taken = gpu.MaskOf(g.Used...)
	if len(g.Milli) > 0 {
		node.Shares = make([]int16, count)
		for i, left := range g.Milli {
			node.Shares[i] = int16(cluster.Full - left)
		}
	}
	for _, m := range g.MIG {
		profile, _ := n.geometry.Profile(m.Profile)
		node.Instances = append(node.Instances, gpu.Instance{
			GPU: m.GPU, Profile: profile.Name, Start: m.Start, Size: profile.Memory, Used: m.inUse(),
		})
	}
	// What is in use inside cannot be free outside.
	if i := w.resources.Index(gpuResource); i >= 0 && g.Replicas < 2 {
		if over := node.Free(i) - int64((node.WholeGPUs() | node.Broken).Count()); over > 0 {
			node.Used = make(cluster.Vector, w.resources.Len())
			node.Used[i] = over
		}
	}
	return nil
}

// board returns the wiring of a node, the same for all nodes that are wired alike.
func (w *world) board(g *GPUs, count int) (*gpu.Board, error) {
	key := fmt.Sprint(count, g.Links, g.PCIe, g.NUMA)
	if b := w.boards[key]; b != nil {
		return b, nil
	}
	wiring := gpu.Wiring{Count: count, Links: g.Links, NUMA: g.NUMA}
	for _, row := range g.PCIe {
		classes := make([]gpu.PCIe, len(row))
		for i, text := range row {
			class, err := gpu.ParsePCIe(text)
			if err != nil {
				return nil, err
			}
			classes[i] = class
		}
		wiring.PCIe = append(wiring.PCIe, classes)
	}
	b, err := gpu.NewBoard(wiring)
	if err == nil {
		w.boards[key] = b
	}
	return b, err
}

package capture

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Scenario returns the file in which the request is asked of the snapshot, with the default
// weights. Source says where it comes from. It fails where the file cannot say what the answer
// depends on.
func Scenario(source string, s *cluster.Snapshot, r *placement.Request) ([]byte, error) {
	return Weighed(source, s, r, nil)
}

// Weighed is Scenario for a request that is answered with other weights; nil are the default ones.
func Weighed(source string, s *cluster.Snapshot, r *placement.Request, weights *placement.Scoring) ([]byte, error) {
	if err := sayable(s, r); err != nil {
		return nil, fmt.Errorf("writing %s as a scenario: %w", r.Name, err)
	}
	w := &writer{s: s, levels: ladderOf(s, &r.Groups[0])}
	f := file{Name: kebab(r.Name), Source: source, Levels: w.levels.keys(), Request: w.request(r), Nodes: []node{}, Scoring: scoringOf(weights), Policy: policyOf(s, r.Groups[0].Pod.Rules)}
	for i, n := range s.Nodes() {
		if err := w.levels.check(s, n); err != nil {
			return nil, fmt.Errorf("writing %s as a scenario: %w", r.Name, err)
		}
		f.Nodes = append(f.Nodes, w.node(n, i == 0))
		f.Running = append(f.Running, w.running(n)...)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return nil, fmt.Errorf("writing %s as a scenario: %w", r.Name, err)
	}
	return text.Bytes(), nil
}

func sayable(s *cluster.Snapshot, r *placement.Request) error {
	if len(r.Groups) != 1 || len(r.Sets) > 0 {
		return errors.New("it has several groups")
	}
	if g := &r.Groups[0]; len(r.Avoid) > 0 || len(g.Kept) > 0 || g.Limits != nil {
		return errors.New("it is about members that are replaced, or avoids nodes")
	}
	for _, n := range s.Nodes() {
		if err := sayableInside(s, n); err != nil {
			return err
		}
	}
	return nil
}

// sayableInside returns an error where what is known of the inside of a node and what is known of
// its pods do not agree, as it is for a moment after a pod came or went: a file must not say so.
func sayableInside(s *cluster.Snapshot, n *cluster.Node) error {
	if n.Board == nil {
		return nil
	}
	whole := s.Resources.Index(gpuResource)
	taken := n.Taken
	for _, p := range n.Pods {
		if p.GPUs != 0 && int64(p.GPUs.Count()) != p.Use.At(whole) {
			return fmt.Errorf("pod %s asks for %d GPUs of node %s and holds %d", p.Name, p.Use.At(whole), n.Name, p.GPUs.Count())
		}
		taken &^= p.GPUs
	}
	if n.Used.At(whole) > n.Allocatable.At(whole) {
		return fmt.Errorf("pods that are not there any more, or not yet, hold GPUs of node %s", n.Name)
	}
	if free := gpu.All(n.Board.Count()) &^ taken; n.Allocatable.At(whole) > int64(free.Count()) {
		return fmt.Errorf("GPUs of node %s are in use by pods that are not there", n.Name)
	}
	return nil
}

const gpuResource = "nvidia.com/gpu"

// kebab returns the name in the form that scenarios have.
func kebab(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

type writer struct {
	s      *cluster.Snapshot
	levels *ladder
}

// node writes a node. The first also names the resources of which no node has any: that a node
// once had them is a part of what the cluster knows.
func (w *writer) node(n *cluster.Node, first bool) node {
	out := node{
		Name:          n.Name,
		Labels:        maps.Clone(n.Labels),
		Allocatable:   w.amounts(n.Allocatable),
		Unschedulable: n.Cordoned,
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	w.levels.locate(out.Labels, n)
	for i := range w.s.Resources.Len() {
		if name := w.s.Resources.Name(i); n.Allocatable.At(i) == 0 && (first || i == cluster.Pods) {
			out.Allocatable[name] = "0"
		}
	}
	if !n.Ready {
		out.Ready = new(bool)
	}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	if n.GPU != (cluster.GPUFacts{}) || n.Board != nil {
		out.GPUs = &gpus{
			Opaque: n.Board == nil, Product: n.GPU.Product, Architecture: n.GPU.Architecture,
			MemoryMiB: n.GPU.MemoryMiB, Replicas: n.GPU.Replicas, Sharing: n.GPU.Sharing,
		}
		if n.GPU.Sharing == "none" {
			out.GPUs.Sharing = ""
		}
	}
	if n.Board != nil {
		out.GPUs.furnish(n)
	}
	return out
}

// furnish writes what is known of the inside of a node, less what its pods hold.
func (g *gpus) furnish(n *cluster.Node) {
	w := n.Board.Wiring()
	g.Links, g.NUMA = w.Links, w.NUMA
	for _, row := range w.PCIe {
		var words []string
		for _, class := range row {
			words = append(words, class.String())
		}
		g.PCIe = append(g.PCIe, words)
	}
	if w.Links == nil && w.PCIe == nil && w.NUMA == nil {
		g.NUMA = slices.Repeat([]int{-1}, w.Count) // It says how many there are.
	}
	used := n.Taken
	for _, p := range n.Pods {
		used &^= p.GPUs
	}
	g.Used, g.Broken = used.Indexes(), n.Broken.Indexes()
}

// running writes the node's pods, those that are listed one by one and the others as one.
func (w *writer) running(n *cluster.Node) []running {
	left := n.Allocatable.Clone()
	rest := n.Used.Clone()
	var all []running
	for _, p := range n.Pods {
		rest = rest.Sub(p.Use)
		all = append(all, w.pod(p, n.Name, w.within(p.Use, &left)))
	}
	others := w.within(rest, &left)
	if len(w.amounts(others)) > 0 {
		name := "other pods on " + n.Name
		requests := w.amounts(others)
		requests["pods"] = strconv.FormatInt(others.At(cluster.Pods), 10)
		all = append(all, running{Name: name, Workload: name, Node: n.Name, Requests: requests})
	}
	return all
}

// within takes the amounts from what is left of the node, and returns what it could take: a node
// that lost devices under its pods holds more than it offers, which a file may say of CPU and
// memory only. What is free is nothing in either case.
func (w *writer) within(use cluster.Vector, left *cluster.Vector) cluster.Vector {
	use = use.Clone()
	for i := range use {
		name := w.s.Resources.Name(i)
		if use[i] = max(0, use[i]); i != cluster.CPU && i != cluster.Memory && name != "ephemeral-storage" {
			use[i] = min(use[i], max(0, left.At(i)))
		}
	}
	*left = left.Sub(use)
	return use
}

func (w *writer) pod(p *cluster.Pod, on string, use cluster.Vector) running {
	out := running{
		Name:        p.Name,
		Workload:    p.Workload.Name,
		Priority:    p.Workload.Priority,
		Node:        on,
		Requests:    w.amounts(use),
		GPUs:        p.GPUs.Indexes(),
		Preemptible: p.Workload.Preemptible,
		Movable:     p.Workload.Movable,
		Level:       w.levels.key[p.Workload.Level],
		Cost:        p.Workload.Cost,
	}
	if pods := use.At(cluster.Pods); pods != 1 {
		out.Requests["pods"] = strconv.FormatInt(pods, 10)
	} else {
		delete(out.Requests, "pods") // What a file means that does not say.
	}
	if p.Needs != nil {
		out.NodeSelector, out.Tolerations = p.Needs.Selector.Labels, tolerations(p.Needs.Tolerations)
	}
	return out
}

// amounts writes what is not zero as Kubernetes quantities.
func (w *writer) amounts(v cluster.Vector) amounts {
	out := amounts{}
	for i, amount := range v {
		switch {
		case amount == 0:
		case i == cluster.CPU:
			out["cpu"] = resource.NewMilliQuantity(amount, resource.DecimalSI).String()
		case i == cluster.Memory:
			out["memory"] = resource.NewQuantity(amount, resource.BinarySI).String()
		default:
			out[w.s.Resources.Name(i)] = strconv.FormatInt(amount, 10)
		}
	}
	return out
}

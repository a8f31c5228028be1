package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judge says what an answer breaks of its scenario's facts. It reads the scenario alone, and
// shares nothing with what makes the answer, so that a mistake of the one shows in the other.
func judge(s *Scenario, a *Answer) []string {
	j := &verdict{s: s, a: a, nodes: map[string]*Node{}, free: map[string]Amounts{}, gpus: map[string][]int{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		j.nodes[n.Name], j.free[n.Name] = n, maps.Clone(n.Allocatable)
		if n.GPUs != nil {
			j.gpus[n.Name] = freeShares(n)
		}
	}
	if !a.Feasible {
		placed := len(a.GPUs) + len(a.MIG)
		for _, nodes := range a.Placement {
			placed += len(nodes)
		}
		if placed > 0 {
			j.bad("infeasible, yet something is placed")
		}
		return j.found
	}
	for node := range j.placedOn() {
		if j.nodes[node] == nil {
			j.bad("%s is no node", node)
		}
	}
	if len(j.found) > 0 {
		return j.found
	}
	j.running()
	j.movedLevels()
	for i := range s.Request.Groups {
		j.group(&s.Request.Groups[i])
	}
	for node := range j.placedOn() {
		j.devices(node)
		j.instances(node)
	}
	j.sets()
	return j.found
}

type verdict struct {
	s     *Scenario
	a     *Answer
	nodes map[string]*Node
	free  map[string]Amounts
	gpus  map[string][]int
	found []string
}

func (j *verdict) bad(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

func (j *verdict) placedOn() map[string]bool {
	on := map[string]bool{}
	for _, nodes := range j.a.Placement {
		for node, n := range nodes {
			if n > 0 {
				on[node] = true
			}
		}
	}
	return on
}

// freeShares returns the thousandths free of each GPU before anything runs.
func freeShares(n *Node) []int {
	count := max(len(n.GPUs.Links), len(n.GPUs.PCIe), len(n.GPUs.NUMA), len(n.GPUs.Milli))
	if count == 0 {
		count = int(n.Allocatable["nvidia.com/gpu"])
	}
	free := slices.Repeat([]int{1000}, count)
	copy(free, n.GPUs.Milli)
	for _, i := range slices.Concat(n.GPUs.Used, n.GPUs.Broken) {
		free[i] = 0
	}
	return free
}

func (j *verdict) lost(r *Running) bool {
	return r.Workload == j.s.Request.Name && slices.Contains(j.s.Request.Replaces, r.Name)
}

// evicted tells whether the pod makes way, which it must be allowed to.
func (j *verdict) evicted(r *Running) bool {
	if !slices.Contains(j.a.Victims, r.workload()) {
		return false
	}
	switch {
	case j.s.Request.Preemption != "lowerPriority":
		j.bad("%s is evicted by a request that may not preempt", r.Name)
	case r.Preemptible != nil && !*r.Preemptible:
		j.bad("%s is evicted, and is not preemptible", r.Name)
	case r.Priority >= j.s.Request.Priority:
		j.bad("%s of priority %d makes way for %d", r.Name, r.Priority, j.s.Request.Priority)
	}
	return true
}

func (j *verdict) running() {
	for i := range j.s.Running {
		r := &j.s.Running[i]
		if j.lost(r) || r.Node == "" || r.Phase == "Succeeded" || r.Phase == "Failed" {
			continue
		}
		if j.moved(r) || j.evicted(r) {
			continue
		}
		j.use(r.Node, r.Requests, 1)
		for _, g := range r.GPUs {
			share := r.GPUMilli
			if share == 0 {
				share = 1000
			}
			if j.gpus[r.Node] != nil {
				j.gpus[r.Node][g] -= share
			}
		}
	}
}

func (j *verdict) use(node string, requests Amounts, pods int64) {
	for name, amount := range requests {
		j.free[node][name] -= amount * pods
	}
	if _, limited := j.nodes[node].Allocatable["pods"]; limited && requests["pods"] == 0 {
		j.free[node]["pods"] -= pods
	}
}

func (j *verdict) group(g *Group) {
	placed, members := 0, map[string]int{}
	for node, n := range j.a.Placement[g.Name] {
		if n == 0 {
			continue
		}
		placed += n
		members[node] += n
		j.usable(g, node)
		j.use(node, g.Requests, int64(n))
		for name, amount := range g.Requests {
			if left := j.free[node][name]; amount > 0 && left < 0 {
				j.bad("%d too much of %s on %s", -left, name, node)
			}
		}
		if left, limited := j.free[node]["pods"]; limited && left < 0 {
			j.bad("%d pods too many on %s", -left, node)
		}
	}
	least, most := g.Count, g.Count
	if g.MinCount != nil {
		least = *g.MinCount
	}
	if len(j.s.Request.Replaces) > 0 {
		least, most = 0, 0
	}
	for i := range j.s.Running {
		r := &j.s.Running[i]
		if len(j.s.Request.Replaces) == 0 || r.Workload != j.s.Request.Name || r.Group != g.Name && (r.Group != "" || g.Name != j.s.Request.Groups[0].Name) {
			continue
		}
		if j.lost(r) {
			least, most = least+1, most+1
		} else if r.Node != "" {
			members[r.Node]++
		}
	}
	if placed < least || placed > most {
		j.bad("%s: %d pods placed, %d to %d wanted", g.Name, placed, least, most)
	}
	if g.Together == "" {
		j.oneDomain(g.Name, g.Topology.Required, members)
	}
	for _, sl := range g.Slice {
		j.slices(g.Name, sl, members)
	}
}

func (j *verdict) usable(g *Group, node string) {
	n := j.nodes[node]
	tolerated := func(key, value, effect string) bool {
		return slices.ContainsFunc(g.Tolerations, func(t Toleration) bool {
			return (t.Effect == "" || t.Effect == effect) && (t.Key == "" || t.Key == key) && (t.Operator == "Exists" || t.Value == value)
		})
	}
	if n.Ready != nil && !*n.Ready {
		j.bad("%s is not ready", node)
	}
	if n.Unschedulable && !tolerated("node.kubernetes.io/unschedulable", "", "NoSchedule") {
		j.bad("%s is unschedulable", node)
	}
	for _, t := range n.Taints {
		if t.Effect != "PreferNoSchedule" && !tolerated(t.Key, t.Value, t.Effect) {
			j.bad("%s has the taint %s", node, t.Key)
		}
	}
	for key, value := range g.NodeSelector {
		if have, ok := n.Labels[key]; !ok || have != value {
			j.bad("%s is not selected", node)
		}
	}
	if g.GPU.Product != "" && (n.GPUs == nil || n.GPUs.Product != g.GPU.Product) {
		j.bad("%s has another product", node)
	}
}

// domainOf names the domain of a level that the node is in, "" for none.
func (j *verdict) domainOf(node, level string) string {
	var values []string
	for _, l := range j.s.Levels {
		v := j.nodes[node].Labels[l]
		if v == "" {
			return ""
		}
		values = append(values, v)
		if l == level {
			return strings.Join(values, "/")
		}
	}
	return ""
}

func (j *verdict) oneDomain(who, level string, members map[string]int) {
	if level == "" {
		return
	}
	domains := map[string]bool{}
	for node := range members {
		domains[j.domainOf(node, level)] = true
	}
	if len(domains) > 1 || domains[""] {
		j.bad("%s spread over %d domains of %s", who, len(domains), level)
	}
}

func (j *verdict) sets() {
	together := map[string]map[string]int{}
	required := map[string]string{}
	for _, g := range j.s.Request.Groups {
		if g.Together == "" {
			continue
		}
		if together[g.Together] == nil {
			together[g.Together] = map[string]int{}
		}
		maps.Copy(together[g.Together], j.a.Placement[g.Name])
		if g.Topology.Required != "" {
			required[g.Together] = g.Topology.Required
		}
	}
	for name, members := range together {
		j.oneDomain(name, required[name], members)
	}
	for _, set := range j.s.Request.Sets {
		members := map[string]int{}
		for _, g := range set.Groups {
			maps.Copy(members, j.a.Placement[g])
		}
		j.oneDomain(strings.Join(set.Groups, "+"), set.Required, members)
	}
}

func (j *verdict) slices(who string, sl Slice, members map[string]int) {
	inDomain := map[string]int{}
	total := 0
	for node, n := range members {
		inDomain[j.domainOf(node, sl.Level)] += n
		total += n
	}
	full, rests := 0, 0
	for _, n := range inDomain {
		full += n / sl.Size
		if n%sl.Size > 0 {
			rests++
		}
	}
	if inDomain[""] > 0 || full < total/sl.Size || rests > 1 {
		j.bad("%s: slices of %d do not each share one domain of %s", who, sl.Size, sl.Level)
	}
}

// devices checks the GPUs of a node of which the answer names any.
func (j *verdict) devices(node string) {
	type want struct{ size, share int }
	var wants []want
	for _, g := range j.s.Request.Groups {
		w := want{int(g.Requests["nvidia.com/gpu"]), 1000}
		if g.GPUMilli > 0 {
			w = want{1, g.GPUMilli}
		}
		for range j.a.Placement[g.Name][node] {
			if w.size > 0 {
				wants = append(wants, w)
			}
		}
	}
	lists := j.a.GPUs[node]
	if len(lists) == 0 {
		return
	}
	free := slices.Clone(j.gpus[node])
	for i, list := range lists {
		if i >= len(wants) || len(list) != wants[i].size {
			j.bad("the GPU lists of %s have other sizes than was asked for", node)
			return
		}
		for _, k := range list {
			if k < 0 || k >= len(free) || free[k] < wants[i].share {
				j.bad("GPU %d of %s is given out twice, in use or not there", k, node)
				continue
			}
			free[k] -= wants[i].share
		}
	}
}

func (j *verdict) instances(node string) {
	n, asked := j.nodes[node], 0
	for _, g := range j.s.Request.Groups {
		asked += len(g.MIG) * j.a.Placement[g.Name][node]
	}
	taken := map[[2]int]bool{}
	occupy := func(gpu int, profile string, start int) {
		p, ok := n.geometry.Profile(profile)
		if !ok || !slices.Contains(p.Starts, start) {
			j.bad("%s may not start at %d on %s", profile, start, node)
			return
		}
		for slice := start; slice < start+p.Memory; slice++ {
			if taken[[2]int{gpu, slice}] {
				j.bad("%s at %d overlaps another on GPU %d of %s", profile, start, gpu, node)
			}
			taken[[2]int{gpu, slice}] = true
		}
	}
	if n.GPUs != nil {
		for _, m := range n.GPUs.MIG {
			if m.Used == nil || *m.Used {
				occupy(m.GPU, m.Profile, m.Start)
			}
		}
	}
	for _, m := range j.a.MIG {
		if m.Node != node {
			continue
		}
		asked--
		occupy(m.GPU, m.Profile, m.Start)
		if j.gpus[node][m.GPU] < 1000 {
			j.bad("%s is on GPU %d of %s, which is in use otherwise", m.Profile, m.GPU, node)
		}
	}
	if asked != 0 {
		j.bad("%d instances are missing on %s", asked, node)
	}
}

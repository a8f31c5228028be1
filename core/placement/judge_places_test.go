package placement

import (
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// suitable tells whether anything about the node's kind and health keeps the group from it.
func suitable(n *cluster.Node, r *Request, g *Group) bool {
	q := &g.Pod
	all := len(q.Tolerations) > 0 // Drawn pods tolerate everything or nothing.
	switch {
	case !n.Ready, n.Cordoned && !all, len(n.Taints) > 0 && !all:
		return false
	case q.Selector.Labels["zone"] != "" && n.Labels["zone"] != q.Selector.Labels["zone"]:
		return false
	case q.Rules != nil && q.Rules.(zoneRules).refused != "" && n.Labels["zone"] == q.Rules.(zoneRules).refused:
		return false
	case q.Missing != "", slices.Contains(r.Avoid, n.Name):
		return false
	case q.Milli > 0 && q.GPUs > 0 && (n.GPU.Replicas < 1 || 1000/n.GPU.Replicas < q.Milli):
		return false
	case len(q.MIG) > 0 && (n.Geometry == nil || n.Board == nil):
		return false
	}
	return true
}

// wrongPlaces judges where the pods of one group are: their level, limits and slices.
func wrongPlaces(s *cluster.Snapshot, g *Group, nodes []string) string {
	if !together(s, append(slices.Clone(g.Kept), nodes...), g.Topology.Required) {
		return "not in one domain of the required level"
	}
	on := map[string]int{}
	for _, name := range nodes {
		if on[name]++; g.Limits != nil && on[name] > g.Limits[name] {
			return fmt.Sprintf("%d pods on %s, at most %d may be", on[name], name, g.Limits[name])
		}
	}
	if g.KeptInSlices && len(g.Kept) > 0 {
		if !sliceable(s, g.Slices, append(slices.Clone(g.Kept), nodes...)) {
			return "slices of members kept and new are torn"
		}
		return ""
	}
	for _, sl := range g.Slices {
		for i := 0; i < len(nodes); i += sl.Size {
			if !together(s, nodes[i:min(i+sl.Size, len(nodes))], sl.Level) {
				return fmt.Sprintf("slice %d of %d ranks is torn", i/sl.Size, sl.Size)
			}
		}
	}
	return ""
}

// sliceable tells whether pods on these nodes can be ranked so that every slice of every layer
// is in one domain: all domains of the outermost layer hold whole slices, but for one that
// holds the short last one, and within each of them the same is true of the layers inside.
func sliceable(s *cluster.Snapshot, layers []Slice, nodes []string) bool {
	if len(layers) == 0 {
		return true
	}
	byDomain := map[string][]string{}
	for _, name := range nodes {
		domain := key(s.Node(name), layers[0].Level)
		if domain == "" {
			return false
		}
		byDomain[domain] = append(byDomain[domain], name)
	}
	rest, short := len(nodes)%layers[0].Size, 0
	for _, inside := range byDomain {
		if odd := len(inside) % layers[0].Size; odd > 0 {
			if short++; odd != rest {
				return false
			}
		}
		if !sliceable(s, layers[1:], inside) {
			return false
		}
	}
	return short == min(rest, 1)
}

// overloaded tells which uplink a plan asks too much of: of each domain that holds some of a
// group's pods but not all, the uplink carries what those need.
func overloaded(s *cluster.Snapshot, r *Request, d *Decision) string {
	left := s.UplinksLeft()
	for level := range left {
		for k, domain := range s.Domains(level) {
			need := int64(0)
			for i := range r.Groups {
				inside, all := int64(0), int64(len(d.Groups[i].At)+len(r.Groups[i].Kept))
				for _, at := range d.Groups[i].At {
					if domain.Holds(int(at)) {
						inside++
					}
				}
				kept := int64(0)
				for _, name := range r.Groups[i].Kept {
					if domain.Holds(s.IndexOf(name)) {
						kept++
					}
				}
				// Members that stay were promised theirs when they came.
				if inside+kept < all {
					need += inside * r.Groups[i].Mbps
				}
			}
			if need > 0 && left[level][k] >= 0 && need > left[level][k] {
				return fmt.Sprintf("%d Mbit/s through the uplink of %s, which has %d left", need, s.DomainName(domain), left[level][k])
			}
		}
	}
	return ""
}

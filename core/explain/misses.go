package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Miss is a domain that comes near, with what stands in the way there.
type Miss struct {
	// Level is the name of the level, "" for the whole cluster; Domain the domain's.
	Level, Domain string
	// Room is how many pods it takes now, Empty how many it would if nothing ran and all of it
	// were in service, and Need how many it has to take.
	Room, Empty, Need int
	// Holders are the workloads that hold GPUs where more pods could be, those that hold the most
	// first; Nodes those out of service, or otherwise not to be used.
	Holders []Holder
	Nodes   []NodeInTheWay
	// MoreHolders and MoreNodes count those left out.
	MoreHolders, MoreNodes int
}

// Holder is a workload that holds room.
type Holder struct {
	Workload string
	Priority int32
	// GPUs is how many it holds in the domain, on Nodes nodes of it.
	GPUs  int64
	Nodes int
}

// NodeInTheWay is a node of which no part can be used.
type NodeInTheWay struct {
	Name string
	Why  placement.Reason
}

// The most domains of the required level, and the most names in each row.
const (
	mostDomains = 3
	mostNames   = 5
)

// misses returns the cluster, and of each level down to the required one the best domains.
func (e *explainer) misses() []Miss {
	if e.Snapshot.Len() == 0 {
		return nil
	}
	level := e.group.Topology.Required
	var rows []Miss
	for l := placement.AnyLevel; l <= level; l++ {
		domains := slices.Clone(e.Snapshot.Domains(l))
		// Levels of which there is one domain say nothing that the cluster does not.
		if l >= 0 && l < level && len(domains) < 2 {
			continue
		}
		slices.SortStableFunc(domains, func(a, b cluster.Domain) int {
			roomA, emptyA := e.roomIn(a)
			roomB, emptyB := e.roomIn(b)
			return cmp.Or(cmp.Compare(roomB, roomA), cmp.Compare(emptyB, emptyA))
		})
		most := 1
		if l == level {
			most = mostDomains
		}
		for _, d := range domains[:min(most, len(domains))] {
			rows = append(rows, e.miss(d))
		}
	}
	return rows
}

// roomIn counts pods of the group in the domain: in whole slices where it has slices, which are
// counted domain by domain of their level.
func (e *explainer) roomIn(d cluster.Domain) (room, empty int) {
	if len(e.group.Slices) > 0 && e.group.Slices[0].Level > d.Level {
		size := e.group.Slices[0].Size
		first, end := e.Snapshot.Within(e.group.Slices[0].Level, d)
		for _, part := range e.Snapshot.Domains(e.group.Slices[0].Level)[first:end] {
			r, m := e.sum(part)
			room += r / size * size
			empty += m / size * size
		}
		return room, empty
	}
	return e.sum(d)
}

func (e *explainer) sum(d cluster.Domain) (room, empty int) {
	for i := d.First; i < d.End; i++ {
		room += e.rooms[i].Fits
		empty += e.rooms[i].FitsEmpty
	}
	return room, empty
}

func (e *explainer) need() int {
	if c := e.refused.Why.Certificate; c != nil && c.Need > 0 && c.Kind == placement.NoDomainHolds {
		return c.Need
	}
	if e.group.MinCount > 0 {
		return e.group.MinCount
	}
	return e.group.Count
}

func (e *explainer) miss(d cluster.Domain) Miss {
	m := Miss{Domain: e.Snapshot.DomainName(d), Need: e.need()}
	m.Room, m.Empty = e.roomIn(d)
	if d.Level >= 0 {
		m.Level = e.Snapshot.Levels[d.Level].Name
	}
	held := map[string]*Holder{}
	var holders []*Holder
	for i, n := range e.Snapshot.In(d) {
		room := &e.rooms[i]
		if room.FitsEmpty == 0 {
			continue // Nothing that could be done to this node would help.
		}
		if room.Why == placement.NotReady || room.Why == placement.IsCordoned || room.Why == placement.GPUsBroken {
			m.Nodes = append(m.Nodes, NodeInTheWay{Name: n.Name, Why: room.Why})
			continue
		}
		if room.Fits >= room.FitsEmpty {
			continue
		}
		last := map[string]bool{}
		for _, p := range n.Pods {
			if p.Workload == nil {
				continue
			}
			h := held[p.Workload.Name]
			if h == nil {
				h = &Holder{Workload: p.Workload.Name, Priority: p.Workload.Priority}
				held[h.Workload] = h
				holders = append(holders, h)
			}
			h.GPUs += p.Use.At(e.group.Pod.GPUResource)
			if !last[h.Workload] {
				last[h.Workload] = true
				h.Nodes++
			}
		}
	}
	slices.SortStableFunc(holders, func(a, b *Holder) int {
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.Workload, b.Workload))
	})
	for _, h := range holders[:min(mostNames, len(holders))] {
		m.Holders = append(m.Holders, *h)
	}
	m.MoreHolders = len(holders) - len(m.Holders)
	m.MoreNodes = max(0, len(m.Nodes)-mostNames)
	m.Nodes = m.Nodes[:len(m.Nodes)-m.MoreNodes]
	return m
}

// evidence is the one sentence.
func (e *explainer) evidence(answer *Explanation) string {
	why, pod, need := &e.refused.Why, &e.group.Pod, e.need()
	level := e.group.Topology.Required
	var of, most string
	if pod.GPUs > 0 && pod.GPUs == why.Largest {
		of, most = plural(need, "free node"), fmt.Sprint(why.Room)
	} else {
		of, most = fmt.Sprintf("room for %s of %s", plural(need, "pod"), plural(int(pod.GPUs), "GPU")), fmt.Sprintf("room for %d", why.Room)
	}
	switch {
	case answer.Reason == NodesOutOfService:
		return e.outOfService(answer)
	case answer.Reason == Fragmented && pod.GPUs > 0 && level >= 0 && len(e.group.Slices) == 0:
		name := e.Snapshot.Levels[level].Name
		return fmt.Sprintf("%s, but no %s has %s; the best, %s, has %s", isFree(why.FreeGPUs), name, of, why.Best, most)
	case answer.Reason == Fragmented && pod.GPUs > 0 && level < 0 && need == 1:
		return fmt.Sprintf("%s, but no node has %d; the most, %s, has %d", isFree(why.FreeGPUs), pod.GPUs, why.MostFreeNode, why.MostFree)
	case answer.Reason == Fragmented && pod.GPUs > 0 && level < 0 && len(e.group.Slices) == 0:
		return fmt.Sprintf("%s, but scattered: there must be %s, and there is room for %d", isFree(why.FreeGPUs), of, why.Room)
	case answer.Reason == NotEnoughGPUs:
		if need == 1 {
			return fmt.Sprintf("%s needed and %s", plural(int(pod.GPUs), "GPU")+isAre(pod.GPUs), isFree(why.FreeGPUs))
		}
		return fmt.Sprintf("%s of %s are needed and %s", plural(need, "pod"), plural(int(pod.GPUs), "GPU"), isFree(why.FreeGPUs))
	}
	return why.Sentence
}

func (e *explainer) outOfService(answer *Explanation) string {
	for i := range answer.Remedies {
		if r := &answer.Remedies[i]; r.Kind == Mend {
			verb := "is"
			if len(r.Mend) > 1 {
				verb = "are"
			}
			return fmt.Sprintf("there would be room if %s %s in service: %s", someOf(r.Subjects), verb, e.whyOut(r.Mend))
		}
	}
	return e.refused.Why.Sentence
}

func (e *explainer) whyOut(nodes []string) string {
	var parts []string
	for _, name := range nodes[:min(3, len(nodes))] {
		n := e.Snapshot.Node(name)
		switch {
		case !n.Ready:
			parts = append(parts, name+" is not ready")
		case n.Cordoned:
			parts = append(parts, name+" is cordoned")
		default:
			parts = append(parts, fmt.Sprintf("%s has %s", name, plural(n.Broken.Count(), "broken GPU")))
		}
	}
	return join(parts)
}

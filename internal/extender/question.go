package extender

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// question is what is asked about one pod at one moment.
type question struct {
	snapshot *cluster.Snapshot
	gang     state.PodGang
	// request asks for the pod and for those of its gang, or of its slice of it, that have no node
	// yet. Kept are the nodes of the others.
	request placement.Request
	// level is the topology level of which one domain has to hold all of them, -1 for none.
	level int
}

// group is the only group of the request.
func (q *question) group() *placement.Group { return &q.request.Groups[0] }

// ask reads the pod and its gang. Errors say what of the pod must change, or why its gang takes
// no more pods. The caller holds the lock.
func (e *engine) ask(pod *corev1.Pod) (*question, error) {
	gang, err := state.GangOf(pod)
	if err != nil {
		return nil, err
	}
	m := e.look(gang.Name)
	q := &question{snapshot: m.snapshot, gang: gang, level: placement.AnyLevel}
	if !gang.IsGang() {
		q.request, err = e.state.PodQuestion(pod, &gang, 1, 0, nil)
		return q, err
	}
	if err := agree(pod, &gang, m.members); err != nil {
		return nil, err
	}
	bound := placed(m.members, pod)
	if len(bound) >= gang.Size {
		return nil, fmt.Errorf("gang %s has all of its %d pods on nodes: this pod is one too many", gang.Name, gang.Size)
	}
	if gang.SliceSize > 0 {
		return q, e.askSliced(q, pod, bound)
	}
	return q, e.askWhole(q, pod, &gang, bound)
}

// askWhole asks for all of the gang that has no node yet.
func (e *engine) askWhole(q *question, pod *corev1.Pod, gang *state.PodGang, bound []state.GangMember) error {
	var err error
	q.request, err = e.state.PodQuestion(pod, gang, gang.Size-len(bound), max(gang.Min-len(bound), 1), nodesOf(bound))
	if err != nil {
		return err
	}
	q.request.Seed = gangSeed(gang.Name)
	q.level = q.group().Topology.Required
	return nil
}

// askSliced asks for the slice that the pod belongs to, or, as long as no pod of the gang has a
// node, for the gang in slices.
func (e *engine) askSliced(q *question, pod *corev1.Pod, bound []state.GangMember) error {
	rank, size := state.RankOf(pod), q.gang.SliceSize
	if rank < 0 {
		return &state.InvalidError{
			Field:   fmt.Sprintf("metadata.annotations[%s]", gpuv1alpha1.RankAnnotation),
			Problem: "is missing: of a gang in slices every pod has a rank, by this annotation, an Indexed Job or a StatefulSet",
		}
	}
	if len(bound) == 0 {
		if err := e.askWhole(q, pod, &q.gang, nil); err != nil {
			return err
		}
		if slices := q.group().Slices; len(slices) > 0 {
			q.level = slices[0].Level
		}
		return nil
	}
	var mates []state.GangMember
	for _, m := range bound {
		if m.Rank >= 0 && m.Rank/size == rank/size {
			mates = append(mates, m)
		}
	}
	// One slice by itself is a gang that one domain of its level holds. The whole gang's domain is
	// that of the members that have nodes: others are out of the question.
	slice := q.gang
	slice.Size, slice.Min = size, size
	slice.Required, slice.SliceSize, slice.SliceLevel = q.gang.SliceLevel, 0, ""
	if len(mates) >= size {
		return fmt.Errorf("gang %s has all %d pods of the slice of rank %d on nodes: this pod is one too many", q.gang.Name, size, rank)
	}
	outer, err := e.state.PodQuestion(pod, &q.gang, 1, 0, nil)
	if err != nil {
		return err
	}
	if err := e.askWhole(q, pod, &slice, mates); err != nil {
		return err
	}
	// A required level that is the narrower one holds for its slices, too.
	if required := outer.Groups[0].Topology.Required; required > q.level {
		q.level = required
		q.group().Topology.Required = required
	} else if required >= 0 {
		q.request.Avoid = outside(q.snapshot, required, bound)
	}
	return nil
}

// agree tells whether the pods of a gang say the same of it.
func agree(pod *corev1.Pod, gang *state.PodGang, members []state.GangMember) error {
	for i := range members {
		m := &members[i]
		if m.UID == pod.UID || m.Leaving {
			continue
		}
		differs := func(field string, own, other any) error {
			return &state.InvalidError{Field: field, Problem: fmt.Sprintf(
				"is %v here and %v on pod %s of the same gang %s: pods of one gang say the same", own, other, m.Pod, gang.Name)}
		}
		annotation := func(key string) string { return fmt.Sprintf("metadata.annotations[%s]", key) }
		switch g := &m.Gang; {
		case g.Size != gang.Size:
			return differs(fmt.Sprintf("metadata.labels[%s]", gpuv1alpha1.GangSizeLabel), gang.Size, g.Size)
		case g.Min != gang.Min:
			return differs(annotation(gpuv1alpha1.GangMinSizeAnnotation), gang.Min, g.Min)
		case g.Required != gang.Required:
			return differs(annotation(gpuv1alpha1.RequiredLevelAnnotation), quoted(gang.Required), quoted(g.Required))
		case g.SliceSize != gang.SliceSize || g.SliceLevel != gang.SliceLevel:
			return differs(annotation(gpuv1alpha1.SliceAnnotation),
				fmt.Sprintf("%d/%s", gang.SliceSize, gang.SliceLevel), fmt.Sprintf("%d/%s", g.SliceSize, g.SliceLevel))
		}
	}
	return nil
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// placed returns the members that have a node and keep it, without the pod itself.
func placed(members []state.GangMember, pod *corev1.Pod) []state.GangMember {
	var found []state.GangMember
	for i := range members {
		if m := &members[i]; m.Node != "" && !m.Leaving && m.UID != pod.UID {
			found = append(found, *m)
		}
	}
	return found
}

func nodesOf(members []state.GangMember) []string {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Node
	}
	return names
}

// outside returns the nodes that are not in the members' domain of the level.
func outside(s *cluster.Snapshot, level int, members []state.GangMember) []string {
	home := -1
	for i := range members {
		if at := s.IndexOf(members[i].Node); at >= 0 {
			home = s.DomainOf(level, at)
			break
		}
	}
	if home < 0 {
		return nil
	}
	var names []string
	d := s.Domains(level)[home]
	for i, n := range s.Nodes() {
		if !d.Holds(i) {
			names = append(names, n.Name)
		}
	}
	return names
}

package extender

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// verdict says whether a node is offered to a pod.
type verdict struct {
	// reason is why not, worded for several nodes as kube-scheduler counts them; "" offers it.
	reason string
	// final says that evicting pods from the node would not change that.
	final bool
}

// filter judges the nodes, one verdict each.
func (e *engine) filter(pod *corev1.Pod, names []string) []verdict {
	verdicts := make([]verdict, len(names))
	if node := planned(pod); node != "" {
		for i, name := range names {
			if name != node {
				verdicts[i] = verdict{reason: "are not the node that the pod was planned on", final: true}
			}
		}
		return verdicts
	}
	if !wantsGPU(pod) {
		return verdicts
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q, err := e.ask(pod)
	if err != nil {
		return refused(verdicts, err)
	}
	standings, err := placement.Standings(q.snapshot, &q.request, e.options())
	if err != nil {
		return refused(verdicts, err)
	}
	offer := offer{domain: q.snapshot.Whole()}
	if q.gang.IsGang() {
		offer = e.offer(q, names)
	}
	shape := &q.group().Pod
	for i, name := range names {
		at := q.snapshot.IndexOf(name)
		switch {
		case at < 0:
			verdicts[i] = verdict{reason: "are not known to the extender yet", final: true}
		case standings[at].Reason != placement.Fits:
			verdicts[i] = verdict{reason: standings[at].Reason.Words(shape), final: !standings[at].Reason.Taken()}
		case offer.refusal != "":
			verdicts[i] = verdict{reason: offer.refusal}
		case !offer.domain.Holds(at):
			verdicts[i] = verdict{reason: offer.elsewhere, final: offer.pinned}
		}
	}
	return verdicts
}

// refused gives all nodes the same final reason: the pod has to change, or its gang.
func refused(verdicts []verdict, err error) []verdict {
	for i := range verdicts {
		verdicts[i] = verdict{reason: "refused for the pod's own sake: " + err.Error(), final: true}
	}
	return verdicts
}

// offer is where the next pod of a gang may go.
type offer struct {
	domain cluster.Domain
	// plan is where all those would go that have no node yet, one entry a pod; near is the domain
	// of the preferred level that they would be in, the domain if there is none.
	plan []int32
	near cluster.Domain
	// refusal is why nowhere; elsewhere why not outside of the domain, which is for good if pinned:
	// other members are there already.
	refusal, elsewhere string
	pinned             bool
}

// otherDomains bounds how many domains are passed over because kube-scheduler named no node of
// them.
const otherDomains = 8

// offer finds the one domain that the gang goes on in: that of the members that have nodes, or the
// one that the engine would choose now. All members get the same answer from the same snapshot.
func (e *engine) offer(q *question, names []string) offer {
	request := q.request
	for range otherDomains {
		d, err := placement.Plan(q.snapshot, &request, e.options())
		if err != nil {
			return offer{refusal: err.Error()}
		}
		if !d.Feasible {
			return offer{refusal: fmt.Sprintf("have to wait with the rest of gang %s: %s", q.gang.Name, d.Why.Sentence)}
		}
		o := offer{domain: q.snapshot.Whole(), plan: d.Groups[0].At, pinned: len(q.group().Kept) > 0}
		if q.level >= 0 {
			o.domain = domainAt(q.snapshot, q.level, int(o.plan[0]))
			o.elsewhere = fmt.Sprintf("are outside of %s %s, where gang %s goes", q.snapshot.Levels[q.level].Name, q.snapshot.DomainName(o.domain), q.gang.Name)
		}
		o.near = o.domain
		if level, ok := q.snapshot.Level(d.Level); ok && level > o.domain.Level {
			o.near = domainAt(q.snapshot, level, int(o.plan[0]))
		}
		// Of one node only it is asked whether it is in the domain: kube-scheduler has chosen it
		// already. Of many of which none is, something that we do not see keeps the pod out there.
		if o.pinned || q.level < 0 || len(names) == 1 || anyIn(q.snapshot, o.domain, names) {
			return o
		}
		for _, n := range q.snapshot.In(o.domain) {
			request.Avoid = append(request.Avoid, n.Name)
		}
	}
	return offer{refusal: fmt.Sprintf("have to wait with the rest of gang %s: kube-scheduler names no node of the %d best domains", q.gang.Name, otherDomains)}
}

// domainAt returns the domain of a level that the node at a position is in, the whole cluster if it
// is in none.
func domainAt(s *cluster.Snapshot, level, at int) cluster.Domain {
	if d := s.DomainOf(level, at); d >= 0 {
		return s.Domains(level)[d]
	}
	return s.Whole()
}

func anyIn(s *cluster.Snapshot, d cluster.Domain, names []string) bool {
	for _, name := range names {
		if at := s.IndexOf(name); at >= 0 && d.Holds(at) {
			return true
		}
	}
	return false
}

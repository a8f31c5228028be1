package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
	"github.com/reyisjones/gpu-orchestrator/internal/telemetry"
)

const (
	// spareRounds is how often another set of victims is asked for after one that disruption
	// budgets forbid.
	spareRounds = 5
	// victimPatience is how long beyond their own grace period victims may take to end.
	victimPatience = time.Minute
)

// victims are pods that make way, until when they must have.
type victims struct {
	pods  map[types.UID]bool
	until time.Time
}

// preempt looks for pods of lower priority in whose place the pod, or its gang, can go. It is asked
// once a gang: by its leader. The room is held for them from then on; they are tried again
// when the last victim is gone.
func (p *Plugin) preempt(pod *corev1.Pod) (*fwk.PostFilterResult, *fwk.Status) {
	if !*p.args.Preemption || pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever {
		return nil, refuse("")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g, a := p.roster.of[pod.UID], p.alone[pod.UID]
	var ask state.PodGang
	var q state.PodsAsked
	switch {
	case g != nil && g.refusal != "" && len(g.victims.pods) == 0:
		ask, _ = g.ask()
		q = p.asked(g, &ask)
	case a != nil && a.refused && len(a.victims.pods) == 0:
		ask, q = a.ask, askedAlone(pod)
	default:
		return nil, refuse("") // It waits for something else than room.
	}
	d, gone, why := p.findVictims(&ask, q, corev1helpers.PodPriority(pod))
	if len(gone) == 0 {
		return nil, refuse(why)
	}
	who, node := "pod "+pod.Namespace+"/"+pod.Name, d.Nodes()[0]
	v := victims{pods: map[types.UID]bool{}, until: p.clock.Now().Add(victimPatience)}
	for _, victim := range gone {
		v.pods[victim.UID] = true
		grace := time.Duration(0)
		if s := victim.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		if until := p.clock.Now().Add(grace + victimPatience); until.After(v.until) {
			v.until = until
		}
	}
	if g != nil {
		who = "gang " + g.name.String()
		p.assign(g, &d)
		g.victims = v
		node = g.members[pod.UID].node
	} else {
		a.refused, a.node, a.victims = false, node, v
		p.state.Assume(pod, node)
	}
	for i := range d.Victims {
		p.metrics.Preempted(telemetry.EvictedForPriority, len(d.Victims[i].Evicted))
	}
	go p.evict(gone, who)
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride}},
		fwk.NewStatus(fwk.Success)
}

// findVictims asks the engine whose place to take, and asks again without those whose disruption
// budgets forbid it.
func (p *Plugin) findVictims(ask *state.PodGang, q state.PodsAsked, priority int32) (d placement.Decision, gone []*corev1.Pod, why string) {
	q.Preempts = true
	for range spareRounds {
		d, err := p.decide(ask, q)
		if err != nil || !d.Feasible || len(d.Victims) == 0 {
			return d, nil, why
		}
		gone, spare := p.judgeVictims(d.Victims, priority)
		if len(spare) == 0 {
			return d, gone, ""
		}
		q.Spare = append(q.Spare, spare...)
		// Their names are nothing that this pod's namespace is to know.
		why = fmt.Sprintf("disruption budgets protect them or they end already: %d of lower priority", len(q.Spare))
	}
	return d, nil, why
}

// judgeVictims returns the pods that would be evicted, and the victims that cannot be: those whose
// disruption budgets have not enough left, or that are not what the engine takes them for.
func (p *Plugin) judgeVictims(list []placement.Victim, priority int32) (gone []*corev1.Pod, spare []string) {
	left := p.allowed()
	for _, v := range list {
		var own []*corev1.Pod
		ok := true
		for _, at := range v.Evicted {
			pod := p.victim(at)
			if pod == nil || corev1helpers.PodPriority(pod) >= priority {
				ok = false
				break
			}
			own = append(own, pod)
		}
		if ok = ok && left.take(own); !ok {
			spare = append(spare, v.Workload)
			continue
		}
		gone = append(gone, own...)
	}
	return gone, spare
}

// victim returns the pod that the engine would evict, nil if there is none any more: names are used
// again, and what the pod held its place with may be on its way out.
func (p *Plugin) victim(at cluster.Placement) *corev1.Pod {
	namespace, name, _ := strings.Cut(at.Pod.Name, "/")
	pod, err := p.pods.Pods(namespace).Get(name)
	if err != nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return nil
	}
	if n := p.state.Snapshot().Node(pod.Spec.NodeName); n == nil || !slices.Contains(n.Pods, at.Pod) {
		return nil
	}
	return pod
}

// budget is a disruption budget with what is left of it.
type budget struct {
	namespace string
	selector  labels.Selector
	left      int32
}

type budgets []*budget

// allowed returns all disruption budgets as they stand.
func (d *desk) allowed() budgets {
	objects, err := d.budgets.List(labels.Everything())
	if err != nil {
		return nil // A lister of an informer does not fail.
	}
	var list budgets
	for _, o := range objects {
		if b := newBudget(o); b != nil {
			list = append(list, b)
		}
	}
	return list
}

func newBudget(o *policyv1.PodDisruptionBudget) *budget {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return nil // The API server admits none.
	}
	// One that is empty selects all pods of the namespace, none at all no pod.
	return &budget{namespace: o.Namespace, selector: selector, left: o.Status.DisruptionsAllowed}
}

// take counts the pods against the budgets. It is false, and nothing is counted, where one of them
// is overdrawn.
func (b budgets) take(pods []*corev1.Pod) bool {
	used := make([]int32, len(b))
	for i, one := range b {
		for _, pod := range pods {
			if pod.Namespace == one.namespace && one.selector.Matches(labels.Set(pod.Labels)) {
				used[i]++
			}
		}
		if used[i] > one.left {
			return false
		}
	}
	for i, one := range b {
		one.left -= used[i]
	}
	return true
}

// ended notes that a pod is gone, and has those tried who waited for it. The caller holds the lock.
func (d *desk) ended(uid types.UID) {
	for _, g := range d.roster.gangs {
		if g.victims.pods[uid] {
			delete(g.victims.pods, uid)
			if len(g.victims.pods) == 0 {
				for _, m := range g.in(planned) {
					d.activate(gather, m.pod)
				}
			}
		}
	}
	for _, a := range d.alone {
		if a.victims.pods[uid] {
			delete(a.victims.pods, uid)
			if len(a.victims.pods) == 0 {
				d.activate(gather, a.pod)
			}
		}
	}
}

// tendVictims gives back what is held in the place of victims that do not end. The caller holds
// the lock.
func (d *desk) tendVictims(now time.Time) {
	for _, g := range d.roster.gangs {
		if n := len(g.victims.pods); n > 0 && now.After(g.victims.until) {
			d.giveBack(g, fmt.Sprintf("%d pods of lower priority do not end", n))
		}
	}
	for _, a := range d.alone {
		if len(a.victims.pods) > 0 && now.After(a.victims.until) {
			a.victims, a.node = victims{}, ""
			d.state.Forget(a.pod.UID)
			d.activate(0, a.pod)
		}
	}
}

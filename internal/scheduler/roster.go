package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// phase is how far a member of a gang is.
type phase int

const (
	// idle members have no node.
	idle phase = iota
	// planned members were given a node and wait for their turn in the queue.
	planned
	// reserved members passed every filter and wait for the others.
	reserved
	// released members are being bound.
	released
	// bound members are on their node.
	bound
)

// member is a pod of a gang.
type member struct {
	pod   *corev1.Pod
	rank  int
	ask   state.PodGang
	err   error
	phase phase
	// node is where it goes or is; round is the plan that said so.
	node  string
	round int
	// told is the last thing that it was told of why it waits.
	told string
	// avoid are nodes that refused it.
	avoid map[string]bool
}

// gang is pods that are placed together.
type gang struct {
	name types.NamespacedName
	// since is when the first of its pods was made: its place in the queue.
	since time.Time
	// counted says that it was bound whole before.
	counted bool
	members map[types.UID]*member
	// at counts the members by phase. head is the first by rank, lead the first of those without a
	// node; nil until somebody asks. The queue asks about each member with its lock held: going
	// through all of them for that would take the square of their number.
	at         [bound + 1]int
	head, lead *member
	// round counts its plans.
	round int
	// avoid are nodes that refused a member, with the time of it; misses counts refusals for lack
	// of room, which the plan had seen. With each, there was no room without those nodes: each
	// member avoids only those that refused it.
	avoid  map[string]time.Time
	each   bool
	misses int
	// refusal is why there was no room for it, "" if that was not asked or there was.
	refusal string
	// first is the member that other plugins refused anywhere: the gang waits for it.
	first types.UID
	// called is the member that was last sent for to speak for the gang.
	called types.UID
	// victims are pods that have to end before the plan can be carried out, waited for until then.
	victims victims
	// changed is when the last member came or went, and tell says that the members in the queue
	// are to be told why they wait.
	changed time.Time
	tell    bool
	// checked says that problem, what members contradict each other in, is known of all of them.
	checked bool
	problem error
}

// roster knows the gangs of a cluster and how far each of their members is.
type roster struct {
	gangs map[types.NamespacedName]*gang
	of    map[types.UID]*gang
}

func newRoster() roster {
	return roster{gangs: map[types.NamespacedName]*gang{}, of: map[types.UID]*gang{}}
}

// gangKey returns the name of the gang that the pod says it belongs to.
func gangKey(pod *corev1.Pod) (types.NamespacedName, bool) {
	name := pod.Labels[gpuv1alpha1.GangLabel]
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, name != "" && pod.Spec.SchedulingGroup == nil
}

// note takes in a pod. It returns the gang it belongs to, nil if there is none, or if it is about
// to end.
func (r *roster) note(pod *corev1.Pod, now time.Time) *gang {
	key, ok := gangKey(pod)
	if was := r.of[pod.UID]; was != nil && (!ok || was.name != key) {
		r.drop(pod.UID, now)
	}
	if !ok {
		return nil
	}
	// A pod with a gate is as good as not made yet.
	if pod.DeletionTimestamp != nil || state.Finished(pod) || len(pod.Spec.SchedulingGates) > 0 {
		r.drop(pod.UID, now)
		return nil
	}
	g := r.gangs[key]
	if g == nil {
		g = &gang{name: key, since: pod.CreationTimestamp.Time, members: map[types.UID]*member{}, avoid: map[string]time.Time{}, changed: now}
		r.gangs[key] = g
	}
	m := g.members[pod.UID]
	if m == nil {
		m = newMember(pod)
		r.of[pod.UID] = g
		g.join(m)
		g.moved(now)
		if made := pod.CreationTimestamp.Time; made.Before(g.since) {
			g.since = made
		}
	} else if m.pod.ResourceVersion != pod.ResourceVersion {
		is := newMember(pod)
		if is.rank != m.rank {
			g.head, g.lead = nil, nil
		}
		says := is.ask != m.ask || (is.err == nil) != (m.err == nil)
		if says {
			g.moved(now)
		}
		g.checked = g.checked && !says && is.err == nil
		m.rank, m.ask, m.err = is.rank, is.ask, is.err
	}
	m.pod = pod
	if pod.Spec.NodeName != "" {
		g.to(m, bound)
		m.node = pod.Spec.NodeName
	}
	return g
}

func newMember(pod *corev1.Pod) *member {
	m := &member{pod: pod, rank: rank(pod)}
	m.ask, m.err = state.GangOf(pod)
	return m
}

// join adds a member. What the others are found to agree in is asked of the new one alone.
func (g *gang) join(m *member) {
	if head := g.eldest(); head != nil && g.checked && g.problem == nil {
		g.problem = differ(head, m)
	}
	g.members[m.pod.UID] = m
	g.at[m.phase]++
	if g.head != nil && byRank(m, g.head) < 0 {
		g.head = m
	}
	if g.lead != nil && byRank(m, g.lead) < 0 {
		g.lead = m
	}
}

// leave takes a member out.
func (g *gang) leave(m *member) {
	delete(g.members, m.pod.UID)
	g.at[m.phase]--
	if m == g.head {
		g.head = nil
	}
	if m == g.lead {
		g.lead = nil
	}
	// Whoever agreed still does.
	g.checked = g.checked && g.problem == nil
}

// to has a member be in the phase.
func (g *gang) to(m *member, next phase) {
	g.at[m.phase]--
	m.phase = next
	g.at[next]++
	switch {
	case m == g.lead && next != idle:
		g.lead = nil
	case g.lead != nil && next == idle && byRank(m, g.lead) < 0:
		g.lead = m
	}
}

// drop forgets a pod. It returns its gang, nil if it had none.
func (r *roster) drop(uid types.UID, now time.Time) *gang {
	g := r.of[uid]
	if g == nil {
		return nil
	}
	delete(r.of, uid)
	g.leave(g.members[uid])
	g.moved(now)
	if len(g.members) == 0 {
		delete(r.gangs, g.name)
	}
	return g
}

// moved forgets what was found about the gang as it was before a member came or went.
func (g *gang) moved(now time.Time) {
	g.changed, g.refusal, g.called, g.tell = now, "", "", false
}

// rank returns the number that a pod has in its gang, -1 if nothing numbers it.
func rank(pod *corev1.Pod) int {
	if n, ok := state.Rank(pod); ok {
		return int(n)
	}
	for _, text := range []string{pod.Annotations[gpuv1alpha1.RankAnnotation], pod.Labels["apps.kubernetes.io/pod-index"]} {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

func byRank(a, b *member) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.pod.Name, b.pod.Name))
}

// in returns the members in one of the phases, by rank.
func (g *gang) in(phases ...phase) []*member {
	var list []*member
	for _, m := range g.members {
		if slices.Contains(phases, m.phase) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, byRank)
	return list
}

// count returns how many members are in one of the phases.
func (g *gang) count(phases ...phase) int {
	n := 0
	for _, in := range phases {
		n += g.at[in]
	}
	return n
}

// started tells whether the gang has been placed: what comes now joins it.
func (g *gang) started() bool { return g.count(released, bound) > 0 }

// leader returns the member that speaks for those without a node: the one that other plugins
// refused, or else the first by rank.
func (g *gang) leader() *member {
	if m := g.members[g.first]; m != nil && m.phase == idle {
		return m
	}
	if g.lead == nil && g.at[idle] > 0 {
		for _, m := range g.members {
			if m.phase == idle && (g.lead == nil || byRank(m, g.lead) < 0) {
				g.lead = m
			}
		}
	}
	return g.lead
}

// eldest returns the first member by rank, nil if there is none.
func (g *gang) eldest() *member {
	if g.head == nil {
		for _, m := range g.members {
			if g.head == nil || byRank(m, g.head) < 0 {
				g.head = m
			}
		}
	}
	return g.head
}

// ask returns what the gang asks for, or what its members contradict each other in.
func (g *gang) ask() (state.PodGang, error) {
	head := g.eldest()
	if !g.checked {
		g.checked, g.problem = true, g.contradiction(head)
	}
	if n := len(g.members); g.problem == nil && n > head.ask.Size {
		return head.ask, fmt.Errorf("gang %s contradicts itself: %s is %d, and there are %d pods: say how many there are",
			g.name.Name, gpuv1alpha1.GangSizeLabel, head.ask.Size, n)
	}
	return head.ask, g.problem
}

// contradiction returns what is wrong with what the members say: the first by rank of those that
// say something else than the head.
func (g *gang) contradiction(head *member) error {
	var worst *member
	for _, m := range g.members {
		if (worst == nil || byRank(m, worst) < 0) && differ(head, m) != nil {
			worst = m
		}
	}
	if worst == nil {
		return nil
	}
	return differ(head, worst)
}

// differ returns what is wrong with what a member says beside another.
func differ(first, m *member) error {
	switch {
	case first.err != nil:
		return fmt.Errorf("pod %s: %w", first.pod.Name, first.err)
	case m.err != nil:
		return fmt.Errorf("pod %s: %w", m.pod.Name, m.err)
	case m.ask.Size != first.ask.Size:
		return fmt.Errorf("gang %s contradicts itself: %s of pod %s is %d and of pod %s it is %d: make them equal",
			m.ask.Name.Name, gpuv1alpha1.GangSizeLabel, first.pod.Name, first.ask.Size, m.pod.Name, m.ask.Size)
	case m.ask != first.ask:
		return fmt.Errorf("gang %s contradicts itself: the annotations %s* of pods %s and %s differ: make them equal",
			m.ask.Name.Name, "gpu.warp.dev/", first.pod.Name, m.pod.Name)
	case m.pod.Spec.SchedulerName != first.pod.Spec.SchedulerName:
		return fmt.Errorf("gang %s contradicts itself: pod %s asks for scheduler %q and pod %s for %q: make them equal",
			m.ask.Name.Name, first.pod.Name, first.pod.Spec.SchedulerName, m.pod.Name, m.pod.Spec.SchedulerName)
	// The gang evicts as one: no pod may lend the others its priority.
	case corev1helpers.PodPriority(m.pod) != corev1helpers.PodPriority(first.pod):
		return fmt.Errorf("gang %s contradicts itself: the priority of pod %s is %d and of pod %s it is %d: make them equal",
			m.ask.Name.Name, first.pod.Name, corev1helpers.PodPriority(first.pod), m.pod.Name, corev1helpers.PodPriority(m.pod))
	case preemptionPolicy(m.pod) != preemptionPolicy(first.pod):
		return fmt.Errorf("gang %s contradicts itself: preemptionPolicy of pod %s is %s and of pod %s it is %s: make them equal",
			m.ask.Name.Name, first.pod.Name, preemptionPolicy(first.pod), m.pod.Name, preemptionPolicy(m.pod))
	}
	return nil
}

func preemptionPolicy(pod *corev1.Pod) corev1.PreemptionPolicy {
	return ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// complete tells whether all pods that the gang waits for are there. An elastic gang goes without
// the missing ones once none has come for a while.
func (g *gang) complete(now time.Time, patience time.Duration) bool {
	ask, _ := g.ask()
	n := len(g.members)
	return n >= ask.Size || g.started() || n >= ask.Min && now.Sub(g.changed) >= patience
}

// missing says what the gang waits for.
func (g *gang) missing() string {
	ask, _ := g.ask()
	return fmt.Sprintf("waiting for %d of %d pods of gang %s", ask.Size-len(g.members), ask.Size, g.name.Name)
}

// kept returns the nodes of members that have one.
func (g *gang) kept() []string {
	var nodes []string
	for _, m := range g.in(planned, reserved, released, bound) {
		nodes = append(nodes, m.node)
	}
	return nodes
}

package placement

import (
	"maps"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// beyond is after everything of which it is known when it ends.
const beyond = Never - 1

// line is the cluster in time: what runs until when, and what is held from when on.
type line struct {
	// now is the cluster with what was started so far; holds are not in it.
	now *cluster.Snapshot
	// running and holds are everything that comes and goes.
	running, holds []*tenant
	// at are those of both with pods on a node, by its position.
	at [][]*tenant
	// first is profile from now on, by how many of the holds count in it; see since.
	first map[int]*cluster.Snapshot
	// bare is the cluster without what runs, once somebody asked for it.
	bare *cluster.Snapshot
}

// tenant is a workload with its pods from one moment to another: [start, end).
type tenant struct {
	name       string
	start, end time.Duration
	// latest is end if it takes its P90; elapsed is how long it has run, runs how long a hold
	// is said to once it does.
	latest, elapsed time.Duration
	runs            Estimate
	pods            map[int][]*cluster.Pod
	// hold is nil for what runs. A hold that blocks is passed by nothing that does not fit
	// beside it; needs are those that it waits for, and everybody else is taken to stay.
	hold   *Reservation
	blocks bool
	needs  map[string]bool
}

// newLine finds what runs in the snapshot. Pods without a workload never leave, and neither do
// those of what is asked about: they are members of it that stay.
func newLine(s *cluster.Snapshot, running map[string]Run, own map[string]bool) *line {
	l := &line{now: s, at: make([][]*tenant, s.Len())}
	known := map[*cluster.Workload]*tenant{}
	for i, n := range s.Nodes() {
		for _, pod := range n.Pods {
			w := pod.Workload
			if w == nil || own[w.Name] {
				continue
			}
			t := known[w]
			if t == nil {
				run := running[w.Name]
				t = &tenant{
					name: w.Name, end: run.Left(), latest: run.latest(), elapsed: run.Elapsed,
					pods: map[int][]*cluster.Pod{},
				}
				known[w] = t
				l.running = append(l.running, t)
			}
			if t.pods[i] == nil {
				l.at[i] = append(l.at[i], t)
			}
			t.pods[i] = append(t.pods[i], pod)
		}
	}
	return l
}

func podsOf(placements []cluster.Placement) map[int][]*cluster.Pod {
	by := make(map[int][]*cluster.Pod, len(placements))
	for _, p := range placements {
		by[p.Node] = append(by[p.Node], p.Pod)
	}
	return by
}

// begin adds what starts now.
func (l *line) begin(t *tenant) {
	changed := make([]*cluster.Node, 0, len(t.pods))
	for i, pods := range t.pods {
		changed = append(changed, l.now.At(i).With(pods...))
		l.at[i] = append(l.at[i], t)
	}
	l.now = l.now.Next(l.now.Generation+1, l.now.Resources, changed)
	l.running = append(l.running, t)
	l.first = nil
}

// lay adds a hold.
func (l *line) lay(t *tenant) {
	for i := range t.pods {
		l.at[i] = append(l.at[i], t)
	}
	l.holds = append(l.holds, t)
	l.first = nil
}

// lift takes a hold away again.
func (l *line) lift(t *tenant) {
	for i := range t.pods {
		l.at[i] = slices.DeleteFunc(l.at[i], func(x *tenant) bool { return x == t })
	}
	l.holds = slices.DeleteFunc(l.holds, func(x *tenant) bool { return x == t })
	l.first = nil
}

// there tells whether the tenant is there at a time.
func (t *tenant) there(at time.Duration) bool { return t.start <= at && at < t.end }

// node returns the node at position i with those of its tenants that stay.
func (l *line) node(i int, stays func(*tenant) bool) *cluster.Node {
	var leave, come []*cluster.Pod
	for _, t := range l.at[i] {
		switch stay := stays(t); {
		case t.hold == nil && !stay:
			leave = append(leave, t.pods[i]...)
		case t.hold != nil && stay:
			come = append(come, t.pods[i]...)
		}
	}
	n := l.now.At(i)
	if len(leave) > 0 {
		n = n.Without(leave...)
	}
	if len(come) > 0 {
		n = n.With(come...)
	}
	return n
}

// stays returns who is there once the hold starts, of those who do not end before from.
func (t *tenant) stays(from time.Duration) func(*tenant) bool {
	if t.blocks {
		return func(x *tenant) bool { return !t.needs[x.name] && x.end > from }
	}
	return func(x *tenant) bool { return x.there(t.start) }
}

// counts tells whether what is there in [from, until) has to leave room for the start of the
// hold. One that blocks has it kept free from the first moment, so that nobody's estimate, wrong
// as it may be, can come in its way.
func (t *tenant) counts(from, until time.Duration) bool {
	return from < t.start && (t.blocks || t.start < until)
}

// profile returns the cluster as somebody sees it who wants to be there in [from, until): of
// everything as much is in use as there is at any time in between. Use grows only where a hold
// starts, so that the moments to look at are from and these. It is cautious: what is in use at
// one time and what is at another count together, where they are single GPUs.
func (l *line) profile(from, until time.Duration) *cluster.Snapshot {
	if from > 0 {
		return l.merged(from, until)
	}
	counted := 0
	for _, h := range l.holds {
		if h.counts(from, until) {
			counted++
		}
	}
	// Of two sets of holds that begin before some time the larger one holds the other.
	if known := l.first[counted]; known != nil {
		return known
	}
	if l.first == nil {
		l.first = map[int]*cluster.Snapshot{}
	}
	l.first[counted] = l.merged(from, until)
	return l.first[counted]
}

func (l *line) merged(from, until time.Duration) *cluster.Snapshot {
	changed := map[int]*cluster.Node{}
	there := func(t *tenant) bool { return t.there(from) }
	touch := func(t *tenant) {
		for i := range t.pods {
			if changed[i] == nil {
				changed[i] = l.node(i, there)
			}
		}
	}
	for _, t := range l.running {
		if !t.there(from) {
			touch(t)
		}
	}
	for _, h := range l.holds {
		if h.there(from) {
			touch(h)
		}
	}
	for _, h := range l.holds {
		if !h.counts(from, until) {
			continue
		}
		touch(h)
		stays := h.stays(from)
		for i := range h.pods {
			changed[i] = peak(changed[i], l.node(i, stays))
		}
	}
	if len(changed) == 0 {
		return l.now
	}
	return l.now.Next(l.now.Generation+1, l.now.Resources, slices.Collect(maps.Values(changed)))
}

// peak returns the node with as much in use as in either of two states of it.
func peak(a, b *cluster.Node) *cluster.Node {
	n := *a
	n.Used = make(cluster.Vector, max(len(a.Used), len(b.Used)))
	for i := range n.Used {
		n.Used[i] = max(a.Used.At(i), b.Used.At(i))
	}
	n.Taken |= b.Taken
	if len(b.Shares) > 0 {
		n.Shares = make([]int16, max(len(a.Shares), len(b.Shares)))
		copy(n.Shares, a.Shares)
		for i, share := range b.Shares {
			n.Shares[i] = max(n.Shares[i], share)
		}
	}
	n.Instances = slices.Clone(a.Instances)
	for _, x := range b.Instances {
		if !x.Used || slices.Contains(n.Instances, x) {
			continue
		}
		// What nobody uses now gives way to what will be used.
		n.Instances = slices.DeleteFunc(n.Instances, func(y gpu.Instance) bool { return !y.Used && overlap(x, y) })
		n.Instances = append(n.Instances, x)
	}
	// Bandwidth is counted by pods.
	n.Pods = slices.Clone(a.Pods)
	for _, pod := range b.Pods {
		if !slices.Contains(a.Pods, pod) {
			n.Pods = append(n.Pods, pod)
		}
	}
	return &n
}

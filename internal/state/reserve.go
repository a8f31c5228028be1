package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// Reservations is how room is held for workloads that wait.
type Reservations struct {
	// Max is how many workloads may hold room at a time; 0 switches reservations off.
	Max int
	// Patience is how long a workload waits before it may hold room.
	Patience time.Duration
	// MaxWait is for how long others may pass a workload by what they say of their run time.
	MaxWait time.Duration
}

// lookedAt bounds among how many of those that waited longest it is chosen who holds room, as a
// multiple of Max: some of them cannot, because no estimate tells when they could start.
const lookedAt = 4

// SetReservations must be called before anything is planned.
func (s *State) SetReservations(r Reservations) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reservations.limits = r
}

// reservations is who waits, and for whom room is held.
type reservations struct {
	limits Reservations
	queue  map[types.UID]queued
	// held are in the order of their names. They live in memory only: a new process makes them
	// anew from what waits.
	held []reserved
	// beside are snapshots with what is held taken, by which of held that is. They are made from
	// the snapshot base.
	beside map[besideKey]*cluster.Snapshot
	base   *cluster.Snapshot
	cache  placement.Cache
}

// queued is a workload that waits for room, with what its pods ask for.
type queued struct {
	workload *gpuv1alpha1.GPUWorkload
	pod      *corev1.Pod
	since    time.Time
	// avoid are the nodes that its last plan had to avoid.
	avoid []string
}

// reserved is room that is held for a workload.
type reserved struct {
	placement.Reservation
	uid      types.UID
	key      types.NamespacedName
	priority int32
	since    time.Time
	// start is when it is expected to start; the zero time if no estimate tells. told is what it
	// was when that was last told to others.
	start, told time.Time
	// use is what each pod takes; pods is how many go to each node.
	use  cluster.Vector
	pods map[string]int64
}

// besideKey is a set of indexes of held, as bits, and whether nothing is taken to end.
type besideKey struct {
	held   uint64
	strict bool
}

// Await notes that a workload waits for room since then, as an earlier process found.
func (s *State) Await(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(w, pod, &Ask{Since: since})
}

// await notes that a workload waits. It keeps a copy: the caller goes on writing to what it asked
// about, and others read the queue meanwhile. The caller holds the lock.
func (s *State) await(w *gpuv1alpha1.GPUWorkload, pod *corev1.Pod, ask *Ask) {
	if s.reservations.limits.Max == 0 && s.moves.limits.MaxMoves == 0 || ask.Since.IsZero() {
		return
	}
	if s.reservations.queue == nil {
		s.reservations.queue = make(map[types.UID]queued)
	}
	s.reservations.queue[w.UID] = queued{workload: w.DeepCopy(), pod: pod, since: ask.Since, avoid: slices.Clone(ask.Avoid)}
}

// leave notes that a workload does not wait any more, and gives back what is held for it. It
// reports whether anything was.
func (s *State) leave(uid types.UID) (freed bool) {
	delete(s.reservations.queue, uid)
	delete(s.moves.proposals, uid)
	before := len(s.reservations.held)
	s.keepHeld(func(h *reserved) bool { return h.uid != uid })
	return len(s.reservations.held) < before
}

func (s *State) keepHeld(keep func(*reserved) bool) {
	kept := make([]reserved, 0, len(s.reservations.held))
	for i := range s.reservations.held {
		if keep(&s.reservations.held[i]) {
			kept = append(kept, s.reservations.held[i])
		}
	}
	s.setHeld(kept)
}

func (s *State) setHeld(held []reserved) {
	s.reservations.held = held
	s.reservations.beside = nil
}

// Reserve decides for whom room is held from now on. It returns the workloads for which that
// changed, and whether others may find room that they did not find before. It must not be called
// twice at the same time.
//
// It looks at those that have waited longest for their priority, so that it takes the same time
// however many wait.
func (s *State) Reserve(now time.Time) (changed []types.NamespacedName, loosened bool) {
	s.mu.Lock()
	snapshot, backlog, jobs := s.backlog(now)
	options := placement.Options{Strategies: s.strategies, Cache: &s.reservations.cache, Scoring: sharedScoring(jobs)}
	s.mu.Unlock()

	var plan placement.Schedule
	if len(backlog.Queue) > 0 {
		var err error
		if plan, err = placement.Backfill(snapshot, backlog, options); err != nil {
			return nil, false // Without a registry of strategies only, and there is one.
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	next := make([]reserved, 0, len(plan.Reservations))
	for _, h := range plan.Reservations {
		next = s.addHeld(next, jobs, h, now)
	}
	// What fits beside all holds is held until it has been looked at: it may be another's turn.
	for _, start := range plan.Starts {
		if len(next) < s.reservations.limits.Max {
			next = s.addHeld(next, jobs, placement.Reservation{Name: start.Name, Plan: start.Decision, Sure: true}, now)
		}
	}
	slices.SortFunc(next, func(a, b reserved) int { return cmp.Compare(a.Name, b.Name) })
	before := s.reservations.held
	s.setHeld(next)
	return difference(before, next, now)
}

// addHeld turns an answer of the engine into room that is held, if its workload waits still.
func (s *State) addHeld(list []reserved, jobs map[string]*job, h placement.Reservation, now time.Time) []reserved {
	j := jobs[h.Name]
	if _, waits := s.reservations.queue[j.workload.UID]; !waits || len(list) == 64 {
		return list
	}
	r := reserved{
		Reservation: h, uid: j.workload.UID, key: types.NamespacedName{Namespace: j.workload.Namespace, Name: j.workload.Name},
		priority: j.request.Priority, since: j.since, use: j.request.Groups[0].Pod.Resources, pods: make(map[string]int64),
	}
	if h.Start != placement.Never {
		r.start = now.Add(h.Start)
	}
	for _, node := range h.Plan.Nodes() {
		r.pods[node]++
	}
	return append(list, r)
}

// job is a queued workload with the question about it.
type job struct {
	queued
	request placement.Request
	// scoring is what the terms of a score count for it; nil for the default.
	scoring *placement.Scoring
}

// sharedScoring returns the weights by which room is held: those of the policy that holds for all
// that are looked at together, because the engine judges all of them alike; else the default ones.
func sharedScoring(jobs map[string]*job) *placement.Scoring {
	var shared *placement.Scoring
	first := true
	for _, j := range jobs {
		if !first && j.scoring != shared {
			return nil
		}
		shared, first = j.scoring, false
	}
	return shared
}

// backlog is what Backfill is asked. The caller holds the lock.
func (s *State) backlog(now time.Time) (*cluster.Snapshot, *placement.Backlog, map[string]*job) {
	r := &s.reservations
	b := &placement.Backlog{Running: make(map[string]placement.Run), MaxReservations: r.limits.Max, Patience: r.limits.Patience, MaxWait: r.limits.MaxWait}
	jobs := make(map[string]*job)
	if r.limits.Max == 0 {
		return nil, b, nil
	}
	for _, j := range s.candidates(now) {
		b.Queue = append(b.Queue, placement.Job{Request: &j.request, Runtime: estimateOf(j.workload), Waited: max(0, now.Sub(j.since))})
		jobs[j.request.Name] = j
	}
	if len(b.Queue) == 0 {
		return nil, b, nil
	}
	for i := range r.held {
		h := r.held[i].Reservation
		if !r.held[i].start.IsZero() {
			h.Start = max(0, r.held[i].start.Sub(now))
		}
		b.Held = append(b.Held, h)
	}
	for _, w := range s.works {
		if w.told && w.estimate != (placement.Estimate{}) {
			b.Running[w.key.name] = placement.Run{Estimate: w.estimate, Elapsed: w.elapsed(now)}
		}
	}
	return s.current(), b, jobs
}

// candidates are those that hold room, and those that may: a bounded number, in order.
func (s *State) candidates(now time.Time) []*job {
	r := &s.reservations
	holds := make(map[types.UID]bool, len(r.held))
	for i := range r.held {
		holds[r.held[i].uid] = true
	}
	var all []queued
	for uid, q := range r.queue {
		if waited := now.Sub(q.since); holds[uid] || waited >= r.limits.Patience || waited >= r.limits.MaxWait {
			all = append(all, q)
		}
	}
	overdue := func(q *queued) int {
		if now.Sub(q.since) >= r.limits.MaxWait {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b queued) int {
		order := cmp.Compare(overdue(&a), overdue(&b))
		if order == 0 && overdue(&a) > 0 {
			order = cmp.Compare(Priority(b.workload), Priority(a.workload))
		}
		return cmp.Or(order, a.since.Compare(b.since),
			cmp.Compare(a.workload.Namespace, b.workload.Namespace), cmp.Compare(a.workload.Name, b.workload.Name))
	})
	// What each asks for is worked out for those that are looked at only: thousands may wait, and
	// everybody else waits for the lock.
	most := lookedAt * max(1, r.limits.Max)
	kept := make([]*job, 0, min(most, len(all)))
	for i := range all {
		q := &all[i]
		if len(kept) >= most && !holds[q.workload.UID] {
			continue
		}
		guide := s.guide(q.workload)
		request, err := s.question(q.workload, q.pod, &guide)
		if err != nil {
			continue // Its own pass says what is wrong, and takes it out.
		}
		kept = append(kept, &job{queued: *q, request: request, scoring: guide.Scoring})
	}
	return kept
}

// difference tells whose reservation changed, and whether room that was held is not any more, or
// for later than it was. A start is compared with that which was told last: one that recedes in
// steps too small to tell of gets far in the end. It notes in after what is told.
func difference(before, after []reserved, now time.Time) (changed []types.NamespacedName, loosened bool) {
	old := make(map[types.UID]*reserved, len(before))
	for i := range before {
		old[before[i].uid] = &before[i]
	}
	for i := range after {
		h := &after[i]
		was, had := old[h.uid]
		delete(old, h.uid)
		if had && maps.Equal(was.pods, h.pods) && was.Firm == h.Firm && near(was.told, h.start, now) {
			h.told = was.told
			continue
		}
		h.told = h.start
		changed = append(changed, h.key)
		loosened = loosened || had
	}
	for _, was := range old {
		changed, loosened = append(changed, was.key), true
	}
	return changed, loosened
}

// near tells whether two starts differ by no more than anybody would notice.
func near(a, b, now time.Time) bool {
	if a.IsZero() || b.IsZero() {
		return a.IsZero() == b.IsZero()
	}
	return a.Sub(b).Abs() <= max(time.Minute, b.Sub(now)/10)
}

package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

func newQueue(p Policy) queue {
	switch p.Queue {
	case fifo:
		return inOrder{}
	case sjf:
		return &whateverFits{order: shortestFirst}
	case backfill:
		return &filling{}
	case responseRatio:
		return &filling{order: highestRatio, patient: true}
	}
	return &whateverFits{}
}

// inOrder is the queue in which the first that waits holds up all others.
type inOrder struct{}

// keeps the place of the first: nobody passes it by evicting or moving others, either.
func (inOrder) keeps(r *Replay, j *job) bool { return r.waits[0] != j }

func (inOrder) forget(*job) {}

func (inOrder) wake(*Replay) (time.Duration, bool) { return 0, false }

func (inOrder) schedule(r *Replay, _ bool, _ int) error {
	r.sort(r.waits, arrivedFirst)
	n := 0
	for ; n < len(r.waits); n++ {
		if ok, err := r.place(r.waits[n]); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	r.waits = slices.Delete(r.waits, 0, n)
	return nil
}

// whateverFits is the queue in which nobody is waited for.
type whateverFits struct{ order order }

func (*whateverFits) keeps(*Replay, *job) bool { return false }

func (*whateverFits) forget(*job) {}

func (*whateverFits) wake(*Replay) (time.Duration, bool) { return 0, false }

func (q *whateverFits) schedule(r *Replay, freed bool, fresh int) error {
	if freed {
		fresh = len(r.waits)
	}
	// What did not fit before does not fit now, unless something ended.
	old, tried := r.waits[:len(r.waits)-fresh], slices.Clone(r.waits[len(r.waits)-fresh:])
	r.sort(tried, q.order)
	kept := tried[:0]
	failed := map[size]bool{}
	for _, j := range tried {
		if failed[j.size] {
			kept = append(kept, j)
			continue
		}
		ok, err := r.place(j)
		if err != nil {
			return err
		}
		if !ok {
			failed[j.size] = true
			kept = append(kept, j)
		}
	}
	r.waits = append(r.waits[:len(old)], kept...)
	return nil
}

// order says which of two jobs of one priority is looked at first.
type order int

const (
	// arrivedFirst is the order of arrival.
	arrivedFirst order = iota
	// shortestFirst is the order of expected run times; who nothing is known of goes last.
	shortestFirst
	// highestRatio is the order of response ratios, the highest first: what a job has waited and
	// is expected to run, by what it is expected to run. Short jobs go first, and everybody's turn
	// comes (Brinch Hansen 1971, "Short-term scheduling in multiprogramming systems").
	highestRatio
)

// sort puts jobs in the order in which they are looked at: by priority, then as the order says,
// then by arrival.
func (r *Replay) sort(jobs []*job, by order) {
	for _, j := range jobs {
		switch by {
		case shortestFirst:
			j.key = r.expected(j).Seconds()
		case highestRatio:
			run := r.expected(j).Seconds()
			j.key = -(j.wait(r.now).Seconds() + run) / max(run, 1)
		default:
			j.key = 0
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		switch {
		case a.Priority != b.Priority:
			return cmp.Compare(b.Priority, a.Priority)
		case a.key != b.key:
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.seq, b.seq)
	})
}

func (r *Replay) expected(j *job) time.Duration {
	if e := r.estimate(j); e.P50 > 0 {
		return e.P50
	}
	return placement.Never
}

// filling is the production code's backfilling.
type filling struct {
	order order
	// patient gives holds to those alone that have waited for too long.
	patient bool
	held    []placement.Reservation
}

// keeps the holds that nobody may pass, but from those that had theirs before.
func (q *filling) keeps(_ *Replay, j *job) bool {
	for i := range q.held {
		if q.held[i].Name == j.request.Name {
			return false
		}
		if q.held[i].Firm {
			return true
		}
	}
	return false
}

func (q *filling) forget(j *job) {
	q.held = slices.DeleteFunc(q.held, func(h placement.Reservation) bool { return h.Name == j.request.Name })
}

// wake is when the next job has waited for so long that nobody may pass it any more.
func (q *filling) wake(r *Replay) (at time.Duration, wakes bool) {
	for _, j := range r.waits {
		if t := r.now + q.maxWait(r) - j.wait(r.now); t > r.now && (!wakes || t < at) {
			at, wakes = t, true
		}
	}
	return at, wakes
}

// maxWait is the default of queues without early holds. What holds room keeps it idle, for days
// where jobs run for days, so that a bound that binds often costs everybody else more than it gives
// (docs/simulator.md says how much).
const maxWait = 14 * 24 * time.Hour

func (q *filling) maxWait(r *Replay) time.Duration {
	switch {
	case r.options.MaxWait > 0:
		return r.options.MaxWait
	case q.patient:
		return maxWait
	}
	return placement.DefaultMaxWait
}

func (q *filling) schedule(r *Replay, _ bool, _ int) error {
	r.sort(r.waits, q.order)
	b := placement.Backlog{
		Running: make(map[string]placement.Run, len(r.ends)), MaxWait: q.maxWait(r),
	}
	if q.patient {
		b.Patience = b.MaxWait
	}
	for {
		looked := q.front(r, b.MaxWait)
		b.Held, b.Queue = q.held, make([]placement.Job, len(looked))
		waiting := make(map[string]*job, len(looked))
		for i, j := range looked {
			waiting[j.request.Name] = j
			b.Queue[i] = placement.Job{Request: j.request, Runtime: r.estimate(j), Waited: j.wait(r.now)}
		}
		for _, j := range r.ends {
			b.Running[j.request.Name] = placement.Run{Estimate: j.said, Elapsed: r.now - j.since}
		}
		answer, err := placement.Backfill(r.s, &b, r.plan)
		if err != nil {
			return err
		}
		for i := range answer.Starts {
			if err := r.start(waiting[answer.Starts[i].Name], &answer.Starts[i].Decision); err != nil {
				return err
			}
		}
		r.waits = slices.DeleteFunc(r.waits, func(j *job) bool { return j.placed != nil })
		q.held = answer.Reservations
		// Behind what has started there may be others that fit as well.
		if all := len(looked) == len(answer.Starts)+len(r.waits); all || len(answer.Starts) == 0 {
			return nil
		}
	}
}

// depth is how many jobs of one size are looked at at a time, as every scheduler of long queues
// has such a bound (Slurm's bf_max_job_test). Those behind them fit no better.
const depth = 100

// front returns the jobs to be looked at: those that hold room, and of each size the first in the
// order in which Backfill takes them, which begins with who has waited the longest of those that
// waited for too long.
func (q *filling) front(r *Replay, maxWait time.Duration) []*job {
	if len(r.waits) <= depth {
		return slices.Clone(r.waits)
	}
	holds := make(map[string]bool, len(q.held))
	for i := range q.held {
		holds[q.held[i].Name] = true
	}
	var overdue []*job
	for _, j := range r.waits {
		if j.wait(r.now) >= maxWait {
			overdue = append(overdue, j)
		}
	}
	slices.SortStableFunc(overdue, func(a, b *job) int { return cmp.Compare(b.wait(r.now), a.wait(r.now)) })
	count := map[size]int{}
	chosen := make(map[*job]bool, depth)
	for _, jobs := range [][]*job{overdue, r.waits} {
		for _, j := range jobs {
			if !chosen[j] && (count[j.size] < depth || holds[j.request.Name]) {
				count[j.size]++
				chosen[j] = true
			}
		}
	}
	looked := make([]*job, 0, len(chosen))
	for _, j := range r.waits {
		if chosen[j] {
			looked = append(looked, j)
		}
	}
	return looked
}

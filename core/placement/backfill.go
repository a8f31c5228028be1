package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Job is a request that waits.
type Job struct {
	Request *Request
	// Runtime is how long it runs once it starts, Waited how long it has waited.
	Runtime Estimate
	Waited  time.Duration
}

// Backlog is what waits, and what Backfill has to know of what does not.
type Backlog struct {
	// Queue are the jobs; those of one priority are in the order in which they go first. Names
	// are unique.
	Queue []Job
	// Running says of workloads, by name, how long they run.
	Running map[string]Run
	// Held are the reservations of the last answer.
	Held []Reservation
	// MaxReservations bounds how many holds there are at a time; 0 means
	// DefaultMaxReservations. Everybody else simply waits.
	MaxReservations int
	// Patience is how long a job waits before it may hold room. Room that is held is idle until
	// its job starts, so that where many wait for long the holds of all the newest cost more than
	// they are worth (docs/simulator.md has figures); 0 holds room from the first moment.
	Patience time.Duration
	// MaxWait is for how long others may pass a job; 0 means DefaultMaxWait. One that has waited
	// longer goes before all that have waited less, whatever their priority, gets a hold even
	// if no estimate tells when it starts, and keeps that room free: nothing passes it any more
	// by what it says of its run time.
	MaxWait time.Duration
}

// The defaults of a Backlog.
const (
	DefaultMaxReservations = 4
	DefaultMaxWait         = time.Hour
)

// Schedule says of each job of a Backlog one thing: it starts, it holds room, or it waits.
type Schedule struct {
	Starts       []Start
	Reservations []Reservation
	Waits        []Wait
}

// Start is a job that starts now.
type Start struct {
	Name     string
	Decision Decision
}

// Wait is a job that waits without a hold.
type Wait struct{ Name, Why string }

// Backfill decides what of a queue starts now, what holds room for later, and what waits. Jobs
// are looked at in order: those that have waited longer than MaxWait, the longest first; then
// by priority. Each starts if it fits beside what the others hold: if it may run for longer
// than until a hold starts, by its P90, it must fit beside that hold then, too. A job without
// an estimate is taken to run for ever. Nobody is evicted.
//
// A hold stays on its nodes until its job starts. It moves if it can start earlier elsewhere,
// and is given up only where its nodes cannot serve it any more. Where what it waits for
// overruns, it starts later, and stays.
//
// Guarantees, if it is asked whenever something ends, arrives, or has waited for MaxWait, and
// nodes stay in service. What is started never asks for more than is free beside what runs.
// Where all estimates are exact, no hold starts later because of anything that comes after it in
// the order. And no job of one group waits for ever: with R the longest time that anything runs,
// and n jobs that waited even longer at the moment at which it had waited for MaxWait, one that
// would fit if nothing ran that ends starts within MaxWait + (n+1) R, whatever estimates say.
//
// That holds because what comes before it can only become less. From then on nobody overtakes
// it but those n. When the last of them has started, it is first in the order: it holds nodes,
// and keeps them. Whatever starts from then on fits beside it there, together with everything
// that is not in its way already, so that it starts at the latest when all that ran at that
// moment has ended. By the same argument each of the n takes no longer than R. Jobs of several
// groups are searched for: what holds of them is what the search finds.
func Backfill(s *cluster.Snapshot, b *Backlog, o Options) (Schedule, error) {
	if o.Strategies == nil {
		builtin, err := NewRegistry(Builtin()...)
		if err != nil {
			return Schedule{}, err
		}
		o.Strategies = builtin
	}
	if o.Cache == nil {
		o.Cache = &Cache{}
	}
	own := make(map[string]bool, len(b.Queue))
	for i := range b.Queue {
		own[b.Queue[i].Request.Name] = true
	}
	f := &filler{line: newLine(s, b.Running, own), slots: b.MaxReservations, patience: b.Patience, held: map[string]*Reservation{}}
	if f.slots == 0 {
		f.slots = DefaultMaxReservations
	}
	for i := range b.Held {
		f.held[b.Held[i].Name] = &b.Held[i]
	}
	overdue, rest := f.sort(s, b, o)
	for _, j := range overdue {
		f.insist(j)
	}
	for _, class := range rest {
		f.keep(class)
		for _, j := range class {
			f.consider(j)
		}
	}
	for _, h := range f.line.holds {
		f.out.Reservations = append(f.out.Reservations, *h.hold)
	}
	return f.out, nil
}

// filler is one Backfill under way.
type filler struct {
	line *line
	// slots is how many more holds there may be.
	slots    int
	patience time.Duration
	held     map[string]*Reservation
	out      Schedule
}

// waiting is a job with what is asked of it.
type waiting struct {
	*Job
	p *planner
	// had is its reservation so far, same the planner for the nodes of that; nil if none.
	had  *Reservation
	same *planner
	// kept is the hold while it is laid.
	kept *tenant
}

// sort returns the jobs that waited too long, and the others by priority. What is malformed
// waits.
func (f *filler) sort(s *cluster.Snapshot, b *Backlog, o Options) (overdue []*waiting, rest [][]*waiting) {
	limit := b.MaxWait
	if limit == 0 {
		limit = DefaultMaxWait
	}
	var others []*waiting
	for i := range b.Queue {
		j := &waiting{Job: &b.Queue[i]}
		var err error
		if j.p, err = newReserver(s, j.Request, o); err != nil {
			f.out.Waits = append(f.out.Waits, Wait{Name: j.Request.Name, Why: err.Error()})
			continue
		}
		if had := f.held[j.Request.Name]; had != nil {
			if j.same = j.p.sameNodes(&had.Plan); j.same != nil {
				j.had = had
			}
		}
		if j.Waited >= limit {
			overdue = append(overdue, j)
		} else {
			others = append(others, j)
		}
	}
	slices.SortStableFunc(overdue, func(a, b *waiting) int { return cmp.Compare(b.Waited, a.Waited) })
	slices.SortStableFunc(others, func(a, b *waiting) int { return cmp.Compare(b.Request.Priority, a.Request.Priority) })
	for first := 0; first < len(others); {
		end := first + 1
		for end < len(others) && others[end].Request.Priority == others[first].Request.Priority {
			end++
		}
		rest = append(rest, others[first:end])
		first = end
	}
	return overdue, rest
}

// insist starts a job that waited too long, or has it hold room that nobody else gets.
func (f *filler) insist(j *waiting) {
	if f.start(j) {
		return
	}
	if f.slots == 0 {
		f.wait(j)
		return
	}
	h := f.line.stand(j)
	if h == nil {
		if h = f.line.reserve(j.p, j.Runtime, true); h == nil {
			f.wait(j)
			return
		}
		h.blocks = true
		f.line.wait(h, nil)
	}
	f.hold(h)
}

func (f *filler) hold(h *tenant) {
	f.line.lay(h)
	f.slots--
}

// keep lays the holds that jobs of one priority have, so that no other of them comes in their
// way. In the order in which they start each still finds the room that it had: what was laid
// before starts no later than it did.
func (f *filler) keep(class []*waiting) {
	var had []*waiting
	for _, j := range class {
		if j.had != nil && len(had) < f.slots {
			had = append(had, j)
		}
	}
	slices.SortStableFunc(had, func(a, b *waiting) int { return cmp.Compare(a.had.Start, b.had.Start) })
	for _, j := range had {
		start, at, ok := f.line.earliest(j.same, j.Runtime.late(), beyond)
		if !ok {
			continue
		}
		own := *j.same
		own.s = at
		if j.kept = f.line.holdAt(j.p, j.Runtime, start, own.plan()); j.kept != nil {
			f.hold(j.kept)
		}
	}
}

// consider starts a job, or has it hold room, if there are estimates to tell from when on.
func (f *filler) consider(j *waiting) {
	if j.kept != nil {
		f.line.lift(j.kept)
		f.slots++
	}
	if f.start(j) {
		return
	}
	h := j.kept
	switch {
	case h != nil:
		// What a hold already has it gives up only for an earlier start.
		if start, at, ok := f.line.earliest(j.p, j.Runtime.late(), h.start); ok {
			if sooner := f.line.holdAt(j.p, j.Runtime, start, f.line.decide(j.p, at)); sooner != nil {
				h = sooner
			}
		}
	case f.slots > 0 && j.Waited >= f.patience:
		h = f.line.reserve(j.p, j.Runtime, false)
	}
	if h == nil {
		f.wait(j)
		return
	}
	f.hold(h)
}

// start starts a job, if it fits beside what is held: on the nodes that it held itself if it
// can.
func (f *filler) start(j *waiting) bool {
	free := f.line.profile(0, after(0, j.Runtime.late()))
	for _, p := range []*planner{j.same, j.p} {
		if p == nil || !p.asker().fits(free) {
			continue
		}
		own := *p
		own.s = free
		d := own.plan()
		if !d.Feasible {
			continue
		}
		t := &tenant{
			name:   j.Request.Name,
			end:    j.Runtime.likely(),
			latest: j.Runtime.late(),
			pods:   podsOf(d.Placements(j.Request, workloadOf(j.Request))),
		}
		d.Why.Sentence += f.line.passes(t)
		f.line.begin(t)
		f.out.Starts = append(f.out.Starts, Start{Name: j.Request.Name, Decision: d})
		return true
	}
	return false
}

package placement

import (
	"math"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// Never is later than everything: the end of what is not known to end.
const Never time.Duration = math.MaxInt64

// Estimate is how long a workload runs, from its start to its end: half of its kind are done
// by P50, nine in ten by P90. One that is zero is taken to be the other; both zero is not
// known.
type Estimate struct{ P50, P90 time.Duration }

// likely returns in how long it is expected to end once it starts, late in how long it almost
// surely has; both are Never where that is not known.
func (e Estimate) likely() time.Duration {
	switch {
	case e.P50 > 0:
		return e.P50
	case e.P90 > 0:
		return e.P90
	}
	return Never
}

func (e Estimate) late() time.Duration {
	if e.P50 <= 0 && e.P90 <= 0 {
		return Never
	}
	return max(e.P50, e.P90)
}

// Run is a workload that runs: how long it was said to, and how long it has.
type Run struct {
	Estimate
	Elapsed time.Duration
}

// Left returns in how long the workload is expected to end. It is always above zero: what runs
// has not ended.
//
// An estimate that proved wrong is stretched: past its P50 the workload is expected at its P90,
// and past that after half as long again as it has run by now. So a workload that overruns ever
// further is believed ever less, and what waits for it does not plan for the next minute again
// and again.
func (r Run) Left() time.Duration {
	elapsed := max(0, r.Elapsed)
	switch {
	case r.late() == Never:
		return Never
	case elapsed < r.likely():
		return r.likely() - elapsed
	case elapsed < r.late():
		return r.late() - elapsed
	}
	return max(1, elapsed/2)
}

// latest is Left for a workload that takes its P90.
func (r Run) latest() time.Duration {
	if late := r.late(); late != Never && r.Elapsed < late {
		return late - max(0, r.Elapsed)
	}
	return r.Left()
}

// Reservation is a hold: the room in which a request that does not fit now is to start.
type Reservation struct {
	// Name is the request's.
	Name string
	// Start is in how long it is expected to start, Latest if everything that it waits for
	// takes its P90. Both are Never if that is not known.
	Start, Latest time.Duration
	// Sure is false if Start rests on no estimate. Then the domain is held that needs the
	// fewest workloads to end.
	Sure bool
	// Firm says that the request has waited for so long that nothing may pass it any more:
	// see Backlog.MaxWait.
	Firm bool
	// Level and Domain are where it will be, both empty where no level was asked for. Plan is
	// where every pod would go, over the cluster as it is then.
	Level, Domain string
	Plan          Decision
	// Needs are the running workloads, and the holds, that have to end first, by name and in the
	// order in which they are expected to.
	Needs []string
	// Why says it to a person.
	Why string
}

// Reserve finds when and where a request that does not fit now could start, if nothing new
// starts before it. Running says of workloads, by name, how long they run; of those it does not
// name that is not known. Priorities do not matter: what runs is waited for, not evicted.
//
// The result is false if the request would not fit even after everything that runs has ended,
// or, for several groups, if the search found no way to. The start is the earliest for a
// request of one group. Where it cannot always be decided whether the request fits, as of several
// groups, an earlier one may be overlooked. A request that fits now has the start 0.
//
// Among domains in which it could start at the same time it is the one that holds back least:
// that of whose places the fewest could be used already now.
func Reserve(s *cluster.Snapshot, r *Request, running map[string]Run, o Options) (Reservation, bool, error) {
	p, err := newReserver(s, r, o)
	if err != nil {
		return Reservation{}, false, err
	}
	l := newLine(s, running, map[string]bool{r.Name: true})
	hold := l.reserve(p, Estimate{}, true)
	if hold == nil {
		return Reservation{}, false, nil
	}
	return *hold.hold, true, nil
}

// newReserver is a planner for the request without preemption.
func newReserver(s *cluster.Snapshot, r *Request, o Options) (*planner, error) {
	calm := *r
	calm.Preempts = false
	o.Explain = false
	return newPlanner(s, &calm, o)
}

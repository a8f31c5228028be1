package replay

import (
	"container/heap"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// moveWindow is for how long a job that was moved stays where it is.
const moveWindow = time.Hour

// makeRoom evicts and moves for jobs that wait, if the options allow it.
func (r *Replay) makeRoom() error {
	if r.options.Preempt {
		if err := r.preempt(); err != nil {
			return err
		}
	}
	if r.options.Moves > 0 {
		return r.defragment()
	}
	return nil
}

// preempt starts waiting jobs in the place of others of lower priority, the highest first.
func (r *Replay) preempt() error {
	if len(r.ends) == 0 || len(r.waits) == 0 {
		return nil
	}
	lowest := r.ends[0].Priority
	for _, j := range r.ends {
		lowest = min(lowest, j.Priority)
	}
	eager := slices.DeleteFunc(slices.Clone(r.waits), func(j *job) bool { return r.queue.keeps(r, j) })
	r.sort(eager, arrivedFirst)
	failed := map[size]int32{}
	for _, j := range eager {
		if j.Priority <= lowest {
			break
		}
		if p, tried := failed[j.size]; tried && j.Priority <= p {
			continue
		}
		r.price()
		ask := *j.request
		ask.Preempts = true
		d, err := placement.Plan(r.s, &ask, r.plan)
		if err != nil {
			return err
		}
		// What fits without evicting anybody was the queue's to start: it has held the room.
		if !d.Feasible || len(d.Victims) == 0 {
			failed[j.size] = j.Priority
			continue
		}
		for i := range d.Victims {
			r.evict(r.running(d.Victims[i].Workload))
		}
		if err := r.start(j, &d); err != nil {
			return err
		}
		r.waits = slices.DeleteFunc(r.waits, func(w *job) bool { return w == j })
	}
	return nil
}

// running returns the running job of that name.
func (r *Replay) running(name string) *job {
	i := slices.IndexFunc(r.ends, func(j *job) bool { return j.request.Name == name })
	return r.ends[i]
}

// price says of what runs what would be lost.
func (r *Replay) price() {
	for _, j := range r.ends {
		j.work.Cost = r.lost(j).Hours() * float64(j.GPUs)
		j.work.Protected = r.now-j.moved < moveWindow
	}
}

// lost is what a running job would have to do again.
func (r *Replay) lost(j *job) time.Duration {
	ran := max(0, r.now-j.since-j.cost)
	if every := r.options.Checkpoint; every > 0 {
		return ran % every
	}
	return ran
}

// evict sends a running job back to the queue.
func (r *Replay) evict(j *job) {
	heap.Remove(&r.ends, j.index)
	j.left -= max(0, r.now-j.since-j.cost-r.lost(j))
	j.cost = 0
	r.vacate(j)
	r.m.preempted++
	j.queued = r.now
	r.queue.forget(j)
	r.waits = append(r.waits, j)
	r.sort(r.waits, arrivedFirst)
}

// defragment moves running jobs for the first waiting gang that this makes room for.
func (r *Replay) defragment() error {
	tried := map[size]bool{}
	for _, j := range r.waits {
		if tried[j.size] || r.m.idle < int64(j.GPUs) || r.queue.keeps(r, j) {
			continue
		}
		tried[j.size] = true
		r.price()
		o := placement.MoveOptions{Options: r.plan, MaxMoves: r.options.Moves}
		moves, err := placement.Defragment(r.s, j.request, o)
		if err != nil {
			return err
		}
		if !moves.Feasible || len(moves.Moves) == 0 {
			continue
		}
		for i := range moves.Moves {
			if err := r.move(&moves.Moves[i]); err != nil {
				return err
			}
		}
		if err := r.start(j, &moves.Plan); err != nil {
			return err
		}
		r.waits = slices.DeleteFunc(r.waits, func(w *job) bool { return w == j })
		return nil
	}
	return nil
}

// move makes a move: the job goes on elsewhere, later by what that costs.
func (r *Replay) move(m *placement.Move) error {
	j := r.running(m.Workload)
	r.talks.end(j, r.now)
	txn := r.s.Begin()
	if err := m.Make(txn); err != nil {
		return err
	}
	changed := slices.Clone(j.nodes)
	for _, pod := range m.Pods {
		i := slices.IndexFunc(j.placed, func(p placed) bool { return p.Pod == pod.Before.Pod })
		j.placed[i] = pod.After
		j.nodes[i] = int32(pod.After.Node)
		changed = append(changed, int32(pod.After.Node))
	}
	r.become(txn.Snapshot(), changed)
	j.moved = r.now
	j.cost += r.options.MoveCost
	j.ends += r.options.MoveCost
	j.said = postponed(j.said, r.options.MoveCost)
	heap.Fix(&r.ends, j.index)
	r.m.moved++
	r.m.started(r, j)
	r.talks.begin(j, r.now)
	return nil
}

// postponed is an estimate that was made before something was added to the run.
func postponed(e placement.Estimate, by time.Duration) placement.Estimate {
	if e.P50 > 0 {
		e.P50 += by
	}
	if e.P90 > 0 {
		e.P90 += by
	}
	return e
}

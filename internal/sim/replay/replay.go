package replay

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Options is what a replay depends on beside its policy, its cluster and its trace.
type Options struct {
	// Estimates says what the policy is told of run times.
	Estimates Estimates
	// Topology is what gangs ask for; the stock strategies ask for nothing.
	Topology Topology
	// Seed decides among equals, where a strategy leaves that to chance. Compare takes Seeds, one
	// replay each.
	Seed  int64
	Seeds []int64
	// MaxWait is for how long others may pass a job that waits, for the queues that backfill; 0
	// means placement.DefaultMaxWait.
	MaxWait time.Duration
	// Preempt lets a job take the place of jobs of lower priority, which start over, but for what
	// they had done at their last checkpoint: every Checkpoint, or never if that is 0.
	Preempt    bool
	Checkpoint time.Duration
	// Moves is how many running jobs may be moved to make room for one gang; 0 moves none. Each
	// loses MoveCost, and is not moved again for an hour.
	Moves    int
	MoveCost time.Duration
	// Sorted gives gangs that the stock scores place their nodes in the order of the topology, as
	// the product does; else in random order, as pods come to nodes one by one.
	Sorted bool
	// Queue narrows the trace to the jobs of one of its queues; "" takes all.
	Queue string
	// AllReduce is how many bytes gangs reduce at a time, Share the part of a job's time that this
	// takes at the ideal place: both for the model of core/collective.
	AllReduce, Share float64
	// Started, where it is not nil, is told of every job that starts.
	Started func(Start)
}

// Cluster is what a trace is replayed on.
type Cluster struct {
	// Name is what the user called it.
	Name string
	// Notes say what was understood of it.
	Notes []string
	// Snapshot is the cluster with nothing running.
	Snapshot *cluster.Snapshot
	// Model says what a place costs the gang there.
	Model *collective.Model
}

// Start is a job that starts: when, in the trace's time, and where each of its pods goes, in the
// order of ranks.
type Start struct {
	Cluster, Policy string
	Seed            int64
	Job             trace.Job
	At              time.Duration
	Nodes           []string
}

// wait is for how long the job has waited in all, while it waits.
func (j *job) wait(now time.Duration) time.Duration { return j.waited + now - j.queued }

// placed is a pod with the position of its node.
type placed = cluster.Placement

// job is a job of the trace on its way.
type job struct {
	trace.Job
	size
	seq     int
	request *placement.Request
	work    *cluster.Workload
	// first is when it started first, -1 before; since when it started last.
	first, since time.Duration
	// queued is since when it waits, waited for how long it did before it was evicted.
	queued, waited time.Duration
	// left is how long it has yet to run from its start on.
	left time.Duration
	// ends is when it ends; index its place in the heap.
	ends  time.Duration
	index int
	// said is what was known of its run time when it started.
	said placement.Estimate
	// cost is how much longer it runs because it was moved since it started.
	cost time.Duration
	// key is its place in the order of the queue.
	key float64
	// moved is when it was moved last.
	moved  time.Duration
	placed []placed
	nodes  []int32
	talk   *talk
}

// Replay is one policy at work.
type Replay struct {
	policy  Policy
	cluster string
	options Options
	shapes  *shapes
	jobs    *trace.Jobs
	s       *cluster.Snapshot
	talks   *talks
	now     time.Duration
	next    *trace.Job
	ends    ends
	waits   []*job
	queue   queue
	plan    placement.Options
	history history
	m       *measures
	// freed tells whether anybody left a node since the queue was asked last.
	freed  bool
	seen   int
	events int
}

// queue decides what starts now. It starts jobs by calling start, and leaves in waits what goes
// on waiting.
type queue interface {
	// schedule is called after something ended or arrived; freed tells whether anything ended or
	// grew free since the last time, and fresh is how many at the end of waits are new.
	schedule(r *Replay, freed bool, fresh int) error
	// keeps tells whether it keeps room from the job for another, that nobody may pass.
	keeps(r *Replay, j *job) bool
	// forget drops what it had planned for the job.
	forget(j *job)
	// wake is when it wants to be called even if nothing happens; false if never.
	wake(r *Replay) (time.Duration, bool)
}

// Trace is a file of jobs, which every replay opens anew.
type Trace struct {
	// Name is what messages call it.
	Name string
	Open func() (io.ReadCloser, error)
}

// Run replays the trace. The error is a problem.Problems where the trace is wrong.
func Run(p Policy, c Cluster, t Trace, o Options) (*Result, error) {
	r, err := newReplay(p, c, o)
	if err != nil {
		return nil, err
	}
	in, err := t.Open()
	if err != nil {
		return nil, fmt.Errorf("opening the trace: %w", err)
	}
	defer in.Close()
	r.jobs = trace.NewJobs(t.Name, in, trace.JobsOptions{Models: models(c.Snapshot), Queue: o.Queue, Refuse: r.shapes.refuse})
	r.read()
	for {
		more, err := r.step()
		if err != nil {
			return nil, fmt.Errorf("replaying %s at %v: %w", p.Name, r.now, err)
		}
		if !more {
			break
		}
	}
	if err := r.jobs.Err(); err != nil {
		return nil, err
	}
	if len(r.waits) > 0 {
		return nil, fmt.Errorf("replaying %s: nothing runs any more, and %d jobs still wait", p.Name, len(r.waits))
	}
	if r.seen == 0 {
		// Only a queue can be without jobs: a trace without any is a problem.
		return nil, problem.Problems{{File: t.Name, Text: fmt.Sprintf("has no job of queue %q; expected some", o.Queue)}}
	}
	return r.m.result(r), nil
}

func newReplay(p Policy, c Cluster, o Options) (*Replay, error) {
	all, err := strategies()
	if err != nil {
		return nil, err
	}
	t := o.Topology
	if p.blind() {
		t = AnyPlace
	}
	r := &Replay{
		policy: p, cluster: c.Name, options: o, shapes: newShapes(c.Snapshot, t), s: c.Snapshot,
		queue: newQueue(p), plan: placement.Options{Strategies: all, Cache: &placement.Cache{}, Brief: true},
	}
	if r.shapes.perNode == 0 {
		return nil, fmt.Errorf("the cluster has no GPUs")
	}
	r.m, r.talks = newMeasures(r), newTalks(c.Model, o)
	return r, nil
}

// models are the GPU models of the cluster; nil where it does not tell.
func models(s *cluster.Snapshot) map[string]bool {
	known := map[string]bool{}
	for _, n := range s.Nodes() {
		if n.GPU.Product != "" {
			known[n.GPU.Product] = true
		}
	}
	if len(known) == 0 {
		return nil
	}
	return known
}

// read looks at the next job of the trace.
func (r *Replay) read() {
	j, ok := r.jobs.Next()
	r.next = &j
	if !ok || r.jobs.Err() != nil {
		r.next = nil
	}
}

// step goes to the next moment at which anything happens. It is false at the end.
func (r *Replay) step() (bool, error) {
	at, more := r.moment()
	if !more {
		return false, nil
	}
	r.m.pass(r, at)
	r.now = at
	r.end()
	fresh := r.arrive()
	if len(r.waits) == 0 {
		return true, nil
	}
	for again := true; again; fresh = 0 {
		freed := r.freed
		r.freed = false
		if err := r.queue.schedule(r, freed, fresh); err != nil {
			return false, err
		}
		if err := r.makeRoom(); err != nil {
			return false, err
		}
		// What was evicted or moved may have left room for others.
		again = r.freed && len(r.waits) > 0
	}
	return true, nil
}

// moment returns when something happens next.
func (r *Replay) moment() (at time.Duration, more bool) {
	consider := func(t time.Duration) {
		if !more || t < at {
			at, more = t, true
		}
	}
	if len(r.ends) > 0 {
		consider(r.ends[0].ends)
	}
	if r.next != nil {
		consider(r.next.Submit)
	}
	if t, wakes := r.queue.wake(r); wakes {
		consider(t)
	}
	return at, more
}

// end takes away what has run for as long as it does.
func (r *Replay) end() {
	for len(r.ends) > 0 && r.ends[0].ends <= r.now {
		j := heap.Pop(&r.ends).(*job)
		r.vacate(j)
		r.history.add(j.GPUs, j.Duration)
		r.m.ended(r, j)
		r.events++
	}
}

// vacate takes a job from its nodes.
func (r *Replay) vacate(j *job) {
	txn := r.s.Begin()
	txn.Evict(j.placed...)
	r.become(txn.Snapshot(), j.nodes)
	r.talks.end(j, r.now)
	r.freed = true
	j.placed = nil
}

// become makes s the cluster, in which the nodes at the given positions changed.
func (r *Replay) become(s *cluster.Snapshot, changed []int32) {
	r.s = s
	r.m.changed(s, changed)
}

// arrive takes up what the trace has submitted by now, and returns how many that are.
func (r *Replay) arrive() int {
	before := len(r.waits)
	for r.next != nil && r.next.Submit <= r.now {
		r.waits = append(r.waits, r.newJob(r.next))
		r.events++
		r.read()
	}
	return len(r.waits) - before
}

func (r *Replay) newJob(t *trace.Job) *job {
	z := r.shapes.sizeOf(t)
	// Names are unique, whatever the trace calls its jobs.
	name := fmt.Sprintf("%s#%d", t.ID, r.seen)
	j := &job{
		Job: *t, size: z, seq: r.seen, first: -1, queued: t.Submit, left: t.Duration, moved: -time.Hour,
		request: &placement.Request{
			Name: name, Groups: []placement.Group{r.shapes.group(z)}, Strategy: r.policy.Strategy,
			Priority: t.Priority, Seed: uint64(r.options.Seed)<<32 + uint64(r.seen),
		},
		work: &cluster.Workload{Name: name, Priority: t.Priority, Preemptible: r.options.Preempt, Movable: r.options.Moves > 0, Level: -1},
	}
	if r.options.Topology == RequireLeaf && z.pods > 1 && !r.policy.blind() {
		j.work.Level = r.shapes.leaf
	}
	r.seen++
	return j
}

// estimate is what is known of a job's run time now.
func (r *Replay) estimate(j *job) placement.Estimate {
	if r.options.Estimates == History {
		return r.history.estimate(j.GPUs)
	}
	if r.options.Estimates == Oracle {
		return exactly(j.left)
	}
	return placement.Estimate{}
}

// exactly is the estimate of a known run time. Zero would say that it is not known.
func exactly(run time.Duration) placement.Estimate {
	run = max(run, time.Nanosecond)
	return placement.Estimate{P50: run, P90: run}
}

// place starts a job if it fits now. It does not take it from waits.
func (r *Replay) place(j *job) (bool, error) {
	d, err := placement.Plan(r.s, j.request, r.plan)
	if err != nil || !d.Feasible {
		return false, err
	}
	return true, r.start(j, &d)
}

// start starts a job where the decision says.
func (r *Replay) start(j *job, d *placement.Decision) error {
	placed := d.Placements(j.request, j.work)
	txn := r.s.Begin()
	if err := txn.Place(placed...); err != nil {
		return fmt.Errorf("starting %s: %w", j.request.Name, err)
	}
	j.placed, j.nodes = placed, slices.Clone(d.Groups[0].At)
	names := d.Groups[0].Nodes
	if r.policy.blind() && !r.options.Sorted {
		names = r.shuffle(j, names)
	}
	j.since, j.ends, j.waited = r.now, r.now+j.left, j.wait(r.now)
	if j.first < 0 {
		j.first = r.now
	}
	j.said = r.estimate(j)
	r.become(txn.Snapshot(), j.nodes)
	heap.Push(&r.ends, j)
	r.m.started(r, j)
	r.talks.begin(j, r.now)
	if r.options.Started != nil {
		r.options.Started(Start{Cluster: r.cluster, Policy: r.policy.Name, Seed: r.options.Seed, Job: j.Job, At: r.now, Nodes: names})
	}
	return nil
}

// shuffle gives the pods of a gang its nodes in random order, as they come where each pod is
// placed by itself and many nodes are as good. The engine's own order follows the topology.
func (r *Replay) shuffle(j *job, names []string) []string {
	names = slices.Clone(names)
	source := rand.New(rand.NewPCG(uint64(r.options.Seed), uint64(j.seq)))
	source.Shuffle(len(names), func(a, b int) {
		names[a], names[b] = names[b], names[a]
		j.nodes[a], j.nodes[b] = j.nodes[b], j.nodes[a]
		j.placed[a], j.placed[b] = j.placed[b], j.placed[a]
	})
	return names
}

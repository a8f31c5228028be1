package slurm

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// Command prints what ReadJobs reads. Its priorities are left out with intent: see ReadJobs.
const Command = "sacct --allusers --allocations --parsable2 --starttime=YYYY-MM-DD \\\n" +
	"    --format=JobID,Partition,Submit,Start,End,ElapsedRaw,State,AllocTRES,ReqTRES"

// Model says which GPU model a job is taken to want.
type Model string

const (
	// Requested is the type that it asked for, if it asked for one.
	Requested Model = "requested"
	// Allocated is the type that it got.
	Allocated Model = "allocated"
	// Any lets it have any.
	Any Model = "any"
)

// Models are the values of Model.
func Models() []string { return []string{string(Requested), string(Allocated), string(Any)} }

// What is said of jobs that are left out or changed.
const (
	noGPU   = "jobs that had no GPU"
	waiting = "jobs that never started"
	shared  = "jobs that had parts of GPUs alone (gres/shard, gres/mps)"
	noEnd   = "jobs that still run, of which no column ElapsedRaw says for how long"
	running = "jobs that still run, with the time they ran so far"
	uneven  = "jobs without a number of pods: their GPUs do not divide evenly among their nodes"
	capped  = "jobs with a priority above 2147483647, which is the most that is written"
	mixed   = "heterogeneous jobs, whose components were made one job"
)

// ReadJobs reads what Command prints, and returns its jobs. The header may have the columns in
// any order, and more of them. Steps are no jobs. The components of a heterogeneous job start
// together and so are one job; the tasks of an array do not and are jobs of their own.
//
// A column Priority is read if there is one. It is what Slurm's own scheduler had come to, of
// age, fair share and much else, by the time the job started: as the fixed priority that it is in
// a simulation it says too much, which is why Command does not ask for it.
//
// The error is a problem.Problems where the file is wrong.
func ReadJobs(file string, in io.Reader, model Model) (*importing.Found, error) {
	rows := trace.NewRowsOf(trace.Form{Comma: '|', Bare: true}, file, in, "JobID", "Submit", "Start", "AllocTRES", "ElapsedRaw|End")
	if model == Requested && !rows.Has("ReqTRES") {
		// Asked for or not, what they got is all that is known.
		model = Allocated
	}
	r := reader{rows: rows, model: model, found: &importing.Found{}, together: map[string]*accumulated{}}
	for rows.Next() {
		r.row()
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, key := range r.order {
		r.take(r.together[key])
	}
	r.found.Settle()
	return r.found, nil
}

// reader is what is known while rows are read.
type reader struct {
	rows  *trace.Rows
	model Model
	found *importing.Found
	// together are heterogeneous jobs by number and time of submission, in the order they came.
	together map[string]*accumulated
	order    []string
}

// accumulated is a job, as far as its rows were read.
type accumulated struct {
	trace.Job
	nodes                             int
	started, running, endless, parts  bool
	several, differs, capped, hasGPUs bool
}

func (r *reader) row() {
	id := r.rows.Text("JobID")
	number, ok := job(id)
	if !ok {
		r.rows.Bad("JobID", fmt.Sprintf("is %q; expected a number such as 123, 123_4 of an array or 123+0 of a heterogeneous job", clipped(id)))
		return
	}
	if strings.Contains(id, ".") {
		return // a step of the job
	}
	a := r.read(id)
	if !strings.Contains(id, "+") {
		r.take(&a)
		return
	}
	// Numbers are used again, so that the number alone does not tell.
	key := number + " " + r.rows.Text("Submit")
	whole, known := r.together[key]
	if !known {
		a.ID = strings.Clone(number)
		r.together[key] = &a
		r.order = append(r.order, key)
		return
	}
	whole.join(&a)
}

// read reads the present row.
func (r *reader) read(id string) accumulated {
	a := accumulated{Job: trace.Job{ID: strings.Clone(id), Queue: strings.Clone(r.rows.Text("Partition"))}}
	submit, _ := r.time("Submit")
	start, hasStart := r.time("Start")
	got := r.resources("AllocTRES")
	// Slurm before 20.11 gives jobs that were cancelled while they waited a time of start, but
	// never a resource.
	a.started = hasStart && r.rows.Text("AllocTRES") != ""
	if !a.started {
		return a
	}
	if text := r.rows.Text("Submit"); unknown(text) {
		r.rows.Bad("Submit", fmt.Sprintf("is %q of a job that started; expected a time such as 2024-05-01T12:00:00", clipped(text)))
	}
	a.Submit = submit
	r.times(&a, start)
	if a.GPUs = got.gpus; a.GPUs > maxGPUs {
		r.rows.Bad("AllocTRES", fmt.Sprintf("has %d GPUs; expected at most %d", a.GPUs, maxGPUs))
	}
	a.hasGPUs, a.parts = a.GPUs > 0, got.parts
	a.nodes = got.nodes
	if a.nodes == 0 && r.rows.Text("AllocNodes") != "" {
		a.nodes = int(r.rows.Int("AllocNodes", 0, maxGPUs))
	}
	switch r.model {
	case Requested:
		a.Model = r.resources("ReqTRES").model()
	case Allocated:
		a.Model = got.model()
	}
	if r.rows.Text("Priority") != "" {
		priority := r.rows.Int("Priority", 0, math.MaxUint32)
		a.Priority, a.capped = int32(min(priority, math.MaxInt32)), priority > math.MaxInt32
	}
	return a
}

// maxGPUs is the most GPUs or nodes of a job, which is also what package trace reads.
const maxGPUs = 1 << 20

// times reads how long a job ran that started.
func (r *reader) times(a *accumulated, start time.Duration) {
	end, hasEnd := r.time("End")
	state, _, _ := strings.Cut(r.rows.Text("State"), " ")
	a.running = r.rows.Has("End") && !hasEnd || state == "RUNNING" || state == "SUSPENDED" || state == "COMPLETING"
	switch {
	case r.rows.Text("ElapsedRaw") != "":
		a.Duration = r.rows.Seconds("ElapsedRaw")
	case !hasEnd:
		a.endless = true
	case end < start:
		r.rows.Bad("End", fmt.Sprintf("is %v before Start; expected it after, or a column ElapsedRaw", start-end))
	default:
		a.Duration = end - start
	}
}

// take judges a job that is complete.
func (r *reader) take(a *accumulated) {
	switch {
	case !a.started:
		r.found.Left.Add(waiting)
		return
	case !a.hasGPUs && a.parts:
		r.found.Left.Add(shared)
		return
	case !a.hasGPUs:
		r.found.Left.Add(noGPU)
		return
	case a.endless:
		r.found.Left.Add(noEnd)
		return
	}
	if a.nodes > 0 && a.GPUs%a.nodes == 0 && !a.differs {
		a.Pods = a.nodes
	} else {
		r.found.Changed.Add(uneven)
	}
	if a.running {
		r.found.Changed.Add(running)
	}
	if a.capped {
		r.found.Changed.Add(capped)
	}
	if a.several {
		r.found.Changed.Add(mixed)
	}
	r.found.Jobs = append(r.found.Jobs, a.Job)
}

// join adds a component of the same heterogeneous job. One without GPUs adds its time alone.
func (a *accumulated) join(b *accumulated) {
	a.several = true
	a.started = a.started || b.started
	a.running = a.running || b.running
	a.endless = a.endless || b.endless
	a.parts = a.parts || b.parts
	a.capped = a.capped || b.capped
	a.Duration = max(a.Duration, b.Duration)
	a.Priority = max(a.Priority, b.Priority)
	switch {
	case !b.hasGPUs:
		return
	case !a.hasGPUs:
		a.GPUs, a.nodes, a.Model, a.Queue, a.hasGPUs = b.GPUs, b.nodes, b.Model, b.Queue, true
		return
	}
	a.differs = a.differs || a.nodes*b.GPUs != b.nodes*a.GPUs
	if a.Model != b.Model {
		a.Model = ""
	}
	a.GPUs += b.GPUs
	a.nodes += b.nodes
}

// resources reads a list of trackable resources.
func (r *reader) resources(column string) resources {
	got, wrong := parseTRES(r.rows.Text(column))
	if wrong != "" {
		r.rows.Bad(column, fmt.Sprintf("has %q; expected a list such as cpu=64,gres/gpu=8,gres/gpu:h100=8,mem=500G,node=1", clipped(wrong)))
	}
	return got
}

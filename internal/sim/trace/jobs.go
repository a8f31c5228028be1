package trace

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// maxJobGPUs bounds a gang: more than any cluster has.
const maxJobGPUs = 1 << 20

// Job is a row of jobs.csv.
type Job struct {
	ID string
	// Submit is when it arrives, counted from the trace's own zero; Duration how long it runs.
	Submit, Duration time.Duration
	// GPUs is how many it wants in all, Pods how many equal pods share them: 0 where the file
	// does not tell.
	GPUs, Pods int
	// Model is the GPU model it wants, "" for any.
	Model string
	// Queue is the virtual cluster, partition or namespace it was submitted to.
	Queue    string
	Priority int32
	// Line is where it stands in the file.
	Line int
}

// Jobs reads the jobs of a trace in the order in which they arrive.
type Jobs struct {
	rows    *Rows
	layout  layout
	options JobsOptions
	last    time.Duration
	// sorted are the jobs of a file that comes in no order, which is kept whole; next counts them.
	sorted []Job
	read   bool
	next   int
}

// JobsOptions narrow what is read.
type JobsOptions struct {
	// Models are the GPU models that the cluster has; nil accepts all.
	Models map[string]bool
	// Queue names the only queue whose jobs are wanted; "" wants all.
	Queue string
	// Refuse says what is wrong with the GPUs that a wanted job asks for, for example that no
	// cluster has as many; "" if nothing is. Nil accepts all.
	Refuse func(Job) string
}

// layout is how a published trace writes its jobs.
type layout struct {
	name  string
	needs []string
	// unordered says that rows are in no order as published; others have to be in order.
	unordered bool
	// gpus is the column that says how many GPUs a job wants.
	gpus string
	read func(r *Rows) Job
}

// layouts are the traces that are read as they are published. The first whose columns a file
// has is meant; own is what everybody else writes.
func layouts() []layout {
	return []layout{
		{
			name:      "Philly",
			needs:     []string{"timestamp", "duration", "num_gpus"},
			unordered: true,
			gpus:      "num_gpus",
			read: func(r *Rows) Job {
				return Job{ID: fmt.Sprintf("philly-%d", r.Line()), Submit: timestamp(r, "timestamp"), Duration: r.Seconds("duration"),
					GPUs: int(r.Int("num_gpus", 1, maxJobGPUs)), Queue: r.Text("cluster")}
			},
		},
		{
			name:  "Kalos",
			needs: []string{"job_id", "arrival_time", "num_iteration", "iteration_computing_time", "gpu_workers", "gpu_per_worker"},
			gpus:  "gpu_workers",
			read:  kalos,
		},
		own(),
	}
}

func own() layout {
	return layout{
		name:  "jobs",
		needs: []string{"job_id", "submission_time", "duration", "num_gpu"},
		gpus:  "num_gpu",
		read: func(r *Rows) Job {
			j := Job{ID: r.Text("job_id"), Submit: r.Seconds("submission_time"), Duration: r.Seconds("duration"),
				GPUs: int(r.Int("num_gpu", 1, maxJobGPUs)), Model: r.Text("gpu_model"), Queue: r.Text("queue")}
			if j.ID == "" {
				r.Bad("job_id", "is empty; expected the name of the job")
			}
			if r.Text("num_pods") != "" {
				j.Pods = int(r.Int("num_pods", 1, maxJobGPUs))
				if j.Pods > 0 && j.GPUs%j.Pods != 0 {
					r.Bad("num_pods", fmt.Sprintf("is %d with num_gpu %d; expected a divisor, since pods are equal", j.Pods, j.GPUs))
				}
			}
			if r.Text("priority") != "" {
				j.Priority = int32(r.Int("priority", math.MinInt32, math.MaxInt32))
			}
			return j
		},
	}
}

// kalos reads the converted Kalos trace: a duration in iterations, a gang in workers. What it
// says of the network was added by its converter and is not read.
func kalos(r *Rows) Job {
	workers, each := int(r.Int("gpu_workers", 1, maxJobGPUs)), int(r.Int("gpu_per_worker", 1, maxGPUs))
	iterations, one := r.Int("num_iteration", 0, math.MaxInt32), r.Seconds("iteration_computing_time")
	return Job{ID: r.Text("job_id"), Submit: r.Seconds("arrival_time"), Duration: time.Duration(iterations) * one,
		GPUs: workers * each, Pods: workers}
}

// timestamp reads a wall-clock time.
func timestamp(r *Rows, column string) time.Duration {
	text := r.Text(column)
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		r.Bad(column, fmt.Sprintf("is %s; expected a time such as 2017-10-09 07:01:55", shown(text)))
		return 0
	}
	return time.Duration(t.Unix()) * time.Second
}

// NewJobs reads the header and finds out which trace it is of.
func NewJobs(file string, in io.Reader, o JobsOptions) *Jobs {
	j := &Jobs{rows: NewRows(file, in), options: o, layout: own()}
	for _, l := range layouts() {
		if !slices.ContainsFunc(l.needs, func(c string) bool { return !j.rows.Has(c) }) {
			j.layout = l
			return j
		}
	}
	j.rows.Need(j.layout.needs...)
	return j
}

// Next returns the next job to arrive; false at the end, or if too much is wrong.
func (j *Jobs) Next() (Job, bool) {
	if !j.layout.unordered {
		return j.readOne()
	}
	if !j.read {
		j.readAll()
	}
	if j.next == len(j.sorted) || j.rows.Err() != nil {
		return Job{}, false
	}
	j.next++
	return j.sorted[j.next-1], true
}

// Err returns what is wrong with the file, as far as it was read.
func (j *Jobs) Err() error { return j.rows.Err() }

// readOne reads rows until one is of the wanted queue.
func (j *Jobs) readOne() (Job, bool) {
	for j.rows.Next() {
		job := j.layout.read(j.rows)
		job.Line = j.rows.Line()
		known := j.options.Models
		strange := job.Model != "" && known != nil && !known[job.Model]
		if strange {
			j.rows.Bad("gpu_model", fmt.Sprintf("%s is no GPU model of the cluster; it has %s", shown(job.Model), listed(known)))
		}
		if !j.layout.unordered && job.Submit < j.last {
			j.rows.Bad("submission_time", fmt.Sprintf("is %v before the job of the row above; expected rows in the order of their submission", j.last-job.Submit))
		}
		j.last = max(j.last, job.Submit)
		if j.options.Queue != "" && job.Queue != j.options.Queue {
			continue
		}
		if j.options.Refuse != nil && job.GPUs > 0 && !strange {
			if why := j.options.Refuse(job); why != "" {
				j.rows.Bad(j.layout.gpus, why)
			}
		}
		return job, true
	}
	return Job{}, false
}

// readAll keeps a file that comes in no order, and counts its times from the first.
func (j *Jobs) readAll() {
	j.read = true
	for {
		job, ok := j.readOne()
		if !ok {
			break
		}
		j.sorted = append(j.sorted, job)
	}
	slices.SortStableFunc(j.sorted, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := len(j.sorted) - 1; i >= 0; i-- {
		j.sorted[i].Submit -= j.sorted[0].Submit
	}
}

func listed(set map[string]bool) string {
	if len(set) == 0 {
		return "none"
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

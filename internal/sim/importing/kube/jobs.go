package kube

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// What is said of jobs that are left out or changed.
const (
	noGPU    = "jobs and lone pods that ask for no GPU"
	claims   = "jobs and lone pods whose devices come by resource claims, which are not read"
	absurd   = "jobs and lone pods that ask for more of something than any machine has"
	waiting  = "jobs that have not started yet"
	running  = "jobs that still run, with the time they ran so far"
	partial  = "jobs that ask for parts of GPUs: each of their pods counts with whole ones, rounded up"
	uneven   = "jobs without a number of pods: their pods do not ask for equally many GPUs"
	podsGone = "jobs whose pods are gone: they count as running from when their Job was let go"
	nowhere  = "jobs that ask for nodes that are not there: they may have any model"
	several  = "jobs that accept some models but not all: they may have any"
)

// maxJobGPUs is the most that package trace reads.
const maxJobGPUs = 1 << 20

// demand is what a work asks for, and when it had it.
type demand struct {
	gpus, pods int
	// each is what one pod asks for, in thousandths of a GPU; uneven says that others ask for
	// more or less, parts that some do not ask for whole ones.
	each          int64
	uneven, parts bool
	// claims says that there are resource claims, absurd that no machine has as much.
	claims, absurd bool
	// models are those of the nodes that fit, nil for any; unfit says that none fits.
	models []string
	unfit  bool
	// run holds once hasRun is set.
	run    period
	hasRun bool
}

// take makes a job of a work, or says why not.
func (t *translator) take(w *work) {
	d := t.demand(w)
	age := t.Now.Sub(w.created)
	switch {
	case d.absurd || d.gpus > maxJobGPUs:
		t.found.Left.Add(absurd)
	case d.gpus == 0 && d.claims:
		t.found.Left.Add(claims)
	case d.gpus == 0:
		t.found.Left.Add(noGPU)
	case age > t.Since && !d.run.start.IsZero() && d.run.end.IsZero():
		t.found.Left.Add(fmt.Sprintf("jobs submitted more than %v ago that still run", t.Since))
	case age > t.Since:
		t.found.Left.Add(fmt.Sprintf("jobs submitted more than %v ago", t.Since))
	case d.run.start.IsZero():
		t.found.Left.Add(waiting)
	default:
		t.found.Jobs = append(t.found.Jobs, t.job(w, d))
	}
}

// job writes down a work that ran.
func (t *translator) job(w *work, d demand) trace.Job {
	end := d.run.end
	if end.IsZero() {
		end = t.Now
		t.found.Changed.Add(running)
	}
	j := trace.Job{
		ID: w.namespace + "/" + w.name, Submit: time.Duration(w.created.Unix()) * time.Second, Duration: max(end.Sub(d.run.start), 0).Round(time.Microsecond),
		GPUs: d.gpus, Pods: d.pods, Queue: w.queue(), Priority: w.priority(),
	}
	if d.uneven {
		j.Pods = 0
		t.found.Changed.Add(uneven)
	}
	if d.parts {
		t.found.Changed.Add(partial)
	}
	if d.run.gone {
		t.found.Changed.Add(podsGone)
	}
	switch {
	case len(d.models) == 1:
		j.Model = d.models[0]
	case len(d.models) > 1:
		t.found.Changed.Add(several)
	case d.unfit:
		t.found.Changed.Add(nowhere)
	}
	return j
}

// demand adds up what the pods of a work ask for, by the templates of its Jobs where there are
// any: they know of pods that are gone, or are still to be.
func (t *translator) demand(w *work) demand {
	var d demand
	for _, j := range w.jobs {
		count := 1
		if j.Spec.Parallelism != nil {
			count = int(*j.Spec.Parallelism)
		}
		if j.Spec.Completions != nil {
			count = min(count, int(*j.Spec.Completions))
		}
		// Of how a device is shared its node tells.
		var on *corev1.Node
		for _, p := range j.pods {
			if on = t.byName[p.Spec.NodeName]; on != nil {
				break
			}
		}
		if t.add(&d, &j.Spec.Template.Spec, count, on) {
			d.ran(ofJob(j, count))
		}
	}
	pods := slices.DeleteFunc(slices.Clone(w.pods), func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if len(pods) == 0 {
		// All failed. Where others did not, those that failed were replaced.
		pods = w.pods
	}
	var asking []*corev1.Pod
	for _, p := range pods {
		if t.add(&d, &p.Spec, 1, t.byName[p.Spec.NodeName]) {
			asking = append(asking, p)
		}
	}
	if len(asking) > 0 {
		d.ran(ofPods(asking))
	}
	if w.workload != nil {
		t.addWorkload(&d, w)
	}
	return d
}

// ran takes in when a part of the work ran.
func (d *demand) ran(run period) {
	if d.hasRun {
		run = both(d.run, run)
	}
	d.run, d.hasRun = run, true
}

// add takes in so many equal pods, and tells whether they ask for GPUs.
func (t *translator) add(d *demand, spec *corev1.PodSpec, count int, on *corev1.Node) bool {
	requests, sane := requested(spec)
	d.absurd = d.absurd || !sane
	fits := t.fitting(spec)
	if on == nil && len(fits) > 0 {
		on = fits[0].node
	}
	each := t.held(requests, on)
	if each == 0 || count <= 0 {
		d.claims = d.claims || len(spec.ResourceClaims) > 0
		return false
	}
	models := t.models(fits)
	if d.gpus == 0 {
		d.each, d.models = each, models
	}
	d.uneven = d.uneven || each != d.each
	if !slices.Equal(d.models, models) {
		d.models = nil
	}
	d.unfit = d.unfit || len(fits) == 0
	d.parts = d.parts || each%whole != 0
	d.gpus += count * int(ceil(each, whole))
	d.pods += count
	return true
}

// addWorkload takes in what only the GPUWorkload says: the product that it wants, and, where its
// Job is gone, how much it asked for and when it ran.
func (t *translator) addWorkload(d *demand, w *work) {
	spec, status := w.workload.Spec, w.workload.Status
	if d.gpus == 0 && len(w.jobs) == 0 {
		d.pods = int(max(spec.Parallelism, 1))
		d.gpus = d.pods * int(max(spec.GPUCount, 1))
		if status.StartTime != nil && status.CompletionTime != nil {
			d.run = period{start: status.StartTime.Time, end: status.CompletionTime.Time}
		}
	}
	if spec.GPU == nil || spec.GPU.Product == "" {
		return
	}
	var fits []gpuNode
	for _, n := range t.nodes {
		if n.product == spec.GPU.Product {
			fits = append(fits, n)
		}
	}
	d.models, d.unfit = t.models(fits), len(fits) == 0
}

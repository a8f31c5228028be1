package main

import (
	"time"
)

// lost is O4: at the end every workload has ended, waits with a reason, or runs.
type lost struct {
	blame blame
	limit time.Duration
	// moved is when a workload, its Jobs or its pods last changed.
	moved map[string]time.Time
}

func newLost(b blame, limit time.Duration) *lost {
	return &lost{blame: b, limit: limit, moved: make(map[string]time.Time)}
}

func (o *lost) see(w *world, _ *object) {
	switch w.at.kind {
	case workloads:
		o.moved[w.at.Metadata.UID] = w.at.seen
	case jobs, pods:
		o.moved[w.at.workload()] = w.at.seen
	}
}

func (o *lost) end(w *world) {
	for uid, x := range w.all(workloads) {
		_, why := x.is("Planned")
		_, accepted := x.is("Accepted")
		suspended, _ := x.is("Suspended")
		phase := x.Status.Phase
		switch {
		case phase == "Succeeded" || phase == "Failed" || phase == "Running":
		case phase == "Pending" && x.Status.Message != "" && (why != "" || accepted != "" || suspended):
		case w.at.seen.Sub(o.moved[uid]) < o.limit:
		default:
			o.blame("O4", "lost: workload %s stands still in phase %q: %q", x.name(), phase, x.Status.Message)
		}
		if x.Metadata.DeletionTimestamp != nil && w.at.seen.Sub(o.moved[uid]) >= o.limit {
			o.blame("O4", "lost: workload %s is being deleted and does not end", x.name())
		}
	}
	for _, p := range w.all(pods) {
		if p.workload() != "" && w.all(workloads)[p.workload()] == nil {
			o.blame("O4", "lost: pod %s outlives its workload", p.name())
		}
	}
}

// accounts is O6: retries and failures are counted as often as they were.
type accounts struct {
	blame blame
	// failedJobs are the Jobs that failed, by workload; countedPods is what a Job counts;
	// failures are its pods that failed by themselves.
	failedJobs  map[string]map[string]bool
	countedPods map[string]map[string]int
	failures    map[string]map[string]bool
	jobNames    map[string]string
}

func newAccounts(b blame) *accounts {
	return &accounts{
		blame: b, failedJobs: make(map[string]map[string]bool), countedPods: make(map[string]map[string]int),
		failures: make(map[string]map[string]bool), jobNames: make(map[string]string),
	}
}

func (o *accounts) see(w *world, before *object) {
	c := w.at
	switch {
	case c.kind == workloads && before != nil && !c.deleted:
		if c.Status.Attempt < before.Status.Attempt || c.Status.RetryCount < before.Status.RetryCount {
			o.blame("O6", "accounts: workload %s goes back from attempt %d, retry %d to attempt %d, retry %d", c.name(),
				before.Status.Attempt, before.Status.RetryCount, c.Status.Attempt, c.Status.RetryCount)
		}
	case c.workload() == "":
	case c.kind == jobs:
		o.jobNames[c.Metadata.UID] = c.name()
		if failed, _ := c.is("Failed"); failed {
			inner(o.failedJobs, c.workload())[c.Metadata.UID] = true
		}
		counts := inner(o.countedPods, c.workload())
		counts[c.Metadata.UID] = max(counts[c.Metadata.UID], c.Status.Failed)
	case c.kind == pods && c.Status.Phase == "Failed" && c.Metadata.DeletionTimestamp == nil:
		inner(o.failures, c.Metadata.Labels[labelJob])[c.Metadata.UID] = true
	}
}

func inner[V any](m map[string]map[string]V, key string) map[string]V {
	if m[key] == nil {
		m[key] = make(map[string]V)
	}
	return m[key]
}

func (o *accounts) end(w *world) {
	for _, counts := range o.countedPods {
		for job, n := range counts {
			if n > 0 && len(o.failures[job]) == 0 {
				o.blame("O6", "accounts: Job %s counts %d failed pods, and none failed by itself", o.jobNames[job], n)
			}
		}
	}
	for uid, x := range w.all(workloads) {
		_, reason := x.is("Finished")
		truth := len(o.failedJobs[uid])
		switch {
		case x.Status.Phase != "Succeeded" && reason != "RetriesExhausted":
			continue
		case x.Spec.RestartPolicy == "member":
			truth = 0
			for _, n := range o.countedPods[uid] {
				truth += n
			}
			if x.Spec.RetryPolicy.MaxRetries != nil {
				truth = min(truth, *x.Spec.RetryPolicy.MaxRetries)
			}
		case reason == "RetriesExhausted":
			// The last failure is the end, and no retry.
			truth--
		}
		if x.Status.RetryCount != truth {
			o.blame("O6", "accounts: workload %s counts %d retries, there were %d", x.name(), x.Status.RetryCount, truth)
		}
	}
}

// summary is O8: every Job belongs to an attempt that was written down before, and nothing is
// told twice.
type summary struct {
	blame blame
	// promised are the Jobs that a workload's status has named, by its UID.
	promised map[string]map[string]bool
	told     map[[3]string]map[string]int
}

func newSummary(b blame) *summary {
	return &summary{blame: b, promised: make(map[string]map[string]bool), told: make(map[[3]string]map[string]int)}
}

func (o *summary) see(w *world, _ *object) {
	c := w.at
	switch {
	case c.deleted:
	case c.kind == workloads && c.Status.JobName != "":
		inner(o.promised, c.Metadata.UID)[c.Metadata.Namespace+"/"+c.Status.JobName] = true
	case c.kind == jobs && c.created && c.workload() != "" && !o.promised[c.workload()][c.name()]:
		o.blame("O8", "unexplained: Job %s was made before any plan named it", c.name())
	case c.kind == notes && c.ReportingController == reporter:
		key := [3]string{c.Regarding.UID, c.Reason, c.Note}
		if o.told[key] == nil {
			o.told[key] = make(map[string]int)
		}
		n := 1
		if c.Series != nil {
			n = max(n, c.Series.Count)
		}
		o.told[key][c.Metadata.UID] = n
		total := 0
		for _, n := range o.told[key] {
			total += n
		}
		// Each attempt may say the same. One repetition more is what a crash can lead to.
		attempt := 0
		if x := w.all(workloads)[c.Regarding.UID]; x != nil {
			attempt = x.Status.Attempt
		}
		if total == attempt+3 {
			o.blame("O8", "repeated: event %s of %s says %q again and again", c.Reason, c.Regarding.Name, c.Note)
		}
	}
}

func (o *summary) end(*world) {}

package main

import (
	"strconv"
	"strings"
	"time"
)

// record is a line of a fault proxy's journal, as far as it is judged.
type record struct {
	At           time.Time `json:"at"`
	Component    string    `json:"component"`
	Point        string    `json:"point"`
	Verb         string    `json:"verb"`
	Resource     string    `json:"resource"`
	Subresource  string    `json:"subresource"`
	Namespace    string    `json:"namespace"`
	Name         string    `json:"name"`
	UIDGuard     string    `json:"uidGuard"`
	VersionGuard string    `json:"versionGuard"`
	Code         int       `json:"code"`
	UID          string    `json:"uid"`
}

func (r record) target() string { return r.Namespace + "/" + r.Name }

func (r record) done() bool { return r.Code >= 200 && r.Code < 300 }

// strangers is O5: what the product writes or deletes is its own, and named so that it can be
// nothing else.
type strangers struct {
	blame   blame
	journal []record
	// ours are the UIDs of workloads and of what they made; foreign the names that never were.
	ours    map[string]bool
	foreign map[string]bool
	// stopped are Jobs that went away with their whole gang running, and without a reason that
	// the workload tells, by UID.
	stopped map[string]string
}

func newStrangers(b blame, journal []record) *strangers {
	return &strangers{blame: b, journal: journal, ours: make(map[string]bool), foreign: make(map[string]bool), stopped: make(map[string]string)}
}

func (o *strangers) see(w *world, before *object) {
	c := w.at
	if c.kind == jobs && c.workload() != "" && (c.deleted || c.Metadata.DeletionTimestamp != nil && before != nil && before.Metadata.DeletionTimestamp == nil) {
		o.stop(w)
	}
	if c.kind == workloads || c.workload() != "" && (c.kind == jobs || c.kind == pods) {
		o.ours[c.Metadata.UID] = true
	} else if c.kind == jobs || c.kind == pods {
		o.foreign[c.kind+" "+c.name()] = true
	}
}

// stop notes a Job that goes while its whole gang holds its nodes, unless it is to go: by a
// person's word, for a deadline, or because the workload has gone on.
func (o *strangers) stop(w *world) {
	c := w.at
	x := w.all(workloads)[c.workload()]
	attempt, err := strconv.Atoi(c.Metadata.Labels[labelAttempt])
	failed, _ := c.is("Failed")
	target, _ := c.is("FailureTarget")
	complete, _ := c.is("Complete")
	if x == nil || err != nil || c.Spec.Completions == nil || failed || target || complete ||
		x.Metadata.DeletionTimestamp != nil || x.Spec.Suspend || x.Spec.ActiveDeadlineSeconds != nil || x.Status.Attempt > attempt {
		return
	}
	holding := 0
	for _, pod := range w.members[c.workload()] {
		if pod.Metadata.Labels[labelJob] == c.Metadata.UID && pod.holds() {
			holding++
		}
	}
	if holding >= *c.Spec.Completions {
		o.stopped[c.Metadata.UID] = c.name()
	}
}

func (o *strangers) end(*world) {
	for _, r := range o.journal {
		if name := o.stopped[r.UIDGuard]; name != "" && r.Verb == "delete" && r.Resource == jobs && r.done() {
			o.blame("O5", "stopped: %s deleted Job %s with its whole gang running", r.Point, name)
		}
		judged := r.Resource == pods || r.Resource == jobs || r.Resource == workloads
		what := r.Point + " of " + r.target()
		switch {
		case !judged || r.Verb == "create":
		case r.Verb == "deletecollection":
			o.blame("O5", "stranger: %s takes whatever is there", what)
		case r.Verb == "delete" && r.UIDGuard == "":
			o.blame("O5", "stranger: %s does not say whose UID it means", what)
		case r.Verb == "delete" && r.done() && !o.ours[r.UIDGuard]:
			o.blame("O5", "stranger: %s, which no workload made", what)
		case r.Verb != "delete" && r.UIDGuard == "" && r.VersionGuard == "":
			o.blame("O5", "stranger: %s carries neither UID nor resourceVersion", what)
		case r.done() && o.foreign[r.Resource+" "+r.target()] && !o.ours[r.UID]:
			o.blame("O5", "stranger: %s, which no workload made", what)
		}
	}
}

// bystanders is O12: pods that are none of ours are neither delayed, nor touched, nor deleted.
type bystanders struct {
	blame  blame
	limits limits
	since  map[string]*change
}

func newBystanders(b blame, l limits) *bystanders {
	return &bystanders{blame: b, limits: l, since: make(map[string]*change)}
}

func (o *bystanders) see(w *world, _ *object) {
	c := w.at
	if c.kind != pods || c.Metadata.Namespace != o.limits.bystanders || o.limits.bystanders == "" {
		return
	}
	if c.deleted || c.Metadata.DeletionTimestamp != nil {
		o.blame("O12", "bystander: pod %s is none of ours, and was deleted", c.name())
		delete(o.since, c.Metadata.UID)
		return
	}
	for _, g := range c.Spec.SchedulingGates {
		if g.Name == gate {
			o.blame("O12", "bystander: pod %s is none of ours, and has our gate", c.name())
		}
	}
	for key := range c.Metadata.Annotations {
		if strings.HasPrefix(key, "gpu.warp.dev/") {
			o.blame("O12", "bystander: pod %s is none of ours, and has annotation %s", c.name(), key)
		}
	}
	first, known := o.since[c.Metadata.UID]
	switch {
	case c.created && c.Spec.NodeName == "":
		o.since[c.Metadata.UID] = &c
	case known && c.Spec.NodeName != "":
		if waited := c.seen.Sub(first.seen); waited > o.limits.bystander {
			o.blame("O12", "bystander: pod %s waited %s for its node", c.name(), waited.Round(time.Millisecond))
		}
		delete(o.since, c.Metadata.UID)
	}
}

func (o *bystanders) end(w *world) {
	for _, c := range o.since {
		if waited := w.at.seen.Sub(c.seen); waited > o.limits.bystander {
			o.blame("O12", "bystander: pod %s waits for its node for %s", c.name(), waited.Round(time.Millisecond))
		}
	}
}

// quiet is O7: once everything is as wanted, nothing is written.
type quiet struct {
	blame   blame
	times   []interval
	journal []record
}

func newQuiet(b blame, times []interval, journal []record) *quiet {
	return &quiet{blame: b, times: times, journal: journal}
}

func (o *quiet) during(at time.Time) bool {
	for _, t := range o.times {
		if at.After(t.from) && at.Before(t.to) {
			return true
		}
	}
	return false
}

func (o *quiet) see(w *world, _ *object) {
	c := w.at
	managed := c.kind == workloads || c.kind == notes && c.ReportingController == reporter || (c.kind == jobs || c.kind == pods) && c.workload() != ""
	if managed && o.during(c.seen) {
		o.blame("O7", "unquiet: %s %s still changes", c.kind, c.name())
	}
}

func (o *quiet) end(*world) {
	for _, r := range o.journal {
		if r.Resource != "leases.coordination.k8s.io" && o.during(r.At) {
			o.blame("O7", "unquiet: %s of %s", r.Point, r.target())
		}
	}
}

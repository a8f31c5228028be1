package main

import (
	"strconv"
	"time"
)

// oversold is O1: what bound pods hold of a node is never more than the node has.
type oversold struct {
	blame blame
	// pods are the devices that each bound pod holds, by its UID; sum is per node and device.
	pods map[string]*object
	sum  map[string]map[string]int64
}

func newOversold(b blame) *oversold {
	return &oversold{blame: b, pods: make(map[string]*object), sum: make(map[string]map[string]int64)}
}

func (o *oversold) add(pod *object, sign int64) {
	node := pod.Spec.NodeName
	if o.sum[node] == nil {
		o.sum[node] = make(map[string]int64)
	}
	for device, n := range pod.devices() {
		o.sum[node][device] += sign * n
	}
}

func (o *oversold) see(w *world, _ *object) {
	c := w.at
	if c.kind != pods {
		return
	}
	if old := o.pods[c.Metadata.UID]; old != nil {
		o.add(old, -1)
		delete(o.pods, c.Metadata.UID)
	}
	if c.deleted || !c.holds() {
		return
	}
	o.pods[c.Metadata.UID] = c.object
	o.add(c.object, 1)
	for _, node := range w.all(nodes) {
		if node.Metadata.Name != c.Spec.NodeName {
			continue
		}
		for device, held := range o.sum[node.Metadata.Name] {
			has, _ := amount(device, node.Status.Allocatable[device])
			if held > has {
				o.blame("O1", "oversold: %d of %d %s of %s are held with pod %s", held, has, device, node.Metadata.Name, c.name())
			}
		}
		return
	}
}

func (o *oversold) end(*world) {}

// gang is the pods of one Job.
type gang struct {
	job, name string
	size      int
	// bound are the ranks that hold a node or have succeeded.
	bound map[string]map[string]bool
	whole bool
	// since is when it began to be bound in part, zero if it is not.
	since time.Time
}

// torn is O2: a gang is bound in part no longer than is stated, and never mixed with a second
// attempt of its own.
type torn struct {
	blame blame
	limit time.Duration
	gangs map[string]*gang
}

func newTorn(b blame, limit time.Duration) *torn {
	return &torn{blame: b, limit: limit, gangs: make(map[string]*gang)}
}

func (o *torn) see(w *world, _ *object) {
	c := w.at
	switch {
	case c.workload() == "":
	case c.kind == jobs && c.Spec.Completions != nil:
		failed, _ := c.is("Failed")
		target, _ := c.is("FailureTarget")
		if g := o.gangs[c.Metadata.UID]; c.deleted || c.Metadata.DeletionTimestamp != nil || failed || target {
			if g != nil {
				o.look(g, c.seen, true)
				// What comes after is the end of it, which takes as long as pods take to end.
				delete(o.gangs, c.Metadata.UID)
			}
		} else if g == nil {
			o.gangs[c.Metadata.UID] = &gang{job: c.Metadata.UID, name: c.name(), size: *c.Spec.Completions, bound: make(map[string]map[string]bool)}
		}
	case c.kind == pods:
		o.mixed(w)
		g := o.gangs[c.Metadata.Labels[labelJob]]
		if g == nil {
			return
		}
		rank := c.Metadata.Labels[labelRank]
		if g.bound[rank] == nil {
			g.bound[rank] = make(map[string]bool)
		}
		switch {
		case c.Status.Phase == "Succeeded":
			g.bound[rank]["succeeded"] = true
		case !c.deleted && c.holds():
			g.bound[rank][c.Metadata.UID] = true
		default:
			delete(g.bound[rank], c.Metadata.UID)
		}
		o.look(g, c.seen, false)
	}
}

// look takes the time of a gang that is bound in part.
func (o *torn) look(g *gang, now time.Time, over bool) {
	bound := 0
	for _, pods := range g.bound {
		if len(pods) > 0 {
			bound++
		}
	}
	g.whole = g.whole || bound == g.size
	part := bound > 0 && !g.whole
	if !g.since.IsZero() && (!part || over) {
		if lasted := now.Sub(g.since); lasted > o.limit {
			o.blame("O2", "torn: Job %s was bound in part (now %d of %d) for %s", g.name, bound, g.size, lasted.Round(time.Millisecond))
		}
		g.since = time.Time{}
	}
	if part && g.since.IsZero() {
		g.since = now
	}
}

// mixed holds two attempts of one workload that hold nodes at once against it.
func (o *torn) mixed(w *world) {
	c := w.at
	if c.deleted || !c.holds() {
		return
	}
	for _, other := range w.members[c.workload()] {
		if other.holds() && other.Metadata.Labels[labelAttempt] != c.Metadata.Labels[labelAttempt] {
			o.blame("O2", "mixed: pods %s and %s are of two attempts of one workload, and both hold nodes", c.name(), other.name())
			return
		}
	}
}

func (o *torn) end(w *world) {
	for _, g := range o.gangs {
		o.look(g, w.at.seen, true)
	}
}

// doubled is O3: an attempt has one Job ever, and a rank one pod that holds a node. A Job that a
// leader makes after it was replaced, of an attempt that is over by then, is let pass if it does
// nothing: no pod of it gets a node, and it does not stay.
type doubled struct {
	blame blame
	jobs  map[[2]string]string
	late  map[string]bool
}

func newDoubled(b blame) *doubled {
	return &doubled{blame: b, jobs: make(map[[2]string]string), late: make(map[string]bool)}
}

// over tells whether a workload has gone on to a later attempt, has ended, or is gone.
func over(w *world, uid, attempt string) bool {
	x := w.all(workloads)[uid]
	if x == nil || x.Metadata.DeletionTimestamp != nil || x.Status.Phase == "Succeeded" || x.Status.Phase == "Failed" {
		return true
	}
	n, err := strconv.Atoi(attempt)
	return err == nil && n < x.Status.Attempt
}

func (o *doubled) see(w *world, _ *object) {
	c := w.at
	if c.workload() == "" || c.deleted {
		return
	}
	switch c.kind {
	case jobs:
		key := [2]string{c.workload(), c.Metadata.Labels[labelAttempt]}
		first, ok := o.jobs[key]
		o.jobs[key] = c.Metadata.UID
		switch {
		case !ok || first == c.Metadata.UID:
		case w.all(jobs)[first] == nil && over(w, c.workload(), key[1]):
			o.late[c.Metadata.UID] = true
		default:
			o.blame("O3", "doubled: Job %s is the second one of attempt %s of its workload", c.name(), key[1])
		}
	case pods:
		if !c.holds() {
			return
		}
		if o.late[c.Metadata.Labels[labelJob]] {
			o.blame("O3", "doubled: pod %s of a Job that came too late holds a node", c.name())
		}
		for _, other := range w.members[c.workload()] {
			if other != c.object && other.holds() && other.Metadata.Labels[labelRank] == c.Metadata.Labels[labelRank] {
				o.blame("O3", "doubled: pods %s and %s are one rank, and both hold nodes", c.name(), other.name())
			}
		}
	}
}

func (o *doubled) end(w *world) {
	for uid := range o.late {
		if job := w.all(jobs)[uid]; job != nil && job.Metadata.DeletionTimestamp == nil {
			o.blame("O3", "doubled: Job %s came too late and was left", job.name())
		}
	}
}

package replay

import (
	"slices"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/collective"
)

// talks is the gangs on the network at one time.
type talks struct {
	model *collective.Model
	load  *collective.Load
	bytes float64
	// share is the part of the time in which a gang is on the network.
	share float64
	now   []*talk
}

// talk is one gang on the network, and how it fared so far.
type talk struct {
	gang          *collective.Gang
	crossings     []collective.Crossing
	alone, loaded average
}

// average is the mean of a value over time.
type average struct {
	value float64
	since time.Duration
	sum   float64
	over  time.Duration
}

// become counts the value up to now, and changes it.
func (a *average) become(value float64, now time.Duration) {
	a.sum += a.value * float64(now-a.since)
	a.over += now - a.since
	a.value, a.since = value, now
}

// mean is the value itself where no time has passed.
func (a *average) mean() float64 {
	if a.over == 0 {
		return a.value
	}
	return a.sum / float64(a.over)
}

func newTalks(m *collective.Model, o Options) *talks {
	return &talks{model: m, load: m.NewLoad(), bytes: o.AllReduce, share: o.Share}
}

// begin puts a job of several pods on the network. It keeps what it had counted before.
func (t *talks) begin(j *job, now time.Duration) {
	if j.pods < 2 {
		return
	}
	each := j.size.gpus / j.pods
	ranks := make([]int, 0, j.size.gpus)
	for _, node := range j.nodes {
		for range each {
			ranks = append(ranks, int(node))
		}
	}
	if j.talk == nil {
		j.talk = &talk{}
	}
	k := j.talk
	k.gang = t.model.Gang(collective.Seats(ranks))
	k.crossings = k.gang.Crossings(k.gang.AllReduce(t.bytes, nil).Algorithm())
	k.alone.since, k.loaded.since = now, now
	k.alone.become(k.gang.Slowdown(t.bytes, nil), now)
	t.load.Add(k.crossings, t.share)
	t.now = append(t.now, k)
	t.judge(now)
}

// end takes a job off the network.
func (t *talks) end(j *job, now time.Duration) {
	k := j.talk
	if k == nil {
		return
	}
	k.alone.become(k.alone.value, now)
	k.loaded.become(k.loaded.value, now)
	t.load.Remove(k.crossings, t.share)
	t.now = slices.DeleteFunc(t.now, func(x *talk) bool { return x == k })
	t.judge(now)
}

// judge works out anew how everybody fares, now that somebody came or went.
func (t *talks) judge(now time.Duration) {
	for _, k := range t.now {
		t.load.Remove(k.crossings, t.share)
		k.loaded.become(k.gang.Slowdown(t.bytes, t.load), now)
		t.load.Add(k.crossings, t.share)
	}
}

package replay

import (
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// measures is what is counted while a replay goes on.
type measures struct {
	gpu int
	// total is how many GPUs there are; free has those that are free by node.
	total, idle int64
	free        []int64
	// stranded are the idle GPUs of nodes that are in part in use: no pod that needs a whole node
	// can have them.
	stranded int64
	begun    bool
	begin    time.Duration
	// The integrals are in GPU-hours, but for waited, which is in hours: the time in which
	// somebody waited.
	used, usedWaiting, strandedHours, waited float64
	preempted, moved                         int
	all                                      *class
	sizes                                    map[int]*class
}

// class is the jobs of one range of sizes.
type class struct {
	// most is the largest number of GPUs in the class, 0 for all sizes.
	most int
	// waits and completions are in seconds, one of each for every job that ended.
	waits, completions []float32
	// gangs is how often a gang of several pods started, and in how many leaves and spines.
	gangs, oneLeaf, oneSpine int
	// alone and loaded are of each gang that ended how many times as long its all-reduces took as
	// at the ideal place: with the network for itself, and beside those that ran with it.
	alone, loaded []float32
}

func newMeasures(r *Replay) *measures {
	m := &measures{gpu: r.shapes.gpu, free: make([]int64, r.s.Len()), all: &class{}, sizes: map[int]*class{}}
	for i, n := range r.s.Nodes() {
		m.free[i] = n.Free(m.gpu)
		m.idle += m.free[i]
		m.total += n.Allocatable.At(m.gpu)
		m.stranded += strandedOn(n, m.gpu)
	}
	return m
}

// strandedOn returns the idle GPUs of a node that is in part in use.
func strandedOn(n *cluster.Node, gpu int) int64 {
	if free := n.Free(gpu); free < n.Allocatable.At(gpu) {
		return free
	}
	return 0
}

// changed takes note of nodes that changed, some of which may be named twice.
func (m *measures) changed(now *cluster.Snapshot, nodes []int32) {
	for _, i := range nodes {
		n := now.At(int(i))
		free := n.Free(m.gpu)
		if free == m.free[i] {
			continue
		}
		was := int64(0)
		if m.free[i] < n.Allocatable.At(m.gpu) {
			was = m.free[i]
		}
		m.stranded += strandedOn(n, m.gpu) - was
		m.idle += free - m.free[i]
		m.free[i] = free
	}
}

// pass counts the time until the next moment, in which nothing changes.
func (m *measures) pass(r *Replay, until time.Duration) {
	if !m.begun {
		m.begun, m.begin = true, until
		return
	}
	hours := (until - r.now).Hours()
	m.used += float64(m.total-m.idle) * hours
	m.strandedHours += float64(m.stranded) * hours
	if len(r.waits) > 0 {
		m.waited += hours
		m.usedWaiting += float64(m.total-m.idle) * hours
	}
}

// started takes note of where a job went.
func (m *measures) started(r *Replay, j *job) {
	if j.pods < 2 {
		return
	}
	leaves, spines := r.domains(r.shapes.leaf, j.nodes), r.domains(r.shapes.spine, j.nodes)
	for _, c := range []*class{m.all, m.class(j.GPUs)} {
		c.gangs++
		if leaves == 1 {
			c.oneLeaf++
		}
		if spines == 1 {
			c.oneSpine++
		}
	}
}

// domains counts the domains of a level that the nodes are in; 0 where there is no such level.
func (r *Replay) domains(level int, nodes []int32) int {
	if level < 0 {
		return 0
	}
	seen := map[int]bool{}
	for _, i := range nodes {
		seen[r.s.DomainOf(level, int(i))] = true
	}
	return len(seen)
}

// ended takes note of how a job went.
func (m *measures) ended(r *Replay, j *job) {
	wait, completion := float32((j.first - j.Submit).Seconds()), float32((r.now - j.Submit).Seconds())
	for _, c := range []*class{m.all, m.class(j.GPUs)} {
		c.waits = append(c.waits, wait)
		c.completions = append(c.completions, completion)
		if j.talk != nil {
			c.alone = append(c.alone, float32(j.talk.alone.mean()))
			c.loaded = append(c.loaded, float32(j.talk.loaded.mean()))
		}
	}
}

// class returns the class of a size: 1, 2, 3 to 4, 5 to 8, and so on.
func (m *measures) class(gpus int) *class {
	most := 1
	for most < gpus {
		most *= 2
	}
	if m.sizes[most] == nil {
		m.sizes[most] = &class{most: most}
	}
	return m.sizes[most]
}

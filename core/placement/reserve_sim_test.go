package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/gpu"
)

// backfiller is Backfill, or what a test puts in its place.
type backfiller func(*cluster.Snapshot, *Backlog, Options) (Schedule, error)

// simJob is a job of a simulation, in minutes.
type simJob struct {
	name     string
	pods     int
	gpus     int64
	level    int
	priority int32
	// runs is how long it really runs, says what it says of itself.
	runs    int
	says    Estimate
	arrived int
	// older is how many waited longer when it had waited too long, -1 before.
	older   int
	started int
	at      []cluster.Placement
	nodes   []string
	request *Request
}

// sim is a cluster in simulated time, with an account of its own of what is in use.
type sim struct {
	s       *cluster.Snapshot
	now     int
	backlog Backlog
	decide  backfiller
	options Options
	waits   []*simJob
	runs    []*simJob
	used    map[string]int64
	last    Schedule
	// longest is the longest that a job has run.
	longest int
	// starts counts jobs that started, passed those that did before one that holds room.
	starts, passed, held int
}

func newSim(s *cluster.Snapshot, decide backfiller, o Options) *sim {
	return &sim{s: s, decide: decide, options: o, used: map[string]int64{}}
}

func (m *sim) arrive(j *simJob) {
	j.arrived, j.older = m.now, -1
	j.request = ask(j.pods, j.gpus, group(func(g *Group) { g.Topology.Required = j.level }), func(r *Request) {
		r.Name, r.Priority, r.Strategy = j.name, j.priority, "binPack"
	})
	m.waits = append(m.waits, j)
}

const minute = time.Minute

// end takes away what has run for as long as it does, and tells whether there was any.
func (m *sim) end() bool {
	ended := false
	left := m.runs[:0]
	for _, j := range m.runs {
		if m.now-j.started < j.runs {
			left = append(left, j)
			continue
		}
		ended = true
		txn := m.s.Begin()
		txn.Evict(j.at...)
		m.s = txn.Snapshot()
		for _, n := range j.nodes {
			m.used[n] -= j.gpus
		}
	}
	m.runs = left
	return ended
}

// step asks what to do now and does it. It returns what is wrong with the answer.
func (m *sim) step() string {
	b := m.backlog
	b.Held, b.Queue = m.last.Reservations, b.Queue[:0]
	b.Running = make(map[string]Run, len(m.runs))
	for _, j := range m.runs {
		b.Running[j.name] = Run{Estimate: j.says, Elapsed: time.Duration(m.now-j.started) * minute}
	}
	byName := make(map[string]*simJob, len(m.waits))
	for _, j := range m.waits {
		waited := time.Duration(m.now-j.arrived) * minute
		if waited >= b.MaxWait && j.older < 0 {
			j.older = 0
			for _, other := range m.waits {
				if other.arrived < j.arrived || other.arrived == j.arrived && other != j && byName[other.name] != nil {
					j.older++
				}
			}
		}
		byName[j.name] = j
		b.Queue = append(b.Queue, Job{Request: j.request, Runtime: j.says, Waited: waited})
	}
	m.backlog.Queue = b.Queue
	out, err := m.decide(m.s, &b, m.options)
	if err != nil {
		return err.Error()
	}
	if n := len(out.Starts) + len(out.Reservations) + len(out.Waits); n != len(m.waits) {
		return fmt.Sprintf("%d answers for %d jobs", n, len(m.waits))
	}
	if most := max(b.MaxReservations, 1); len(out.Reservations) > most {
		return fmt.Sprintf("%d holds, %d are allowed", len(out.Reservations), most)
	}
	m.last = out
	m.held += len(out.Reservations)
	for _, start := range out.Starts {
		if wrong := m.start(byName[start.Name], &start.Decision); wrong != "" {
			return wrong
		}
		if len(out.Reservations) > 0 {
			m.passed++
		}
	}
	left := m.waits[:0]
	for _, j := range m.waits {
		if j.at == nil {
			left = append(left, j)
		}
	}
	m.waits = left
	return ""
}

func (m *sim) start(j *simJob, d *Decision) string {
	w := &cluster.Workload{Name: j.name, Priority: j.priority}
	j.at, j.nodes, j.started = d.Placements(j.request, w), d.Nodes(), m.now
	if len(j.at) != j.pods {
		return fmt.Sprintf("%d pods of %s started of %d", len(j.at), j.name, j.pods)
	}
	for _, n := range j.nodes {
		m.used[n] += j.gpus
		if all := m.s.Node(n).Allocatable.At(gpuResource); m.used[n] > all {
			return fmt.Sprintf("%d GPUs of %s in use at %d, it has %d", m.used[n], n, m.now, all)
		}
	}
	if !together(m.s, j.nodes, j.level) {
		return fmt.Sprintf("%s is not in one domain: %v", j.name, j.nodes)
	}
	txn := m.s.Begin()
	if err := txn.Place(j.at...); err != nil {
		return err.Error()
	}
	m.s = txn.Snapshot()
	m.runs = append(m.runs, j)
	m.longest = max(m.longest, j.runs)
	m.starts++
	return ""
}

// smallWorld has three leaves of two nodes with 8 GPUs, two of them in one spine. With a board
// it is known which GPUs are whose.
func smallWorld(board *gpu.Board) *cluster.Snapshot {
	var specs []nodeSpec
	for i, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
		specs = append(specs, nodeSpec{
			name: name, spine: []string{"s1", "s1", "s2"}[i/2], leaf: name[:1], gpus: 8,
			edit: func(n *cluster.Node) { n.Board = board },
		})
	}
	return world(specs...)
}

// bus is a board of 8 GPUs without NVLinks.
func bus(t testing.TB) *gpu.Board {
	t.Helper()
	b, err := gpu.NewBoard(gpu.Wiring{Count: 8})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drawJob draws a job: most are small, some take a leaf, few the cluster.
func drawJob(r *rand.Rand, number int) *simJob {
	j := &simJob{name: fmt.Sprintf("j%d", number), level: AnyLevel, pods: 1, gpus: 1 << r.IntN(4), runs: 1 + r.IntN(20)}
	switch k := r.IntN(100); {
	case k < 3:
		j.pods, j.gpus = 6, 8
	case k < 8:
		j.pods, j.gpus, j.level = 4, 8, spine
	case k < 20:
		j.pods, j.gpus, j.level = 2, 8, leaf
	case k < 30:
		j.pods, j.gpus, j.level = 2+r.IntN(3), 4, leaf
	case k < 40:
		j.pods = 1 + r.IntN(4)
	}
	return j
}

func exact(runs int) Estimate {
	return Estimate{P50: time.Duration(runs) * minute, P90: time.Duration(runs) * minute}
}

package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/cluster"
)

// fullOfJobs is 1,000 nodes with every GPU taken by jobs with 1 to 8 GPUs, and how long these
// run: up to two days.
func fullOfJobs(b *testing.B) (*cluster.Snapshot, map[string]Run) {
	b.Helper()
	s := world(fatTree(1000)...)
	running := map[string]Run{}
	var pods []cluster.Placement
	for i := range s.Len() {
		for k, left := 0, int64(8); left > 0; k++ {
			draw := mix(uint64(i*8 + k))
			gpus := min(left, 1<<(draw%4))
			left -= gpus
			w := &cluster.Workload{Name: fmt.Sprintf("job/%04d-%d", i, k)}
			p50 := time.Duration(60*(1+draw>>8%48)) * time.Minute
			running[w.Name] = Run{
				Estimate: Estimate{P50: p50, P90: 2 * p50},
				Elapsed:  time.Duration(draw>>16%60) * time.Minute,
			}
			pods = append(pods, cluster.Placement{Node: i, Pod: &cluster.Pod{Workload: w, Use: cluster.Vector{1000, 1 << 30, 1, gpus}}})
		}
	}
	return putPods(s, pods), running
}

// BenchmarkReserve finds when 64 pods with 8 GPUs each have room in one spine.
func BenchmarkReserve(b *testing.B) {
	s, running := fullOfJobs(b)
	r := large(64, group(func(g *Group) { g.Topology.Required = spine }))
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("estimates=%v", known), func(b *testing.B) {
			if !known {
				running = nil
			}
			o := Options{Strategies: registry(b), Cache: &Cache{}}
			b.ReportAllocs()
			for b.Loop() {
				h, ok, err := Reserve(s, r, running, o)
				if err != nil || !ok || h.Sure != known || h.Plan.Size() != 64 {
					b.Fatal(err, ok, h.Why)
				}
			}
		})
	}
}

// BenchmarkSchedule answers for a queue of 100 jobs with 1 to 512 GPUs, beside two holds.
func BenchmarkSchedule(b *testing.B) {
	s, running := fullOfJobs(b)
	// One job in ten has just ended.
	k := 0
	var gone []cluster.Placement
	for i, n := range s.Nodes() {
		for _, pod := range n.Pods {
			if k++; k%10 == 0 {
				gone = append(gone, cluster.Placement{Node: i, Pod: pod})
			}
		}
	}
	s = dropPods(s, gone)
	queue := make([]Job, 100)
	for i := range queue {
		count, gpus := 1, int64(1)<<(i%4)
		switch {
		case i%10 == 0:
			count, gpus = 64, 8
		case i%10 < 3:
			count = 8
		}
		p50 := time.Duration(60*(1+i%24)) * time.Minute
		queue[i] = Job{Request: ask(count, gpus, func(r *Request) {
			r.Name = fmt.Sprintf("queue/%03d", i)
			r.Groups[0].Topology.Required = []int{spine, leaf, AnyLevel}[min(2, 64/count/8)]
			r.Priority = int32(i % 3)
		}), Runtime: Estimate{P50: p50}, Waited: time.Duration(i) * time.Second}
	}
	o := Options{Strategies: registry(b), Cache: &Cache{}}
	backlog := &Backlog{Queue: queue, Running: running}
	first, err := Backfill(s, backlog, o)
	if err != nil {
		b.Fatal(err)
	}
	backlog.Held = first.Reservations
	b.ReportAllocs()
	var out Schedule
	for b.Loop() {
		if out, err = Backfill(s, backlog, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(out.Starts)), "starts")
	b.ReportMetric(float64(len(out.Reservations)), "holds")
	b.ReportMetric(float64(len(out.Waits)), "waits")
}

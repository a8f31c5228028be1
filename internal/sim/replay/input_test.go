package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// TestBadTraces say what is wrong, where, and what was expected.
func TestBadTraces(t *testing.T) {
	c := world(t, "fattree:4x8/2/2@H100")
	for _, bad := range []struct {
		trace Trace
		queue string
		want  string
	}{
		{trace: text("", "a 0 1 33"), want: "jobs.csv:2:7: num_gpu: is 33, as 11 pods with 3 GPUs each; the empty cluster has room for 8 of them"},
		{trace: text("", "a 0 1 8", "b 1 1 40"), want: "jobs.csv:3:7: num_gpu: is 40, as 5 pods with 8 GPUs each; the empty cluster has room for 4 of them"},
		{trace: text(",num_pods", "a 0 1 16 1"), want: "jobs.csv:2:7: num_gpu: is 16, as 1 pod with 16 GPUs each; the empty cluster has room for 0 of them"},
		{trace: text(",gpu_model", "a 0 1 8 B200"), want: `jobs.csv:2:9: gpu_model: "B200" is no GPU model of the cluster; it has H100`},
		{trace: text(""), want: "jobs.csv: has a header and no rows; expected at least one"},
		{trace: text("", "a 5 1 8", "b 4 1 8"), want: "jobs.csv:3:3: submission_time: is 1s before the job of the row above; expected rows in the order of their submission"},
		{trace: text(",queue", "a 0 1 8 x"), queue: "y", want: `jobs.csv: has no job of queue "y"; expected some`},
	} {
		o := defaults()
		o.Queue = bad.queue
		_, err := Compare(t.Context(), bad.trace, []Cluster{c}, []Policy{policy(t, "fifo"), policy(t, "hrrn")}, o)
		var problems problem.Problems
		if !errors.As(err, &problems) || err.Error() != bad.want {
			t.Errorf("got  %v\nwant %s", err, bad.want)
		}
	}
}

// TestRequiredLeaf refuses a gang that no leaf can hold.
func TestRequiredLeaf(t *testing.T) {
	o := defaults()
	o.Topology = RequireLeaf
	_, err := Run(policy(t, "hrrn"), world(t, "fattree:4x8/2/2"), text("", "a 0 1 32"), o)
	if err == nil || !strings.Contains(err.Error(), "as 4 pods with 8 GPUs each; the empty cluster has room for 2 of them in one leaf") {
		t.Errorf("got %v", err)
	}
}

func TestBadPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"lifo":       `policy "lifo": unknown queue "lifo"; expected one of fifo, greedy, sjf, backfill, hrrn`,
		"fifo/magic": `policy "fifo/magic": unknown strategy "magic"; expected one of binPack, costOptimized, fragmentationAware, leastAllocated, leastLoaded, mostAllocated, random, topologyAware`,
		"":           `policy "": unknown queue ""; expected one of fifo, greedy, sjf, backfill, hrrn`,
	} {
		if _, err := ParsePolicy(text, "topologyAware"); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	if _, err := ParsePolicies([]string{"fifo", "fifo/topologyAware"}, "topologyAware"); err == nil {
		t.Error("a policy may be there twice")
	}
}

// TestACanceledComparison ends early.
func TestACanceledComparison(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, text("", "a 0 1 1"), []Cluster{world(t, "flat:1x8")}, []Policy{policy(t, "fifo")}, defaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// endless makes rows of a trace as they are read.
type endless struct {
	rows, made int
	rest       []byte
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.made == e.rows {
			return 0, io.EOF
		}
		if e.made == 0 {
			e.rest = []byte("job_id,submission_time,duration,num_gpu\n")
		}
		e.rest = fmt.Appendf(e.rest, "job-with-a-long-name-%d,%d,30,%d\n", e.made, e.made*10, 1+e.made%8)
		e.made++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (*endless) Close() error { return nil }

// TestTracesStream holds the memory that a long trace takes to the few bytes that are counted of
// each job that has ended.
func TestTracesStream(t *testing.T) {
	const rows = 100_000
	c := world(t, "flat:8x8")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	largest := uint64(0)
	o := defaults()
	started := 0
	o.Started = func(Start) {
		if started++; started%20_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			largest = max(largest, after.HeapAlloc)
		}
	}
	trace := Trace{Name: "endless", Open: func() (io.ReadCloser, error) { return &endless{rows: rows}, nil }}
	r, err := Run(policy(t, "greedy"), c, trace, o)
	if err != nil || r.Jobs != rows {
		t.Fatalf("%+v, %v", r, err)
	}
	// Four figures of 4 bytes a job, twice that while a slice grows.
	if each := float64(largest-min(largest, before.HeapAlloc)) / rows; each > 64 {
		t.Errorf("%.0f bytes of memory for each job", each)
	}
}

// BenchmarkReplay tells how many arrivals and ends a core gets through.
func BenchmarkReplay(b *testing.B) {
	for _, p := range []string{"fifo/leastAllocated", "greedy/topologyAware", "hrrn/topologyAware", "backfill/topologyAware"} {
		b.Run(p, func(b *testing.B) {
			c, events := world(b, "fattree:1024x8"), 0
			for b.Loop() {
				trace := Trace{Name: "endless", Open: func() (io.ReadCloser, error) { return &endless{rows: 15_000}, nil }}
				r, err := Run(policy(b, p), c, trace, defaults())
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

package replay

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/core/collective"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/fabric"
)

// world makes a cluster of a shape.
func world(t testing.TB, shape string) Cluster {
	t.Helper()
	f, err := fabric.Shape(shape)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	m, err := collective.New(f.Fabric, s, f.Uplinks)
	if err != nil {
		t.Fatal(err)
	}
	return Cluster{Name: shape, Snapshot: s, Model: m}
}

// text is a trace of rows "id submit duration gpus", in seconds, with the columns that follow.
func text(header string, rows ...string) Trace {
	var b strings.Builder
	b.WriteString("job_id,submission_time,duration,num_gpu" + header + "\n")
	for _, r := range rows {
		b.WriteString(strings.Join(strings.Fields(r), ",") + "\n")
	}
	return Trace{Name: "jobs.csv", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(b.String())), nil
	}}
}

func policy(t testing.TB, text string) Policy {
	t.Helper()
	p, err := ParsePolicy(text, "topologyAware")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func defaults() Options {
	return Options{Estimates: Oracle, Topology: PreferLeaf, Seed: 1, AllReduce: 1 << 30, Share: 0.3}
}

// starts replays and returns when each job started, in the order of the starts: "a@0 b@10".
func starts(t *testing.T, p string, c Cluster, trace Trace, o Options) (string, *Result) {
	t.Helper()
	var log []string
	o.Started = func(s Start) { log = append(log, fmt.Sprintf("%s@%.0f", s.Job.ID, s.At.Seconds())) }
	r, err := Run(policy(t, p), c, trace, o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(log, " "), r
}

const hour = time.Hour
